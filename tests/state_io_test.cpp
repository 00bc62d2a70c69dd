// Saving and loading: what comes back is what was there, whatever the depths on the other side; what cannot be loaded
// is refused.
#include "catch.hpp"
#include "refusal.hpp"
#include "toy_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace toy;
using rollback::LoadAs;
using rollback::SaveOptions;

namespace {

EngineOptions made_for(std::int32_t per_token, Position quantum, std::int32_t aligned, std::int32_t slots = 3,
                       Position raw_rows = 600) {
  EngineOptions o =
      engine_options({with(fold(), per_token, quantum, aligned), with(ring8(), per_token, quantum, aligned),
                      with(ring128(), per_token, quantum, aligned, 128)},
                     slots, 40, 40, {{"raw", 9, raw_rows}});
  o.context = 1024;
  return o;
}

/// Feeds, and goes back to a random landing now and then.
void churn(Engine& engine, std::size_t s, Position until) {
  while (engine.tip(s) < until) {
    engine.feed(s, engine.pick(1, 40), 7, 0, 0);
    if (engine.pick(0, 3) == 0) {
      Position const wanted = engine.pick(0, engine.tip(s));
      REQUIRE(engine.roll_back(s, engine.books.nearest(engine.slots[s], wanted).position) == Verdict::accepted);
    }
  }
  REQUIRE(engine.error.empty());
}

/// An engine whose slot 0 is at 67 and has its only pin at 45.
Engine pinned() {
  EngineOptions o = made_for(0, 16, 1);
  o.books.pins = 1;
  Engine engine(o);
  engine.feed(0, 37, 40);
  REQUIRE(engine.books.pin(engine.slot(0), 45) == Verdict::accepted);
  engine.feed(0, 30, 40);
  return engine;
}

/// Reads and writes that say no after so many calls.
struct Refusing {
  StateSink sink;
  StateSource source;
  std::int64_t left;  // calls that are answered; -1 after the first that was not

  bool said_yes() { return left-- > 0; }
  struct Out {
    Refusing& io;
    bool bytes(void const* data, std::size_t size) { return io.said_yes() && io.sink.bytes(data, size); }
    bool rows(rollback::StateRows const& rows, rollback::Checksum& sum) {
      return io.said_yes() && io.sink.rows(rows, sum);
    }
  };
  struct In {
    Refusing& io;
    bool bytes(void* data, std::size_t size) { return io.said_yes() && io.source.bytes(data, size); }
    bool rows(rollback::StateRows const& rows, rollback::Checksum& sum) {
      return io.said_yes() && io.source.rows(rows, sum);
    }
  };
};

}  // namespace

TEST_CASE("a saved state comes back whole, at the tip and at every landing, live and as a landing") {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    Engine source(made_for(4, 16, 3), seed);
    for (std::size_t s = 0; s < 3; ++s) churn(source, s, source.pick(1, 300));
    std::size_t const s = seed % 3;
    std::vector<Position> at = saved_landings(source, s, source.tip(s));
    at.push_back(source.tip(s));
    at.push_back(0);
    for (Position p : at) {
      for (bool history : {false, true}) {
        for (LoadAs as : {LoadAs::state, LoadAs::landing}) {
          CAPTURE(seed, p, history, as == LoadAs::landing);
          Blob blob;
          Engine const before = source;
          REQUIRE(save(source, s, p, blob, {history, seed % 2 == 0}) == Verdict::accepted);
          std::vector<Position> const landings = history ? saved_landings(source, s, p) : std::vector<Position>{};
          Engine other(made_for(4, 16, 3), seed + 100);
          churn(other, 1, 90);
          churn(other, 2, 30);
          REQUIRE(load(other, 1, blob, source.history[s], p, landings, as) == Verdict::accepted);
          for (std::size_t i = 0; i < 3; ++i) REQUIRE(other.check(i).empty());
          Blob again;
          REQUIRE(save(other, 1, p, again, {history, seed % 2 == 0}) == Verdict::accepted);
          if (as == LoadAs::state) REQUIRE(again == blob);
          other.feed(1, 25, 6);
          other.feed(2, 25, 6);
          REQUIRE(other.check(1).empty());
          REQUIRE(other.check(2).empty());
        }
      }
    }
  }
}

TEST_CASE("what fits another depth, quantum or raw store is kept, and the rest left out") {
  struct Other {
    std::int32_t per_token;
    Position quantum;
    std::int32_t aligned;
    Position raw_rows;
  };
  for (Other const& o : {Other{0, 0, 0, 600}, Other{2, 16, 1, 600}, Other{9, 8, 20, 600}, Other{4, 48, 3, 600},
                         Other{0, 16, 8, 600}, Other{7, 0, 0, 70}, Other{4, 16, 3, 64}}) {
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      CAPTURE(o.per_token, o.quantum, o.aligned, o.raw_rows, seed);
      Engine source(made_for(6, 16, 4), seed);
      churn(source, 0, 280);
      Blob blob;
      Position const p = source.tip(0);
      REQUIRE(save(source, 0, p, blob) == Verdict::accepted);
      Engine other(made_for(o.per_token, o.quantum, o.aligned, 2, o.raw_rows), seed + 50);
      churn(other, 0, 60);
      REQUIRE(load(other, 1, blob, source.history[0], p, saved_landings(source, 0, p)) == Verdict::accepted);
      REQUIRE(other.check(1).empty());
      REQUIRE(other.check(0).empty());
      other.feed(1, 40, 9);
      REQUIRE(other.check(1).empty());
    }
  }
}

TEST_CASE("a state that was unpinned is saved and held as long as an armed restore reads it") {
  Engine source = pinned();
  source.expected[0].roll_back(45);  // the oracle of landings knows of no pins
  REQUIRE(source.books.roll_back(source.slot(0), 45) == Verdict::accepted);
  source.history[0].truncate(45);
  REQUIRE(source.books.unpin(source.slot(0), 45) == Verdict::accepted);
  REQUIRE(source.books.can_land(source.slot(0), 45) == Verdict::accepted);
  rollback::Hold hold;
  REQUIRE(source.books.hold(source.slot(0), 45, hold) == Verdict::accepted);
  source.books.release(hold);

  Blob blob;
  REQUIRE(save(source, 0, 45, blob) == Verdict::accepted);
  Engine other(source.options);
  REQUIRE(load(other, 1, blob, source.history[0], 45, saved_landings(source, 0, 45)) == Verdict::accepted);
  REQUIRE(other.check(1).empty());
  source.feed(0, 1, 40);
  REQUIRE(source.check(0).empty());
}

TEST_CASE("a landing that is loaded while its slot's pins are held is refused, and the slot is empty") {
  Engine source = pinned();
  Blob blob;
  REQUIRE(save(source, 0, 45, blob) == Verdict::accepted);
  rollback::Hold hold;
  REQUIRE(source.books.hold(source.slot(0), 45, hold) == Verdict::accepted);
  ToyLayout const toy(source.books, source.maps, source.window_maps);
  for (bool held : {true, false}) {
    StateSource bytes{source.storage, blob};
    Verdict const verdict = rollback::load(source.books, source.slots[0], toy.layout, LoadAs::landing, bytes);
    REQUIRE(verdict == (held ? Verdict::no_free_pin : Verdict::accepted));
    REQUIRE(source.books.tip(source.slot(0)) == (held ? 0 : 45));
    source.books.release(hold);
  }
}

TEST_CASE("an empty state takes no bytes") {
  Engine source(engine_options({with(fold(), 4, 16, 3, 128), with(ring8(), 4, 16, 3, 64)}, 1, 40, 40));
  source.feed(0, 40, 40);
  while (source.tip(0) < 131) source.feed(0, std::min(40, 131 - static_cast<std::int32_t>(source.tip(0))), 40);
  ToyLayout const toy(source.books, source.maps, source.window_maps);
  auto const bytes = [&](Position p) {
    return rollback::saved_bytes(source.books, source.slot(0), p, toy.layout, {false, false});
  };
  CHECK(bytes(129) - bytes(128) == sizeof(Row) * (1 + 4 + 1));  // the plane; the last block of four rows, and a new row
}

TEST_CASE("a pin whose window rows do not fit is left out") {
  for (Position raw_rows : {600, 100}) {
    CAPTURE(raw_rows);
    EngineOptions o = made_for(0, 16, 1);
    o.books.pins = 1;
    Engine source(o);
    REQUIRE(source.books.pin(source.slot(0), 45) == Verdict::accepted);
    while (source.tip(0) < 280) source.feed(0, 40, 40);
    Blob blob;
    REQUIRE(save(source, 0, 280, blob) == Verdict::accepted);
    EngineOptions smaller = made_for(0, 16, 1, 3, raw_rows);
    smaller.books.pins = 1;
    Engine other(smaller);
    REQUIRE(load(other, 1, blob, source.history[0], 280, saved_landings(source, 0, 280)) == Verdict::accepted);
    CHECK(other.books.has_pin(other.slot(1), 45) == (raw_rows == 600));
  }
}

TEST_CASE("a layout that cannot be is refused before anything is read or written") {
  EngineOptions const o = made_for(0, 16, 2);
  Engine engine(o);
  engine.feed(0, 40, 40);
  engine.feed(1, 9, 9);
  Blob good;
  REQUIRE(save(engine, 0, 40, good) == Verdict::accepted);
  ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
  std::vector<rollback::StateLayout> bad;
  std::uint64_t const no_bytes[2] = {sizeof(Row) / 2, 0};
  std::uint64_t const too_many[2] = {(std::uint64_t{1} << 40) + 1, sizeof(Row) / 2};
  for (rollback::StoreLayers const& layers :
       {rollback::StoreLayers{-1, toy.row_bytes}, rollback::StoreLayers{1, nullptr}, rollback::StoreLayers{2, no_bytes},
        rollback::StoreLayers{2, too_many}, rollback::StoreLayers{(1 << 20) + 1, toy.row_bytes}}) {
    for (int place = 0; place < 5; ++place) {
      bad.push_back(toy.layout);
      rollback::StateLayout& last = bad.back();
      (place < 2 ? last.states[place] : place < 4 ? last.caches[place - 2] : last.windows[0]) = layers;
    }
  }
  for (int c = 0; c < engine.books.components(); ++c) {
    if (engine.books.component(c).geometry.block > 0) continue;
    bad.push_back(toy.layout);
    bad.back().caches[c] = {1, toy.row_bytes};  // of blocks that are never emitted
  }
  REQUIRE(bad.size() > 25);
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    Blob blob;
    StateSink sink{engine.storage, blob};
    REQUIRE(rollback::saved_bytes(engine.books, engine.slots[0], 40, bad[i], {}) == 0);
    REQUIRE(rollback::save(engine.books, engine.slots[0], 40, bad[i], {}, sink) == Verdict::bad_layout);
    REQUIRE(blob.empty());
    StateSource source{engine.storage, good};
    REQUIRE(rollback::check(engine.books, bad[i], LoadAs::state, source) == Verdict::bad_layout);
    REQUIRE(rollback::load(engine.books, engine.slots[1], bad[i], LoadAs::state, source) == Verdict::bad_layout);
    REQUIRE(source.at == 0);
  }
  REQUIRE(engine.tip(1) == 9);
  REQUIRE(engine.check(1) == "");
}

TEST_CASE("a state whose rows have other bytes is refused") {
  Engine engine(made_for(0, 16, 2));
  engine.feed(0, 40, 40);
  Blob blob;
  REQUIRE(save(engine, 0, 40, blob) == Verdict::accepted);
  std::uint64_t const other[2] = {sizeof(Row) / 2 + 4, sizeof(Row) / 2 - 4};  // as many in all
  for (int place = 0; place < 3; ++place) {
    CAPTURE(place);
    ToyLayout toy(engine.books, engine.maps, engine.window_maps);
    rollback::StateLayout& l = toy.layout;
    (place == 0 ? l.states[0] : place == 1 ? l.caches[1] : l.windows[0]) = {2, other};
    StateSource source{engine.storage, blob};
    REQUIRE(rollback::check(engine.books, toy.layout, LoadAs::state, source) == Verdict::other_layout);
  }
}

TEST_CASE("a sink or a source that says no is asked no more") {
  Engine engine(made_for(4, 16, 2, 2, 100));
  while (engine.tip(0) < 200) engine.feed(0, 40, 40);  // the raw rows go around
  Blob blob;
  REQUIRE(save(engine, 0, 200, blob) == Verdict::accepted);
  ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
  for (std::int64_t calls = 0;; ++calls) {
    CAPTURE(calls);
    Blob written;
    Refusing io{{engine.storage, written}, {engine.storage, blob}, calls};
    Verdict const saved = rollback::save(engine.books, engine.slots[0], 200, toy.layout, {}, Refusing::Out{io});
    if (saved == Verdict::accepted) break;
    REQUIRE(saved == Verdict::io_failed);
    REQUIRE(io.left == -1);
    io.left = calls;
    Verdict const checked = rollback::check(engine.books, toy.layout, LoadAs::state, Refusing::In{io});
    if (checked != Verdict::accepted) {
      REQUIRE(checked == Verdict::io_failed);
      REQUIRE(io.left == -1);
    }
  }
}
