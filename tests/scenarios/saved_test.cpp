// Saved and loaded: whatever was there comes back, for one sequence alone, and nothing that is not there.
#include "scenario.hpp"
#include "toy_state.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace scenario;
using rollback::LoadAs;
using rollback::SaveOptions;

namespace {

Blob saved(Engine const& engine, std::size_t s, Position p, bool history = true) {
  Blob blob;
  REQUIRE(save(engine, s, p, blob, {history, true}) == Verdict::accepted);
  return blob;
}

/// Loads into slot `to` what slot `from` of `source` was saved as at `p`.
void loaded(Engine& engine, std::size_t to, Blob const& blob, Engine const& source, std::size_t from, Position p,
            bool history = true, LoadAs as = LoadAs::state) {
  std::vector<Position> const landings = history ? saved_landings(source, from, p) : std::vector<Position>{};
  REQUIRE(load(engine, to, blob, source.history[from], p, landings, as) == Verdict::accepted);
}

}  // namespace

TEST_CASE("BR-17 the first length after a boundary is saved like any other") {
  on_every_engine({3, 128, 4}, 2, [](Engine const& empty) {
    for (Position n : {127, 128, 129, 130, 255, 256, 257, 383, 384, 385, 511, 512, 513}) {
      CAPTURE(n);
      Engine source = empty;
      source.feed(0, static_cast<std::int32_t>(n), whole);
      Engine other = empty;
      other.feed(1, 200, whole);
      loaded(other, 1, saved(source, 0, n), source, 0, n);
      REQUIRE(differs_from_fresh_run(other, 1) == "");
    }
  });
}

TEST_CASE("BR-46 a component without places of its own is saved, loaded and restored with the others") {
  std::vector<Component> const components{toy::with(ring8(), 0, 128, 4), toy::with(ring128(), 0, 0, 0, 128),
                                          toy::with(fold(), 0, 128, 4)};
  on_every_storage(options(components), [](Engine const& empty) {
    Engine source = empty;
    source.feed(0, 400, whole);
    REQUIRE(source.roll_back(0, 256) == Verdict::accepted);
    for (LoadAs as : {LoadAs::state, LoadAs::landing}) {
      Engine other = empty;
      loaded(other, 0, saved(source, 0, 256), source, 0, 256, true, as);
      REQUIRE(other.books.is_armed(other.slot(0)) == (as == LoadAs::landing));
      other.feed(0, 144, whole);
      REQUIRE(differs_from_fresh_run(other, 0) == "");
      REQUIRE(differs_after_roll_back(other, 0, 128) == "");
    }
  });
}

TEST_CASE("BR-47 what is saved while a restore is armed is the state that it restores") {
  on_every_engine({3}, 1, [](Engine const& empty) {
    Engine source = empty;
    source.feed(0, 21, whole);
    REQUIRE(source.roll_back(0, 19) == Verdict::accepted);
    Engine const before = source;
    Blob const blob = saved(source, 0, 19);
    REQUIRE(same(source, before));
    Engine other = empty;
    loaded(other, 0, blob, source, 0, 19);
    REQUIRE_FALSE(other.books.is_armed(other.slot(0)));
    other.feed(0, 2, whole);
    REQUIRE(differs_from_fresh_run(other, 0) == "");
  });
}

TEST_CASE("BR-49 boundaries of the sequence that was there before a load are not the loaded one's") {
  on_every_engine({0, 128, 8}, 2, [](Engine const& empty) {
    for (bool history : {false, true}) {
      CAPTURE(history);
      Engine engine = empty;
      engine.feed(0, 601, whole);
      engine.feed(1, 500, whole);  // branch Y
      loaded(engine, 0, saved(engine, 1, 500, history), engine, 1, 500, history);
      if (history) {
        REQUIRE(differs_after_roll_back(engine, 0, 384) == "");
      } else {
        refuses(engine, 0, 384, Verdict::beyond_reach);
      }
      engine.feed(0, 101, whole);
      REQUIRE(differs_after_roll_back(engine, 0, 512) == "");
    }
  });
}

TEST_CASE("BR-51 loading one sequence leaves the others alone") {
  on_every_engine({3, 128, 2}, 3, [](Engine const& empty) {
    Engine engine = empty;
    for (std::int32_t s : {0, 1, 2}) engine.feed(static_cast<std::size_t>(s), 100 * (s + 1), whole);
    auto const first = planes_of_slot(engine, 0);
    auto const last = planes_of_slot(engine, 2);
    Blob const blob = saved(engine, 1, 200);
    Engine const source = engine;
    engine.feed(1, 30, whole);
    loaded(engine, 1, blob, source, 1, 200);
    REQUIRE((planes_of_slot(engine, 0) == first && planes_of_slot(engine, 2) == last));
    for (std::size_t s : {0U, 1U, 2U}) REQUIRE(differs_from_fresh_run(engine, s) == "");
    REQUIRE(differs_after_roll_back(engine, 0, 98) == "");
    REQUIRE(differs_after_roll_back(engine, 2, 256) == "");
  });
}

TEST_CASE("BR-52 saving one sequence saves that one only") {
  on_every_engine({3, 128, 2}, 4, [](Engine const& empty) {
    Engine engine = empty;
    for (std::size_t s : {0U, 1U, 2U, 3U}) engine.feed(s, 150, whole);
    Blob const blob = saved(engine, 2, 150);
    Engine const source = engine;
    for (std::size_t s : {0U, 1U, 3U}) engine.feed(s, 20, whole);
    Engine const changed = engine;
    loaded(engine, 2, blob, source, 2, 150);
    for (std::size_t s : {0U, 1U, 3U}) {
      REQUIRE(planes_of_slot(engine, static_cast<std::int32_t>(s)) ==
              planes_of_slot(changed, static_cast<std::int32_t>(s)));
      REQUIRE(engine.tip(s) == 170);
      REQUIRE(differs_from_fresh_run(engine, s) == "");
    }
    REQUIRE(differs_from_fresh_run(engine, 2) == "");

    EngineOptions alone = empty.options;
    alone.books.slots = 1;
    Engine single(alone);
    loaded(single, 0, blob, source, 2, 150);
    REQUIRE(saved(single, 0, 150) == blob);  // however many sequences there are
  });
}

TEST_CASE("BR-54 a load brings the planes back, not only the position") {
  on_every_engine({3, 128, 4}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 300, whole);
    auto const there = readable(engine, 0);
    Blob const blob = saved(engine, 0, 300);
    Engine const source = engine;
    engine.feed(0, 100, whole);
    loaded(engine, 0, blob, source, 0, 300);
    REQUIRE(readable(engine, 0) == there);
    REQUIRE(differs_from_fresh_run(engine, 0) == "");
  });
}

TEST_CASE("BR-55 a state whose last landings are cut off is not loaded in part") {
  on_every_engine({0, 128, 4}, 1, [](Engine const& empty) {
    Engine source = empty;
    source.feed(0, 600, whole);
    Blob const one = saved(source, 0, 600, false);
    Blob const whole_blob = saved(source, 0, 600);
    std::size_t const per_landing = (whole_blob.size() - one.size()) / 4;
    for (std::size_t missing : {2 * per_landing, per_landing, std::size_t{1}}) {
      Blob blob = whole_blob;
      blob.resize(blob.size() - missing);
      Engine other = empty;
      other.feed(0, 50, whole);
      Engine const before = other;
      Slot const slot = other.slot(0);
      ToyLayout const toy(other.books, other.maps, other.window_maps);
      StateSource source_of{other.storage, blob};
      REQUIRE(rollback::check(other.books, toy.layout, LoadAs::state, source_of) == Verdict::io_failed);
      REQUIRE(same(other, before));
      source_of.at = 0;
      REQUIRE(rollback::load(other.books, other.slots[0], toy.layout, LoadAs::state, source_of) == Verdict::io_failed);
      REQUIRE(other.slot(0).generation != slot.generation);
      REQUIRE(other.books.tip(other.slot(0)) == 0);
      REQUIRE(listed(other, 0).empty());
      other.history[0].truncate(0);
      other.expected[0].clear();
      other.feed(0, 140, whole);
      REQUIRE(differs_from_fresh_run(other, 0) == "");
    }
  });
}

TEST_CASE("BR-56 saved, loaded and saved again, a state has the same bytes") {
  on_every_engine({3, 128, 4}, 1, [](Engine const& empty) {
    Engine source = empty;
    source.feed(0, 700, whole);
    for (Position p : {700, 698, 640, 512}) {
      for (bool history : {false, true}) {
        CAPTURE(p, history);
        Blob const blob = saved(source, 0, p, history);
        Engine other = empty;
        loaded(other, 0, blob, source, 0, p, history);
        REQUIRE(saved(other, 0, p, history) == blob);
      }
    }
  });
}

TEST_CASE("BR-85 a place that is being saved is not written") {
  on_every_engine({0, 128, 2}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 300, whole);
    rollback::Hold hold;
    REQUIRE(engine.books.hold(engine.slot(0), 128, hold) == Verdict::accepted);
    Engine const source = engine;
    std::vector<rollback::StatePlaces> places;
    for (std::int32_t c = 0; c < engine.books.components(); ++c) {
      places.emplace_back();
      REQUIRE(engine.books.state_at(engine.slot(0), 128, c, engine.maps[static_cast<std::size_t>(c)], places.back()) ==
              Verdict::accepted);
    }
    auto const held_bytes = [&](Engine const& e) {
      std::vector<Row> rows;
      for (std::size_t c = 0; c < places.size(); ++c) {
        auto const first = e.storage.planes[c].begin() + places[c].rows[0];
        rows.insert(rows.end(), first, first + e.books.component(static_cast<std::int32_t>(c)).geometry.rows);
      }
      return rows;
    };
    auto const feed = [&engine](std::int32_t rows) {  // the oracle of landings knows of no holds
      REQUIRE(engine.begin(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0), whole) == Verdict::accepted);
      finish(engine, 0, engine.tip(0), [](std::int32_t) {});
    };
    for (int crossing = 0; crossing < 5; ++crossing) {
      feed(128);
      REQUIRE(held_bytes(engine) == held_bytes(source));
    }
    Slot const before = engine.slot(0);
    REQUIRE(engine.books.clear(engine.slots[0]) == Verdict::accepted);  // nor by the slot's next user
    REQUIRE(before.generation != engine.slot(0).generation);
    engine.history[0].truncate(0);
    engine.expected[0].clear();
    for (int crossing = 0; crossing < 5; ++crossing) {
      feed(128);
      REQUIRE(held_bytes(engine) == held_bytes(source));
    }
    REQUIRE(engine.error.empty());
    engine.books.release(hold);
    for (int crossing = 0; crossing < 3; ++crossing) feed(128);
    REQUIRE(listed(engine, 0) == std::vector<Position>{896, 1024});  // every place is used again
  });
}
