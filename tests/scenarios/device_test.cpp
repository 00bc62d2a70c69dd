// What a captured graph needs of the plans: the same memory and the same lengths, whether or not something is pending.
#include "scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace scenario;

TEST_CASE("BR-95 a captured step restores exactly when a rollback is pending") {
  for (auto const& components : {all_planes({4}), rings({4})}) {
    EngineOptions o = engine_options(components, 1, 1, 1, {{"raw", 16, 64}});
    o.worst_shapes = true;
    on_every_storage(o, [](Engine const& empty) {
      for (Position depth = 1; depth <= 3; ++depth) {
        CAPTURE(depth);
        Engine engine = empty;
        for (int i = 0; i < 12; ++i) engine.feed(0, 1, 1);
        CapturedLists lists(engine.books);
        std::vector<std::int32_t const*> captured;
        for (Planned const& p : lists.planned()) captured.push_back(p.lists.restore_source);
        std::vector<int> restored_at;
        for (int step = 1; step <= 10; ++step) {
          if (step == 1 || step == 5) REQUIRE(engine.roll_back(0, engine.tip(0) - depth) == Verdict::accepted);
          feed_and(engine, 0, 1, 1, [&](std::int32_t chunk) {
            lists.plan(engine);
            std::int32_t const restores = kept_restores(engine, 0, chunk);
            REQUIRE((restores == 0 || restores == engine.books.components()));
            if (restores > 0) restored_at.push_back(step);
            for (std::size_t c = 0; c < captured.size(); ++c) {
              Planned const& p = lists.planned()[c];
              REQUIRE(p.lists.restore_source == captured[c]);
              // Unused entries copy a plane that nobody reads onto itself, or are none.
              auto const used = static_cast<std::size_t>(p.lists.restores);
              for (std::size_t i = used; i < p.restore_source.size(); ++i) {
                REQUIRE(p.restore_source[i] == engine.maps[c].sink);
                REQUIRE(p.restore_destination[i] == engine.maps[c].sink);
              }
            }
          });
          REQUIRE(engine.check(0) == "");
        }
        REQUIRE(restored_at == std::vector<int>{1, 5});
        REQUIRE(differs_from_fresh_run(engine, 0) == "");
      }
    });
  }
}
