// The recipes of slots_test.cpp and shared_test.cpp on a `dsv4::Memory`: no one reads, writes or inherits what is
// another's, and what two share is written by neither.
#include "scenario_dsv4_engine.hpp"

#include <climits>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dsv4_scenario;

namespace {

/// Runs a batch of these rows (the slot of each) and commits all of it.
void feed_rows(Engine& engine, std::vector<std::size_t> const& slot_of_row) {
  std::vector<Part> parts;
  for (std::size_t s : slot_of_row) parts.push_back({s, engine.drawn(1)});
  Flight f = engine.begin(parts);
  engine.carry_out(f);
  for (std::size_t s = 0; s < engine.tokens.size(); ++s) {
    if (engine.books().head(engine.slot(s)) > engine.tip(s)) engine.commit(f, s, engine.books().head(engine.slot(s)));
  }
}

/// Every list of a planned chunk, with the rows of a slot `by` slots further on.
std::vector<std::vector<std::int64_t>> lists_of(Memory const& memory, Chunk const& chunk, std::int32_t by) {
  std::vector<std::vector<std::int64_t>> all;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    Lists const& l = chunk.lists[static_cast<int>(compressor)];
    rollback::RowMap const& map = memory.row_map(compressor);
    rollback::RowGeometry const g = Memory::geometry(compressor);
    auto const take = [&](auto const* list, std::int64_t count, std::int64_t stride, std::int64_t end) {
      all.emplace_back(list, list + count);
      for (std::int64_t& row : all.back()) row += row >= 0 && row < end ? by * stride : 0;
    };
    auto const rows = [&](std::int32_t const* list, std::int64_t count) {
      take(list, count, map.live_slot_stride, map.fresh);  // the chunk's own rows are the same for every slot
    };
    rows(l.restore_source, l.restores);
    rows(l.restore_destination, l.restores);
    rows(l.snapshot_source, std::int64_t{l.snapshots} * g.rows);
    rows(l.snapshot_destination, std::int64_t{l.snapshots} * g.rows);
    rows(l.persist_destination, chunk.rows);
    if (g.overlap) rows(l.block_previous, std::int64_t{l.blocks} * g.block);
    rows(l.block_current, std::int64_t{l.blocks} * g.block);
    take(l.block_row, l.blocks, map.cache_slot_stride, INT64_MAX);
    take(l.block_slot, l.blocks, 1, INT64_MAX);
    take(l.block_position, l.blocks, 0, 0);
    take(l.visible, chunk.rows, 0, 0);
  }
  return all;
}

}  // namespace

TEST_CASE("BR-58 on a DSV4 memory: a sequence that is absent from batches keeps its planes") {
  on_every_memory(options({3}, 2), [](Engine const& empty) {
    Engine engine = empty;
    for (std::size_t s : {0U, 1U}) engine.feed(s, engine.drawn(120));
    feed_rows(engine, {0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1});
    std::vector<float> const before = values_of_slot(engine, 1);
    for (std::int32_t round = 0; round < 5; ++round) {
      engine.feed(0, engine.drawn(3));
      if (round % 2 == 0) engine.verify(0, engine.drawn(3), 3, round % 4);
      REQUIRE(engine.roll_back(0, engine.tip(0) - round % 4 % 3) == Verdict::accepted);
      REQUIRE(same_bits(values_of_slot(engine, 1), before));
      for (Position p = 127; p <= 130; ++p) REQUIRE(differs_after_roll_back(engine, 1, p) == "");
    }
    REQUIRE(differs_from_fresh_run(engine, 0) == "");
  });
}

TEST_CASE("BR-59 on a DSV4 memory: plans in the same memory are of the sequence that they were asked for") {
  on_every_memory(options({2, 8, 2}, 2, 1), [](Engine const& empty) {
    Engine engine = empty;
    for (int step = 0; step < 140; ++step) {
      CAPTURE(step);
      std::vector<std::vector<std::int64_t>> expected;  // as of sequence 0, which stands where sequence 1 does
      for (std::size_t s = 0; s < 2; ++s) {
        if (step % 7 == 6) REQUIRE(engine.roll_back(s, engine.tip(s) - 2) == Verdict::accepted);
        feed_and(engine, s, 1, 1, [&](Flight const& f) {
          if (s == 0) expected = lists_of(engine.memory, f.chunk, 1);
          REQUIRE((s == 0 || lists_of(engine.memory, f.chunk, 0) == expected));
        });
      }
    }
    for (std::size_t s : {0U, 1U}) REQUIRE(differs_from_fresh_run(engine, s) == "");
  });
}

TEST_CASE("BR-63 on a DSV4 memory: two sequences with the same prefix each go their own way") {
  for (Position quantum : {128, 64}) {
    Position const shared = quantum == 128 ? 256 : 320;  // at 320 HCA has a state to share as well
    on_every_memory(options({3, quantum, 4}, 2, 320), [quantum, shared](Engine const& empty) {
      Engine engine = empty;
      engine.feed(1, engine.drawn(77));  // of the slot's last user nothing stays
      engine.feed(0, engine.drawn(static_cast<std::size_t>(shared)));
      engine.feed(0, engine.drawn(3));
      REQUIRE(engine.roll_back(0, shared) == Verdict::accepted);
      REQUIRE(engine.fork(0, shared, 1) == Verdict::accepted);
      for (std::size_t row = 0; row < 44; ++row) {
        for (std::size_t s : {row % 2, 1 - row % 2})
          engine.feed(s, engine.drawn(1));  // now one, now the other is first
      }
      for (std::size_t s : {0U, 1U}) {
        REQUIRE(differs_from_fresh_run(engine, s) == "");
        for (Position p : {shared - quantum, shared, shared + 42}) {
          CAPTURE(quantum, s, p);
          REQUIRE(differs_after_roll_back(engine, s, p) == "");
        }
      }
      for (std::size_t s : {0U, 1U}) {
        Engine ahead = engine;  // one keeps other boundaries in place of those that the other one still has
        ahead.feed(s, ahead.drawn(static_cast<std::size_t>(4 * quantum)));
        for (Position p : landings(ahead, s)) REQUIRE(differs_after_roll_back(ahead, s, p) == "");
        for (Position p : landings(ahead, 1 - s)) REQUIRE(differs_after_roll_back(ahead, 1 - s, p) == "");

        Engine cleared = engine;
        cleared.clear(s);  // what the other one shares with it stays, whoever comes next
        cleared.feed(s, cleared.drawn(320));
        REQUIRE(differs_after_roll_back(cleared, 1 - s, shared - quantum) == "");
        REQUIRE(differs_after_roll_back(cleared, 1 - s, shared) == "");
        REQUIRE(differs_after_roll_back(cleared, s, 256) == "");
      }
    });
  }
}

TEST_CASE("BR-64 on a DSV4 memory: the next user of a slot finds nothing of the last one") {
  on_every_memory(options({0, 128, 4}, 1, 256), [](Engine const& empty) {
    for (std::size_t before : {301U, 128U, 600U}) {
      for (bool armed : {false, true}) {
        for (bool open : {false, true}) {
          CAPTURE(before, armed, open);
          Engine engine = empty;
          if (engine.books().pins() > 0) REQUIRE(engine.books().pin(engine.slot(0), 100) == Verdict::accepted);
          engine.feed(0, engine.drawn(before));
          if (armed) REQUIRE(engine.roll_back(0, 128) == Verdict::accepted);
          Slot const old = engine.slot(0);
          if (open) {  // the last user's batch is at work, across boundaries that the next one will cross
            Flight f = engine.begin({{0, engine.drawn(200)}});
            engine.plan(f);
            engine.clear(0);
            engine.run(f);  // too late to be stopped
          } else {
            engine.clear(0);
          }
          REQUIRE(landings(engine, 0).empty());
          REQUIRE(differs_from_fresh_run(engine, 0) == "");
          engine.feed(0, engine.drawn(140));
          refuses(engine, 0, 256, Verdict::ahead_of_tip);
          REQUIRE(engine.books().can_land(old, 128) == Verdict::stale_slot);
          REQUIRE(landings(engine, 0) == std::vector<Position>{128});
          REQUIRE(differs_after_roll_back(engine, 0, 128) == "");
          engine.feed(0, engine.drawn(130));
          REQUIRE(landings(engine, 0) == std::vector<Position>{128, 256});
          REQUIRE(differs_after_roll_back(engine, 0, 256) == "");
        }
      }
    }
  });
}

TEST_CASE("BR-67 on a DSV4 memory: all sequences are emptied one by one whatever they were at") {
  on_every_memory(options({3, 128, 2}, 4), [](Engine const& empty) {
    for (bool cleared : {false, true}) {
      CAPTURE(cleared);
      Engine engine = empty;  // sequence 0 stays empty, 3 is armed
      for (std::size_t s = 1; s < 4; ++s) engine.feed(s, engine.drawn(100 * s));
      REQUIRE(engine.roll_back(3, 256) == Verdict::accepted);
      for (std::size_t s = 0; s < 4; ++s) {
        if (cleared) engine.clear(s);
        if (!cleared) REQUIRE(engine.roll_back(s, 0) == Verdict::accepted);
      }
      for (std::size_t s = 0; s < 4; ++s) {
        REQUIRE(landings(engine, s).empty());
        REQUIRE_FALSE(engine.books().is_armed(engine.slot(s)));
        REQUIRE(differs_from_fresh_run(engine, s) == "");
      }
      feed_rows(engine, {3, 0, 1, 2, 2, 1, 0, 3, 3});
      for (std::size_t s = 0; s < 4; ++s) REQUIRE(differs_from_fresh_run(engine, s) == "");
    }
  });
}

TEST_CASE("BR-68 on a DSV4 memory: ids out of range are refused by every call and change nothing") {
  on_every_memory(options({3, 128, 2}, 2), [](Engine const& empty) {
    Engine engine = empty;
    for (std::size_t s : {0U, 1U}) engine.feed(s, engine.drawn(130 + s));
    Blob const blob = saved(engine, 1, 131);
    Engine const before = engine;
    rollback::Books& books = engine.books();
    MemoryLayout const layout(engine.memory);
    auto const no_bytes = [](void const*, std::size_t) { return false; };
    for (std::int32_t id : {-2, -1, 2, 3, INT_MAX}) {
      for (std::uint32_t generation : {0U, 1U, 2U}) {
        CAPTURE(id, generation);
        Slot slot{id, generation};
        REQUIRE(books.roll_back(slot, 0) == Verdict::unknown_slot);
        REQUIRE(books.nearest(slot, 128).why == Verdict::unknown_slot);
        REQUIRE(books.clear(slot) == Verdict::unknown_slot);
        REQUIRE(books.pin(slot, 128) == Verdict::unknown_slot);
        REQUIRE(books.unpin(slot, 128) == Verdict::unknown_slot);
        REQUIRE(books.fork(slot, 128, slot) != Verdict::accepted);
        REQUIRE(books.fork(engine.slot(0), 128, slot) == Verdict::unknown_slot);
        REQUIRE(rollback::dsv4::save(engine.memory, slot, 128, layout, {}, no_bytes) == Verdict::unknown_slot);
        REQUIRE(rollback::dsv4::load(engine.memory, slot, layout, LoadAs::state, Reader{blob}) ==
                Verdict::unknown_slot);
        REQUIRE(slot == Slot{id, generation});
        Flight f = engine.rows_of({{0, engine.drawn(3)}, {1, engine.drawn(3)}});
        f.slots[3] = slot;
        std::int32_t bad_row = -5;
        Verdict const verdict = books.begin(f.batch, f.ticket, &bad_row);
        // In a batch a negative index is padding: what follows of slot 1 is then a gap.
        REQUIRE(verdict == (id < 0 ? Verdict::position_gap : Verdict::unknown_slot));
        REQUIRE(bad_row == (id < 0 ? 4 : 3));
      }
    }
    REQUIRE(same(engine, before));

    Flight f = engine.begin({{0, engine.drawn(9)}, {1, engine.drawn(9)}}, 5);
    for (std::int32_t id : {-2, -1, 4, 5, INT_MAX}) {
      REQUIRE(engine.memory.plan(f.ticket, id, f.batch, f.chunk) == Verdict::unknown_chunk);
      REQUIRE(engine.memory.plan({id, f.ticket.serial}, 0, f.batch, f.chunk) == Verdict::unknown_ticket);
      REQUIRE(books.settle(f.ticket, id) == Verdict::unknown_chunk);
      REQUIRE(books.commit(f.ticket, Slot{id, 1}, 131) != Verdict::accepted);
    }
    engine.carry_out(f);
    for (std::size_t s : {0U, 1U}) engine.commit(f, s, engine.books().head(engine.slot(s)));
    for (std::size_t s : {0U, 1U}) REQUIRE(differs_from_fresh_run(engine, s) == "");
  });
}

TEST_CASE("BR-69 on a DSV4 memory: sequences with different numbers of rows in one batch") {
  on_every_memory(options({3}, 3), [](Engine const& empty) {
    for (std::vector<std::size_t> const& rows :
         {std::vector<std::size_t>{0, 0, 0, 0, 1}, std::vector<std::size_t>{1, 0, 0, 0, 0},
          std::vector<std::size_t>{0, 0, 1, 0, padding, 0}}) {
      Engine engine = empty;
      for (std::size_t s = 0; s < 3; ++s) engine.feed(s, engine.drawn(126));
      feed_rows(engine, rows);
      REQUIRE(engine.tip(0) == 130);
      REQUIRE(engine.tip(1) == 127);
      REQUIRE(engine.tip(2) == 126);
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

TEST_CASE("BR-74 on a DSV4 memory: a copy to a sequence that there is no room for is refused") {
  on_every_memory(options({3, 128, 4}), [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, engine.drawn(300));
    Blob const blob = saved(engine, 0, 300);
    Engine const before = engine;
    MemoryLayout const layout(engine.memory);
    for (std::int32_t index : {-1, 1, 2, INT32_MAX}) {
      Slot backup{index, 1};
      REQUIRE(engine.books().fork(engine.slot(0), 256, backup) == Verdict::unknown_slot);
      REQUIRE(rollback::dsv4::load(engine.memory, backup, layout, LoadAs::state, Reader{blob}) ==
              Verdict::unknown_slot);
      REQUIRE(backup == Slot{index, 1});
    }
    REQUIRE(same(engine, before));
  });
}
