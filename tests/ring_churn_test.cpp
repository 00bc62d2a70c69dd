// RollbackRing under random calls: feeds, verifies, failures, rollbacks, clears, pins and forks equal fresh runs byte
// for byte.
#include <rollback/ring.hpp>

#include "catch.hpp"
#include "ring_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using rollback::dynamic_depth;
using rollback::Tier;
using namespace ring_engine;

namespace {

// Pins a landing, any position ahead or nearby, gives a pin up, or forks, whichever `what` says.
template <class Engine>
void place(Engine& engine, std::size_t slot, std::int64_t what, std::mt19937& random) {
  Slot& handle = engine.slots[slot];
  Position const tip = engine.ring.tip(handle);
  auto const anywhere = static_cast<Position>(random() % static_cast<unsigned>(tip + 20));
  if (what == 0) {
    bool const kept = engine.ring.is_pinned(handle, anywhere);
    Verdict const verdict = engine.ring.pin(handle, anywhere);
    REQUIRE((verdict == Verdict::accepted || verdict == Verdict::no_free_pin || anywhere < tip));
    REQUIRE(engine.ring.is_pinned(handle, anywhere) == kept);  // the next feed does the work
  } else if (what == 1) {
    for (Position p = 0; p <= tip; ++p) {
      if (!engine.ring.is_pinned(handle, p)) continue;
      REQUIRE(engine.ring.unpin(handle, p) == Verdict::accepted);
      REQUIRE(engine.ring.unpin(handle, p) == Verdict::unknown_pin);
      break;
    }
  } else {
    std::size_t const to = random() % engine.slots.size();
    Position const p = engine.ring.nearest(handle, anywhere).position;
    Slot const old = engine.slots[to];
    Verdict const verdict = engine.fork(slot, p, to);
    if (to == slot) {
      REQUIRE(verdict == Verdict::same_slot);
    } else {
      REQUIRE((verdict == Verdict::accepted || (verdict == Verdict::live_only && p == tip)));
      REQUIRE((engine.slots[to] == old) == (verdict != Verdict::accepted));
    }
    REQUIRE(engine.equal(to));
  }
}

// Random feeds, verifies, failures, rollbacks and clears over all slots, and with pins those and forks, compared with
// fresh runs all along.
template <int Quantum, int Depth>
void churn(RingOptions options, unsigned seed, int steps) {
  options.max_rows = 3 * std::min(Quantum, 16) + 4;
  Engine<Quantum, Depth> engine(options);
  std::mt19937 random(seed);
  auto const below = [&random](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  int restores = 0;
  int failures = 0;
  int rejected = 0;
  int pinned = 0;
  for (int i = 0; i < steps; ++i) {
    auto const slot = static_cast<std::size_t>(below(options.slots));
    Slot& handle = engine.slots[slot];
    Position const tip = engine.ring.tip(handle);
    CAPTURE(Quantum, Depth, seed, i, slot, tip);
    auto const rows = static_cast<std::int32_t>(1 + below(options.max_rows));
    bool const armed = engine.ring.is_armed(handle);
    if (options.pins > 0 && below(4) == 0) {
      place(engine, slot, below(3), random);
      REQUIRE(engine.equal(slot));
      continue;
    }
    std::int64_t const what = below(tip > 12 * Quantum + 40 ? 16 : 15);
    if (what < 6) {
      REQUIRE(engine.feed(slot, rows) == Verdict::accepted);
      REQUIRE_FALSE(engine.ring.is_armed(handle));
      restores += armed ? 1 : 0;
    } else if (what < 9) {
      std::int32_t const reach = engine.ring.books().per_token();
      auto const unverified = static_cast<std::int32_t>(below(std::min(reach, rows) + std::int64_t{1}));
      auto const accepted = static_cast<std::int32_t>(below(unverified + std::int64_t{1}));
      REQUIRE(engine.feed(slot, rows, unverified, accepted) == Verdict::accepted);
      rejected += accepted < unverified ? 1 : 0;
    } else if (what < 11) {
      Position const bad = tip + below(rows);
      REQUIRE(engine.feed(slot, rows, 0, 0, bad) == Verdict::chunk_failed);
      REQUIRE(engine.ring.outcome().slot == handle);
      REQUIRE(engine.ring.outcome().armed == engine.ring.is_armed(handle));
      if (options.entry_copy) REQUIRE(engine.ring.tip(handle) == tip);
      ++failures;
    } else if (what < 15) {
      Position const wanted = below(tip + 2);
      Landing const landing = engine.ring.nearest(handle, wanted);
      Verdict const can = engine.ring.can_land(handle, wanted);
      pinned += landing.tier == Tier::pin ? 1 : 0;
      REQUIRE(engine.roll_back(slot, wanted) == can);
      if (can != Verdict::accepted) {
        REQUIRE(engine.ring.tip(handle) == tip);
        REQUIRE(landing.why == can);
        REQUIRE(landing.position <= std::min(wanted, tip));
        REQUIRE(landing.position + landing.replay == wanted);
        REQUIRE(engine.roll_back(slot, landing.position) == Verdict::accepted);
      }
    } else {
      Slot const old = handle;
      REQUIRE(engine.ring.clear(handle) == Verdict::accepted);
      REQUIRE(handle != old);
      REQUIRE(engine.ring.roll_back(old, 0) == Verdict::stale_slot);
      engine.tokens[slot].clear();
    }
    REQUIRE(engine.equal(slot));
  }
  // Every landing that is still listed leads to the state of a fresh run.
  for (std::size_t slot = 0; slot < engine.slots.size(); ++slot) {
    std::vector<Position> const landings = engine.landings(slot);
    for (auto p = landings.rbegin(); p != landings.rend(); ++p) {
      CAPTURE(Quantum, Depth, seed, slot, *p);
      REQUIRE(engine.roll_back(slot, *p) == Verdict::accepted);
    }
    REQUIRE(engine.feed(slot, 1) == Verdict::accepted);
    REQUIRE(engine.equal(slot));
  }
  REQUIRE(engine.storage.guards_hold());
  REQUIRE(restores > 0);
  REQUIRE(failures > 0);
  REQUIRE((pinned > 0) == (options.pins > 0));
  REQUIRE((rejected > 0 || engine.ring.books().per_token() == 0));
}

}  // namespace

TEST_CASE("a churn of quantum 1 equals fresh runs") {
  bool const entry_copy = GENERATE(false, true);
  auto const slots = GENERATE(1, 3);
  churn<1, 1>(options_of(slots, 0, 0, entry_copy), 1, 1500);
  churn<1, 2>(options_of(slots, 0, 0, entry_copy), 2, 1500);
  churn<1, 7>(options_of(slots, 0, 0, entry_copy), 3, 1500);
  churn<1, dynamic_depth>(options_of(slots, 5, 0, entry_copy), 4, 1500);
}

TEST_CASE("a churn of quantum 4 equals fresh runs") {
  bool const entry_copy = GENERATE(false, true);
  auto const per_token = GENERATE(0, 1, 3, 9);
  churn<4, 1>(options_of(2, 0, per_token, entry_copy), 5, 1500);
  churn<4, 2>(options_of(2, 2, per_token, entry_copy), 6, 1500);
  churn<4, dynamic_depth>(options_of(1, 7, per_token, entry_copy), 7, 1500);
}

TEST_CASE("a churn of quantum 128 equals fresh runs") {
  auto const per_token = GENERATE(0, 1, 7);
  churn<128, 2>(options_of(2, 0, per_token, false), 8, 800);
  churn<128, dynamic_depth>(options_of(2, 1, per_token, true), 9, 800);
}

TEST_CASE("a churn with pins and forks equals fresh runs") {
  bool const entry_copy = GENERATE(false, true);
  auto const pins = GENERATE(1, 4);
  RingOptions o = options_of(3, 0, 0, entry_copy);
  o.pins = pins;
  churn<1, 3>(o, 10, 3000);
  churn<8, 2>(o, 11, 3000);
  o.per_token = 5;
  churn<8, 2>(o, 12, 3000);
  churn<64, 1>(o, 13, 1500);
}
