// Equality: whatever was taken back, the state and all that is emitted later are those of a fresh run.
#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using rollback::Landing;
using rollback::Position;
using rollback::Tier;
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

// A plane overwritten in place and the two rings of DSV4, with a per-token tier and boundaries of 128.
EngineOptions three(std::int32_t per_token = 3, std::int32_t aligned = 4) {
  return engine_options({with(fold(), per_token, 128, aligned), with(ring8(), per_token, 128, aligned),
                         with(ring128(), per_token, 0, 0, 128)},
                        1, 1024, 300, {{"raw", 128, 1024}});
}

std::vector<EngineOptions> variants(EngineOptions const& o) {
  std::vector<EngineOptions> all;
  for (int v = 0; v < 8; ++v) {
    all.push_back(o);
    all.back().books.entry_copy = (v & 1) != 0;
    all.back().sinks = (v & 2) != 0;
    all.back().worst_shapes = (v & 4) != 0;
  }
  return all;
}

std::vector<Landing> landings(Engine const& engine, std::size_t s) {
  std::vector<Landing> out(512);
  std::int32_t const n = engine.books.landings(engine.slot(s), out.data(), 512);
  out.resize(static_cast<std::size_t>(n));
  return out;
}

}  // namespace

TEST_CASE("every landing equals a fresh run after feeding on for every chunk size") {
  for (EngineOptions const& o : variants(three())) {
    for (std::int32_t chunk : {1, 5, 128, 300}) {
      Engine engine(o);
      engine.feed(0, 700, chunk);
      REQUIRE(engine.check(0) == "");
      REQUIRE(listed(engine, 0) == std::vector<Position>{256, 384, 512, 640, 697, 698, 699});
      for (Landing const& landing : landings(engine, 0)) {
        Engine copy = engine;
        REQUIRE(landing.tier == (landing.position > 650 ? Tier::per_token : Tier::aligned));
        REQUIRE(copy.roll_back(0, landing.position) == Verdict::accepted);
        REQUIRE(copy.check(0) == "");
        copy.feed(0, 150, chunk);
        REQUIRE(copy.check(0) == "");
        copy.feed(0, 1, chunk);
        REQUIRE(copy.check(0) == "");
      }
    }
  }
}

TEST_CASE("position 0 equals a cleared sequence") {
  for (EngineOptions const& o : variants(three())) {
    for (std::int32_t chunk : {1, 5, 128, 300}) {
      Engine engine(o);
      engine.feed(0, 300, chunk);
      REQUIRE(engine.roll_back(0, 0) == Verdict::accepted);
      REQUIRE_FALSE(engine.books.is_armed(engine.slot(0)));
      REQUIRE(listed(engine, 0).empty());
      REQUIRE(engine.books.reach(engine.slot(0)) == 0);
      engine.feed(0, 200, chunk);
      REQUIRE(engine.check(0) == "");
      engine.clear(0);
      REQUIRE(engine.check(0) == "");
      engine.feed(0, 131, chunk);
      REQUIRE(engine.check(0) == "");
      REQUIRE(listed(engine, 0) == std::vector<Position>{128, 129, 130});
    }
  }
}

TEST_CASE("any cut into chunks leaves the same bytes") {
  EngineOptions o = engine_options({with(ring8(), 5, 12, 3), with(ring128(), 5, 128, 2), with(trail(), 5, 4, 4)}, 1,
                                   1024, 300, {{"raw", 16, 512}});
  Engine whole(o);
  whole.feed(0, 300, 300);
  whole.feed(0, 110, 110);
  REQUIRE(whole.check(0) == "");
  for (std::int32_t chunk : {1, 2, 3, 5, 8, 9, 37, 100, 127, 129}) {
    Engine cut(o);
    cut.feed(0, 300, chunk);
    cut.feed(0, 110, chunk);
    REQUIRE(cut.check(0) == "");
    REQUIRE(listed(cut, 0) == listed(whole, 0));
    bool const same_reads = cut.storage.caches == whole.storage.caches && cut.storage.windows == whole.storage.windows;
    REQUIRE(same_reads);
    for (std::size_t c = 0; c < 3; ++c) {  // all places; the fresh rows behind them differ
      auto const places = static_cast<std::ptrdiff_t>(cut.maps[c].fresh);
      auto const& rows = cut.storage.planes[c];
      bool const same_places = std::equal(rows.begin(), rows.begin() + places, whole.storage.planes[c].begin());
      REQUIRE(same_places);
    }
  }
}

TEST_CASE("batches of any size keep the same boundaries") {
  for (std::int32_t rows : {100, 37, 127, 129, 1000}) {
    EngineOptions o = three(0, 7);
    o.books.max_rows = o.books.max_chunks = 1000;
    Engine engine(o);
    while (engine.tip(0) < 1000) {
      engine.feed(0, std::min(rows, static_cast<std::int32_t>(1000 - engine.tip(0))), 300);
      REQUIRE(engine.check(0) == "");
    }
    REQUIRE(listed(engine, 0) == std::vector<Position>{128, 256, 384, 512, 640, 768, 896});
  }
}

TEST_CASE("rollbacks stack before any token is fed") {
  for (EngineOptions const& o : variants(three())) {
    Engine engine(o);
    engine.feed(0, 700, 128);
    std::vector<Position> all = listed(engine, 0);
    while (!all.empty()) {
      Position const p = all.back();
      REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
      REQUIRE(engine.books.is_armed(engine.slot(0)));
      REQUIRE(engine.books.can_land(engine.slot(0), p + 1) == Verdict::ahead_of_tip);
      REQUIRE(listed(engine, 0) == all);
      REQUIRE(engine.check(0) == "");
      Engine copy = engine;
      copy.feed(0, 7, 3);
      REQUIRE_FALSE(copy.books.is_armed(copy.slot(0)));
      REQUIRE(copy.check(0) == "");
      all.pop_back();
    }
    REQUIRE(engine.roll_back(0, 0) == Verdict::accepted);
    engine.feed(0, 9, 9);
    REQUIRE(engine.check(0) == "");
  }
}

TEST_CASE("a batch longer than the ring does not overwrite what it restores from") {
  for (std::int32_t depth : {1, 2, 4}) {
    for (std::int32_t rows : {1, 5, 127, 128, 129, 256, 300, 384, 512, 600, 1000}) {
      for (EngineOptions const& o : variants(three(depth, depth))) {
        Engine engine(o);
        engine.feed(0, 130 + 128 * depth, 300);
        for (Position p : listed(engine, 0)) {
          Engine copy = engine;
          REQUIRE(copy.roll_back(0, p) == Verdict::accepted);
          copy.feed(0, rows, 300);
          REQUIRE(copy.check(0) == "");
        }
      }
    }
  }
}

TEST_CASE("depth 1 always keeps the newest state") {
  for (EngineOptions const& o : variants(engine_options({with(fold(), 1, 4, 1), with(ring8(), 1, 4, 1)}, 1, 64, 64))) {
    Engine engine(o);
    for (int round = 0; round < 40; ++round) {
      engine.feed(0, engine.pick(1, 9), engine.pick(1, 9));
      REQUIRE(engine.check(0) == "");
      Position const tip = engine.tip(0);
      Position const boundary = (tip - 1) / 4 * 4;  // the newest below the tip that is not the tip
      REQUIRE(engine.books.nearest(engine.slot(0), tip - 1).position == tip - 1);
      if (round % 2 == 0) {
        REQUIRE(engine.roll_back(0, tip - 1) == Verdict::accepted);
      } else if (boundary > 0 && tip % 4 != 0) {
        REQUIRE(engine.roll_back(0, boundary) == Verdict::accepted);
      }
      REQUIRE(engine.check(0) == "");
    }
  }
}

TEST_CASE("components of different quanta land on their common multiples") {
  struct Case {
    std::vector<Position> quanta;
    Position alignment;
  };
  for (Case const& q : {Case{{128, 4, 8}, 128}, Case{{96, 128}, 384}, Case{{6, 4}, 12}, Case{{3, 5, 7}, 105}}) {
    EngineOptions o = engine_options({}, 1, 2048, 400);
    for (Position quantum : q.quanta) o.books.components.push_back(with(ring8(), 0, quantum, 400));
    Engine engine(o);
    REQUIRE(engine.books.alignment() == q.alignment);
    engine.feed(0, 1000, 400);
    std::vector<Position> wanted;
    for (Position p = q.alignment; p <= 1000; p += q.alignment) wanted.push_back(p);
    REQUIRE(listed(engine, 0) == wanted);
    REQUIRE(engine.books.nearest(engine.slot(0), q.alignment - 1).position == 0);
    REQUIRE(engine.check(0) == "");
    for (Position p : wanted) {
      Engine copy = engine;
      REQUIRE(copy.roll_back(0, p) == Verdict::accepted);
      copy.feed(0, 30, 11);
      REQUIRE(copy.check(0) == "");
    }
  }
}

TEST_CASE("slots of unequal length share batches with padded rows between them") {
  for (EngineOptions o :
       variants(engine_options({with(fold(), 3, 4, 2), with(ring8(), 3, 4, 2)}, 3, 128, 40, {{"raw", 8, 64}}))) {
    Engine engine(o, 7);
    for (int round = 0; round < 30; ++round) {
      std::vector<std::int32_t> rows;
      std::int32_t const n = engine.pick(1, 60);
      for (std::int32_t i = 0; i < n; ++i) rows.push_back(engine.pick(-1, 2));
      rows.push_back(round % 3);
      REQUIRE(engine.begin(rows, engine.pick(1, 40)) == Verdict::accepted);
      for (std::int32_t k = 0; k < engine.chunks(); ++k) {
        engine.run(k);
        engine.settle(k);
      }
      for (std::size_t s = 0; s < 3; ++s) {
        if (engine.is_open(s)) engine.commit(s, engine.tip(s));
      }
      for (std::size_t s = 0; s < 3; ++s) {
        REQUIRE(engine.check(s) == "");
        Landing const landing =
            engine.books.nearest(engine.slot(s), engine.tip(s) - engine.pick(0, 6) * engine.pick(0, 1));
        REQUIRE(engine.roll_back(s, landing.position) == Verdict::accepted);
        REQUIRE(engine.check(s) == "");
      }
    }
  }
}

TEST_CASE("slots that take turns row by row do not see each other") {
  for (std::int32_t chunk : {1, 2, 7, 12, 60}) {
    EngineOptions o = engine_options({with(ring8(), 2, 4, 3), with(trail(), 2, 4, 3)}, 3, 120, 60, {{"raw", 5, 80}});
    Engine together(o);
    std::vector<std::int32_t> rows;
    for (std::int32_t i = 0; i < 60; ++i) rows.push_back(i % 3);
    for (int round = 0; round < 3; ++round) {
      REQUIRE(together.begin(rows, chunk) == Verdict::accepted);
      for (std::int32_t k = 0; k < together.chunks(); ++k) {
        together.run(k);
        together.settle(k);
      }
      for (std::size_t s = 0; s < 3; ++s) together.commit(s, together.tip(s));
      for (std::size_t s = 0; s < 3; ++s) REQUIRE(together.check(s) == "");
    }
    REQUIRE(together.roll_back(1, together.tip(1) - 2) == Verdict::accepted);
    REQUIRE(together.check(0) == "");
    REQUIRE(together.check(1) == "");
    REQUIRE_FALSE(together.books.is_armed(together.slot(2)));
  }
}

TEST_CASE("a plane of several rows that is overwritten in place") {
  toy::Component wide = with(fold(), 2, 6, 3);
  wide.geometry.rows = 3;
  for (EngineOptions const& o : variants(engine_options({wide, with(trail(), 4, 3, 5)}, 2, 64, 32))) {
    Engine engine(o);
    for (std::int32_t n : {1, 2, 13, 6, 32, 5, 1}) {
      engine.feed(0, n, 32);
      REQUIRE(engine.check(0) == "");
      REQUIRE(engine.check(1) == "");
      for (Position p : listed(engine, 0)) {
        Engine copy = engine;
        REQUIRE(copy.roll_back(0, p) == Verdict::accepted);
        copy.feed(0, 9, 4);
        REQUIRE(copy.check(0) == "");
      }
    }
  }
}

TEST_CASE("a state that was restored from a boundary is kept per token too") {
  Engine engine(three());
  engine.feed(0, 300, 300);
  REQUIRE(engine.roll_back(0, 256) == Verdict::accepted);
  CHECK(engine.books.nearest(engine.slot(0), 256).tier == Tier::tip);
  engine.feed(0, 2, 300);
  CHECK(engine.books.nearest(engine.slot(0), 256).tier == Tier::per_token);
  CHECK(listed(engine, 0) == std::vector<Position>{128, 256, 257});
  CHECK(engine.check(0) == "");
}
