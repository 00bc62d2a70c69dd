// Failures: what was promised before one still holds after it, and a refusal is an answer.
#include "scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace scenario;

TEST_CASE("BR-71 a pending rollback outlives the failure of the feed that would carry it out") {
  std::vector<std::int32_t> const too_many(static_cast<std::size_t>(whole) + 1, 0);
  std::vector<std::int32_t> const hundred(100, 0);
  for (auto const& components : {all_planes({3, 128, 4}), rings({3, 128, 4})}) {
    on_every_storage(options(components), [&](Engine const& empty) {
      Engine fed = empty;
      fed.feed(0, 300, whole);
      for (Position p : {256, 128, 299, 297}) {
        Engine engine = fed;
        REQUIRE(engine.roll_back(0, p) == Verdict::accepted);
        // No room: refused before anything began.
        REQUIRE(engine.begin(too_many, whole) == Verdict::batch_too_large);
        REQUIRE(engine.books.is_armed(engine.slot(0)));
        // Failed before it ran, while it ran, and after some chunks of it.
        for (BadChunk state : {BadChunk::never_started, BadChunk::ran_last, BadChunk::may_have_run}) {
          for (std::int32_t good = 0; good <= 3; ++good) {
            CAPTURE(p, static_cast<int>(state), good);
            Engine failed = engine;
            REQUIRE(failed.begin(hundred, 20) == Verdict::accepted);
            for (std::int32_t k = 0; k < good; ++k) failed.run(k), failed.settle(k);
            std::vector<Outcome> const outcomes = failed.fail(good, state);
            REQUIRE(outcomes.size() == 1);
            REQUIRE(outcomes[0].tip == p);
            REQUIRE(outcomes[0].armed);
            REQUIRE(differs_from_fresh_run(failed, 0) == "");
            REQUIRE(restores_once(failed, 0, 30, 13));
            REQUIRE(differs_from_fresh_run(failed, 0) == "");
            for (std::int32_t count : feed_counting(failed, 0, 9, 4)) REQUIRE(count == 0);
          }
        }
      }
    });
  }
}

TEST_CASE("BR-75 without any tier a rollback is refused with a reason") {
  on_every_engine({}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 30, whole);
    for (Position p = 1; p < 30; ++p) {
      refuses(engine, 0, p, Verdict::beyond_reach);
      Landing const landing = engine.books.nearest(engine.slot(0), p);
      REQUIRE(landing.position == 0);
      REQUIRE(landing.replay == p);
      REQUIRE(landing.limited_by == 0);
      REQUIRE_FALSE(std::string(text(landing.why)).empty());
    }
    REQUIRE(differs_from_fresh_run(engine, 0) == "");
    REQUIRE(differs_after_roll_back(engine, 0, 30) == "");
    REQUIRE(differs_after_roll_back(engine, 0, 0) == "");
  });
}
