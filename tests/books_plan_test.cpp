// What a plan says, list by list: the worked examples of the ring, pure and in any order, of a length that only the
// shape decides, with unused entries where the engine wants them.
#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

using rollback::Books;
using rollback::Position;
using rollback::RowMap;
using rollback::Shape;
using rollback::Verdict;
using toy::Engine;
using toy::engine_options;
using toy::EngineOptions;
using toy::fold;
using toy::Planned;
using toy::ring128;
using toy::ring8;
using toy::with;

using Rows = std::vector<std::int32_t>;
using Positions = std::vector<std::int64_t>;

namespace {

constexpr std::int32_t nothing = 9000;  // the row that stands for "no such position"

/// An engine of one slot and one ring whose fresh rows follow its live ones.
struct OneRing {
  explicit OneRing(rollback::Component const& ring, std::int32_t max_rows = 256)
      : engine(engine_options({ring}, 1, max_rows, max_rows)) {
    engine.maps[0].empty = nothing;
    engine.maps[0].fresh = ring.geometry.rows;
  }

  /// The plan of the next `rows` tokens as one chunk, which then counts as run.
  Planned next(std::int32_t rows) {
    REQUIRE(engine.begin(Rows(static_cast<std::size_t>(rows), 0), rows) == Verdict::accepted);
    REQUIRE(engine.chunks() == 1);
    Shape exact;
    REQUIRE(engine.books.shape(engine.ticket, 0, exact) == Verdict::accepted);
    Planned p = engine.planned(0, 0);
    REQUIRE(p.verdict == Verdict::accepted);
    p.block_row.resize(static_cast<std::size_t>(p.lists.blocks));
    p.block_position.resize(p.block_row.size());
    p.block_slot.resize(p.block_row.size());
    auto const reads = p.block_row.size() * static_cast<std::size_t>(engine.books.component(0).geometry.block);
    p.block_current.resize(reads);
    p.block_previous.resize(std::min(p.block_previous.size(), reads));
    engine.settle(0);
    engine.commit(0, engine.tip(0));
    return p;
  }

  Engine engine;
};

Rows rising(std::int32_t first, std::int32_t count) {
  Rows rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

/// Three components, both tiers, after a rollback to a boundary: a plan of every kind of list.
Engine rolled_back(bool sinks) {
  EngineOptions o = engine_options({with(fold(), 3, 8, 2), with(ring8(), 3, 8, 2), with(ring128(), 3, 8, 2, 128)}, 3,
                                   64, 16, {{"raw", 8, 64}});
  o.sinks = sinks;
  Engine engine(o);
  engine.feed(0, 30, 16);
  engine.feed(1, 11, 4);
  REQUIRE(engine.roll_back(0, 24) == Verdict::accepted);
  REQUIRE(engine.roll_back(1, 10) == Verdict::accepted);
  return engine;
}

/// Rows of three slots, one of them new, and padding between them.
Rows mixed_rows() {
  Rows rows;
  for (std::int32_t i = 0; i < 40; ++i) rows.push_back(i % 5 == 4 ? -1 : i % 3);
  return rows;
}

bool same(Planned const& a, Planned const& b) {
  return a.verdict == b.verdict && a.restore_source == b.restore_source &&
         a.restore_destination == b.restore_destination && a.snapshot_source == b.snapshot_source &&
         a.snapshot_destination == b.snapshot_destination && a.persist_source == b.persist_source &&
         a.persist_destination == b.persist_destination && a.block_previous == b.block_previous &&
         a.block_current == b.block_current && a.block_slot == b.block_slot && a.block_row == b.block_row &&
         a.block_position == b.block_position && a.visible == b.visible && a.lists.restores == b.lists.restores &&
         a.lists.snapshots == b.lists.snapshots && a.lists.persists == b.lists.persists &&
         a.lists.blocks == b.lists.blocks;
}

}  // namespace

TEST_CASE("positions 0 to 12 one at a time read and write the rows of the overlapping ring") {
  OneRing ring(ring8());
  std::int64_t const visible[] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3};
  for (std::int32_t p = 0; p <= 12; ++p) {
    Planned const plan = ring.next(1);
    CAPTURE(p);
    CHECK(plan.persist_source == Rows{0});
    CHECK(plan.persist_destination == Rows{p % 8});
    CHECK(plan.visible == Positions{visible[p]});
    CHECK(plan.block_row == (p % 4 == 3 ? Positions{p / 4} : Positions{}));
    CHECK(plan.block_position == (p % 4 == 3 ? Positions{p - 3} : Positions{}));
    // The last row of a block is the chunk's own: row 8, the first after the ring's.
    Rows const none(4, nothing);
    CHECK(plan.block_previous == (p == 3 ? none : p == 7 ? Rows{0, 1, 2, 3} : p == 11 ? Rows{4, 5, 6, 7} : Rows{}));
    CHECK(plan.block_current == (p == 3 || p == 11 ? Rows{0, 1, 2, 8} : p == 7 ? Rows{4, 5, 6, 8} : Rows{}));
  }
}

TEST_CASE("a chunk of positions 5 to 12 reads the ring before it and its own rows") {
  OneRing ring(ring8());
  static_cast<void>(ring.next(5));
  Planned const plan = ring.next(8);
  CHECK(plan.block_row == Positions{1, 2});
  CHECK(plan.block_position == Positions{4, 8});
  CHECK(plan.block_slot == Rows{0, 0});
  CHECK(plan.block_previous == Rows{0, 1, 2, 3, 4, 8, 9, 10});
  CHECK(plan.block_current == Rows{4, 8, 9, 10, 11, 12, 13, 14});
  CHECK(plan.persist_source == rising(0, 8));
  CHECK(plan.persist_destination == Rows{5, 6, 7, 0, 1, 2, 3, 4});
  CHECK(plan.visible == Positions{1, 1, 2, 2, 2, 2, 3, 3});
}

TEST_CASE("of two rows of a chunk that share a ring row the later one is persisted") {
  OneRing ring(ring8());
  static_cast<void>(ring.next(3));
  Planned const plan = ring.next(20);  // positions 3 to 22; 15 to 22 stay
  for (std::int32_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    CHECK(plan.persist_source[static_cast<std::size_t>(i)] == (i < 12 ? -1 : i));
    CHECK(plan.persist_destination[static_cast<std::size_t>(i)] == (i < 12 ? -1 : (3 + i) % 8));
  }
}

TEST_CASE("a block of 128 reads all rows in order wherever the chunk was cut") {
  OneRing ring(ring128());
  CHECK(ring.next(100).block_current.empty());
  Planned const cut = ring.next(60);  // the block ends inside
  Rows expected = rising(0, 100);
  Rows const own = rising(128, 28);
  expected.insert(expected.end(), own.begin(), own.end());
  CHECK(cut.block_current == expected);
  CHECK(cut.block_row == Positions{0});
  CHECK(cut.visible.front() == 0);
  CHECK(cut.visible[27] == 1);
  CHECK(cut.visible.back() == 1);
  static_cast<void>(ring.next(95));
  expected = rising(0, 127);
  expected.push_back(128);
  Planned const one = ring.next(1);  // position 255
  CHECK(one.block_current == expected);
  CHECK(one.block_position == Positions{128});
}

TEST_CASE("a plan is the same however often and in whatever order it is asked for") {
  for (bool sinks : {false, true}) {
    Engine engine = rolled_back(sinks);
    REQUIRE(engine.begin(mixed_rows(), 7, {{engine.slot(0), 2}}) == Verdict::accepted);
    std::int32_t const chunks = engine.chunks();
    REQUIRE(chunks >= 6);
    std::vector<Planned> first;
    for (std::int32_t k = 0; k < chunks; ++k) {
      for (std::int32_t c = 0; c < 3; ++c) first.push_back(engine.planned(k, c));
    }
    auto const all_same = [&] {
      for (std::int32_t i = 3 * chunks - 1; i >= 0; --i) {
        if (!same(engine.planned(i / 3, i % 3), first[static_cast<std::size_t>(i)])) return false;
      }
      return true;
    };
    CHECK(all_same());
    CHECK(all_same());
    for (std::int32_t k = 0; k < chunks; ++k) {
      engine.settle(k);
      CHECK(all_same());
    }
    // A copy of the books that sees the same batch plans the same: any rank can plan for itself.
    Books const other = engine.books;
    CHECK(same(toy::plan(other, engine.ticket, 1, 1, engine.shape(1), engine.maps[1]), engine.planned(1, 1)));
  }
}

TEST_CASE("a restore stands in the first chunk of its sequence and in no other") {
  Engine engine = rolled_back(true);
  REQUIRE(engine.books.is_armed(engine.slot(0)));
  // Slot 1 comes in with the second chunk only.
  Rows rows(20, 0);
  for (std::size_t i = 12; i < 20; ++i) rows[i] = 1;
  REQUIRE(engine.begin(rows, 5) == Verdict::accepted);
  std::vector<std::int32_t> restoring_chunk(2, -1);
  for (std::int32_t c = 0; c < 2; ++c) {
    Rows chunks_of(2, 0);
    for (std::int32_t k = 0; k < engine.chunks(); ++k) {
      Planned const p = engine.planned(k, c);
      for (std::int32_t i = 0; i < p.lists.restores; ++i) {
        for (std::size_t s = 0; s < 2; ++s) {
          if (p.restore_destination[static_cast<std::size_t>(i)] != engine.live_row(static_cast<std::size_t>(c), s)) {
            continue;
          }
          ++chunks_of[s];
          restoring_chunk[s] = k;
        }
      }
    }
    CHECK(chunks_of == Rows{1, 1});
    CHECK(restoring_chunk[0] == 0);
    CHECK(engine.chunk_begin(restoring_chunk[1]) <= 12);
    CHECK(engine.chunk_end(restoring_chunk[1]) > 12);
  }
}

TEST_CASE("a sequence that starts is emptied once and a restore from nowhere names the row to reset from") {
  for (bool sinks : {false, true}) {
    EngineOptions o = engine_options({with(fold(), 2)}, 2, 8, 8);
    o.sinks = sinks;
    Engine engine(o);
    REQUIRE(engine.begin({1, 1, 1}, 1) == Verdict::accepted);
    Planned const first = engine.planned(0, 0);
    REQUIRE(first.lists.restores == 1);
    CHECK(first.restore_source[0] == (sinks ? engine.maps[0].reset : -1));
    CHECK(first.restore_destination[0] == engine.live_row(0, 1));
    CHECK_FALSE(engine.books.is_armed(engine.slot(1)));
    CHECK(engine.planned(1, 0).lists.restores == 0);
  }
}

TEST_CASE("list lengths depend on the shape alone and a larger shape only adds unused entries") {
  for (bool sinks : {false, true}) {
    Engine engine = rolled_back(sinks);
    Books const fresh(engine.options.books);  // has never seen a batch
    REQUIRE(engine.begin(mixed_rows(), 16) == Verdict::accepted);
    Shape const worst = fresh.worst_shape(16, 3);
    for (std::int32_t k = 0; k < engine.chunks(); ++k) {
      Shape const exact = engine.shape(k);
      for (std::int32_t c = 0; c < 3; ++c) {
        CAPTURE(sinks, k, c);
        RowMap const& map = engine.maps[static_cast<std::size_t>(c)];
        Planned const small = toy::plan(engine.books, engine.ticket, k, c, exact, map);
        Planned const large = toy::plan(engine.books, engine.ticket, k, c, worst, map);
        REQUIRE(small.verdict == Verdict::accepted);
        REQUIRE(large.verdict == Verdict::accepted);
        rollback::Lengths const n = fresh.lengths(c, exact);
        CHECK(n.restores == static_cast<std::int32_t>(small.restore_source.size()));
        CHECK(n.snapshots == static_cast<std::int32_t>(small.snapshot_source.size()));
        CHECK(n.rows == static_cast<std::int32_t>(small.persist_source.size()));
        CHECK(n.blocks == static_cast<std::int32_t>(small.block_row.size()));
        CHECK(n.block_reads == static_cast<std::int32_t>(small.block_current.size()));

        auto const extends = [](auto const& a, auto const& b, std::int64_t used, std::int64_t filling) {
          auto const from = static_cast<std::ptrdiff_t>(used);
          return a.size() <= b.size() && std::equal(a.begin(), a.begin() + from, b.begin()) &&
                 std::all_of(b.begin() + from, b.end(), [&](auto x) { return x == filling; });
        };
        std::int64_t const rows = engine.books.component(c).geometry.rows;
        std::int64_t const reads = std::int64_t{large.lists.blocks} * engine.books.component(c).geometry.block;
        CHECK(extends(small.restore_source, large.restore_source, large.lists.restores, map.sink));
        CHECK(extends(small.restore_destination, large.restore_destination, large.lists.restores, map.sink));
        CHECK(extends(small.snapshot_source, large.snapshot_source, large.lists.snapshots * rows, map.sink));
        CHECK(extends(small.snapshot_destination, large.snapshot_destination, large.lists.snapshots * rows, map.sink));
        CHECK(extends(small.block_current, large.block_current, reads, map.empty));
        CHECK(extends(small.block_row, large.block_row, large.lists.blocks, map.cache_sink));
        CHECK(extends(small.block_position, large.block_position, large.lists.blocks, 0));
        CHECK(extends(small.block_slot, large.block_slot, large.lists.blocks, -1));
      }
    }
  }
}

TEST_CASE("padded rows persist nothing see nothing and the rows beside them do not move") {
  OneRing ring(ring8());
  REQUIRE(ring.engine.begin({-1, 0, -1, 0, 0, 0, -1}, 7) == Verdict::accepted);
  Planned const plan = ring.engine.planned(0, 0);
  CHECK(plan.persist_source == Rows{-1, 1, -1, 3, 4, 5, -1});
  CHECK(plan.persist_destination == Rows{-1, 0, -1, 1, 2, 3, -1});
  CHECK(plan.visible == Positions{0, 0, 0, 0, 0, 1, 0});
  CHECK(plan.lists.persists == 4);
  CHECK(plan.lists.blocks == 1);
  CHECK(Rows(plan.block_current.begin(), plan.block_current.begin() + 4) == Rows{9, 11, 12, 13});
}

TEST_CASE("a state that is empty everywhere is copied for no pin") {
  EngineOptions o = engine_options({with(ring8(), 0, 0, 0, 1), with(ring8(), 0, 8, 2)}, 1, 16, 16);
  o.books.pins = 1;
  Engine engine(o);
  REQUIRE(engine.books.pin(engine.slot(0), 5) == Verdict::accepted);
  REQUIRE(engine.begin(Rows(7, 0), 7) == Verdict::accepted);
  Shape shape;
  REQUIRE(engine.books.shape(engine.ticket, 0, shape) == Verdict::accepted);
  CHECK(shape.components[0].snapshots == 0);
  CHECK(shape.components[1].snapshots == 1);
}

TEST_CASE("lists that an engine does not want are left out") {
  Engine engine = rolled_back(true);
  REQUIRE(engine.begin(mixed_rows(), 16) == Verdict::accepted);
  for (std::int32_t c = 0; c < 3; ++c) {
    Planned const all = engine.planned(0, c);
    rollback::Lists none;
    CHECK(engine.books.plan(engine.ticket, 0, c, engine.shape(0), engine.maps[static_cast<std::size_t>(c)], none) ==
          Verdict::accepted);
    CHECK(none.restores == all.lists.restores);
    CHECK(none.snapshots == all.lists.snapshots);
    CHECK(none.persists == all.lists.persists);
    CHECK(none.blocks == all.lists.blocks);
  }
}

TEST_CASE("no list entry reads what another entry of its list writes") {
  for (bool entry_copy : {false, true}) {
    EngineOptions o = engine_options({with(fold(), 2, 4, 1), with(ring8(), 2, 4, 1)}, 2, 32, 32);
    o.books.entry_copy = entry_copy;
    Engine engine(o);
    engine.feed(0, 9, 3);
    engine.feed(1, 6, 6);
    for (Position back : {1, 2}) {  // a state that lies in the batch's own way
      REQUIRE(engine.roll_back(0, engine.tip(0) - back) == Verdict::accepted);
      REQUIRE(engine.begin({0, 1, 0, 1, 0, 1, 0}, 1) == Verdict::accepted);
      for (std::int32_t k = 0; k < engine.chunks(); ++k) {
        for (std::int32_t c = 0; c < 2; ++c) {
          Planned const plan = engine.planned(k, c);
          auto const apart = [](Rows const& from, Rows const& to) {
            return std::none_of(to.begin(), to.end(), [&](std::int32_t row) {
              return row >= 0 &&
                     (std::count(from.begin(), from.end(), row) > 0 || std::count(to.begin(), to.end(), row) > 1);
            });
          };
          CHECK(apart(plan.restore_source, plan.restore_destination));
          CHECK(apart(plan.snapshot_source, plan.snapshot_destination));
          CHECK(apart({}, plan.persist_destination));
        }
        engine.run(k);
        engine.settle(k);
      }
      engine.commit(0, engine.tip(0));
      engine.commit(1, engine.tip(1));
      CHECK(engine.check(0) == "");
      CHECK(engine.check(1) == "");
    }
  }
}
