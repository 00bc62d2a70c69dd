// RollbackRing with landings that the engine placed, and landings that slots share: each continues like a fresh run.
#include <rollback/planes/whole.hpp>
#include <rollback/ring.hpp>

#include "catch.hpp"
#include "ring_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::dynamic_depth;
using rollback::Tier;
using namespace ring_engine;

namespace {

RingOptions with_pins(std::int32_t slots, std::int32_t per_token, std::int32_t pins) {
  RingOptions o = options_of(slots, 0, per_token, false);
  o.max_rows = 64;
  o.pins = pins;
  return o;
}

// Rolls back to `p`, feeds on past everything that is kept, and compares.
template <class Engine>
void continues(Engine& engine, std::size_t slot, Position p) {
  CAPTURE(slot, p);
  REQUIRE(engine.roll_back(slot, p) == Verdict::accepted);
  REQUIRE(engine.feed(slot, 1) == Verdict::accepted);
  REQUIRE(engine.equal(slot));
  REQUIRE(engine.feed(slot, 60) == Verdict::accepted);
  REQUIRE(engine.equal(slot));
}

}  // namespace

TEST_CASE("a pin ahead cuts the feed that crosses it and outlives the tiers") {
  Engine<16, 1> engine(with_pins(1, 2, 2));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.ring.pin(slot, 21) == Verdict::accepted);
  std::vector<Position> ends;
  auto const step = [&ends](std::int32_t, Position, Position end) {
    ends.push_back(end);
    return false;
  };
  REQUIRE(engine.ring.feed(slot, 16, step) == Verdict::chunk_failed);
  REQUIRE_FALSE(engine.ring.is_pinned(slot, 21));
  REQUIRE(engine.feed(0, 20) == Verdict::accepted);
  REQUIRE(engine.feed(0, 20) == Verdict::accepted);
  REQUIRE(engine.ring.is_pinned(slot, 21));
  REQUIRE(engine.feed(0, 60) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{21, 96, 98, 99});
  REQUIRE(engine.ring.nearest(slot, 40).position == 21);
  REQUIRE(engine.ring.nearest(slot, 21).tier == Tier::pin);
  continues(engine, 0, 21);
  REQUIRE(engine.ring.is_pinned(slot, 21));
  continues(engine, 0, 21);
}

TEST_CASE("pins where a feed starts and behind it are kept by that feed") {
  Engine<16, 1> engine(with_pins(1, 3, 3));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.feed(0, 35) == Verdict::accepted);
  REQUIRE(engine.ring.pin(slot, 32) == Verdict::accepted);  // a boundary
  REQUIRE(engine.ring.pin(slot, 33) == Verdict::accepted);  // of the per-token tier
  REQUIRE(engine.ring.pin(slot, 35) == Verdict::accepted);  // live only
  engine.copies = 0;
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.copies == 4);  // the three pins, and the state at 35 for the per-token tier
  REQUIRE(engine.feed(0, 60) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{32, 33, 35, 93, 94, 95, 96});
  continues(engine, 0, 35);
  continues(engine, 0, 33);
  REQUIRE_FALSE(engine.ring.is_pinned(slot, 35));  // above where the slot went back to
  continues(engine, 0, 32);
}

TEST_CASE("a pin that is given up is no landing but an armed restore still finds it") {
  Engine<16, 1> engine(with_pins(1, 0, 1));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.ring.pin(slot, 5) == Verdict::accepted);
  REQUIRE(engine.feed(0, 40) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 5) == Verdict::accepted);
  REQUIRE(engine.ring.unpin(slot, 5) == Verdict::accepted);
  REQUIRE_FALSE(engine.ring.is_pinned(slot, 5));
  REQUIRE(engine.ring.unpin(slot, 5) == Verdict::unknown_pin);
  REQUIRE(engine.feed(0, 3) == Verdict::accepted);
  REQUIRE(engine.equal(0));
  REQUIRE(engine.ring.can_land(slot, 5) == Verdict::not_a_boundary);
  REQUIRE(engine.ring.pin(slot, 20) == Verdict::accepted);  // its place is free again
}

TEST_CASE("a fork shares its landings and copies nothing until it is fed") {
  for (bool source_first : {false, true}) {
    Engine<16, 2> engine(with_pins(2, 3, 1));
    REQUIRE(engine.ring.pin(engine.slots[0], 7) == Verdict::accepted);
    REQUIRE(engine.feed(0, 50) == Verdict::accepted);
    REQUIRE(engine.feed(1, 9) == Verdict::accepted);
    engine.copies = engine.clears = 0;
    Slot const old = engine.slots[1];
    REQUIRE(engine.fork(0, 48, 1) == Verdict::accepted);
    REQUIRE(engine.ring.tip(old) == -1);
    REQUIRE(engine.ring.tip(engine.slots[1]) == 48);
    REQUIRE(engine.ring.is_armed(engine.slots[1]));
    REQUIRE(engine.copies + engine.clears == 0);
    REQUIRE(engine.landings(1) == std::vector<Position>{7, 32, 47, 48});
    std::size_t const first = source_first ? 0 : 1;
    for (std::size_t slot : {first, 1 - first}) {
      REQUIRE(engine.feed(slot, 60) == Verdict::accepted);
      REQUIRE(engine.equal(slot));
    }
    for (std::size_t slot : {first, 1 - first}) continues(engine, slot, 7);
    REQUIRE(engine.storage.guards_hold());
  }
}

TEST_CASE("a pin that was given up while a restore reads it is still there for a fork") {
  Engine<16, 1> engine(with_pins(3, 0, 1));
  REQUIRE(engine.ring.pin(engine.slots[0], 5) == Verdict::accepted);
  REQUIRE(engine.feed(0, 40) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 5) == Verdict::accepted);
  REQUIRE(engine.ring.unpin(engine.slots[0], 5) == Verdict::accepted);
  REQUIRE(engine.fork(0, 5, 1) == Verdict::accepted);
  REQUIRE(engine.fork(1, 5, 2) == Verdict::accepted);
  for (std::size_t slot : {2u, 0u, 1u}) {
    REQUIRE(engine.feed(slot, 30) == Verdict::accepted);
    REQUIRE(engine.equal(slot));
    REQUIRE_FALSE(engine.ring.is_pinned(engine.slots[slot], 5));
  }
}

TEST_CASE("a state that is only live cannot be shared before it was pinned and fed over") {
  Engine<16, 1> engine(with_pins(2, 0, 1));
  REQUIRE(engine.feed(0, 10) == Verdict::accepted);
  REQUIRE(engine.fork(0, 10, 1) == Verdict::live_only);
  REQUIRE(engine.ring.pin(engine.slots[0], 10) == Verdict::accepted);
  REQUIRE(engine.fork(0, 10, 1) == Verdict::live_only);
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.fork(0, 10, 1) == Verdict::accepted);
  REQUIRE(engine.feed(1, 20) == Verdict::accepted);
  REQUIRE(engine.equal(1));
  REQUIRE(engine.fork(1, 16, 1) == Verdict::same_slot);
}

TEST_CASE("the slot with the nearest landing is found and lost landings are named") {
  Engine<16, 2> engine(with_pins(3, 0, 1));
  REQUIRE(engine.ring.pin(engine.slots[0], 25) == Verdict::accepted);
  REQUIRE(engine.feed(0, 60) == Verdict::accepted);
  REQUIRE(engine.feed(1, 40) == Verdict::accepted);
  Landing landing;
  std::vector<Position> wanted{30, 20, 30};
  REQUIRE(engine.ring.nearest_over(wanted.data(), 3, landing) == engine.slots[0]);
  REQUIRE(landing.position == 25);
  REQUIRE(landing.tier == Tier::pin);
  wanted[0] = -1;
  REQUIRE(engine.ring.nearest_over(wanted.data(), 3, landing) == engine.slots[1]);
  REQUIRE(landing.position == 16);
  REQUIRE(engine.ring.nearest_over(wanted.data(), 1, landing).index == -1);

  std::vector<Position> const taken{0, 16, 25, 32, 48, 60, 61};
  std::vector<Position> lost(taken.size());
  REQUIRE(engine.ring.lost(engine.slots[0], taken.data(), 7, lost.data()) == 2);
  REQUIRE(std::vector<Position>(lost.begin(), lost.begin() + 2) == std::vector<Position>{16, 61});
}

TEST_CASE("refused pins and forks of a ring change nothing") {
  Engine<16, 2> engine(with_pins(2, 0, 1));
  REQUIRE(engine.feed(0, 40) == Verdict::accepted);
  Slot const slot = engine.slots[0];
  Slot unknown{7, 1};
  REQUIRE(engine.ring.pin(slot, -1) == Verdict::negative_position);
  REQUIRE(engine.ring.pin(slot, 31) == Verdict::not_a_boundary);
  REQUIRE(engine.ring.pin(unknown, 1) == Verdict::unknown_slot);
  REQUIRE(engine.ring.unpin(slot, 32) == Verdict::unknown_pin);
  REQUIRE(engine.ring.pin(slot, 32) == Verdict::accepted);
  REQUIRE(engine.ring.pin(slot, 45) == Verdict::no_free_pin);
  REQUIRE(engine.ring.fork(slot, 41, engine.slots[1]) == Verdict::ahead_of_tip);
  REQUIRE(engine.ring.fork(slot, 32, unknown) == Verdict::unknown_slot);
  REQUIRE(engine.slots[1].generation == 1);
  REQUIRE(engine.landings(0) == std::vector<Position>{16, 32});
  REQUIRE(engine.feed(0, 30) == Verdict::accepted);
  REQUIRE(engine.equal(0));
  Engine<16, 2> without(with_pins(1, 0, 0));
  REQUIRE(without.ring.pin(without.slots[0], 5) == Verdict::no_free_pin);
}

TEST_CASE("the states that a ring with pins asks for are the states it uses") {
  RingOptions o = with_pins(2, 5, 3);
  o.depth = 3;
  using Ring = RollbackRing<WholePlane, 4, dynamic_depth>;
  // live; 5 tokens back, a spare and one a pin; 3 boundaries and a spare for each that 5 rows may cross; the pins
  REQUIRE(Ring::states(o) == 2 * (1 + 5 + 1 + 3 + 3 + 2 + 3));
  REQUIRE(Ring::bytes(o, state_bytes) == static_cast<std::size_t>(Ring::states(o)) * state_bytes);
  o.per_token = 0;
  REQUIRE(Ring::states(o) == 2 * (1 + 3 + 1 + 3));
  using PerToken = RollbackRing<WholePlane, 1, dynamic_depth>;
  REQUIRE(PerToken::states(o) == 2 * (1 + 3 + 1 + 3 + 3));

  o.per_token = 5;
  Engine<4, dynamic_depth> engine(o);
  std::mt19937 random(11);
  for (int i = 0; i < 6000; ++i) {
    std::size_t const slot = random() % 2;
    Slot const handle = engine.slots[slot];
    Position const tip = engine.ring.tip(handle);
    if (random() % 3 == 0) {
      Landing const landing = engine.ring.nearest(handle, tip - static_cast<Position>(random() % 9));
      REQUIRE(engine.roll_back(slot, landing.position) == Verdict::accepted);
    }
    for (Position p = tip - 30; p <= tip; ++p) static_cast<void>(engine.ring.unpin(handle, p));
    for (int n = 0; n < 3; ++n) {
      Position const p = engine.ring.nearest(handle, tip - static_cast<Position>(random() % 9)).position;
      static_cast<void>(engine.ring.pin(handle, p));
    }
    auto const unverified = static_cast<std::int32_t>(random() % 6);
    auto const accepted = static_cast<std::int32_t>(random() % (static_cast<unsigned>(unverified) + 1));
    REQUIRE(engine.feed(slot, unverified + 1, unverified, accepted) == Verdict::accepted);
    REQUIRE(engine.equal(slot));
  }
  REQUIRE(engine.storage.untouched_states() == 0);
  REQUIRE(engine.storage.guards_hold());
}

TEST_CASE("impossible pins of a ring are refused by name") {
  using Ring = RollbackRing<WholePlane, 4, 2>;
  REQUIRE_THROWS_WITH(Ring::states(with_pins(1, 0, -1)), ContainsSubstring("pins"));
  REQUIRE_THROWS_WITH(Ring::states(with_pins(1, 0, 4097)), ContainsSubstring("pins"));
  REQUIRE(Ring::states(with_pins(1, 0, 4096)) == 1 + 2 + 1 + 4096);
  REQUIRE_THROWS_WITH(Ring::states(with_pins(1 << 18, 0, 4096)), ContainsSubstring("32-bit"));
  REQUIRE_THROWS_WITH(Ring::states(with_pins(INT32_MAX, 0, 4096)), ContainsSubstring("32-bit"));
}
