// The recipes of speculation_test.cpp on a `dsv4::Memory`: whatever part of a block is accepted, nothing else remains.
#include "scenario_dsv4_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

using namespace dsv4_scenario;

TEST_CASE("BR-36 on a DSV4 memory: the rows of every accepted prefix are persisted") {
  for (Position first : {16, 120}) {  // rings of 8 and of 128 rows wrap
    on_every_memory(options({10}), [first](Engine const& empty) {
      for (Position tip = first; tip < first + 16; tip += first == 16 ? 1 : 3) {
        Engine engine = empty;
        engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
        for (std::int32_t width = 1; width <= 10; ++width) {
          for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
            CAPTURE(tip, width, accepted);
            Engine copy = engine;
            copy.verify(0, copy.drawn(static_cast<std::size_t>(width)), width, accepted);
            copy.feed(0, copy.drawn(1));
            REQUIRE(copy.tip(0) == tip + accepted + 1);
            REQUIRE(differs_from_fresh_run(copy, 0) == "");
          }
        }
      }
    });
  }
}

TEST_CASE("BR-38 on a DSV4 memory: every accepted prefix equals one token at a time") {
  on_every_memory(options({8}), [](Engine const& empty) {
    for (Position tip : {8, 9, 10, 11, 12, 13, 14, 15, 123, 125, 127}) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
      for (std::int32_t accepted = 0; accepted <= 6; ++accepted) {
        CAPTURE(tip, accepted);
        Engine copy = engine;
        copy.verify(0, copy.drawn(6), 6, accepted);
        REQUIRE(differs_from_fresh_run(copy, 0, 1) == "");
        if (copy.books().steps_in_flight() == 1) continue;
        // The same while a batch that was begun and run on all six has yet to hear of it.
        Engine ahead = engine;
        Flight verified = ahead.begin({{0, ahead.drawn(6), 6}});
        Flight younger = ahead.begin({{0, ahead.drawn(2)}});
        ahead.carry_out(verified);
        ahead.carry_out(younger);
        ahead.commit(verified, 0, tip + accepted);
        if (accepted == 6) ahead.commit(younger, 0, tip + 8);
        REQUIRE(ahead.tip(0) == tip + (accepted == 6 ? 8 : accepted));
        REQUIRE(differs_from_fresh_run(ahead, 0, 1) == "");
      }
    }
  });
}

TEST_CASE("BR-39 on a DSV4 memory: every width of a block works under a mixed load") {
  std::size_t const sequences = 12;
  on_every_memory(options({16, 8, 3}, 12, 240), [](Engine const& empty) {
    for (std::int32_t width = 1; width <= 16; ++width) {
      CAPTURE(width);
      Engine engine = empty;
      auto const block = static_cast<std::size_t>(width);
      for (std::size_t s = 0; s < sequences; ++s) engine.feed(s, engine.drawn(100 + 3 * s));
      for (std::size_t round = 0; round < 5; ++round) {
        std::vector<Part> parts;
        for (std::size_t s = 0; s < sequences; ++s) {
          // Blocks to be verified, single tokens, prompts, and sequences that sit the round out.
          std::size_t const role = (s + round) % 5;
          if (role < 2) parts.push_back({s, engine.drawn(block), width});
          if (role == 2) parts.push_back({s, engine.drawn(1)});
          if (role == 3) parts.push_back({s, engine.drawn(4)});
        }
        for (std::size_t s = 0; s < sequences; ++s) {  // the prompts go on behind the rows of others
          if ((s + round) % 5 == 3) parts.push_back({s, engine.drawn(5)});
        }
        Flight f = engine.begin(parts, static_cast<std::int32_t>(5 + 13 * round));
        engine.carry_out(f);
        for (std::size_t s = 0; s < sequences; ++s) {
          if ((s + round) % 5 == 4) continue;
          Position const end = engine.books().head(engine.slot(s));
          bool const verified = (s + round) % 5 < 2;
          engine.commit(f, s, verified ? end - static_cast<Position>((7 * s + round) % (block + 1)) : end);
        }
      }
      for (std::size_t s = 0; s < sequences; ++s) REQUIRE(differs_from_fresh_run(engine, s) == "");
    }
  });
}

TEST_CASE("BR-40 on a DSV4 memory: blocks above the landing are not visible before they are rewritten") {
  int const csa_layer = 1;
  on_every_memory(options({3}), [](Engine const& empty) {
    for (Position tip : {8, 9, 10, 11, 12, 15, 16, 17, 128, 129}) {
      for (Position depth = 1; depth <= 3; ++depth) {
        for (std::size_t rows : {1U, 6U}) {  // the six next tokens one by one, or in one batch
          Engine engine = empty;
          engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
          REQUIRE(engine.roll_back(0, tip - depth) == Verdict::accepted);
          float const stale = engine.memory.compressed_rows(csa_layer, 0)[(tip / 4 - 1) * 8];
          for (std::size_t fed = 0; fed < 6; fed += rows) {
            Position next = engine.tip(0);
            feed_and(engine, 0, rows, 64, [&](Flight const& f) {
              for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
                Lists const& lists = f.chunk.lists[static_cast<int>(compressor)];
                Position const block = Memory::geometry(compressor).block;
                std::int32_t written = 0;
                for (std::int32_t i = 0; i < f.chunk.rows; ++i) {
                  CAPTURE(tip, depth, next, i);
                  REQUIRE(lists.visible[i] == (next + i + 1) / block);
                  if ((next + i + 1) % block != 0) continue;
                  REQUIRE(lists.block_row[written] == (next + i) / block);
                  ++written;
                }
                REQUIRE(lists.blocks == written);
              }
              next += f.chunk.rows;
            });
          }
          REQUIRE(differs_from_fresh_run(engine, 0) == "");
          if (tip / 4 > (tip - depth) / 4) {  // a block was above the landing: other tokens made another one of it
            bool const rewritten = engine.memory.compressed_rows(csa_layer, 0)[(tip / 4 - 1) * 8] != stale;
            REQUIRE(rewritten);
          }
        }
      }
    }
  });
}

TEST_CASE("BR-42 on a DSV4 memory: the least raw rows always have room for a window and what may be rejected") {
  // 14 rows are the 5 that a row reads below itself, a chunk of 5, and 4 that may have been rejected before.
  MemoryOptions o = options({4}, 1, 5);
  o.raw_rows = 14;
  on_every_memory(o, [](Engine const& empty) {
    for (Position tip = 0; tip <= 33; ++tip) {
      for (std::vector<std::int32_t> const& pattern :
           {std::vector<std::int32_t>{0}, std::vector<std::int32_t>{4}, std::vector<std::int32_t>{1, 2, 3},
            std::vector<std::int32_t>{3, 1, 0, 2, 4}, std::vector<std::int32_t>{0, 0, 0, 0, 1}}) {
        CAPTURE(tip, pattern.size());
        Engine engine = empty;
        engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
        for (std::int32_t accepted : pattern) {
          engine.verify(0, engine.drawn(5), 4, accepted);
          REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
        }
      }
    }
  });
  o.raw_rows = 13;
  REQUIRE_THROWS_AS(Memory(small_shape({0, 4, 128, 4}), o), std::invalid_argument);
}

TEST_CASE("BR-43 on a DSV4 memory: every member of a state is captured") {
  using rollback::dsv4::Path;
  using rollback::dsv4::Tensor;
  on_every_memory(options({3, 64, 2}), [](Engine const& empty) {
    for (std::int32_t chunk : {1, 4, 64}) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(205), chunk);
      for (Position p : {128, 192, 202, 203, 204}) {
        CAPTURE(chunk, p);
        REQUIRE(differs_after_roll_back(engine, 0, p) == "");
      }
      // Kept rows of any member that were never written would be seen: keys or scores, of any compressor and layer.
      for (Tensor const& t : Memory::tensors(engine.memory.shape(), engine.memory.options())) {
        if (t.path < Path::csa_state) continue;
        for (Position p : {192, 203}) {
          CAPTURE(chunk, p, text(t.path), t.layer, t.scores);
          Engine spoiled = engine;
          std::fill_n(spoiled.memory.data(t), t.rows * t.width, empty.filling);
          REQUIRE(differs_after_roll_back(spoiled, 0, p) != "");
        }
      }
    }
  });
}

TEST_CASE("BR-44 on a DSV4 memory: padded rows touch nothing") {
  on_every_memory(options({4}, 4), [](Engine const& empty) {
    Engine engine = empty;
    for (std::size_t s = 0; s < 4; ++s) engine.feed(s, engine.drawn(5 + 41 * s));  // 5, 46, 87 and 128
    auto const step = [](Engine& on, std::vector<Part> const& parts) {
      Flight f = on.begin(parts);
      on.carry_out(f);
      for (std::size_t s : {0U, 1U, 3U}) on.commit(f, s, on.books().head(on.slot(s)));
    };
    Tokens const one = engine.drawn(1);
    Engine bare = engine;
    step(bare, {{0, one}, {1, one}, {3, one}});
    for (std::size_t first = 0; first < 6; ++first) {
      for (std::size_t second = first + 1; second < 7; ++second) {
        for (std::size_t third = second + 1; third < 8; ++third) {
          CAPTURE(first, second, third);
          std::vector<Part> parts(8, {padding, one});
          parts[first].slot = 0, parts[second].slot = 1, parts[third].slot = 3;
          Engine padded = engine;
          step(padded, parts);
          REQUIRE(same(padded, bare));  // slot 2 too, which has no row
          REQUIRE(padded.outputs == bare.outputs);
        }
      }
    }
    // A block to be verified among padding, and a single token of another sequence: the accepted rows count.
    for (std::int32_t accepted = 0; accepted <= 4; ++accepted) {
      CAPTURE(accepted);
      Engine verified = engine;
      Tokens const draft = verified.drawn(2);
      Flight f = verified.begin({{padding, one}, {3, draft}, {padding, one}, {1, one}, {3, draft, 4}, {padding, one}});
      verified.carry_out(f);
      verified.commit(f, 3, 128 + accepted);
      verified.commit(f, 1, 47);
      for (std::size_t s = 0; s < 4; ++s) REQUIRE(differs_from_fresh_run(verified, s) == "");
    }
  });
}

TEST_CASE("BR-44 on a DSV4 memory: rows of a slot that fell out of an open batch are padding to those that go on") {
  MemoryOptions o = options({4, 128, 2}, 2);
  o.steps_in_flight = 2;
  on_every_memory(o, [](Engine const& empty) {
    Engine start = empty;
    for (std::size_t s : {0U, 1U}) start.feed(s, start.drawn(125 - 60 * s));
    for (std::int32_t accepted = 0; accepted < 3; ++accepted) {
      for (bool planned : {false, true}) {  // whether the younger batch was planned, and ran, before that was known
        CAPTURE(accepted, planned);
        Engine engine = start;
        Flight older = engine.begin({{0, engine.drawn(4), 3}, {1, engine.drawn(6)}});
        Flight younger = engine.begin({{1, engine.drawn(2)}, {0, engine.drawn(1)}, {1, engine.drawn(3)}});
        if (planned) engine.plan(younger);
        engine.carry_out(older);
        if (planned) engine.run(younger);
        engine.commit(older, 0, 126 + accepted);
        engine.commit(older, 1, 71);
        if (!planned) engine.plan(younger);
        if (!planned) engine.run(younger);
        REQUIRE(engine.books().settle(younger.ticket, 0) == Verdict::accepted);
        engine.commit(younger, 1, 76);
        for (std::size_t s : {0U, 1U}) REQUIRE(differs_from_fresh_run(engine, s) == "");
        REQUIRE(differs_after_roll_back(engine, 1, 72) == "");
        REQUIRE(differs_after_roll_back(engine, 0, 126) == "");  // what follows the verified rows
      }
    }
  });
}

TEST_CASE("BR-45 on a DSV4 memory: state and output are of the same accepted row") {
  on_every_memory(options({4}), [](Engine const& empty) {
    for (Position tip : {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 124, 125, 126, 127, 128}) {
      for (std::int32_t width : {2, 4}) {
        for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
          CAPTURE(tip, width, accepted);
          Engine engine = empty;
          engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
          engine.verify(0, engine.drawn(static_cast<std::size_t>(width)), width, accepted);
          REQUIRE(engine.tip(0) == tip + accepted);
          REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
          // The next row reads the state and the blocks of the accepted row, and is a query of its own.
          engine.feed(0, engine.drawn(1));
          REQUIRE(differs_from_fresh_run(engine, 0, 1) == "");
        }
      }
    }
  });
}
