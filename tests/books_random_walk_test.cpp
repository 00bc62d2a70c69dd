// A seeded random walk over everything that can happen to a slot, compared with the oracles after every step.
#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using rollback::BadChunk;
using rollback::Position;
using rollback::Unverified;
using rollback::Verdict;
using toy::Engine;
using toy::engine_options;
using toy::EngineOptions;
using toy::fold;
using toy::ring128;
using toy::ring8;
using toy::trail;
using toy::with;

namespace {

struct Walk {
  Engine engine;
  Position far;  // beyond it a slot starts anew
  int commits = 0, rejections = 0, failures = 0, rollbacks = 0, refusals = 0, clears = 0;

  Walk(EngineOptions const& o, std::uint32_t seed, Position far_) : engine(o, seed), far(far_) {}

  [[nodiscard]] std::int32_t slots() const { return engine.books.slots(); }
  [[nodiscard]] std::size_t any_slot() { return static_cast<std::size_t>(engine.pick(0, slots() - 1)); }

  void batch() {
    std::int32_t const mode = engine.pick(0, 9);
    std::int64_t const most = engine.options.books.max_rows;
    std::int32_t const n = engine.pick(1, mode == 0 ? most : mode < 5 ? 3 : std::min<std::int64_t>(40, most));
    std::int32_t const only = engine.pick(0, 2) == 0 ? -2 : engine.pick(0, slots() - 1);
    std::vector<std::int32_t> rows;
    for (std::int32_t i = 0; i < n; ++i) {
      bool const padding = engine.pick(0, 9) == 0 && i + 1 < n;
      rows.push_back(padding ? -1 : only >= 0 ? only : engine.pick(0, slots() - 1));
    }
    std::vector<Unverified> unverified;
    for (std::int32_t s = 0; s < slots(); ++s) {
      std::int64_t const has = std::count(rows.begin(), rows.end(), s);
      if (has == 0 || engine.pick(0, 1) == 0) continue;
      std::int64_t const all = std::min<std::int64_t>(has, engine.books.per_token());
      unverified.push_back({engine.slot(static_cast<std::size_t>(s)), engine.pick(0, all)});
    }
    std::int32_t const chunk_rows = engine.options.books.max_chunk_rows;
    Verdict const verdict = engine.begin(rows, engine.pick(1, engine.pick(0, 1) == 0 ? 4 : chunk_rows), unverified);
    REQUIRE(verdict == Verdict::accepted);
    switch (engine.pick(0, 3)) {
      case 0:
        return fail();
      default:
        return finish();
    }
  }

  // Commits some of the slots that may.
  void commit_some(std::int32_t settled, bool all) {
    for (std::size_t s = 0; s < engine.slots.size(); ++s) {
      if (!engine.is_open(s) || (!all && engine.pick(0, 3) != 0)) continue;
      toy::Rows const rows = engine.rows_of(s);
      if (rows.chunk.back() >= settled) continue;
      Position const accepted = rows.verified + engine.pick(0, rows.end - rows.verified);
      engine.commit(s, accepted);
      ++commits;
      rejections += accepted < rows.end ? 1 : 0;
    }
  }

  void clear_one() {
    engine.clear(any_slot());
    ++clears;
  }

  [[nodiscard]] bool any_open() const {
    for (std::size_t s = 0; s < engine.slots.size(); ++s) {
      if (engine.is_open(s)) return true;
    }
    return false;
  }

  void finish() {
    for (std::int32_t k = 0; k < engine.chunks(); ++k) {
      engine.run(k);
      engine.settle(k);
      if (engine.pick(0, 40) == 0) clear_one();
      commit_some(k + 1, false);
      if (!any_open()) return;
    }
    commit_some(engine.chunks(), true);
  }

  void fail() {
    std::int32_t const first_bad = engine.pick(0, engine.chunks());
    std::int32_t const settled = engine.pick(0, first_bad);
    BadChunk const states[] = {BadChunk::never_started, BadChunk::ran_last, BadChunk::may_have_run};
    BadChunk const state = states[engine.pick(0, 2)];
    for (std::int32_t k = 0; k < first_bad; ++k) {
      engine.run(k);
      if (k < settled) engine.settle(k);
    }
    if (state != BadChunk::never_started && first_bad < engine.chunks() && engine.pick(0, 1) == 0) {
      engine.run(first_bad);
    }
    if (engine.pick(0, 1) == 0) commit_some(settled, false);
    if (engine.pick(0, 40) == 0) clear_one();
    if (!any_open()) return;
    static_cast<void>(engine.fail(first_bad, state));
    ++failures;
  }

  void roll_back() {
    std::size_t const s = any_slot();
    Position const tip = engine.tip(s);
    Position p = tip - (engine.pick(0, 2) == 0 ? engine.pick(-2, 12) : engine.pick(0, tip));
    if (engine.pick(0, 2) != 0) p = engine.books.nearest(engine.slot(s), p).position;
    bool const lands = engine.expected[s].lands(p);
    REQUIRE((engine.roll_back(s, p) == Verdict::accepted) == lands);
    rollbacks += lands && p < tip ? 1 : 0;
    refusals += lands ? 0 : 1;
  }

  void step() {
    for (std::size_t s = 0; s < engine.slots.size(); ++s) {
      if (engine.tip(s) <= far) continue;
      Position const p = engine.books.nearest(engine.slot(s), engine.pick(0, far)).position;
      REQUIRE(engine.roll_back(s, p) == Verdict::accepted);
    }
    std::int32_t const what = engine.pick(0, 99);
    if (what < 65) {
      batch();
    } else if (what < 98) {
      roll_back();
    } else {
      clear_one();
    }
    for (std::size_t s = 0; s < engine.slots.size(); ++s) {
      if (std::string const wrong = engine.check(s); !wrong.empty()) FAIL(wrong);
    }
  }
};

// Walks with every combination of an entry copy and of row maps; `steps` in all.
void walk(EngineOptions o, int steps, Position far, std::uint32_t seed) {
  for (std::uint32_t v = 0; v < 4; ++v) {
    o.books.entry_copy = (v & 1) != 0;
    o.sinks = (v & 2) != 0;
    o.worst_shapes = v == 1 || v == 2;
    Walk w(o, seed + v, far);
    for (int i = 0; i < steps / 4; ++i) {
      INFO("variant " << v << " step " << i);
      w.step();
    }
    CHECK(w.commits > steps / 20);
    CHECK(w.failures > steps / 100);
    CHECK(w.rollbacks > steps / 100);
    CHECK(w.clears > 0);
    if (w.engine.books.per_token() > 0) CHECK(w.rejections > steps / 100);
  }
}

}  // namespace

TEST_CASE("a random walk over small planes of quantum 4") {
  walk(engine_options({with(fold(), 3, 4, 2), with(ring8(), 3, 4, 2)}, 2, 48, 16, {{"raw", 6, 40}}), 6000, 200, 1);
}

TEST_CASE("a random walk at depth 1") {
  walk(engine_options({with(fold(), 1, 4, 1), with(ring8(), 1, 4, 1)}, 2, 32, 32), 4000, 100, 11);
}

TEST_CASE("a random walk with more unverified rows than a quantum") {
  walk(engine_options({with(ring8(), 7, 4, 2), with(trail(), 9, 6, 3), with(fold(), 8, 12, 1)}, 2, 40, 20,
                      {{"raw", 3, 30}, {"wide", 9, 200}}),
       4000, 300, 21);
}

TEST_CASE("a random walk over a plane overwritten in place and the two rings") {
  walk(engine_options({with(fold(), 3, 128, 3), with(ring8(), 3, 128, 3), with(ring128(), 3, 0, 0, 128)}, 3, 400, 130,
                      {{"raw", 128, 128 - 1 + 130 + 3}}),
       3000, 900, 31);
}

TEST_CASE("a random walk over enough pages that all slots share") {
  EngineOptions o = engine_options({with(fold(), 3, 4, 2), with(ring8(), 3, 4, 2), with(trail(), 9, 6, 3)}, 3, 48, 16,
                                   {{"raw", 6, 64}});
  o.books.pages = 120;
  walk(o, 5000, 200, 71);
  o = engine_options({with(fold(), 0, 8, 3), with(ring8(), 0, 4, 5)}, 2, 64, 24, {{"raw", 8, 31}});
  o.books.pages = 60;
  walk(o, 2000, 200, 81);
}

TEST_CASE("a random walk without a per-token tier") {
  walk(engine_options({with(fold(), 0, 8, 3), with(ring8(), 0, 4, 5)}, 2, 64, 24, {{"raw", 8, 31}}), 2000, 200, 41);
}

TEST_CASE("a random walk without boundaries") {
  walk(engine_options({with(fold(), 5), with(ring8(), 4), with(trail(), 6)}, 2, 48, 24, {{"raw", 4, 64}}), 2000, 200,
       51);
}

TEST_CASE("a random walk where components are empty at their own multiples") {
  toy::Component counter = with(fold(), 2, 6, 2, 10);
  walk(engine_options({counter, with(ring8(), 2, 2, 20)}, 2, 48, 24), 2000, 200, 61);
}
