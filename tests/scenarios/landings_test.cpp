// Choosing the landing: the newest that serves, from whichever tier, and the ones below it stay.
#include "scenario.hpp"
#include "scenario_dsv4.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace scenario;

namespace {

/// Calls f(books whose slot 0 was fed `tip` rows): of toy engines, and of a DSV4 memory.
template <class F>
void on_books(Depths d, std::int32_t tip, F f) {
  for (auto const& components : {all_planes(d), rings(d)}) {
    Engine engine(options(components));
    engine.feed(0, tip, whole);
    f(engine.books);
  }
  Memory memory = small_memory(d);
  feed_books(memory.books(), memory.books().slot(0), tip);
  f(memory.books());
}

}  // namespace

TEST_CASE("BR-96 the newest landing at or below the divergence is chosen") {
  on_books({0, 128, 8}, 1100, [](Books const& books) {
    Slot const slot = books.slot(0);
    REQUIRE(books.nearest(slot, 500).position == 384);
    REQUIRE(books.nearest(slot, 500).replay == 116);
    for (Position divergence = 0; divergence < 1100; ++divergence) {
      CAPTURE(divergence);
      Landing const landing = books.nearest(slot, divergence);
      REQUIRE(landing.position == divergence / 128 * 128);
      REQUIRE(landing.replay == divergence % 128);
      REQUIRE((books.can_land(slot, divergence) == Verdict::accepted) == (landing.replay == 0));
    }
    // A prompt that is held as a whole still leaves its last token to be fed.
    REQUIRE(books.nearest(slot, std::min<Position>(1100, 1100 - 1)).position == 1024);
  });
  on_every_engine({0, 128, 8}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 1100, whole);
    for (Position divergence : {500, 128, 127, 640, 1099}) {
      REQUIRE(differs_after_roll_back(engine, 0, engine.books.nearest(engine.slot(0), divergence).position) == "");
    }
  });
}

TEST_CASE("BR-97 a landing that is used leaves the lower ones") {
  std::vector<Position> const all = multiples(128, 128, 896);
  on_every_engine({0, 128, 8}, 1, [&all](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 1000, whole);
    REQUIRE(listed(engine, 0) == all);
    for (std::size_t first = 1; first < all.size(); ++first) {
      for (std::size_t second : {first - 1, std::size_t{0}}) {
        CAPTURE(all[first], all[second]);
        Engine copy = engine;
        REQUIRE(copy.roll_back(0, all[first]) == Verdict::accepted);
        copy.feed(0, 1, whole);
        REQUIRE(listed(copy, 0) == multiples(128, 128, all[first]));
        REQUIRE(copy.roll_back(0, all[second]) == Verdict::accepted);
        REQUIRE(listed(copy, 0) == multiples(128, 128, all[second]));
        REQUIRE(differs_from_fresh_run(copy, 0) == "");
      }
    }
    for (std::size_t at = all.size(); at-- > 0;) {  // down the whole ladder on one engine
      REQUIRE(engine.roll_back(0, all[at]) == Verdict::accepted);
      engine.feed(0, 1, whole);
      REQUIRE(engine.check(0) == "");
    }
  });
  Memory memory = small_memory({0, 128, 8});
  Slot const slot = memory.books().slot(0);
  feed_books(memory.books(), slot, 1000);
  REQUIRE(memory.books().roll_back(slot, 512) == Verdict::accepted);
  feed_books(memory.books(), slot, 1);
  REQUIRE(memory.books().can_land(slot, 640) == Verdict::ahead_of_tip);
  REQUIRE(listed(memory.books(), slot) == multiples(128, 128, 512));
  REQUIRE(memory.books().roll_back(slot, 384) == Verdict::accepted);
}

TEST_CASE("BR-99 the tiers are asked in order and the oldest landing is known") {
  struct Case {
    Depths depths;
    Position at_depth_2;
    Tier tier_2;
    Position at_depth_50;
    Tier tier_50;
    Position reach;
  };
  for (Case const& expected : {Case{{8, 128, 4}, 1098, Tier::per_token, 1024, Tier::aligned, 640},
                               Case{{0, 128, 4}, 1024, Tier::aligned, 1024, Tier::aligned, 640},
                               Case{{8, 0, 0}, 1098, Tier::per_token, 0, Tier::start, 1092}}) {
    CAPTURE(expected.depths.per_token, expected.depths.aligned);
    on_books(expected.depths, 1100, [&expected](Books const& books) {
      Slot const slot = books.slot(0);
      Landing const near = books.nearest(slot, 1098);
      REQUIRE(near.position == expected.at_depth_2);
      REQUIRE(near.tier == expected.tier_2);
      Landing const far = books.nearest(slot, 1050);
      REQUIRE(far.position == expected.at_depth_50);
      REQUIRE(far.tier == expected.tier_50);
      REQUIRE(far.replay == 1050 - far.position);
      REQUIRE(books.reach(slot) == expected.reach);
      for (Position p = 1; p < expected.reach; ++p) {
        Books copy = books;
        REQUIRE(books.nearest(slot, p).position == 0);
        REQUIRE(copy.roll_back(slot, p) != Verdict::accepted);
        REQUIRE(copy.tip(slot) == 1100);
      }
      Books copy = books;
      REQUIRE(copy.roll_back(slot, expected.reach) == Verdict::accepted);
    });
    on_every_engine(expected.depths, 1, [&expected](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, 1100, whole);
      refuses(engine, 0, 512, engine.books.can_land(engine.slot(0), 512));
      REQUIRE(engine.books.can_land(engine.slot(0), 512) == Verdict::beyond_reach);
      for (Position p : {expected.at_depth_2, expected.at_depth_50, expected.reach}) {
        REQUIRE(differs_after_roll_back(engine, 0, p) == "");
      }
    });
  }
}
