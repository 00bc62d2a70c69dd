// The recipes of failures_test.cpp and positions_test.cpp on a `dsv4::Memory`: what was promised before a failure still
// holds after it, a refusal is an answer, and rows that repeat or skip a position are refused.
#include "scenario_dsv4_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace dsv4_scenario;

TEST_CASE("BR-71 on a DSV4 memory: a pending rollback outlives the failure of the feed that would carry it out") {
  on_every_memory(options({3, 64, 4}, 1, 100), [](Engine const& empty) {
    Engine fed = empty;
    fed.feed(0, fed.drawn(300));
    for (Position p : {256, 192, 128, 299, 297}) {  // at 192, and below the tip, HCA has a state to be restored as well
      Engine engine = fed;
      REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
      // No room: refused before anything began.
      Flight too_many = engine.rows_of({{0, engine.drawn(101)}});
      REQUIRE(engine.books().begin(too_many.batch, too_many.ticket) == Verdict::batch_too_large);
      REQUIRE(engine.books().is_armed(engine.slot(0)));
      // Failed before it ran, while it ran, and after some chunks of it; with a younger batch behind it where there may
      // be one.
      for (BadChunk state : {BadChunk::never_started, BadChunk::ran_last, BadChunk::may_have_run}) {
        for (std::int32_t good = 0; good <= 5; ++good) {
          CAPTURE(p, static_cast<int>(state), good);
          Engine failed = engine;
          Flight f = failed.begin({{0, failed.drawn(100)}}, 20);
          for (std::int32_t k = 0; k < good; ++k) failed.carry_out(f, k);
          if (good < 5 && state != BadChunk::never_started) {
            failed.plan(f, good);
            failed.run(f);
          }
          bool const behind = state == BadChunk::may_have_run && failed.books().steps_in_flight() > 1;
          if (behind) {
            Flight younger = failed.begin({{0, failed.drawn(70)}});
            failed.plan(younger);
            failed.run(younger);
          }
          std::vector<Outcome> const outcomes = failed.fail(f, good, state);
          REQUIRE(outcomes.size() == 1);
          // Once the restore is known to have run, a younger batch may be given the place that it read.
          if (good == 0 || !behind) REQUIRE(outcomes[0].tip == p);
          REQUIRE(outcomes[0].armed);
          REQUIRE(differs_from_fresh_run(failed, 0) == "");
          REQUIRE(restores_once(failed, 0, 30, 13));
          REQUIRE(differs_from_fresh_run(failed, 0) == "");
          for (std::int32_t count : feed_counting(failed, 0, 9, 4)) REQUIRE(count == 0);
        }
      }
    }
  });
}

TEST_CASE("BR-71 on a DSV4 memory: where a failed feed leaves a sequence it has what a fresh run has") {
  for (Position raw_rows : {0, 28}) {  // 28: the least there may be, so that a batch overwrites the window at its entry
    MemoryOptions o = options({3, 64, 4}, 2, 100);
    o.max_chunk_rows = 20;
    o.raw_rows = raw_rows;
    on_every_memory(o, [raw_rows](Engine const& empty) {
      Engine fed = empty;
      for (std::size_t s : {0U, 1U}) fed.feed(s, fed.drawn(250 - 50 * s));
      for (BadChunk state : {BadChunk::never_started, BadChunk::ran_last, BadChunk::may_have_run}) {
        for (std::int32_t good = 0; good <= 5; ++good) {
          CAPTURE(raw_rows, static_cast<int>(state), good);
          Engine engine = fed;
          Flight f = engine.begin({{0, engine.drawn(40)}, {1, engine.drawn(20)}, {0, engine.drawn(40)}});
          for (std::int32_t k = 0; k < good; ++k) engine.carry_out(f, k);
          if (good < 5 && state != BadChunk::never_started) {
            engine.plan(f, good);
            engine.run(f);
          }
          std::vector<Outcome> const outcomes = engine.fail(f, good, state);
          REQUIRE(outcomes.size() == 2);
          for (Outcome const& outcome : outcomes) {
            auto const s = static_cast<std::size_t>(outcome.slot.index);
            REQUIRE(engine.tip(s) == outcome.tip);
            if (raw_rows == 0) REQUIRE(outcome.tip >= 128);  // a boundary at worst
            bool const kept = raw_rows == 0 && engine.memory.options().entry_copy;
            if (kept) REQUIRE((outcome.tip == 250 - 50 * outcome.slot.index));
            REQUIRE(differs_from_fresh_run(engine, s) == "");
            for (Position p : landings(engine, s)) REQUIRE(differs_after_roll_back(engine, s, p) == "");
          }
        }
      }
    });
  }
}

TEST_CASE("BR-75 on a DSV4 memory: without any tier a rollback is refused with a reason") {
  on_every_memory(options({}), [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, engine.drawn(30));
    for (Position p = 1; p < 30; ++p) {
      refuses(engine, 0, p, Verdict::beyond_reach);
      Landing const landing = engine.books().nearest(engine.slot(0), p);
      REQUIRE(landing.position == 0);
      REQUIRE(landing.replay == p);
      REQUIRE(landing.limited_by == engine.memory.component(Compressor::csa));
      REQUIRE_FALSE(std::string(text(landing.why)).empty());
    }
    REQUIRE(differs_from_fresh_run(engine, 0) == "");
    REQUIRE(differs_after_roll_back(engine, 0, 30) == "");
    REQUIRE(differs_after_roll_back(engine, 0, 0) == "");
    engine.feed(0, engine.drawn(130));
    refuses(engine, 0, 128, Verdict::beyond_reach);  // where HCA alone could land: it is empty there
  });
}

TEST_CASE("BR-88 on a DSV4 memory: repeated and skipped positions are refused and boundaries are of positions") {
  on_every_memory(options({3, 128, 4}), [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, engine.drawn(100));
    Engine const before = engine;
    auto const refused = [&](std::vector<Position> const& positions, Verdict why, std::int32_t bad_row) {
      Flight f = engine.rows_of({{0, engine.drawn(positions.size())}});
      f.positions = positions;
      f.batch.positions = f.positions.data();
      std::int32_t row = -5;
      REQUIRE(engine.books().begin(f.batch, f.ticket, &row) == why);
      REQUIRE(row == bad_row);
      REQUIRE(same(engine, before));
    };
    refused(std::vector<Position>(60, 100), Verdict::position_repeated, 1);
    refused({99}, Verdict::position_repeated, 0);
    refused({0}, Verdict::position_repeated, 0);
    refused({101}, Verdict::position_gap, 0);
    refused(multiples(1, 160, 220), Verdict::position_gap, 0);
    for (std::int32_t row : {1, 7, 27, 28, 29, 59}) {  // the boundary's row among them
      CAPTURE(row);
      std::vector<Position> positions = multiples(1, 100, 159);
      auto const at = static_cast<std::size_t>(row);
      positions[at] -= 1;
      refused(positions, Verdict::position_repeated, row);
      positions[at] += 2;
      refused(positions, Verdict::position_gap, row);
    }
    REQUIRE(landings(engine, 0) == std::vector<Position>{97, 98, 99});
    engine.feed(0, engine.drawn(201));
    REQUIRE(landings(engine, 0) == std::vector<Position>{128, 256, 298, 299, 300});
    for (Position p : landings(engine, 0)) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
  });
}
