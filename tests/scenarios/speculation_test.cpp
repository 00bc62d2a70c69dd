// Speculative verification and what rings have room for: whatever part of a block is accepted, nothing else remains.
#include "scenario.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace scenario;

namespace {

/// A ring of 16 rows of which a block reads the last 8.
Component ring16() {
  Component c = ring8();
  c.name = "RING16";
  c.geometry.rows = 16;
  return c;
}

}  // namespace

TEST_CASE("BR-36 the rows of every accepted prefix are persisted") {
  Depths const ten{10};
  on_every_storage(options({with(ring16(), ten), with(ring8(), ten)}), [](Engine const& empty) {
    for (std::int32_t tip = 16; tip <= 31; ++tip) {
      Engine engine = empty;
      engine.feed(0, tip, whole);
      for (std::int32_t width = 1; width <= 10; ++width) {
        for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
          CAPTURE(tip, width, accepted);
          Engine copy = engine;
          copy.feed(0, width, whole, width, accepted);
          copy.feed(0, 1, whole);
          REQUIRE(copy.tip(0) == tip + accepted + 1);
          REQUIRE(differs_from_fresh_run(copy, 0) == "");
        }
      }
    }
  });
}

TEST_CASE("BR-38 every accepted prefix equals one token at a time") {
  on_every_engine({6}, 1, [](Engine const& empty) {
    for (std::int32_t tip = 8; tip <= 15; ++tip) {
      Engine engine = empty;
      engine.feed(0, tip, whole);
      for (std::int32_t accepted = 0; accepted <= 6; ++accepted) {
        CAPTURE(tip, accepted);
        Engine copy = engine;
        copy.feed(0, 6, whole, 6, accepted);
        REQUIRE(differs_from_fresh_run(copy, 0, 1) == "");
      }
    }
  });
}

TEST_CASE("BR-39 every width of a block works under a mixed load") {
  std::int32_t const sequences = 12;
  Depths const sixteen{16, 8, 3};
  for (auto const& components : {all_planes(sixteen), rings(sixteen)}) {
    EngineOptions o = engine_options(components, sequences, 240, 240, {{"raw", 32, 600}});
    on_every_storage(o, [&](Engine const& empty) {
      for (std::int32_t width = 1; width <= 16; ++width) {
        CAPTURE(width);
        Engine engine = empty;
        for (std::int32_t round = 0; round < 5; ++round) {
          std::vector<std::int32_t> rows;
          std::vector<Unverified> unverified;
          for (std::int32_t s = 0; s < sequences; ++s) {
            // Blocks to be verified, single tokens, prompts, and sequences that sit the round out.
            std::int32_t const role = (s + round) % 5;
            std::int32_t const count = role < 2 ? width : role == 2 ? 1 : role == 3 ? 9 : 0;
            rows.insert(rows.end(), static_cast<std::size_t>(count), s);
            if (role < 2) unverified.push_back({engine.slot(static_cast<std::size_t>(s)), width});
          }
          std::shuffle(rows.begin(), rows.end(), engine.random);
          REQUIRE(engine.begin(rows, engine.pick(1, 60), unverified) == Verdict::accepted);
          for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.run(k), engine.settle(k);
          for (std::size_t s = 0; s < engine.slots.size(); ++s) {
            if (!engine.is_open(s)) continue;
            toy::Rows const of_slot = engine.rows_of(s);
            engine.commit(s, engine.pick(of_slot.verified, of_slot.end));
          }
          for (std::size_t s = 0; s < engine.slots.size(); ++s) REQUIRE(engine.check(s) == "");
        }
        for (std::size_t s = 0; s < engine.slots.size(); ++s) REQUIRE(differs_from_fresh_run(engine, s) == "");
      }
    });
  }
}

TEST_CASE("BR-40 blocks above the landing are not visible before they are rewritten") {
  on_every_engine({3}, 1, [](Engine const& empty) {
    std::size_t const c = empty.maps.size() - 2;  // RING8
    RowMap const& map = empty.maps[c];
    for (std::int32_t tip = 8; tip <= 24; ++tip) {
      for (std::int32_t depth = 1; depth <= 3; ++depth) {
        for (std::int32_t rows : {1, 6}) {  // the six next tokens one by one, or in one batch
          Engine engine = empty;
          engine.feed(0, tip, whole);
          REQUIRE(engine.roll_back(0, tip - depth) == Verdict::accepted);
          std::vector<Row> const stale = engine.storage.caches[c];
          for (std::int32_t fed = 0; fed < 6; fed += rows) {
            Position next = engine.tip(0);
            feed_and(engine, 0, rows, whole, [&](std::int32_t chunk) {
              Planned const p = engine.planned(chunk, static_cast<std::int32_t>(c));
              std::int32_t written = 0;
              for (std::int32_t i = 0; i < p.lists.persists; ++i, ++next) {
                CAPTURE(tip, depth, next);
                REQUIRE(p.visible[static_cast<std::size_t>(i)] == (next + 1) / 4);
                if ((next + 1) % 4 != 0) continue;
                REQUIRE(p.block_row[static_cast<std::size_t>(written)] == map.cache + next / 4);
                ++written;
              }
              REQUIRE(p.lists.blocks == written);
            });
          }
          REQUIRE(differs_from_fresh_run(engine, 0) == "");
          if (tip / 4 > (tip - depth) / 4) {  // a block was above the landing: other tokens made another one of it
            auto const block = static_cast<std::size_t>(map.cache + (tip - depth) / 4);
            bool const rewritten = engine.storage.caches[c][block] != stale[block];
            REQUIRE(rewritten);
          }
        }
      }
    }
  });
}

TEST_CASE("BR-42 a buffer of a window and two blocks always has room") {
  // 16 rows are the 8 that a row reads below itself, a block of 4, and 4 that may have been rejected before.
  Depths const four{4};
  std::vector<Component> const components{with(ring8(), four), with(trail(), four), with(fold(), four)};
  EngineOptions o = engine_options(components, 1, 40, 4, {{"replay", 9, 16}});
  on_every_storage(o, [](Engine const& empty) {
    for (std::int32_t tip = 0; tip <= 33; ++tip) {
      for (std::vector<std::int32_t> const& pattern :
           {std::vector<std::int32_t>{0}, std::vector<std::int32_t>{4}, std::vector<std::int32_t>{1, 2, 3},
            std::vector<std::int32_t>{3, 1, 0, 2, 4}, std::vector<std::int32_t>{0, 0, 0, 0, 1}}) {
        CAPTURE(tip, pattern.size());
        Engine engine = empty;
        if (tip > 0) engine.feed(0, tip, 4);
        for (std::int32_t accepted : pattern) {
          engine.feed(0, 4, 4, 4, accepted);
          REQUIRE(engine.check(0) == "");
        }
        REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
      }
    }
  });
  o.books.windows[0].rows = 15;
  REQUIRE_THROWS_AS(Books(o.books), std::invalid_argument);
}

TEST_CASE("BR-43 every member of a state is captured") {
  Depths const three{3};
  Component matrix = with(fold(), three);
  matrix.geometry.rows = 4;
  on_every_storage(options({with(trail(), three), matrix}), [](Engine const& empty) {
    for (std::int32_t chunk : {1, 4, whole}) {
      Engine engine = empty;
      engine.feed(0, 10, chunk);
      for (Position p = 7; p < 10; ++p) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
      // A kept row of either member that was never written would be seen.
      for (std::size_t c = 0; c < 2; ++c) {
        Engine spoiled = engine;
        for (std::int32_t row : rows_of_slot(engine, c, 0)) {
          spoiled.storage.planes[c][static_cast<std::size_t>(row)] = empty.storage.planes[c][0];
        }
        REQUIRE(differs_after_roll_back(spoiled, 0, 8) != "");
      }
    }
  });
}

TEST_CASE("BR-44 padded rows touch nothing") {
  on_every_engine({4}, 4, [](Engine const& empty) {
    Engine engine = empty;
    for (std::size_t s = 0; s < 4; ++s) engine.feed(s, 5 + static_cast<std::int32_t>(s), whole);
    auto const step = [](Engine& on, std::vector<std::int32_t> const& rows) {
      REQUIRE(on.begin(rows, whole) == Verdict::accepted);
      for (std::int32_t k = 0; k < on.chunks(); ++k) on.run(k), on.settle(k);
      for (std::size_t s = 0; s < 3; ++s) on.commit(s, on.tip(s));
    };
    Engine bare = engine;
    step(bare, {0, 1, 2});
    for (std::size_t first = 0; first < 6; ++first) {
      for (std::size_t second = first + 1; second < 7; ++second) {
        for (std::size_t third = second + 1; third < 8; ++third) {
          std::vector<std::int32_t> rows(8, -1);
          rows[first] = 0, rows[second] = 1, rows[third] = 2;
          Engine padded = engine;
          step(padded, rows);
          bool alike = padded.storage.caches == bare.storage.caches && padded.storage.windows == bare.storage.windows;
          for (std::int32_t s = 0; s < 4; ++s) alike = alike && planes_of_slot(padded, s) == planes_of_slot(bare, s);
          alike = alike && planes_of_slot(padded, 3) == planes_of_slot(engine, 3);
          REQUIRE(alike);
          for (std::size_t s = 0; s < 4; ++s) REQUIRE(padded.check(s) == "");
        }
      }
    }
    // A block to be verified among padding, and a single token of another sequence: the accepted rows count.
    for (std::int32_t accepted = 0; accepted <= 4; ++accepted) {
      CAPTURE(accepted);
      Engine verified = engine;
      REQUIRE(verified.begin({-1, 0, 0, -1, 1, 0, -1, 0}, whole, {{verified.slot(0), 4}}) == Verdict::accepted);
      for (std::int32_t k = 0; k < verified.chunks(); ++k) verified.run(k), verified.settle(k);
      verified.commit(0, 5 + accepted);
      verified.commit(1, 7);
      for (std::size_t s = 0; s < 4; ++s) REQUIRE(differs_from_fresh_run(verified, s) == "");
    }
  });
}

TEST_CASE("BR-45 state and output are of the same accepted row") {
  on_every_engine({4}, 1, [](Engine const& empty) {
    for (std::int32_t tip = 0; tip <= 16; ++tip) {
      for (std::int32_t width : {2, 4}) {
        for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
          CAPTURE(tip, width, accepted);
          Engine engine = empty;
          if (tip > 0) engine.feed(0, tip, whole);
          engine.feed(0, width, whole, width, accepted);
          REQUIRE(engine.tip(0) == tip + accepted);
          REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
          // The next row reads the state and the blocks of the accepted row, and is a query of its own.
          engine.feed(0, 1, whole);
          REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
        }
      }
    }
  });
}
