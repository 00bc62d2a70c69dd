// Boundaries and off-by-one: which multiples of the quantum are kept, and what is asked around them.
#include "scenario.hpp"
#include "scenario_dsv4.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace scenario;

TEST_CASE("BR-18 targets around the tip") {
  for (std::int32_t per_token : {0, 3}) {
    on_every_engine({per_token, 128, 4}, 1, [per_token](Engine const& empty) {
      for (Position tip : {255, 256, 257}) {
        CAPTURE(per_token, tip);
        Engine engine = empty;
        engine.feed(0, static_cast<std::int32_t>(tip), whole);
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
        REQUIRE(engine.books.is_armed(engine.slot(0)));
        REQUIRE(differs_from_fresh_run(engine, 0) == "");
      }
    });
  }
}

TEST_CASE("BR-21 a boundary that only unverified rows cross is listed as far as they are accepted") {
  on_every_engine({8, 128, 2}, 1, [](Engine const& empty) {
    for (std::int32_t boundary : {128, 384}) {  // 384 is kept where 128 is: a rejected verify must not cost that one
      for (std::int32_t before : {6, 2, 1, 0}) {
        std::int32_t const tip = boundary - before;
        Engine engine = empty;
        engine.feed(0, tip, whole);
        for (std::int32_t width : {1, 4, 8}) {
          for (std::int32_t accepted = 0; accepted <= width; ++accepted) {
            CAPTURE(tip, width, accepted);
            Engine copy = engine;
            copy.feed(0, width, whole, width, accepted);
            REQUIRE(copy.check(0) == "");
            if (copy.tip(0) < boundary) {
              REQUIRE(copy.books.can_land(copy.slot(0), boundary) == Verdict::ahead_of_tip);
              if (boundary == 384) REQUIRE(copy.books.can_land(copy.slot(0), 128) == Verdict::accepted);
              // Other tokens than those rejected.
              copy.feed(0, static_cast<std::int32_t>(boundary + 1 - copy.tip(0)), whole);
            }
            // Beyond the reach of the per-token tier it is the boundary's own place that serves.
            copy.feed(0, 20, whole);
            Landing const landing = copy.books.nearest(copy.slot(0), boundary + 2);
            REQUIRE(landing.position == boundary);
            REQUIRE(landing.tier == Tier::aligned);
            REQUIRE(differs_after_roll_back(copy, 0, boundary) == "");
          }
        }
      }
    }
  });
}

TEST_CASE("BR-23 the ring of boundaries wraps") {
  on_every_engine({0, 128, 4}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 1100, whole);
    REQUIRE(listed(engine, 0) == std::vector<Position>{640, 768, 896, 1024});
    refuses(engine, 0, 512, Verdict::beyond_reach);  // was kept where 1024 is
    for (Position p : listed(engine, 0)) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
  });
  for (std::int32_t depth = 1; depth <= 9; ++depth) {
    Memory memory = small_memory({0, 128, depth});
    Slot const slot = memory.books().slot(0);
    feed_books(memory.books(), slot, 1100);
    Position const oldest = std::max<Position>(128, 1024 - 128 * (depth - 1));
    CAPTURE(depth);
    REQUIRE(listed(memory.books(), slot) == multiples(128, oldest, 1024));
    for (Position p = 128; p < 1100; p += 128) {
      Books copy = memory.books();
      REQUIRE(copy.roll_back(slot, p) == (p < oldest ? Verdict::beyond_reach : Verdict::accepted));
    }
  }
}

TEST_CASE("BR-26 the alignment is the least common multiple of the quanta and no more") {
  struct Case {
    std::vector<Position> quanta;
    Position alignment;
  };
  for (Case const& q : {Case{{128, 4, 8}, 128}, Case{{96, 128}, 384}, Case{{4, 6}, 12}}) {
    std::vector<Component> components;
    std::vector<Component> const kinds{fold(), ring8(), ring128()};
    for (std::size_t i = 0; i < q.quanta.size(); ++i) components.push_back(with(kinds[i], {0, q.quanta[i], 200}));
    on_every_storage(options(components), [&q](Engine const& empty) {
      REQUIRE(empty.books.alignment() == q.alignment);
      for (std::int32_t tip : {3, 300, 700}) {  // a prompt need not be long to be taken up again
        CAPTURE(tip, q.alignment);
        Engine engine = empty;
        engine.feed(0, tip, whole);
        Position const last = (tip - 1) / q.alignment * q.alignment;
        REQUIRE(engine.books.nearest(engine.slot(0), tip - 1).position == last);
        REQUIRE(listed(engine, 0) == multiples(q.alignment, q.alignment, tip));
        REQUIRE(differs_after_roll_back(engine, 0, last) == "");
        REQUIRE(differs_after_roll_back(engine, 0, 0) == "");
      }
    });
  }
  for (Position quantum : {4, 64, 128, 256}) REQUIRE(small_memory({0, quantum, 4}).books().alignment() == quantum);
}

TEST_CASE("BR-28 components land together or not at all where only one could") {
  Depths const tokens{8};
  Depths const boundaries{0, 128, 4};
  for (auto const& components :
       {std::vector<Component>{with(ring8(), tokens), with(fold(), boundaries)},
        std::vector<Component>{with(fold(), tokens), with(ring128(), boundaries)},
        std::vector<Component>{with(ring128(), boundaries), with(fold(), tokens), with(ring8(), tokens)}}) {
    on_every_storage(options(components), [](Engine const& empty) {
      for (Position tip : {300, 256, 257, 260, 264, 265}) {
        Engine engine = empty;
        engine.feed(0, static_cast<std::int32_t>(tip), whole);
        for (Position p = tip - 10; p < tip; ++p) {
          CAPTURE(tip, p);
          if (p == 256 && tip <= 264) {  // the one boundary that both have
            REQUIRE(differs_after_roll_back(engine, 0, p) == "");
            continue;
          }
          Verdict const why = engine.books.can_land(engine.slot(0), p);
          REQUIRE(why != Verdict::accepted);
          refuses(engine, 0, p, why);
        }
        refuses(engine, 0, 128, engine.books.can_land(engine.slot(0), 128));
        REQUIRE(engine.check(0) == "");
      }
    });
  }
}

TEST_CASE("BR-29 the component with the least depth limits in any order") {
  for (bool swapped : {false, true}) {
    std::vector<Component> components{with(ring8(), 8), with(fold(), 2)};
    if (swapped) std::swap(components[0], components[1]);
    on_every_storage(options(components), [swapped](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, 50, whole);
      for (Position p = 38; p < 50; ++p) {
        CAPTURE(swapped, p);
        if (p >= 48) {
          REQUIRE(differs_after_roll_back(engine, 0, p) == "");
        } else {
          refuses(engine, 0, p, Verdict::beyond_reach);
          if (p >= 42) {  // the other component alone could
            std::int32_t const by = engine.books.nearest(engine.slot(0), p).limited_by;
            REQUIRE(std::string(engine.books.name(by)) == "FOLD");
          }
        }
      }
      REQUIRE(differs_from_fresh_run(engine, 0) == "");
    });
  }
}

TEST_CASE("BR-30 every boundary is captured wherever chunks end") {
  std::vector<Position> const all = multiples(128, 128, 896);
  on_every_engine({0, 128, 7}, 1, [&all](Engine const& empty) {
    for (std::int32_t rows : {100, 37, 127, 129, 1000}) {
      for (bool batches : {false, true}) {
        CAPTURE(rows, batches);
        Engine engine = empty;
        if (!batches) engine.feed(0, 1000, rows);
        while (engine.tip(0) < 1000) {
          engine.feed(0, std::min(rows, static_cast<std::int32_t>(1000 - engine.tip(0))), whole);
        }
        REQUIRE(listed(engine, 0) == all);
        for (Position p : {128, 512, 896}) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
        REQUIRE(engine.check(0) == "");  // looks at all the others
      }
    }
  });
  for (std::int32_t rows : {100, 37, 127, 129, 1000}) {
    Memory memory = small_memory({0, 128, 7});
    Slot const slot = memory.books().slot(0);
    feed_books(memory.books(), slot, 1000, rows);
    REQUIRE(listed(memory.books(), slot) == all);
  }
}

TEST_CASE("BR-31 a target between landings is answered with the landing below and the replay") {
  for (Position quantum : {2, 128}) {
    on_every_engine({0, quantum, 60}, 1, [quantum](Engine const& empty) {
      Engine engine = empty;
      engine.feed(0, 390, whole);
      Landing const landing = engine.books.nearest(engine.slot(0), 301);
      REQUIRE(landing.position == (quantum == 2 ? 300 : 256));
      REQUIRE(landing.replay == (quantum == 2 ? 1 : 45));
      REQUIRE(landing.why == Verdict::not_a_boundary);
      refuses(engine, 0, 301, Verdict::not_a_boundary);
      for (Position target = 0; target < 390; ++target) {
        Landing const below = engine.books.nearest(engine.slot(0), target);
        // Of quantum 2 the last 60 multiples are kept: from 272 on.
        REQUIRE(below.position == (quantum == 2 && target < 272 ? 0 : target / quantum * quantum));
        REQUIRE(below.replay == target - below.position);
      }
      Engine replayed = engine;
      REQUIRE(replayed.roll_back(0, landing.position) == Verdict::accepted);
      std::vector<Token> tokens = tokens_of(engine, 0, landing.position);
      tokens.resize(static_cast<std::size_t>(landing.replay));
      feed_tokens(replayed, 0, tokens);
      REQUIRE(replayed.tip(0) == 301);
      REQUIRE(differs_from_fresh_run(replayed, 0) == "");
    });
  }
}
