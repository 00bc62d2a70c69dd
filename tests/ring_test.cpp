// RollbackRing over the whole plane, call by call: what is kept, restores, failures, refusals, sizes.
#include <rollback/planes/whole.hpp>
#include <rollback/ring.hpp>

#include "catch.hpp"
#include "ring_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::dynamic_depth;
using rollback::Tier;
using namespace ring_engine;

TEST_CASE("quantum 1 keeps the states at the last tokens and no others") {
  Engine<1, 3> engine([] {
    RingOptions o;
    o.max_rows = 20;
    return o;
  }());
  REQUIRE(engine.feed(0, 10) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{7, 8, 9});
  REQUIRE(engine.ring.reach(engine.slots[0]) == 7);
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{8, 9, 10});
  REQUIRE(engine.ring.alignment() == 1);
  for (Position p = 1; p < 11; ++p) {
    Verdict const expected = p >= 8 ? Verdict::accepted : Verdict::beyond_reach;
    REQUIRE(engine.ring.can_land(engine.slots[0], p) == expected);
  }
}

TEST_CASE("a quantum above 1 keeps its last multiples and the tip where it is one") {
  Engine<4, 2> engine([] {
    RingOptions o;
    o.max_rows = 40;
    return o;
  }());
  REQUIRE(engine.feed(0, 30) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{24, 28});
  REQUIRE(engine.feed(0, 2) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{28, 32});
  REQUIRE(engine.ring.alignment() == 4);
  REQUIRE(engine.ring.can_land(engine.slots[0], 31) == Verdict::not_a_boundary);
  REQUIRE(engine.ring.can_land(engine.slots[0], 24) == Verdict::beyond_reach);
}

TEST_CASE("both tiers over one plane serve what either of them keeps") {
  RingOptions o = options_of(1, 3, 2, false);
  o.max_rows = 40;
  Engine<8, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 30) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{8, 16, 24, 28, 29});
  Slot const slot = engine.slots[0];
  REQUIRE(engine.ring.nearest(slot, 29).tier == Tier::per_token);
  Landing const landing = engine.ring.nearest(slot, 27);
  REQUIRE(landing.position == 24);
  REQUIRE(landing.replay == 3);
  REQUIRE(landing.tier == Tier::aligned);
  REQUIRE(engine.ring.nearest(slot, 7).tier == Tier::start);
  for (Position p : {Position{29}, Position{28}, Position{24}, Position{16}, Position{8}}) {
    REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
    REQUIRE(engine.feed(0, 1) == Verdict::accepted);
    REQUIRE(engine.equal(0));
    REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
  }
}

TEST_CASE("position 0 is always a landing and equals a cleared sequence") {
  RingOptions o = options_of(1, 1, 0, false);
  o.max_rows = 40;
  Engine<16, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 37) == Verdict::accepted);
  Slot const slot = engine.slots[0];
  REQUIRE(engine.roll_back(0, 0) == Verdict::accepted);
  REQUIRE_FALSE(engine.ring.is_armed(slot));
  REQUIRE(engine.slots[0] == engine.ring.slot(0));  // the generation stays
  engine.clears = 0;
  REQUIRE(engine.feed(0, 5) == Verdict::accepted);
  REQUIRE(engine.clears == 1);
  REQUIRE(engine.equal(0));
  REQUIRE(engine.landings(0).empty());
}

TEST_CASE("an armed restore is carried out by the next feed and by no other") {
  RingOptions o = options_of(1, 4, 0, false);
  o.max_rows = 40;
  Engine<4, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 19) == Verdict::accepted);
  engine.copies = 0;
  engine.clears = 0;
  REQUIRE(engine.roll_back(0, 12) == Verdict::accepted);
  REQUIRE(engine.ring.is_armed(engine.slots[0]));
  REQUIRE(engine.copies == 0);  // a rollback moves nothing
  REQUIRE(engine.feed(0, 2) == Verdict::accepted);
  REQUIRE(engine.copies == 1);
  REQUIRE_FALSE(engine.ring.is_armed(engine.slots[0]));
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.copies == 1);
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.copies == 2);  // the boundary at 16
  REQUIRE(engine.clears == 0);
  REQUIRE(engine.equal(0));
}

TEST_CASE("a rollback to the tip changes nothing") {
  RingOptions o = options_of(1, 4, 0, false);
  o.max_rows = 40;
  Engine<4, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 19) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 19) == Verdict::accepted);
  REQUIRE_FALSE(engine.ring.is_armed(engine.slots[0]));
  REQUIRE(engine.roll_back(0, 16) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 16) == Verdict::accepted);
  REQUIRE(engine.ring.is_armed(engine.slots[0]));
  REQUIRE(engine.feed(0, 3) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("rollbacks stack before anything is fed") {
  RingOptions o = options_of(1, 4, 3, false);
  o.max_rows = 40;
  Engine<8, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 36) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 34) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 35) == Verdict::ahead_of_tip);
  REQUIRE(engine.roll_back(0, 33) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 24) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 33) == Verdict::ahead_of_tip);
  REQUIRE(engine.roll_back(0, 16) == Verdict::accepted);
  REQUIRE(engine.landings(0) == std::vector<Position>{8, 16});
  REQUIRE(engine.feed(0, 9) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("a landing above a rollback never comes back to life") {
  RingOptions o = options_of(1, 4, 0, false);
  o.max_rows = 40;
  Engine<4, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 17) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 8) == Verdict::accepted);
  REQUIRE(engine.feed(0, 3) == Verdict::accepted);  // tip 11: the state at 12 is of another timeline
  REQUIRE(engine.landings(0) == std::vector<Position>{4, 8});
  REQUIRE(engine.feed(0, 6) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 12) == Verdict::accepted);
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("a ring of depth 1 restores before it overwrites") {
  RingOptions o;
  o.max_rows = 64;
  Engine<4, 1> engine(o);
  REQUIRE(engine.feed(0, 6) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 4) == Verdict::accepted);
  REQUIRE(engine.feed(0, 30) == Verdict::accepted);
  REQUIRE(engine.equal(0));
  REQUIRE(engine.roll_back(0, 32) == Verdict::accepted);
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("a rejected verify takes no landing with it even at depth 1") {
  RingOptions o;
  o.per_token = 4;
  o.max_rows = 64;
  Engine<4, 1> engine(o);
  REQUIRE(engine.feed(0, 6) == Verdict::accepted);
  REQUIRE(engine.feed(0, 4, 4, 0) == Verdict::accepted);  // crosses 8 with nothing accepted
  REQUIRE(engine.ring.tip(engine.slots[0]) == 6);
  REQUIRE(engine.ring.can_land(engine.slots[0], 4) == Verdict::accepted);
  REQUIRE(engine.roll_back(0, 4) == Verdict::accepted);
  REQUIRE(engine.feed(0, 3) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("one token at a time and all at once give the same bytes") {
  RingOptions o = options_of(2, 3, 2, false);
  o.max_rows = 64;
  Engine<8, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 45) == Verdict::accepted);
  engine.next_token = 1;
  for (int i = 0; i < 45; ++i) REQUIRE(engine.feed(1, 1) == Verdict::accepted);
  REQUIRE(engine.tokens[0] == engine.tokens[1]);
  REQUIRE(engine.storage.state(engine.ring.live(engine.slots[0])) ==
          engine.storage.state(engine.ring.live(engine.slots[1])));
  REQUIRE(engine.landings(0) == engine.landings(1));
}

TEST_CASE("a failed feed lands on the newest state that is known") {
  RingOptions o = options_of(1, 4, 0, false);
  o.max_rows = 64;
  Engine<8, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 10) == Verdict::accepted);
  REQUIRE(engine.feed(0, 12, 0, 0, 20) == Verdict::chunk_failed);
  REQUIRE(engine.ring.outcome().tip == 16);
  REQUIRE(engine.ring.outcome().armed);
  REQUIRE(engine.feed(0, 12) == Verdict::accepted);
  REQUIRE(engine.equal(0));
  REQUIRE(engine.feed(0, 1, 0, 0, 28) == Verdict::chunk_failed);
  REQUIRE(engine.ring.outcome().tip == 24);
  REQUIRE(engine.feed(0, 1) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("an exception in a step is passed on and the slot is known all the same") {
  RingOptions o = options_of(1, 4, 0, false);
  o.max_rows = 64;
  Engine<8, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 10) == Verdict::accepted);
  auto const throws = [](std::int32_t, Position, Position) -> bool { throw std::runtime_error("device lost"); };
  REQUIRE_THROWS_WITH(engine.ring.feed(engine.slots[0], 3, throws), ContainsSubstring("device lost"));
  REQUIRE(engine.ring.tip(engine.slots[0]) == 8);
  engine.tokens[0].resize(8);
  REQUIRE(engine.feed(0, 3) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("a step is called once a stretch with the live state") {
  RingOptions o = options_of(2, 4, 1, true);
  o.max_rows = 64;
  Engine<8, dynamic_depth> engine(o);
  Slot const slot = engine.slots[1];
  std::vector<Position> ends;
  auto const step = [&](std::int32_t state, Position begin, Position end) {
    REQUIRE(state == engine.ring.live(slot));
    REQUIRE(begin == (ends.empty() ? 0 : ends.back()));
    ends.push_back(end);
    return true;
  };
  REQUIRE(engine.ring.feed(slot, 20, step) == Verdict::accepted);
  REQUIRE(ends == std::vector<Position>{8, 16, 19, 20});
}

TEST_CASE("refused calls of a ring change nothing") {
  RingOptions o = options_of(2, 2, 2, false);
  o.max_rows = 16;
  Engine<8, dynamic_depth> engine(o);
  REQUIRE(engine.feed(0, 16) == Verdict::accepted);
  REQUIRE(engine.feed(0, 13) == Verdict::accepted);
  State const before = engine.storage.state(engine.ring.live(engine.slots[0]));
  std::vector<Position> const landings = engine.landings(0);
  Slot const slot = engine.slots[0];
  REQUIRE(engine.ring.roll_back(slot, -1) == Verdict::negative_position);
  REQUIRE(engine.ring.roll_back(slot, 30) == Verdict::ahead_of_tip);
  REQUIRE(engine.ring.roll_back(slot, 26) == Verdict::not_a_boundary);
  REQUIRE(engine.ring.roll_back(slot, 8) == Verdict::beyond_reach);
  REQUIRE(engine.ring.roll_back(Slot{9, 1}, 0) == Verdict::unknown_slot);
  REQUIRE(engine.ring.roll_back(Slot{}, 0) == Verdict::unknown_slot);
  REQUIRE(engine.ring.roll_back(Slot{0, 77}, 0) == Verdict::stale_slot);
  REQUIRE(engine.feed(0, 17) == Verdict::batch_too_large);
  REQUIRE(engine.feed(0, 0) == Verdict::no_rows);
  REQUIRE(engine.feed(0, 4, 3, 0) == Verdict::too_many_unverified);
  REQUIRE(engine.ring.tip(slot) == 29);
  REQUIRE_FALSE(engine.ring.is_armed(slot));
  REQUIRE(engine.landings(0) == landings);
  REQUIRE(engine.storage.state(engine.ring.live(slot)) == before);
  REQUIRE(engine.ring.live(Slot{9, 1}) == -1);
  REQUIRE(engine.ring.tip(Slot{0, 77}) == -1);
  REQUIRE(engine.feed(0, 3) == Verdict::accepted);
  REQUIRE(engine.equal(0));
}

TEST_CASE("the states a ring asks for are the states it uses") {
  bool const entry_copy = GENERATE(false, true);
  RingOptions o = options_of(2, 3, 5, entry_copy);
  o.max_rows = 32;
  using Ring = RollbackRing<WholePlane, 4, dynamic_depth>;
  // live, a copy of it; 5 tokens back and a spare; 3 boundaries and a spare for each that 5 rows may cross
  REQUIRE(Ring::states(o) == 2 * (1 + (entry_copy ? 1 : 0) + 5 + 1 + 3 + 2));
  REQUIRE(Ring::bytes(o, state_bytes) == static_cast<std::size_t>(Ring::states(o)) * state_bytes);
  Engine<4, dynamic_depth> engine(o);
  std::mt19937 random(11);
  for (int i = 0; i < 4000; ++i) {
    std::size_t const slot = random() % 2;
    Position const tip = engine.ring.tip(engine.slots[slot]);
    if (random() % 3 == 0) {
      Landing const landing = engine.ring.nearest(engine.slots[slot], tip - static_cast<Position>(random() % 9));
      REQUIRE(engine.roll_back(slot, landing.position) == Verdict::accepted);
    }
    auto const unverified = static_cast<std::int32_t>(random() % 6);
    auto const accepted = static_cast<std::int32_t>(random() % (static_cast<unsigned>(unverified) + 1));
    REQUIRE(engine.feed(slot, unverified + 1, unverified, accepted) == Verdict::accepted);
    REQUIRE(engine.equal(slot));
  }
  REQUIRE(engine.storage.untouched_states() == 0);
  REQUIRE(engine.storage.guards_hold());
}

TEST_CASE("impossible rings are refused by name") {
  RingOptions const good = options_of(1, 2, 0, false);
  using Fixed = RollbackRing<WholePlane, 4, 2>;
  using Dynamic = RollbackRing<WholePlane, 4, dynamic_depth>;
  using PerToken = RollbackRing<WholePlane, 1, dynamic_depth>;
  auto const with = [&good](auto change) {
    RingOptions o = good;
    change(o);
    return o;
  };
  REQUIRE_NOTHROW(Fixed::states(good));
  REQUIRE_NOTHROW(Fixed::states(with([](RingOptions& o) { o.depth = 0; })));
  REQUIRE_THROWS_WITH(Fixed::states(with([](RingOptions& o) { o.depth = 3; })), ContainsSubstring("depth"));
  REQUIRE_THROWS_WITH(Dynamic::states(with([](RingOptions& o) { o.depth = 0; })), ContainsSubstring("depth"));
  REQUIRE_THROWS_WITH(Dynamic::states(with([](RingOptions& o) { o.depth = -1; })), ContainsSubstring("depth"));
  REQUIRE_THROWS_WITH(Dynamic::states(with([](RingOptions& o) { o.slots = 0; })), ContainsSubstring("slots"));
  REQUIRE_THROWS_WITH(Dynamic::states(with([](RingOptions& o) { o.per_token = -1; })), ContainsSubstring("per_token"));
  REQUIRE_THROWS_WITH(PerToken::states(with([](RingOptions& o) { o.per_token = 1; })), ContainsSubstring("per_token"));
  REQUIRE_THROWS_WITH(Dynamic::states(with([](RingOptions& o) { o.max_rows = 0; })), ContainsSubstring("max_rows"));
}

TEST_CASE("rings too large for their indices or for memory are refused and not wrapped") {
  using Ring = RollbackRing<WholePlane, 4, dynamic_depth>;
  REQUIRE_THROWS_WITH(Ring::states(options_of(1, INT32_MAX, 0, false)), ContainsSubstring("32-bit"));
  REQUIRE_THROWS_WITH(Ring::states(options_of(1, 1, INT32_MAX, false)), ContainsSubstring("32-bit"));
  REQUIRE_THROWS_WITH(Ring::states(options_of(INT32_MAX, INT32_MAX, INT32_MAX, true)), ContainsSubstring("32-bit"));
  REQUIRE_THROWS_WITH(Ring::states(options_of(1 << 20, 1 << 12, 0, false)), ContainsSubstring("32-bit"));
  REQUIRE_THROWS_WITH(Ring::states(options_of(1 << 10, 1 << 20, 0, false)), ContainsSubstring("32-bit"));
  REQUIRE(Ring::states(options_of(1 << 10, (1 << 20) - 8, 0, false)) == (std::int64_t{1} << 30) - 6 * 1024);
  REQUIRE_THROWS_WITH(Ring::bytes(options_of(1, 7, 0, false), SIZE_MAX / 8), ContainsSubstring("more than memory"));
  REQUIRE(Ring::bytes(options_of(1, 6, 0, false), SIZE_MAX / 8) == SIZE_MAX / 8 * 8);
}

TEST_CASE("a plane with too few states is refused") {
  RingOptions const o = options_of(1, 2, 0, false);
  using Ring = RollbackRing<WholePlane, 4, dynamic_depth>;
  Storage storage(Ring::states(o));
  REQUIRE_NOTHROW(Ring(WholePlane(storage.tensors.data(), 2, storage.states), o));
  REQUIRE_THROWS_WITH(Ring(WholePlane(storage.tensors.data(), 2, storage.states - 1), o), ContainsSubstring("states"));
}
