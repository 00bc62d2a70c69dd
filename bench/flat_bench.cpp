// Whether landings, rollbacks, plans and steps cost the same whatever the depth, the tip, the pins and the holes.
//
// Every line is a question, asked of two books that differ in one thing, in turn, 20 times. The ratio is the median of
// the 20 ratios. A limit counts as broken where three quarters of the pairs are beyond it, three times over.
#include "flat_side.hpp"
#include "pairs.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace {

using flat::Setting;
using flat::Side;
using rollback::Position;

constexpr double landing_limit = 200;  // ns: nearest, roll_back
constexpr double plan_limit = 1000;    // ns: a chunk of one token, all components
constexpr double strict_ratio = 1.02;

struct Flags {
  bool json = false;
  bool quick = false;
  double ratio_limit = 1.5;
  std::int64_t sequences = axes::sequences;
  Position far_tip = 1'000'000'000;
  std::string only;
};

/// What the two sides of a pair differ in.
struct Axis {
  std::string name;
  Setting baseline;
  Setting variant;
};

struct Line {
  std::string question;
  std::string axis;
  std::int64_t sequences;
  pairs::Result result;
  double limit;  // ns; 0: none
  int tries;

  [[nodiscard]] double ratio() const { return pairs::quantile(result.ratio, 0.5); }
  [[nodiscard]] bool too_slow() const {
    using pairs::Result;
    return limit > 0 && (Result::beyond(result.baseline, limit) || Result::beyond(result.variant, limit));
  }
  [[nodiscard]] bool uneven(Flags const& flags) const { return pairs::Result::beyond(result.ratio, flags.ratio_limit); }
  [[nodiscard]] bool broken(Flags const& flags) const { return too_slow() || uneven(flags); }
};

std::vector<Axis> all_axes(Flags const& flags) {
  Setting base;
  base.sequences = flags.sequences;
  base.tip = 1 << 14;  // beyond the reach, so that the tiers are full
  std::vector<Axis> out;
  auto const add = [&out](std::string name, Setting const& baseline, auto change) {
    Setting variant = baseline;
    change(variant);
    out.push_back({std::move(name), baseline, variant});
  };
  add("nothing", base, [](Setting&) {});  // what noise and the places of memory make of it

  Setting depth = base;
  depth.aligned = 1;
  depth.per_token = 0;  // so that rollbacks land on boundaries
  depth.tip = 1 << 20;
  add("aligned 1 -> 4096", depth, [](Setting& s) { s.aligned = 4096; });

  // A state of HCA has 128 rows, and lists name at most 2^30 of a component: so deep there is no room for 10,000 slots.
  Setting tokens = base;
  tokens.sequences = std::min<std::int64_t>(base.sequences, 1800);
  tokens.per_token = 1;
  add("per_token 1 -> 4096", tokens, [](Setting& s) { s.per_token = 4096; });

  // The tier is full from the first tip on, and both stand at a boundary.
  Setting tip = base;
  tip.aligned = 4;
  tip.tip = 1024;
  Position const far = rollback::boundary_at_or_below(flags.far_tip, axes::quantum);
  add(fmt::format("tip 1024 -> {}", far), tip, [far](Setting& s) { s.tip = far; });

  add("pins 0 -> 8 kept", base, [](Setting& s) { s.pins = s.pinned = 8; });

  Setting holes = base;
  holes.aligned = 4096;
  holes.pins = 8;  // in both: only to make the holes
  holes.tip = 1 << 21;
  add("holes 0 -> 7 of 8", holes, [](Setting& s) { s.holes = true; });
  return out;
}

void measure(Axis const& axis, Flags const& flags, std::vector<Line>& lines) {
  Side baseline(axis.baseline);
  Side variant(axis.variant);
  std::int64_t const scale = flags.quick ? 1 : 10;
  auto const line = [&](char const* question, std::int64_t sequences, double limit, auto ask) {
    Line l{question, axis.name, sequences, {}, flags.quick ? 0 : limit, 0};  // in a hurry, beside others: ratios alone
    do {
      int const lane = l.tries++ * (flat::pair_count + 1);
      ask(baseline, lane);  // unmeasured: the first touch of memory is nobody's cost
      ask(variant, lane);
      l.result = pairs::measure(
          flat::pair_count, [&](int i) { return ask(baseline, lane + 1 + i); },
          [&](int i) { return ask(variant, lane + 1 + i); });
    } while (l.broken(flags) && l.tries < flat::tries);
    lines.push_back(std::move(l));
  };
  line("nearest, a boundary", 1, landing_limit, [&](Side& s, int) { return s.nearest_boundary(4096 * scale); });
  if (axis.baseline.per_token > 0) {
    line("nearest, a token", 1, landing_limit, [&](Side& s, int) { return s.nearest_token(4096 * scale); });
    line("nearest, last token", 1, landing_limit, [&](Side& s, int) { return s.nearest_last(4096 * scale); });
  }
  line("plan", 1, plan_limit, [&](Side& s, int i) { return s.plan(flat::first_plan + i, 200 * scale); });
  line("plan, blocks end", 1, plan_limit,
       [&](Side& s, int i) { return s.plan(flat::first_block_end + i, 200 * scale); });
  line("step", 1, 0, [&](Side& s, int i) { return s.step(flat::first_step + i, axes::quantum * scale); });
  auto const all = static_cast<std::int32_t>(axis.baseline.sequences);
  std::int32_t const few = std::min(64, all);
  line("roll_back", few, landing_limit, [&](Side& s, int) { return s.roll_back(few, 20 * scale); });
  line("roll_back", all, landing_limit, [&](Side& s, int) { return s.roll_back(all, flags.quick ? 1 : 3); });
}

void print(std::vector<Line> const& lines, Flags const& flags) {
  fmt::print("{:<20} {:<22} {:>6} {:>9} {:>9} {:>7} {:>15} {:>6} {:>8}\n", "question", "axis", "slots", "base ns", "ns",
             "ratio", "quartiles", "limit", "result");
  for (Line const& l : lines) {
    fmt::print("{:<20} {:<22} {:>6} {:>9.1f} {:>9.1f} {:>7.3f} {:>7.3f} {:>7.3f} {:>6} {:>8}\n", l.question, l.axis,
               l.sequences, pairs::quantile(l.result.baseline, 0.5), pairs::quantile(l.result.variant, 0.5), l.ratio(),
               pairs::quantile(l.result.ratio, 0.25), pairs::quantile(l.result.ratio, 0.75),
               l.limit > 0 ? fmt::format("{:.0f}", l.limit) : "-",
               l.broken(flags)             ? "BROKEN"
               : l.ratio() <= strict_ratio ? "flat"
                                           : "within");
  }
  fmt::print(
      "flat: ratio at most {:g}; within: at most {:g}; BROKEN: more than that, or slower than the limit (ns), in "
      "three quarters of the pairs of each of {} tries\n",
      strict_ratio, flags.ratio_limit, flat::tries);
}

nlohmann::ordered_json as_json(std::vector<Line> const& lines, Flags const& flags) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (Line const& l : lines) {
    nlohmann::ordered_json line = {
        {"question", l.question},
        {"axis", l.axis},
        {"slots", l.sequences},
        {"pairs", flat::pair_count},
        {"baseline_ns", pairs::quantile(l.result.baseline, 0.5)},
        {"variant_ns", pairs::quantile(l.result.variant, 0.5)},
        {"ratio", l.ratio()},
        {"ratio_quartiles", {pairs::quantile(l.result.ratio, 0.25), pairs::quantile(l.result.ratio, 0.75)}},
        {"strict_ratio", strict_ratio},
        {"flat", l.ratio() <= strict_ratio},
        {"ratio_limit", flags.ratio_limit},
        {"ratio_broken", l.uneven(flags)},
        {"tries", l.tries}};
    line["limit_ns"] = l.limit > 0 ? nlohmann::ordered_json(l.limit) : nlohmann::ordered_json(nullptr);
    line["limit_broken"] = l.too_slow();
    out.push_back(std::move(line));
  }
  return out;
}

int run(Flags const& flags) {
  std::vector<Line> lines;
  for (Axis const& axis : all_axes(flags)) {
    if (axis.name.find(flags.only) != std::string::npos) measure(axis, flags, lines);
  }
  if (lines.empty()) throw std::invalid_argument("no axis has '" + flags.only + "' in its name");
  if (flags.json) {
    fmt::print("{}\n", as_json(lines, flags).dump(2));
  } else {
    print(lines, flags);
  }
  return std::any_of(lines.begin(), lines.end(), [&](Line const& l) { return l.broken(flags); }) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Whether what the books do costs the same whatever the depth, the tip, the pins and the holes"};
  app.add_flag("--json", flags.json, "print a JSON array");
  CLI::Option* const quick =
      app.add_flag("--quick", flags.quick, "1,000 slots, a tip of 1e7, short samples; ratios alone");
  app.add_option("--ratio-limit", flags.ratio_limit, "the largest ratio allowed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--sequences", flags.sequences, "slots that are rolled back")
      ->check(CLI::Range(1, 10000))
      ->excludes(quick)
      ->capture_default_str();
  app.add_option("--far-tip", flags.far_tip, "the far tip")
      ->check(CLI::Range(Position{2048}, Position{1} << 40))
      ->excludes(quick)
      ->capture_default_str();
  app.add_option("--axis", flags.only, "only axes whose name contains this");
  CLI11_PARSE(app, argc, argv);
  if (flags.quick) {
    flags.sequences = 1000;
    flags.far_tip = 10'000'000;
  }
  try {
    return run(flags);
  } catch (std::exception const& e) {
    fmt::print(stderr, "bench_flat: {}\n", e.what());
    return 2;
  }
}
