// The recipes of blocks_test.cpp on a `dsv4::Memory`: emitted blocks are the same bits however the rows came.
#include "scenario_dsv4_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dsv4_scenario;

namespace {

/// The state at `p` of one compressor, as far as a step there can read it, out of the plane at row `first` in every
/// layer.
std::vector<float> readable_plane(Engine const& engine, Compressor compressor, std::int64_t first, Position p) {
  rollback::RowGeometry const g = Memory::geometry(compressor);
  std::int64_t const width = engine.memory.width(compressor);
  Position const block = p / g.block * g.block;
  std::vector<float> values;
  for (rollback::PlaneTensor const& tensor : engine.memory.state_tensors(compressor)) {
    auto const* const rows = reinterpret_cast<float const*>(tensor.base) + first * width;
    for (Position q = std::max<Position>(0, g.overlap ? block - g.block : block); q < p; ++q) {
      float const* const row = rows + q % g.rows * width;
      values.insert(values.end(), row, row + (q < block ? width / 2 : width));
    }
  }
  return values;
}

/// All that is in the live planes of a slot at its tip.
std::vector<float> live_states(Engine const& engine, std::size_t s) {
  std::vector<float> all;
  Slot const slot = engine.slot(s);
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    rollback::RowMap const& map = engine.memory.row_map(compressor);
    std::int64_t const first =
        map.live + slot.index * map.live_slot_stride + engine.books().live_place(slot) * map.live_place_stride;
    std::vector<float> const values = readable_plane(engine, compressor, first, engine.tip(s));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// All that is kept of a slot's landing `p`, from the first place that has it.
std::vector<float> kept_states(Engine const& engine, std::size_t s, Position p) {
  std::vector<float> all;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    rollback::StatePlaces places;
    REQUIRE(engine.books().state_at(engine.slot(s), p, engine.memory.component(compressor),
                                    engine.memory.row_map(compressor), places) == Verdict::accepted);
    if (places.count == 0) continue;  // empty
    std::vector<float> const values = readable_plane(engine, compressor, places.rows[0], p);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("BR-76 on a DSV4 memory: the first block has no rows before it") {
  on_every_memory(options({3}), [](Engine const& empty) {
    auto const feed = [](Engine& engine, std::size_t rows, std::int32_t chunk) {
      std::int32_t first_blocks = 0;
      feed_and(engine, 0, rows, chunk, [&](Flight const& f) {
        for (Compressor compressor : {Compressor::csa, Compressor::lid}) {
          Lists const& lists = f.chunk.lists[static_cast<int>(compressor)];
          for (std::int32_t i = 0; i < lists.blocks; ++i) {
            bool const first = lists.block_position[i] == 0;
            first_blocks += first ? 1 : 0;
            for (std::int32_t j = 4 * i; j < 4 * i + 4; ++j) {
              REQUIRE((lists.block_previous[j] == -1) == first);
              REQUIRE(lists.block_current[j] >= 0);
            }
          }
        }
      });
      return first_blocks;
    };
    for (std::int32_t chunk : {1, 2, 3, 64}) {
      Engine engine = empty;
      REQUIRE(feed(engine, 4, chunk) == 2);  // CSA's and LID's
      REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
      for (Position p = 1; p <= 3; ++p) {
        CAPTURE(chunk, p);
        Engine back = engine;
        REQUIRE(back.roll_back(0, p) == Verdict::accepted);
        REQUIRE(feed(back, 6, chunk) == 2);
        REQUIRE(differs_from_fresh_run(back, 0, 1) == "");
        REQUIRE(back.roll_back(0, 0) == Verdict::accepted);
        REQUIRE(feed(back, 9, chunk) == 2);
        REQUIRE(differs_from_fresh_run(back, 0, 1) == "");
      }
    }
  });
}

TEST_CASE("BR-79 on a DSV4 memory: any partition of the rows gives the same blocks") {
  for (std::size_t head : {0U, 3U, 123U}) {
    on_every_memory(options({}), [head](Engine const& empty) {
      Engine start = empty;
      start.feed(0, start.drawn(head));
      Tokens const nine = start.drawn(9);
      Engine together = start;
      together.feed(0, nine);
      REQUIRE(differs_from_fresh_run(together, 0, 1) == "");
      for (std::uint32_t ends = 0; ends < 256; ++ends) {  // a bit for each row but the last: whether a part ends there
        CAPTURE(head, ends);
        Engine batches = start;
        Engine chunks = start;
        Flight f = chunks.rows_of({{0, nine}});
        f.ends.clear();
        for (std::int32_t row = 0, begin = 0; row < 9; ++row) {
          if (row < 8 && (ends >> row & 1U) == 0) continue;
          batches.feed(0, Tokens(nine.begin() + begin, nine.begin() + row + 1));
          f.ends.push_back(row + 1);
          begin = row + 1;
        }
        f.batch.chunk_ends = f.ends.data();
        f.batch.chunks = static_cast<std::int32_t>(f.ends.size());
        REQUIRE(chunks.books().begin(f.batch, f.ticket) == Verdict::accepted);
        chunks.tokens[0].insert(chunks.tokens[0].end(), nine.begin(), nine.end());
        chunks.carry_out(f);
        chunks.commit(f, 0, f.positions.back() + 1);
        REQUIRE(difference(batches, 0, together) == "");
        REQUIRE(difference(chunks, 0, together) == "");
      }
    });
  }
}

TEST_CASE("BR-80 on a DSV4 memory: a prompt cut at any micro-batch gives the same bytes") {
  on_every_memory(options({3, 128, 4}, 1, 2000), [](Engine const& empty) {
    Engine start = empty;
    Tokens const prompt = start.drawn(1811);
    Engine together = start;
    together.feed(0, prompt);
    REQUIRE(differs_from_fresh_run(together, 0) == "");
    for (std::int32_t chunk : {512, 1, 127, 129, 1000, 1810}) {
      CAPTURE(chunk);
      Engine cut = start;
      cut.feed(0, prompt, chunk);
      REQUIRE(difference(cut, 0, together) == "");
    }
  });
}

TEST_CASE("BR-81 on a DSV4 memory: keeping a state never rounds it nor touches the live one") {
  MemoryOptions o = options({3, 16, 4});
  o.pins = 1;
  on_every_memory(o, [](Engine const& empty) {
    Engine plain(options({}));  // where nothing is kept
    Engine keeping = empty;
    REQUIRE(keeping.books().pin(keeping.slot(0), 107) == Verdict::accepted);
    std::vector<std::vector<float>> states;  // of every position
    for (Position p = 0; p < 150; ++p) {
      states.push_back(live_states(plain, 0));
      REQUIRE(difference(keeping, 0, plain) == "");
      Tokens const next = plain.drawn(1);
      plain.feed(0, next);
      keeping.feed(0, next);
    }
    REQUIRE(landings(keeping, 0) == std::vector<Position>{96, 107, 112, 128, 144, 147, 148, 149});
    for (Position p : landings(keeping, 0)) {
      CAPTURE(p);
      REQUIRE(same_bits(kept_states(keeping, 0, p), states[static_cast<std::size_t>(p)]));
      REQUIRE(differs_after_roll_back(keeping, 0, p) == "");
    }
  });
}
