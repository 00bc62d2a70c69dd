// Several sequences: no one reads, writes or inherits what is another's.
#include "scenario.hpp"

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace scenario;

namespace {

/// Opens a batch of these rows (the slot of each), runs it and commits all of it.
void feed_rows(Engine& engine, std::vector<std::int32_t> const& rows) {
  REQUIRE(engine.begin(rows, whole) == Verdict::accepted);
  for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.run(k), engine.settle(k);
  for (std::size_t s = 0; s < engine.slots.size(); ++s) {
    if (engine.is_open(s)) engine.commit(s, engine.tip(s));
  }
}

/// An entry of a list of slot 0, as it must be in the same list of slot 1.
std::int32_t shifted(RowMap const& map, std::int32_t row) {
  if (row < map.live || row >= map.fresh) return row;  // unused, of no slot, or the chunk's own
  return row + (row >= map.kept ? map.kept_slot_stride : map.live_slot_stride);
}
std::vector<std::int32_t> shifted(RowMap const& map, std::vector<std::int32_t> rows) {
  for (std::int32_t& row : rows) row = shifted(map, row);
  return rows;
}

}  // namespace

TEST_CASE("BR-58 a sequence that is absent from batches keeps its planes") {
  on_every_engine({3}, 2, [](Engine const& empty) {
    Engine engine = empty;
    feed_rows(engine, {0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1});
    auto const before = planes_of_slot(engine, 1);
    for (std::int32_t round = 0; round < 5; ++round) {
      engine.feed(0, 3, whole);
      if (round % 2 == 0) engine.feed(0, 3, whole, 3, round % 4);
      REQUIRE(engine.roll_back(0, engine.tip(0) - round % 4 % 3) == Verdict::accepted);
      bool const kept = planes_of_slot(engine, 1) == before;
      REQUIRE(kept);
      for (Position p = 7; p <= 10; ++p) REQUIRE(differs_after_roll_back(engine, 1, p) == "");
    }
    REQUIRE(differs_from_fresh_run(engine, 0) == "");
  });
}

TEST_CASE("BR-59 plans in the same memory are of the sequence that they were asked for") {
  for (auto const& components : {all_planes({2, 8, 2}), rings({2, 8, 2})}) {
    EngineOptions o = engine_options(components, 2, 1, 1, {{"raw", 16, 64}});
    o.worst_shapes = true;
    on_every_storage(o, [](Engine const& empty) {
      Engine engine = empty;
      CapturedLists lists(engine.books);
      for (int step = 0; step < 100; ++step) {
        CAPTURE(step);
        std::vector<Planned> first;  // of sequence 0, which stands where sequence 1 does
        for (std::size_t s = 0; s < 2; ++s) {
          if (step % 7 == 6) REQUIRE(engine.roll_back(s, engine.tip(s) - 2) == Verdict::accepted);
          feed_and(engine, s, 1, 1, [&](std::int32_t) { lists.plan(engine); });
          if (s == 0) first = lists.planned();
          for (std::size_t c = 0; c < first.size() && s == 1; ++c) {
            RowMap const& m = engine.maps[c];
            Planned const& a = first[c];
            Planned const& b = lists.planned()[c];
            REQUIRE(b.restore_source == shifted(m, a.restore_source));
            REQUIRE(b.restore_destination == shifted(m, a.restore_destination));
            REQUIRE(b.snapshot_source == shifted(m, a.snapshot_source));
            REQUIRE(b.snapshot_destination == shifted(m, a.snapshot_destination));
            REQUIRE(b.persist_destination == shifted(m, a.persist_destination));
            REQUIRE(b.block_previous == shifted(m, a.block_previous));
            REQUIRE(b.block_current == shifted(m, a.block_current));
            for (std::size_t i = 0; i < a.block_slot.size(); ++i) {
              bool const used = a.block_slot[i] >= 0;
              REQUIRE(b.block_slot[i] == (used ? 1 : -1));
              REQUIRE(b.block_row[i] == a.block_row[i] + (used ? m.cache_slot_stride : 0));
              REQUIRE(b.block_position[i] == a.block_position[i]);
            }
            REQUIRE(b.visible == a.visible);
          }
        }
      }
      for (std::size_t s = 0; s < 2; ++s) REQUIRE(differs_from_fresh_run(engine, s) == "");
    });
  }
}

TEST_CASE("BR-64 the next user of a slot finds nothing of the last one") {
  on_every_engine({0, 128, 4}, 1, [](Engine const& empty) {
    for (std::int32_t before : {301, 128, 600}) {
      for (int variant = 0; variant < 4; ++variant) {
        bool const armed = (variant & 1) != 0;
        bool const open = (variant & 2) != 0;
        CAPTURE(before, armed, open);
        Engine engine = empty;
        engine.feed(0, before, whole);
        if (armed) REQUIRE(engine.roll_back(0, 128) == Verdict::accepted);
        Slot const old = engine.slot(0);
        if (open) {  // the last user's batch is at work, across boundaries that the next one will cross
          REQUIRE(engine.begin(std::vector<std::int32_t>(200, 0), whole) == Verdict::accepted);
          for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.run(k);
        }
        engine.clear(0);
        REQUIRE(listed(engine, 0).empty());
        REQUIRE(differs_from_fresh_run(engine, 0) == "");
        engine.feed(0, 140, whole);
        refuses(engine, 0, 256, Verdict::ahead_of_tip);
        REQUIRE(engine.books.can_land(old, 128) == Verdict::stale_slot);
        REQUIRE(listed(engine, 0) == std::vector<Position>{128});
        REQUIRE(differs_after_roll_back(engine, 0, 128) == "");
        engine.feed(0, 130, whole);
        REQUIRE(listed(engine, 0) == std::vector<Position>{128, 256});
        REQUIRE(differs_after_roll_back(engine, 0, 256) == "");
      }
    }
  });
}

TEST_CASE("BR-67 all sequences are emptied one by one whatever they were at") {
  on_every_engine({3, 128, 2}, 4, [](Engine const& empty) {
    for (bool cleared : {false, true}) {
      CAPTURE(cleared);
      Engine engine = empty;  // sequence 0 stays empty, 3 is armed
      for (std::size_t s = 1; s < 4; ++s) engine.feed(s, 100 * static_cast<std::int32_t>(s), whole);
      REQUIRE(engine.roll_back(3, 256) == Verdict::accepted);
      for (std::size_t s = 0; s < 4; ++s) {
        if (cleared) engine.clear(s);
        if (!cleared) REQUIRE(engine.roll_back(s, 0) == Verdict::accepted);
      }
      for (std::size_t s = 0; s < 4; ++s) {
        REQUIRE(engine.check(s) == "");
        REQUIRE(listed(engine, s).empty());
        REQUIRE_FALSE(engine.books.is_armed(engine.slot(s)));
      }
      feed_rows(engine, {3, 0, 1, 2, 2, 1, 0, 3, 3});
      for (std::size_t s = 0; s < 4; ++s) REQUIRE(differs_from_fresh_run(engine, s) == "");
    }
  });
}

TEST_CASE("BR-68 ids out of range are refused by every call and change nothing") {
  using refusal::BatchRows;
  for (bool open : {false, true}) {
    refusal::Desk desk(open);
    Books& books = desk.books;
    if (open) desk.settle(1);
    std::int32_t const n = books.slots();
    for (std::int32_t id : {-2, n, n + 1, INT_MAX}) {
      REQUIRE(books.slot(id) == Slot{});
      for (std::uint32_t generation : {0u, 1u, 2u}) {
        CAPTURE(open, id, generation);
        Slot const slot{id, generation};
        auto const refuses = [&](auto const& call) { desk.refuses(Verdict::unknown_slot, call); };
        refuses([&] { return books.can_land(slot, 0); });
        refuses([&] { return books.nearest(slot, 3).why; });
        refuses([&] { return books.roll_back(slot, 0); });
        refuses([&] {
          Slot cleared = slot;
          Verdict const verdict = books.clear(cleared);
          REQUIRE(cleared == slot);
          return verdict;
        });
        REQUIRE(books.nearest(slot, 3).position == -1);
        REQUIRE(books.tip(slot) == -1);
        REQUIRE(books.head(slot) == -1);
        REQUIRE(books.live_place(slot) == -1);
        REQUIRE_FALSE(books.is_armed(slot));
        REQUIRE(books.reach(slot) == -1);
        Landing untouched;
        untouched.position = 77;
        REQUIRE(books.landings(slot, &untouched, 1) == 0);
        REQUIRE(untouched.position == 77);
        REQUIRE(books.next_cut(slot, 1, 30) == 30);
        if (open) {
          refuses([&] { return books.commit(desk.ticket, slot, 30); });
          continue;
        }
        refuses([&] { return refusal::feed(books, slot, 3); });
        BatchRows named(books);
        named.unverified[1].slot = slot;
        refuses([&] { return books.begin(named.batch(), desk.ticket); });
        BatchRows row(books);
        row.slots[6] = slot;
        std::int32_t bad_row = -5;
        if (id < 0) {  // in a batch a negative index is padding: what follows of slot 1 is then a gap
          desk.refuses(Verdict::position_gap, [&] { return books.begin(row.batch(), desk.ticket, &bad_row); });
          REQUIRE(bad_row == 9);
        } else {
          refuses([&] { return books.begin(row.batch(), desk.ticket, &bad_row); });
          REQUIRE(bad_row == 6);
        }
      }
    }
    for (std::int32_t id : {-2, -1, books.components(), books.components() + 1, INT_MAX}) {
      if (id != books.components()) REQUIRE(std::string(books.name(id)).empty());  // that one is the window's
      if (!open) continue;
      desk.refuses(Verdict::unknown_component, [&] {
        rollback::Lists lists;
        return books.plan(desk.ticket, 0, id, books.worst_shape(8, 3), RowMap{}, lists);
      });
    }
    for (std::int32_t id : {-2, -1, 5, 6, INT_MAX}) {
      if (!open) continue;
      rollback::Outcomes outcomes;
      Shape shape;
      desk.refuses(Verdict::unknown_chunk, [&] { return books.settle(desk.ticket, id); });
      desk.refuses(Verdict::unknown_chunk, [&] { return books.shape(desk.ticket, id, shape); });
      desk.refuses(Verdict::unknown_chunk,
                   [&] { return books.fail(desk.ticket, id, BadChunk::may_have_run, outcomes); });
      desk.refuses(Verdict::unknown_ticket, [&] { return books.settle({id, desk.ticket.serial}, 1); });
    }
  }
}

TEST_CASE("BR-69 sequences with different numbers of rows in one batch") {
  on_every_engine({3}, 3, [](Engine const& empty) {
    for (std::vector<std::int32_t> const& rows :
         {std::vector<std::int32_t>{0, 0, 0, 0, 1}, std::vector<std::int32_t>{1, 0, 0, 0, 0},
          std::vector<std::int32_t>{0, 0, 1, 0, -1, 0}}) {
      Engine engine = empty;
      for (std::size_t s = 0; s < 3; ++s) engine.feed(s, 10, whole);
      feed_rows(engine, rows);
      REQUIRE(engine.tip(0) == 14);
      REQUIRE(engine.tip(1) == 11);
      REQUIRE(engine.tip(2) == 10);
      for (std::int32_t depths = 0; depths < 27; ++depths) {
        CAPTURE(depths);
        Engine copy = engine;
        std::int32_t rest = depths;
        for (std::size_t s = 0; s < 3; ++s, rest /= 3) {
          REQUIRE(copy.roll_back(s, copy.tip(s) - 1 - rest % 3) == Verdict::accepted);
        }
        for (std::size_t s = 0; s < 3; ++s) REQUIRE(differs_from_fresh_run(copy, s) == "");
        feed_rows(copy, {2, 1, 0, 0, 1, 2, 2});
        for (std::size_t s = 0; s < 3; ++s) REQUIRE(differs_from_fresh_run(copy, s) == "");
      }
    }
  });
}
