// The recipes of landings_test.cpp on a `dsv4::Memory`: the newest landing that serves, from whichever tier, and the
// ones below it stay.
#include "scenario_dsv4_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dsv4_scenario;

TEST_CASE("BR-96 on a DSV4 memory: the newest landing at or below the divergence is chosen") {
  for (Position quantum : {128, 64}) {
    on_every_memory(options({0, quantum, static_cast<std::int32_t>(1100 / quantum)}), [quantum](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(1100));
      for (Position divergence = 0; divergence < 1100; ++divergence) {
        CAPTURE(quantum, divergence);
        Landing const landing = engine.books().nearest(engine.slot(0), divergence);
        REQUIRE(landing.position == divergence / quantum * quantum);
        REQUIRE(landing.replay == divergence % quantum);
        Verdict const can = engine.books().can_land(engine.slot(0), divergence);
        REQUIRE((can == Verdict::accepted) == (landing.replay == 0));
      }
      Tokens const held = engine.tokens[0];
      for (Position divergence : {500, 128, 127, 640, 1099}) {  // what is the same is replayed, the rest is other
        CAPTURE(quantum, divergence);
        Engine turn = engine;
        Landing const landing = turn.books().nearest(turn.slot(0), divergence);
        REQUIRE(turn.roll_back(0, landing.position) == Verdict::accepted);
        turn.feed(0, Tokens(held.begin() + landing.position, held.begin() + divergence));
        turn.feed(0, turn.drawn(70));
        REQUIRE(differs_from_fresh_run(turn, 0) == "");
      }
    });
  }
}

TEST_CASE("BR-97 on a DSV4 memory: a landing that is used leaves the lower ones") {
  for (Position quantum : {128, 64}) {
    std::vector<Position> const all = multiples(quantum, quantum, quantum * 7);
    on_every_memory(options({0, quantum, 8}), [&all, quantum](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(static_cast<std::size_t>(8 * quantum - 24)));
      REQUIRE(landings(engine, 0) == all);
      for (std::size_t first = 1; first < all.size(); ++first) {
        for (std::size_t second : {first - 1, std::size_t{0}}) {
          CAPTURE(all[first], all[second]);
          Engine copy = engine;
          REQUIRE(copy.roll_back(0, all[first]) == Verdict::accepted);
          copy.feed(0, copy.drawn(1));
          REQUIRE(landings(copy, 0) == multiples(quantum, quantum, all[first]));
          REQUIRE(copy.roll_back(0, all[second]) == Verdict::accepted);
          REQUIRE(landings(copy, 0) == multiples(quantum, quantum, all[second]));
          REQUIRE(differs_from_fresh_run(copy, 0) == "");
        }
      }
      for (std::size_t at = all.size(); at-- > 0;) {  // down the whole ladder on one engine
        REQUIRE(engine.roll_back(0, all[at]) == Verdict::accepted);
        engine.feed(0, engine.drawn(1));
        REQUIRE(differs_from_fresh_run(engine, 0) == "");
      }
    });
  }
}

TEST_CASE("BR-99 on a DSV4 memory: the tiers are asked in order and the oldest landing is known") {
  struct Case {
    Depths depths;
    Position at_depth_2;
    Tier tier_2;
    Position at_depth_50;
    Tier tier_50;
    Position reach;
  };
  for (Case const& expected : {Case{{8, 128, 4}, 1098, Tier::per_token, 1024, Tier::aligned, 640},
                               Case{{8, 64, 4}, 1098, Tier::per_token, 1024, Tier::aligned, 896},
                               Case{{0, 128, 4}, 1024, Tier::aligned, 1024, Tier::aligned, 640},
                               Case{{8, 128, 0}, 1098, Tier::per_token, 0, Tier::start, 1092}}) {
    on_every_memory(options(expected.depths), [&expected](Engine const& empty) {
      CAPTURE(expected.depths.per_token, expected.depths.quantum, expected.depths.aligned);
      Engine engine = empty;
      engine.feed(0, engine.drawn(1100));
      Landing const near = engine.books().nearest(engine.slot(0), 1098);
      REQUIRE(near.position == expected.at_depth_2);
      REQUIRE(near.tier == expected.tier_2);
      Landing const far = engine.books().nearest(engine.slot(0), 1050);
      REQUIRE(far.position == expected.at_depth_50);
      REQUIRE(far.tier == expected.tier_50);
      REQUIRE(far.replay == 1050 - far.position);
      REQUIRE(engine.books().reach(engine.slot(0)) == expected.reach);
      for (Position p = 1; p < expected.reach; ++p) {
        REQUIRE(engine.books().nearest(engine.slot(0), p).position == 0);
        REQUIRE(engine.books().can_land(engine.slot(0), p) != Verdict::accepted);
      }
      refuses(engine, 0, 512, Verdict::beyond_reach);
      for (Position p : {expected.at_depth_2, expected.at_depth_50, expected.reach}) {
        REQUIRE(differs_after_roll_back(engine, 0, p) == "");
      }
    });
  }
}
