// The recipes of boundaries_test.cpp and windows_test.cpp on a `dsv4::Memory`: which multiples of the quantum are kept,
// what is asked around them, and which still have their raw rows.
#include "scenario_dsv4_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dsv4_scenario;

TEST_CASE("BR-18 on a DSV4 memory: targets around the tip") {
  for (std::int32_t per_token : {0, 3}) {
    on_every_memory(options({per_token, 128, 4}), [per_token](Engine const& empty) {
      for (Position tip : {255, 256, 257}) {
        CAPTURE(per_token, tip);
        Engine engine = empty;
        engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
        Engine const before = engine;
        REQUIRE(engine.roll_back(0, tip) == Verdict::accepted);
        REQUIRE(same(engine, before));  // nothing was armed and nothing is gone
        for (Position ahead : {Position{1}, Position{44}, INT64_MAX - tip}) {
          refuses(engine, 0, tip + ahead, Verdict::ahead_of_tip);
        }
        for (Position negative : {Position{-1}, Position{-128}, INT64_MIN}) {
          refuses(engine, 0, negative, Verdict::negative_position);
        }
        if (per_token > 0) REQUIRE(differs_after_roll_back(engine, 0, tip - 1) == "");
        if (per_token == 0 && tip - 1 != 256) refuses(engine, 0, tip - 1, Verdict::not_a_boundary);
        REQUIRE(differs_after_roll_back(engine, 0, 128) == "");
        REQUIRE(differs_after_roll_back(engine, 0, 0) == "");
        REQUIRE(engine.roll_back(0, 128) == Verdict::accepted);
        REQUIRE(engine.roll_back(0, 128) == Verdict::accepted);  // an armed restore stays armed
        REQUIRE(engine.books().is_armed(engine.slot(0)));
        REQUIRE(differs_from_fresh_run(engine, 0) == "");
      }
    });
  }
}

TEST_CASE("BR-21 on a DSV4 memory: a boundary that only unverified rows cross is listed as far as they are accepted") {
  struct Case {
    Position quantum;
    Position boundary;
    Position displaced;  // was kept where the boundary will be: a rejected verify must not cost it
  };
  for (Case const c : {Case{128, 128, 0}, Case{128, 384, 128}, Case{64, 192, 64}, Case{64, 448, 320}}) {
    on_every_memory(options({8, c.quantum, 2}), [c](Engine const& empty) {
      for (Position before : {6, 1}) {
        Position const tip = c.boundary - before;
        Engine engine = empty;
        engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
        for (std::int32_t width : {1, 4, 8}) {
          for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
            CAPTURE(tip, c.quantum, width, accepted);
            Engine copy = engine;
            copy.verify(0, copy.drawn(static_cast<std::size_t>(width)), width, accepted);
            REQUIRE(differs_from_fresh_run(copy, 0) == "");
            if (copy.tip(0) < c.boundary) {
              REQUIRE(copy.books().can_land(copy.slot(0), c.boundary) == Verdict::ahead_of_tip);
              REQUIRE(differs_after_roll_back(copy, 0, c.displaced) == "");
              // Other tokens than those rejected.
              copy.feed(0, copy.drawn(static_cast<std::size_t>(c.boundary + 1 - copy.tip(0))));
            }
            copy.feed(0, copy.drawn(20));  // beyond the reach of the per-token tier
            Landing const landing = copy.books().nearest(copy.slot(0), c.boundary + 2);
            REQUIRE(landing.position == c.boundary);
            REQUIRE(landing.tier == Tier::aligned);
            REQUIRE(differs_after_roll_back(copy, 0, c.boundary) == "");
          }
        }
      }
    });
  }
}

TEST_CASE("BR-23 on a DSV4 memory: the ring of boundaries wraps") {
  for (Position quantum : {128, 64}) {
    for (std::int32_t depth : {1, 2, 4, 7, 9}) {
      on_every_memory(options({0, quantum, depth}), [quantum, depth](Engine const& empty) {
        CAPTURE(quantum, depth);
        Engine engine = empty;
        engine.feed(0, engine.drawn(1100));
        Position const last = 1100 / quantum * quantum;
        Position const oldest = std::max(quantum, last - quantum * (depth - 1));
        REQUIRE(landings(engine, 0) == multiples(quantum, oldest, last));
        if (oldest > quantum) refuses(engine, 0, oldest - quantum, Verdict::beyond_reach);
        for (Position p : landings(engine, 0)) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
      });
    }
  }
}

TEST_CASE("BR-26 on a DSV4 memory: the alignment is the quantum and no more") {
  for (Position quantum : {4, 64, 96, 128, 130, 256, 384}) {
    on_every_memory(options({0, quantum, static_cast<std::int32_t>(700 / quantum) + 1}),
                    [quantum](Engine const& empty) {
                      REQUIRE(empty.books().alignment() == quantum);
                      for (Position tip : {3, 300, 700}) {  // a prompt need not be long to be taken up again
                        CAPTURE(tip, quantum);
                        Engine engine = empty;
                        engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
                        Position const last = (tip - 1) / quantum * quantum;
                        REQUIRE(engine.books().nearest(engine.slot(0), tip - 1).position == last);
                        REQUIRE(landings(engine, 0) == multiples(quantum, quantum, tip));
                        REQUIRE(differs_after_roll_back(engine, 0, last) == "");
                        REQUIRE(differs_after_roll_back(engine, 0, 0) == "");
                      }
                    });
  }
}

TEST_CASE("BR-28 on a DSV4 memory: compressors land together or not at all where only one could") {
  // At multiples of 128 HCA is empty and can always land; CSA and LID only where a tier keeps them.
  for (std::int32_t per_token : {0, 8}) {
    for (Position quantum : {128, 96, 64}) {
      on_every_memory(options({per_token, quantum, 2}), [per_token, quantum](Engine const& empty) {
        for (Position tip : {300, 256, 257, 260, 264, 265, 390}) {
          Engine engine = empty;
          engine.feed(0, engine.drawn(static_cast<std::size_t>(tip)));
          Position const newest = tip / quantum * quantum;
          std::vector<Position> targets{128, 256, 384};
          for (Position p = tip - 10; p < tip; ++p) targets.push_back(p);
          for (Position p : targets) {
            if (p >= tip) continue;
            CAPTURE(per_token, quantum, tip, p);
            if (p >= tip - per_token || p == newest || p == newest - quantum) {
              REQUIRE(differs_after_roll_back(engine, 0, p) == "");
            } else {
              Verdict const why = engine.books().can_land(engine.slot(0), p);
              REQUIRE(why != Verdict::accepted);
              refuses(engine, 0, p, why);
            }
          }
        }
      });
    }
  }
}

TEST_CASE("BR-30 on a DSV4 memory: every boundary is captured wherever chunks end") {
  for (Position quantum : {128, 64}) {
    std::vector<Position> const all = multiples(quantum, quantum, 999);
    auto const depth = static_cast<std::int32_t>(all.size());
    on_every_memory(options({0, quantum, depth}, 1, 1000), [&all](Engine const& empty) {
      for (std::int32_t rows : {100, 37, 127, 129, 1000}) {
        for (bool batches : {false, true}) {
          CAPTURE(rows, batches);
          Engine engine = empty;
          if (!batches) engine.feed(0, engine.drawn(1000), rows);
          while (engine.tip(0) < 1000) {
            auto const left = static_cast<std::size_t>(1000 - engine.tip(0));
            engine.feed(0, engine.drawn(std::min(static_cast<std::size_t>(rows), left)));
          }
          REQUIRE(landings(engine, 0) == all);
          for (Position p : {all[0], all[2], all.back()}) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
        }
      }
    });
  }
}

TEST_CASE("BR-31 on a DSV4 memory: a target between landings is answered with the landing below and the replay") {
  for (Position quantum : {2, 128}) {
    on_every_memory(options({0, quantum, 60}), [quantum](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, engine.drawn(390));
      Landing const landing = engine.books().nearest(engine.slot(0), 301);
      REQUIRE(landing.position == (quantum == 2 ? 300 : 256));
      REQUIRE(landing.replay == (quantum == 2 ? 1 : 45));
      REQUIRE(landing.why == Verdict::not_a_boundary);
      refuses(engine, 0, 301, Verdict::not_a_boundary);
      for (Position target = 0; target < 390; ++target) {
        Landing const below = engine.books().nearest(engine.slot(0), target);
        // Of quantum 2 the last 60 multiples are kept: from 272 on.
        REQUIRE(below.position == (quantum == 2 && target < 272 ? 0 : target / quantum * quantum));
        REQUIRE(below.replay == target - below.position);
      }
      Tokens const wanted = engine.tokens[0];
      REQUIRE(engine.roll_back(0, landing.position) == Verdict::accepted);
      engine.feed(0, Tokens(wanted.begin() + landing.position, wanted.begin() + landing.position + landing.replay));
      REQUIRE(engine.tip(0) == 301);
      REQUIRE(std::equal(engine.tokens[0].begin(), engine.tokens[0].end(), wanted.begin()));
      REQUIRE(differs_from_fresh_run(engine, 0) == "");
    });
  }
}

TEST_CASE("BR-32 on a DSV4 memory: a kept state whose window is gone is no landing") {
  ModelShape shape = small_shape({0, 4, 128, 4});
  shape.window = 128;
  // 300: positions from 700 on are there; of 359, 487 and 287 all that 768, 640 and 840 need, of one less not
  for (Position rows : {300, 227, 358, 359, 486, 487, 286, 287, 1100}) {
    std::vector<Position> kept = multiples(128, 128, 896);
    kept.insert(kept.begin() + 2, 300);  // a pin, which keeps no raw rows
    kept.insert(kept.end() - 1, 840);    // another, between boundaries
    std::vector<Position> covered;       // those whose 127 rows below are there
    for (Position p : kept) {
      if (rows >= 1000 || p - 127 >= 1000 - rows) covered.push_back(p);
    }
    MemoryOptions o = options({0, 128, 8}, 1, 1000);
    o.max_chunk_rows = 100;
    o.raw_rows = rows;
    o.pins = 2;
    on_every_memory(
        o,
        [&](Engine const& empty) {
          Engine engine = empty;
          for (Position p : {300, 840}) REQUIRE(engine.books().pin(engine.slot(0), p) == Verdict::accepted);
          engine.feed(0, engine.drawn(1000));
          REQUIRE(landings(engine, 0) == covered);
          for (Position p : kept) {
            CAPTURE(rows, p);
            if (std::count(covered.begin(), covered.end(), p) > 0) {
              REQUIRE(differs_after_roll_back(engine, 0, p) == "");
            } else {
              refuses(engine, 0, p, Verdict::window_not_covered);
              REQUIRE(engine.books().nearest(engine.slot(0), p).limited_by == engine.books().components());
            }
          }
        },
        shape);
  }
}

TEST_CASE("BR-34 on a DSV4 memory: suffixes that were given up take no room") {
  // Room for the common prefix, one suffix and 20 tokens to compare by: were rows of given-up suffixes counted, the
  // second round would not fit.
  MemoryOptions o = options({0, 16, 6});
  o.max_context = 484;
  on_every_memory(o, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, engine.drawn(400));
    for (int round = 0; round < 20; ++round) {
      CAPTURE(round);
      engine.feed(0, engine.drawn(64));
      REQUIRE(landings(engine, 0) == multiples(16, 384, 464));
      REQUIRE(engine.roll_back(0, 400) == Verdict::accepted);
      REQUIRE(engine.books().reach(engine.slot(0)) == 384);
      REQUIRE(differs_from_fresh_run(engine, 0) == "");
      REQUIRE(differs_after_roll_back(engine, 0, 384) == "");
    }
  });
}
