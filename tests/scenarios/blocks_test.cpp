// First blocks, cuts and numeric form: emitted blocks are the same bits however the rows came.
#include "scenario.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace scenario;

namespace {

std::vector<Row> const& ring8_blocks(Engine const& engine) {
  return engine.storage.caches[engine.maps.size() - 2];  // RING8 stands before RING128
}

/// The state that the next feed of a slot would restore, plane by plane, as far as a step at its tip can read it.
std::vector<std::uint32_t> restored(Engine engine, std::size_t s) {
  Position const p = engine.tip(s);
  REQUIRE(engine.begin({static_cast<std::int32_t>(s)}, 1) == Verdict::accepted);
  std::vector<std::uint32_t> words;
  for (std::size_t c = 0; c < engine.maps.size(); ++c) {
    Planned const plan = engine.planned(0, static_cast<std::int32_t>(c));
    Component const& kind = engine.books.component(static_cast<std::int32_t>(c));
    auto const to = std::find(plan.restore_destination.begin(), plan.restore_destination.end(), engine.live_row(c, s));
    REQUIRE(to != plan.restore_destination.end());
    std::int32_t const from = plan.restore_source[static_cast<std::size_t>(to - plan.restore_destination.begin())];
    for (Position q = std::max<Position>(0, p - kind.geometry.rows); q < p; ++q) {
      Row const& row = engine.storage.planes[c][static_cast<std::size_t>(from + q % kind.geometry.rows)];
      std::size_t const n = kind.states_inside_chunk ? engine.history[s].readable_words(c, q, p) : row.size();
      words.insert(words.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }
  return words;
}

}  // namespace

TEST_CASE("BR-76 the first block has no rows before it") {
  on_every_engine({3}, 1, [](Engine const& empty) {
    std::size_t const c = empty.maps.size() - 2;  // RING8
    auto const feed = [c](Engine& engine, std::int32_t rows, std::int32_t chunk) {
      std::int32_t first_blocks = 0;
      feed_and(engine, 0, rows, chunk, [&](std::int32_t k) {
        Planned const p = engine.planned(k, static_cast<std::int32_t>(c));
        for (std::size_t i = 0; i < static_cast<std::size_t>(p.lists.blocks); ++i) {
          bool const first = p.block_position[i] == 0;
          first_blocks += first ? 1 : 0;
          for (std::size_t j = 4 * i; j < 4 * i + 4; ++j) {
            REQUIRE((p.block_previous[j] == engine.maps[c].empty) == first);
            REQUIRE(p.block_current[j] != engine.maps[c].empty);
          }
        }
      });
      return first_blocks;
    };
    for (std::int32_t chunk : {1, 2, 3, whole}) {
      Engine engine = empty;
      REQUIRE(feed(engine, 4, chunk) == 1);
      REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
      for (Position p = 1; p <= 3; ++p) {
        CAPTURE(chunk, p);
        Engine back = engine;
        REQUIRE(back.roll_back(0, p) == Verdict::accepted);
        REQUIRE(feed(back, 6, chunk) == 1);
        REQUIRE(differs_from_fresh_run(back, 0, 1) == "");
        REQUIRE(back.roll_back(0, 0) == Verdict::accepted);
        REQUIRE(feed(back, 9, chunk) == 1);
        REQUIRE(differs_from_fresh_run(back, 0, 1) == "");
      }
    }
  });
}

TEST_CASE("BR-79 any partition of the rows gives the same blocks") {
  on_every_engine({}, 1, [](Engine const& empty) {
    Engine together = empty;
    together.feed(0, 16, whole);
    REQUIRE(together.check(0) == "");
    for (std::vector<std::int32_t> const& parts :
         {std::vector<std::int32_t>(16, 1), std::vector<std::int32_t>(4, 4), std::vector<std::int32_t>(2, 8),
          std::vector<std::int32_t>{3, 5, 7, 1}}) {
      Engine batches = empty;
      for (std::int32_t rows : parts) batches.feed(0, rows, whole);
      bool const equal = ring8_blocks(batches) == ring8_blocks(together) &&
                         readable(batches, 0) == readable(together, 0) && batches.check(0).empty();
      REQUIRE(equal);
    }
    Engine nine = empty;
    nine.feed(0, 9, whole);
    for (std::uint32_t ends = 0; ends < 256; ++ends) {  // a bit for each row but the last: whether a part ends there
      CAPTURE(ends);
      Engine batches = empty;
      Engine chunks = empty;
      std::vector<std::int32_t> chunk_ends;
      for (std::int32_t row = 0, begin = 0; row < 9; ++row) {
        if (row < 8 && (ends >> row & 1u) == 0) continue;
        batches.feed(0, row + 1 - begin, whole);
        chunk_ends.push_back(row + 1);
        begin = row + 1;
      }
      REQUIRE(chunks.begin(std::vector<std::int32_t>(9, 0), whole, {}, chunk_ends) == Verdict::accepted);
      finish(chunks, 0, 9, [](std::int32_t) {});
      bool const equal = ring8_blocks(batches) == ring8_blocks(nine) && ring8_blocks(chunks) == ring8_blocks(nine) &&
                         readable(batches, 0) == readable(nine, 0) && readable(chunks, 0) == readable(nine, 0);
      REQUIRE(equal);
    }
  });
}

TEST_CASE("BR-80 a prompt cut at any micro-batch gives the same bytes") {
  for (auto const& components : {all_planes({3, 128, 4}), rings({3, 128, 4})}) {
    EngineOptions const o = engine_options(components, 1, 2048, 2048, {{"raw", 128, 4096}});
    on_every_storage(o, [](Engine const& empty) {
      Engine together = empty;
      together.feed(0, 1811, 2048);
      REQUIRE(differs_from_fresh_run(together, 0) == "");
      for (std::int32_t chunk : {512, 1, 127, 129, 1000, 1810}) {
        CAPTURE(chunk);
        Engine cut = empty;
        cut.feed(0, 1811, chunk);
        REQUIRE(readable(cut, 0) == readable(together, 0));
        REQUIRE(cut.check(0) == "");
      }
    });
  }
}

TEST_CASE("BR-81 keeping a state never rounds it nor touches the live one") {
  on_every_engine({3, 16, 4}, 1, [](Engine const& empty) {
    EngineOptions without = empty.options;
    for (Component& c : without.books.components) c.per_token = c.aligned = 0;
    Engine plain(without);
    Engine keeping = empty;
    std::vector<std::vector<std::uint32_t>> states;  // of every position, where nothing was kept
    for (Position p = 0; p < 150; ++p) {
      REQUIRE(readable(keeping, 0) == readable(plain, 0));
      states.push_back(readable(plain, 0));
      plain.feed(0, 1, whole);
      keeping.feed(0, 1, whole);
    }
    REQUIRE(tokens_of(keeping, 0) == tokens_of(plain, 0));
    REQUIRE(listed(keeping, 0) == std::vector<Position>{96, 112, 128, 144, 147, 148, 149});
    for (Position p : listed(keeping, 0)) {
      CAPTURE(p);
      Engine back = keeping;
      REQUIRE(back.roll_back(0, p) == Verdict::accepted);
      Engine at_p(without);
      std::vector<Token> tokens = tokens_of(keeping, 0);
      tokens.resize(static_cast<std::size_t>(p));
      feed_tokens(at_p, 0, tokens, 1);
      REQUIRE(readable(at_p, 0) == states[static_cast<std::size_t>(p)]);
      std::vector<std::uint32_t> kept = restored(back, 0);
      std::vector<std::uint32_t> live;
      for (std::size_t c = 0; c < at_p.maps.size(); ++c) {
        Component const& kind = at_p.books.component(static_cast<std::int32_t>(c));
        for (Position q = std::max<Position>(0, p - kind.geometry.rows); q < p; ++q) {
          auto const row = static_cast<std::size_t>(at_p.live_row(c, 0) + q % kind.geometry.rows);
          std::size_t const n = kind.states_inside_chunk ? at_p.history[0].readable_words(c, q, p) : 4;
          Row const& words = at_p.storage.planes[c][row];
          live.insert(live.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
        }
      }
      REQUIRE(kept == live);
      REQUIRE(differs_from_fresh_run(back, 0) == "");
    }
  });
}
