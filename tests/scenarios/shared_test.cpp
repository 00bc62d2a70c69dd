// Sequences that begin alike: what they share is read by both and written by neither.
#include "scenario.hpp"
#include "toy_fork.hpp"
#include "toy_state.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace scenario;

TEST_CASE("BR-63 two sequences with the same prefix each go their own way") {
  on_every_engine({3, 128, 4}, 2, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 256, whole);
    engine.feed(0, 3, whole);
    REQUIRE(engine.roll_back(0, 256) == Verdict::accepted);
    REQUIRE(fork(engine, 0, 256, 1) == Verdict::accepted);
    REQUIRE(engine.check(0).empty());
    REQUIRE(engine.check(1).empty());
    for (std::size_t row = 256; row < 300; ++row) {
      for (std::size_t s : {row % 2, 1 - row % 2}) engine.feed(s, 1, whole);  // now one, now the other goes first
    }
    for (std::size_t s : {0U, 1U}) {
      REQUIRE(differs_from_fresh_run(engine, s) == "");
      REQUIRE(differs_after_roll_back(engine, s, 128) == "");
      REQUIRE(differs_after_roll_back(engine, s, 256) == "");
      REQUIRE(differs_after_roll_back(engine, s, 298) == "");
    }
    Engine cleared = engine;
    cleared.clear(0);  // what the other one shares with it stays
    REQUIRE(differs_after_roll_back(cleared, 1, 128) == "");
  });
}

TEST_CASE("BR-74 a copy to a sequence that there is no room for is refused") {
  on_every_engine({3, 128, 4}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 300, whole);
    Blob blob;
    REQUIRE(save(engine, 0, 300, blob) == Verdict::accepted);
    Engine const before = engine;
    ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
    for (std::int32_t index : {-1, 1, 2, INT32_MAX}) {
      Slot backup{index, 1};
      StateSource source{engine.storage, blob};
      REQUIRE(engine.books.fork(engine.slot(0), 256, backup) == Verdict::unknown_slot);
      REQUIRE(rollback::load(engine.books, backup, toy.layout, rollback::LoadAs::state, source) ==
              Verdict::unknown_slot);
      REQUIRE(backup == Slot{index, 1});
    }
    REQUIRE(same(engine, before));
  });
}
