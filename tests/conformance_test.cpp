// The conformance suite on a plain memory without the books: right, it passes everything; wrong in any one way of real
// engines, the check of that name says so.
#include <rollback/testing/conformance.hpp>

#include "catch.hpp"
#include "naive_adapter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using naive::Config;
using naive::Defect;
using rollback::testing::all_checks;
using rollback::testing::Factory;
using rollback::testing::Memory;
using rollback::testing::Options;
using rollback::testing::Report;
using rollback::testing::Result;
using rollback::testing::Status;

namespace {

Config config(rollback::testing::Promise fold, rollback::testing::Promise ring, std::int32_t unverified) {
  Config c;
  c.fold = fold;
  c.ring = ring;
  c.unverified = unverified;
  return c;
}
Config both_tiers() { return config({4, 32, 4}, {4, 32, 4}, 4); }
Config token_only() { return config({10}, {12}, 10); }
Config boundaries_only() { return config({0, 16, 4}, {0, 16, 6}, 0); }
Config windowed() {
  Config c = config({3, 4, 8}, {3, 4, 9}, 3);
  c.window = 6;
  c.window_rows = 18;
  return c;
}
Config unequal_quanta() { return config({8, 6, 4}, {10, 4, 9}, 8); }
Config unequal_depths() { return config({8}, {2, 32, 4}, 2); }

Report run(Config const& c, Options const& options = {}) {
  return rollback::testing::run([c] { return naive::adapt(c); }, options);
}

std::vector<std::string> skipped(Report const& report) {
  std::vector<std::string> ids;
  for (Result const& r : report.results) {
    if (r.status == Status::skipped) ids.push_back(r.check);
  }
  return ids;
}

}  // namespace

TEST_CASE("a memory that is right passes") {
  Config large = config({8, 128, 8}, {16, 128, 8}, 8);
  Config narrow = both_tiers();
  narrow.max_rows = 7;
  Config least = both_tiers();
  least.slots = least.max_rows = 1;
  Options options;
  for (Config const& c :
       {both_tiers(), token_only(), boundaries_only(), windowed(), unequal_depths(), large, unequal_quanta(), narrow,
        config({8}, {0, 32, 4}, 0), config({1, 8, 1}, {1, 8, 1}, 1), config({}, {}, 0)}) {
    ++options.seed;
    Report const report = run(c, options);
    INFO(report.text());
    CHECK(report.ok());
    CHECK(report.results.size() == all_checks().size());
  }
}

TEST_CASE("what cannot be shown is skipped, with the reason") {
  CHECK(skipped(run(both_tiers())) == std::vector<std::string>{"BR-26", "BR-32"});
  Report const report = run(boundaries_only());
  REQUIRE(report.find("BR-01") != nullptr);
  CHECK(report.find("BR-01")->text == "needs a promise of a state a token, at least 1");
  CHECK(report.find("BR-36")->text == "needs verify of at least 1 rows");

  Options few;
  few.max_tokens = 100;
  CHECK(run(both_tiers(), few).find("BR-80")->text == "needs a sequence of 1811 tokens");

  Factory const bare = [] {
    Memory m = naive::adapt(both_tiers());
    m.verify = nullptr;
    m.batch = nullptr;
    m.save = nullptr;
    m.copy = nullptr;
    m.fail_next = nullptr;
    m.held = nullptr;
    return m;
  };
  Report const of_bare = rollback::testing::run(bare);
  CHECK(of_bare.ok());
  for (char const* id : {"BR-36", "BR-44", "BR-47", "BR-54", "BR-69", "BR-71", "BR-74", "BR-82", "honest end"}) {
    INFO(id);
    CHECK(of_bare.find(id)->status == Status::skipped);
  }
}

TEST_CASE("nothing to compare is never a pass") {
  Factory const mute = [] {
    Memory m = naive::adapt(both_tiers());
    m.state = [](std::int32_t) { return rollback::testing::Bytes(); };
    m.feed = [feed = m.feed](rollback::testing::Rows const& rows, rollback::testing::Outputs& outputs) {
      bool const fed = feed(rows, outputs);
      outputs.clear();
      return fed;
    };
    m.verify = nullptr;
    m.batch = nullptr;
    return m;
  };
  Report const of_mute = rollback::testing::run(mute);
  CHECK(of_mute.find("BR-01")->status == Status::failed);
  CHECK(of_mute.find("BR-06")->text.find("nothing can be compared") != std::string::npos);

  Factory const idle = [] {
    Memory m = naive::adapt(both_tiers());
    m.copy = [](std::int32_t, std::int32_t) { return false; };
    m.held = [] { return std::size_t{0}; };
    return m;
  };
  Report const of_idle = rollback::testing::run(idle);
  CHECK(of_idle.ok());
  CHECK(skipped(of_idle) == std::vector<std::string>{"BR-26", "BR-32", "BR-34", "BR-82", "BR-74"});
}

TEST_CASE("a check that does not exist is not passed") {
  Options options;
  options.only = {"BR-01", "BR-1"};
  Report const report = run(both_tiers(), options);
  CHECK_FALSE(report.ok());
  REQUIRE(report.results.size() == 2);
  CHECK(report.find("BR-01")->status == Status::passed);
  CHECK(report.find("BR-1")->text == "there is no check of this id");
}

TEST_CASE("each defect is caught by the check of its kind") {
  struct Case {
    Defect defect;
    Config config;
    char const* check;
  };
  std::vector<Case> const cases{
      {Defect::restores_every_chunk, both_tiers(), "BR-07"},
      {Defect::marker_never_consumed, both_tiers(), "BR-06"},
      {Defect::keeps_states_of_last_chunk_only, both_tiers(), "BR-10"},
      {Defect::clear_leaves_kept_states, both_tiers(), "BR-64"},
      {Defect::serves_abandoned_boundary, both_tiers(), "provenance"},
      {Defect::lists_rejected_boundary, both_tiers(), "BR-21"},
      {Defect::window_judged_by_tip, windowed(), "BR-32"},
      {Defect::boundary_off_by_one, both_tiers(), "BR-30"},
      {Defect::first_block_reads_stale_rows, both_tiers(), "BR-76"},
      {Defect::second_rollback_ignored, both_tiers(), "BR-04"},
      {Defect::second_rollback_ignored, token_only(), "stacking"},
      {Defect::rolls_beyond_reach, both_tiers(), "question and act agree"},
      {Defect::can_says_yes_to_more, both_tiers(), "BR-99"},
      {Defect::refusal_drops_restore, both_tiers(), "refusal changes nothing"},
      {Defect::truncates_first_part_only, unequal_depths(), "BR-29"},
      {Defect::persists_last_four_rows, token_only(), "BR-36"},
      {Defect::failed_feed_drops_restore, both_tiers(), "BR-71"},
      {Defect::load_keeps_boundaries, both_tiers(), "BR-49"},
      {Defect::saves_live_state, both_tiers(), "BR-47"},
      {Defect::saves_live_state, boundaries_only(), "BR-46"},
      {Defect::load_moves_counter_only, both_tiers(), "BR-54"},
      {Defect::load_clears_others, both_tiers(), "BR-51"},
      {Defect::copy_does_nothing, both_tiers(), "BR-74"},
      {Defect::member_not_kept, both_tiers(), "BR-43"},
      {Defect::uses_last_slot_of_shape, both_tiers(), "BR-59"},
      {Defect::restore_burns_boundaries, both_tiers(), "BR-97"},
      {Defect::nearest_is_newest, both_tiers(), "BR-96"},
      {Defect::block_start_not_kept, both_tiers(), "BR-15"},
      {Defect::output_of_next_row, both_tiers(), "BR-45"},
      {Defect::boundaries_at_ends_of_calls_only, both_tiers(), "BR-30"},
      {Defect::kept_states_never_dropped, both_tiers(), "BR-82"},
      {Defect::slot_wraps_around, both_tiers(), "BR-68"},
      {Defect::padding_writes_slot_0, both_tiers(), "BR-44"},
      {Defect::throws_on_refusal, both_tiers(), "BR-75"},
      {Defect::failure_claims_entry, both_tiers(), "honest end"},
      {Defect::feeds_anywhere, both_tiers(), "BR-88"},
      {Defect::loads_what_is_cut, both_tiers(), "BR-55"},
      {Defect::refuses_the_tip, both_tiers(), "BR-18"},
      {Defect::alignment_inflated, unequal_quanta(), "BR-26"},
      {Defect::width_six_corrupts, token_only(), "BR-39"},
      {Defect::overlap_only_inside_call, both_tiers(), "BR-79"},
      {Defect::overlap_only_inside_call, both_tiers(), "split invariance"},
      {Defect::stale_blocks_visible, both_tiers(), "BR-40"},
      {Defect::call_drops_states_of_others, both_tiers(), "BR-58"},
  };
  for (Case const& c : cases) {
    for (std::uint64_t seed : {1u, 2u, 3u}) {
      Config wrong = c.config;
      wrong.defect = c.defect;
      Options options;
      options.seed = seed;
      options.only = {c.check};
      Report const report = run(wrong, options);
      INFO("defect " << static_cast<int>(c.defect) << " seed " << seed << "\n" << report.text());
      REQUIRE(report.results.size() == 1);
      CHECK(report.results[0].status == Status::failed);
      CHECK(report.results[0].text.rfind("expected ", 0) == 0);
      CHECK_FALSE(report.results[0].trace.empty());
    }
  }
}

TEST_CASE("a finding says what was expected, what was seen and how it came about") {
  Config wrong = both_tiers();
  wrong.defect = Defect::second_rollback_ignored;
  Options options;
  options.only = {"BR-04"};
  Report const report = run(wrong, options);
  REQUIRE(report.results.size() == 1);
  Result const& finding = report.results[0];
  CHECK(finding.check == "BR-04");
  CHECK(finding.text == "expected what position 64 of slot 0 at tip 69 emitted to equal a fresh run; seen: it differs");
  CHECK(finding.trace == std::vector<std::string>{"feed(slot 0, positions 0 to 126)", "roll(slot 0, 96) at tip 127",
                                                  "roll(slot 0, 64) at tip 96", "feed(slot 0, positions 64 to 68)"});
  CHECK(report.text() == "FAILED  BR-04 (" + finding.about + ")\n        " + finding.text +
                             "\n          feed(slot 0, positions 0 to 126)\n          roll(slot 0, 96) at tip 127\n"
                             "          roll(slot 0, 64) at tip 96\n          feed(slot 0, positions 64 to 68)\n"
                             "0 passed, 1 failed, 0 skipped\n");
}

TEST_CASE("an exception is a finding, and the checks after it run") {
  Config wrong = both_tiers();
  wrong.defect = Defect::throws_on_refusal;
  Report const report = run(wrong);
  CHECK(report.find("BR-18")->text == "expected no exception from roll; seen: no state at 65");
  CHECK(report.find("BR-54")->status == Status::passed);
  CHECK(report.results.size() == all_checks().size());

  Factory const broken = []() -> Memory { throw std::runtime_error("no device"); };
  Report const of_broken = rollback::testing::run(broken);
  CHECK(of_broken.count(Status::failed) == all_checks().size());
  CHECK(of_broken.results[0].text == "expected no exception from making a memory; seen: no device");
}

TEST_CASE("a memory that is wired in wrongly is told so") {
  auto const text_of = [](auto const& change) {
    Options options;
    options.only = {"BR-79"};
    Report const report = rollback::testing::run(
        [&change] {
          Memory m = naive::adapt(both_tiers());
          change(m);
          return m;
        },
        options);
    return report.results.at(0).text;
  };
  CHECK(text_of([](Memory&) {}).empty());
  CHECK(text_of([](Memory& m) { m.nearest = nullptr; }) ==
        "expected all callbacks that are needed; seen: an empty function");
  CHECK(text_of([](Memory& m) { m.description.slots = 0; }) ==
        "expected a description that can be; seen: slots must be at least 1");
  CHECK(text_of([](Memory& m) { m.description.promises[0].quantum = 0; }) ==
        "expected a description that can be; seen: a quantum must be at least 1");
  CHECK(text_of([](Memory& m) { m.description.window = 8; }) ==
        "expected a description that can be; seen: window must be at least 0, and window_rows no less");
  CHECK(text_of([](Memory& m) { m.feed = [](auto const&, auto&) { return false; }; }) ==
        "expected the rows to run; seen: they were refused");
  CHECK(text_of([](Memory& m) {
          m.feed = [feed = m.feed](auto const& rows, auto& outputs) {
            bool const ran = feed(rows, outputs);
            outputs.emplace_back();
            return ran;
          };
        }) == "expected an output a row; seen: 2 of them");
}

TEST_CASE("the same seed gives the same report, and another one other tokens") {
  auto const last_token_of = [](std::uint64_t seed) {
    rollback::testing::Token last = 0;
    Options options;
    options.seed = seed;
    options.only = {"random walk"};
    Report const report = rollback::testing::run(
        [&last] {
          Memory m = naive::adapt(both_tiers());
          m.feed = [&last, feed = m.feed](auto const& rows, auto& outputs) {
            last = rows.tokens.back();
            return feed(rows, outputs);
          };
          return m;
        },
        options);
    CHECK(report.ok());
    return last;
  };
  CHECK(last_token_of(1) == last_token_of(1));
  CHECK(last_token_of(1) != last_token_of(2));
  Config wrong = both_tiers();
  wrong.defect = Defect::uses_last_slot_of_shape;
  CHECK(run(wrong).text() == run(wrong).text());
}

TEST_CASE("an engine may say what equals, and how references are fed") {
  Options options;
  options.reference_rows = 1;
  CHECK(run(both_tiers(), options).ok());
  Config wrong = both_tiers();
  wrong.defect = Defect::member_not_kept;
  options.only = {"BR-43"};
  CHECK_FALSE(run(wrong, options).ok());
  options.equal = [](auto const&, auto const&) { return true; };
  CHECK(run(wrong, options).ok());
}
