// Memory: what is held does not grow, is what was asked for, and all of it can be reached.
#include <rollback/dsv4/memory.hpp>

#include "counted_new.hpp"
#include "scenario.hpp"
#include "scenario_dsv4.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

using namespace scenario;

namespace {

std::size_t held(Storage const& storage) {
  std::size_t bytes = 0;
  for (auto const* const kind : {&storage.planes, &storage.caches, &storage.windows}) {
    for (std::vector<Row> const& rows : *kind) bytes += rows.capacity() * sizeof(Row);
  }
  return bytes;
}

/// The bytes handed out and not yet given back, after each of 10, 20, 40 and 400 boundaries of 128 tokens.
std::vector<std::size_t> live_bytes_while_fed(Books& books, std::int32_t boundaries) {
  Slot const slot = books.slot(0);
  rollback::Feed feeder(books, 128, 128);
  auto const none = [](rollback::FeedChunk const&) { return true; };
  std::vector<std::size_t> bytes;
  bytes.reserve(4);
  for (std::int32_t fed = 1; fed <= boundaries; ++fed) {
    bool const fits = feeder.run(slot, 128, none) == Verdict::accepted;
    if (!fits) return {};
    if (fed == 10 || fed == 20 || fed == 40 || fed == 400) bytes.push_back(counted_new::live_bytes);
  }
  return bytes;
}

/// Notes every row of a component's planes that a chunk writes.
void note_written(Engine const& engine, std::int32_t chunk, std::size_t c, std::set<std::int32_t>& written) {
  Planned const p = engine.planned(chunk, static_cast<std::int32_t>(c));
  Component const& kind = engine.books.component(static_cast<std::int32_t>(c));
  std::int32_t const rows = kind.geometry.rows;
  for (std::int32_t to : p.restore_destination) {
    for (std::int32_t r = 0; r < rows && to >= 0; ++r) written.insert(to + r);
  }
  for (std::int32_t to : p.snapshot_destination) written.insert(to);
  for (std::int32_t to : p.persist_destination) written.insert(to);
  for (std::size_t s = 0; s < engine.slots.size() && !kind.states_inside_chunk; ++s) {
    for (std::int32_t r = 0; r < rows && engine.is_open(s); ++r) written.insert(engine.live_row(c, s) + r);
  }
}

}  // namespace

TEST_CASE("BR-82 what is held does not grow with the context") {
  for (auto const& components : {all_planes({3, 128, 8}), rings({0, 128, 8})}) {
    BooksOptions const o = engine_options(components, 1, 128, 128, {{"raw", 128, 2048}}).books;
    std::size_t const before = counted_new::live_bytes;
    Books books(o);
    REQUIRE(counted_new::live_bytes - before + sizeof(Books) == Books::bytes(o));
    std::vector<std::size_t> const bytes = live_bytes_while_fed(books, 400);
    REQUIRE(bytes.size() == 4);
    REQUIRE(bytes == std::vector<std::size_t>(4, bytes.front()));
    REQUIRE(books.reach(books.slot(0)) == (400 - 7) * 128);  // the tip is the last of the eight
  }
  Memory memory = small_memory({3, 128, 8});
  std::vector<std::size_t> const bytes = live_bytes_while_fed(memory.books(), 16);  // all of its 2,048 positions
  REQUIRE(bytes.size() == 1);
  REQUIRE(landings(memory.books(), memory.books().slot(0)).size() == 8 + 3);

  on_every_engine({0, 4, 8}, 1, [](Engine const& empty) {  // the same with bytes, on a smaller quantum
    Engine engine = empty;
    std::size_t const bytes_before = held(engine.storage);
    for (std::int32_t boundaries : {10, 20, 40, 400}) {
      while (engine.tip(0) <= 4 * boundaries) {
        Position const left = 4 * boundaries + 1 - engine.tip(0);
        engine.feed(0, static_cast<std::int32_t>(std::min<Position>(whole, left)), 100);
      }
      if (boundaries < 400) engine.feed(0, 3, whole);
      REQUIRE(held(engine.storage) == bytes_before);
      REQUIRE(listed(engine, 0).size() == 8);
      REQUIRE(differs_after_roll_back(engine, 0, engine.books.reach(engine.slot(0))) == "");
    }
  });
}

TEST_CASE("BR-83 what is allocated is what the formula says and all of it is reached") {
  std::int32_t const sequences = 2;
  for (Depths const d : {Depths{3, 8, 2}, Depths{9, 4, 3}, Depths{1, 2, 1}, Depths{2, 0, 0}}) {
    for (auto const& components : {all_planes(d), rings(d)}) {
      EngineOptions o = engine_options(components, sequences, 64, 64);
      for (bool entry_copy : {false, true}) {
        CAPTURE(d.per_token, d.quantum, d.aligned, entry_copy);
        o.books.entry_copy = entry_copy;
        o.context = 8192;
        Engine engine(o);
        std::vector<std::set<std::int32_t>> written(components.size());
        std::vector<std::int32_t> rows;
        for (std::size_t c = 0; c < components.size(); ++c) {
          Places const p = engine.books.places(static_cast<std::int32_t>(c));
          std::int32_t const planes =
              (entry_copy ? 2 : 1) + d.per_token + d.aligned + p.per_token_spares + p.aligned_spares;
          rows.push_back(planes * components[c].geometry.rows * sequences);
          auto const of_places = static_cast<std::size_t>(rows[c]);
          auto const fresh = static_cast<std::size_t>(o.books.max_rows);
          REQUIRE(engine.storage.planes[c].size() == of_places + fresh);
        }
        auto const all_written = [&] {
          for (std::size_t c = 0; c < rows.size(); ++c) {
            if (static_cast<std::int32_t>(written[c].size()) < rows[c]) return false;
          }
          return true;
        };
        for (int round = 0; round < 2000 && !all_written(); ++round) {
          std::size_t const s = round % 2 == 0 ? 0 : 1;
          if (engine.tip(s) > 900) engine.clear(s);
          std::int32_t const count = engine.pick(1, 30);
          std::int32_t const unverified = engine.pick(0, std::min(count, d.per_token));
          std::vector<std::int32_t> const batch(static_cast<std::size_t>(count), static_cast<std::int32_t>(s));
          REQUIRE(engine.begin(batch, 64, {{engine.slot(s), unverified}}) == Verdict::accepted);
          finish(engine, s, engine.tip(s) - engine.pick(0, unverified), [&](std::int32_t k) {
            for (std::size_t c = 0; c < rows.size(); ++c) note_written(engine, k, c, written[c]);
          });
          std::vector<Position> const all = listed(engine, s);
          if (engine.pick(0, 2) == 0 && !all.empty()) {
            Position const back = all[static_cast<std::size_t>(engine.pick(0, static_cast<int>(all.size()) - 1))];
            REQUIRE(engine.roll_back(s, back) == Verdict::accepted);
          }
          REQUIRE(engine.check(s) == "");
        }
        for (std::size_t c = 0; c < rows.size(); ++c) {  // every row, and none that is not there
          CAPTURE(c);
          written[c].erase(-1);
          REQUIRE(static_cast<std::int32_t>(written[c].size()) == rows[c]);
          REQUIRE(*written[c].begin() == 0);
          REQUIRE(*written[c].rbegin() == rows[c] - 1);
        }
      }
    }
  }

  using rollback::dsv4::MemoryBudget;
  MemoryOptions mo = small_memory({3, 128, 4}).options();
  mo.slots = sequences;
  mo.quantum = 64;
  auto const shape = dsv4_small::small_shape({0, 4, 128});
  MemoryBudget const budget = Memory::budget(shape, mo);
  std::size_t tensors = 0;
  for (auto const& tensor : Memory::tensors(shape, mo)) tensors += tensor.bytes;
  REQUIRE(budget.tensors() == tensors);
  for (rollback::dsv4::PathBytes const& path : budget.paths) {
    if (path.path < rollback::dsv4::Path::csa_state) continue;  // windows and caches keep no history
    std::size_t const of_slots = path.plane * sequences;
    REQUIRE(path.live == of_slots);
    REQUIRE(path.per_token == 3 * of_slots);
    REQUIRE(path.aligned == 4 * of_slots);
    REQUIRE(path.spares == 2 * of_slots);
  }
}
