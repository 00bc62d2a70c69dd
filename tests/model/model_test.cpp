// Random operations on the books against a model that keeps every state ever; a failure is shrunk to a minimal case and
// printed as a program. ROLLBACK_MODEL_OPERATIONS and ROLLBACK_MODEL_SEED say how many and from which seed;
// ROLLBACK_MODEL_PROGRAM names a file for the program, ROLLBACK_MODEL_DEFECT gives the engine a defect to be found.
#include "../catch.hpp"
#include "program.hpp"
#include "walk.hpp"

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#if defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define ROLLBACK_MODEL_SANITIZED
#  endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#  define ROLLBACK_MODEL_SANITIZED
#endif

namespace model {

// What rapidcheck prints of a case; the program that is printed in the end is the better one.
static void showValue(Case const& c, std::ostream& out) { out << c.ops.size() << " operations"; }

}  // namespace model

namespace {

std::uint64_t setting(char const* name, std::uint64_t otherwise) {
  char const* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

rc::Gen<std::uint32_t> number() { return rc::gen::inRange<std::uint32_t>(0, 1u << 16); }

rc::Gen<model::Op> operation() {
  using model::Kind;
  return rc::gen::build<model::Op>(
      rc::gen::set(&model::Op::kind, rc::gen::weightedElement<Kind>({{24, Kind::begin},
                                                                     {8, Kind::run},
                                                                     {4, Kind::settle},
                                                                     {22, Kind::commit},
                                                                     {4, Kind::fail},
                                                                     {9, Kind::roll_back},
                                                                     {5, Kind::pin},
                                                                     {2, Kind::unpin},
                                                                     {3, Kind::fork},
                                                                     {1, Kind::clear},
                                                                     {2, Kind::ask},
                                                                     {4, Kind::save_and_load},
                                                                     {21, Kind::refused}})),
      rc::gen::set(&model::Op::a, number()), rc::gen::set(&model::Op::b, number()),
      rc::gen::set(&model::Op::c, number()), rc::gen::set(&model::Op::d, number()));
}

rc::Gen<model::Configuration> configuration(std::uint32_t defect) {
  using model::ComponentChoice;
  using model::Configuration;
  using model::WindowChoice;
  auto const component = rc::gen::build<ComponentChoice>(
      rc::gen::set(&ComponentChoice::kind, number()), rc::gen::set(&ComponentChoice::per_token, number()),
      rc::gen::set(&ComponentChoice::quantum, number()), rc::gen::set(&ComponentChoice::aligned, number()),
      rc::gen::set(&ComponentChoice::empty_at, number()));
  auto const window = rc::gen::build<WindowChoice>(rc::gen::set(&WindowChoice::window, number()),
                                                   rc::gen::set(&WindowChoice::more_rows, number()));
  return rc::gen::build<Configuration>(
      rc::gen::set(&Configuration::slots, number()), rc::gen::set(&Configuration::steps_in_flight, number()),
      rc::gen::set(&Configuration::pins, number()), rc::gen::set(&Configuration::entry_copy, number()),
      rc::gen::set(&Configuration::max_rows, number()), rc::gen::set(&Configuration::chunk_rows, number()),
      rc::gen::set(&Configuration::max_context, number()), rc::gen::set(&Configuration::sinks, number()),
      rc::gen::set(&Configuration::worst_shapes, number()), rc::gen::set(&Configuration::pin_windows, number()),
      rc::gen::set(&Configuration::components, rc::gen::resize(3, rc::gen::container<std::vector<ComponentChoice>>(
                                                                      rc::gen::resize(100, component)))),
      rc::gen::set(&Configuration::windows,
                   rc::gen::resize(2, rc::gen::container<std::vector<WindowChoice>>(rc::gen::resize(100, window)))),
      rc::gen::set(&Configuration::defect, rc::gen::just(defect)));
}

}  // namespace

TEST_CASE("random operations agree with a model that keeps every state ever") {
#if defined(ROLLBACK_MODEL_SANITIZED)
  std::uint64_t const by_default = 20000;
#else
  std::uint64_t const by_default = 200000;
#endif
  std::uint64_t const wanted = setting("ROLLBACK_MODEL_OPERATIONS", by_default);
  std::uint64_t const seed = setting("ROLLBACK_MODEL_SEED", 1);
  auto const defect = static_cast<std::uint32_t>(setting("ROLLBACK_MODEL_DEFECT", 0));
  std::cout << "seed " << seed << ", " << wanted << " operations" << std::endl;
  std::string const parameters =
      "seed=" + std::to_string(seed) + " max_success=" + std::to_string(wanted / 100 + 10) + " max_size=100";
  REQUIRE(setenv("RC_PARAMS", parameters.c_str(), 1) == 0);

  model::Tally done;
  model::Case failing;  // the last one that failed, which is the smallest in the end
  std::string differs;
  auto const cases = rc::gen::build<model::Case>(
      rc::gen::set(&model::Case::configuration, rc::gen::resize(100, configuration(defect))),
      rc::gen::set(&model::Case::ops, rc::gen::resize(400, rc::gen::container<std::vector<model::Op>>(
                                                               rc::gen::resize(100, operation())))));
  bool const agreed = rc::check("books and model agree after every step", [&] {
    if (done.steps >= wanted && differs.empty()) return;
    model::Case const c = *cases;
    std::string const wrong = model::replay(c, &done);
    if (wrong.empty()) return;
    failing = c;
    differs = wrong;
    RC_FAIL(wrong);
  });
  std::cout << done.steps << " operations done: " << done.batches << " batches, " << done.commits << " commits, "
            << done.partial << " of a part, " << done.failures << " failures, " << done.roll_backs << " rollbacks, "
            << done.pins << " pins, " << done.forks << " forks, " << done.loads << " loads, " << done.refusals
            << " refusals" << std::endl;
  if (agreed) return;
  std::cout << "seed " << seed << ": " << differs << "\n\n";
  model::print_program(failing, std::cout);
  if (char const* const file = std::getenv("ROLLBACK_MODEL_PROGRAM")) {
    std::ofstream out(file);
    model::print_program(failing, out);
  }
  FAIL("the books differ from the model: " << differs << " (ROLLBACK_MODEL_SEED=" << seed << ")");
}
