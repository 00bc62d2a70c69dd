// What the recipes share on a `dsv4::Memory`: engines on every kind of storage, and equality with a fresh run that saw
// only the surviving tokens.
#pragma once

#include "books_refusal.hpp"
#include "catch.hpp"
#include "dsv4_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace dsv4_scenario {

using rollback::BadChunk;
using rollback::Landing;
using rollback::Outcome;
using rollback::Tier;
using namespace dsv4_engine;

/// The tiers of every compressor: a state a token, and `aligned` boundaries of `quantum` tokens.
struct Depths {
  std::int32_t per_token = 0;
  Position quantum = 128;
  std::int32_t aligned = 0;
};

inline MemoryOptions options(Depths d, std::int32_t slots = 1, std::int32_t max_rows = 64) {
  MemoryOptions o;
  o.slots = slots;
  o.per_token = d.per_token;
  o.quantum = d.quantum;
  o.aligned = d.aligned;
  o.max_context = 2048;
  o.max_rows = max_rows;
  return o;
}

/// Calls f(an engine that was fed nothing): in memory full of 0x3e and in zeroed memory; with one live plane a slot,
/// and with entry copies, room for a second batch in flight and a pin.
template <class F>
void on_every_memory(MemoryOptions const& o, F f, ModelShape const& shape = small_shape({0, 4, 128, 4})) {
  for (bool zeroed : {false, true}) {
    for (bool copied : {false, true}) {
      CAPTURE(zeroed, copied);
      MemoryOptions variant = o;
      variant.entry_copy = copied;
      if (copied) variant.steps_in_flight = std::max(2, o.steps_in_flight);
      if (copied) variant.pins = std::max(1, o.pins);
      Engine const engine(variant, shape, zeroed);
      f(engine);
    }
  }
}

/// The multiples of `quantum` in [first, last].
inline std::vector<Position> multiples(Position quantum, Position first, Position last) {
  std::vector<Position> all;
  for (Position p = first; p <= last; p += quantum) all.push_back(p);
  return all;
}

/// What of a slot is not as in a fresh run over its tokens, in batches of `batch` rows: what is there, and what is
/// there after 20 more tokens. Empty where nothing is. What an armed restore has to bring is overwritten first.
inline std::string differs_from_fresh_run(Engine engine, std::size_t s, std::int32_t batch = 64) {
  Engine fresh = fresh_engine(engine, batch);
  fresh.feed(0, engine.tokens[s]);
  if (engine.books().is_armed(engine.slot(s))) {
    poison_unreadable(engine.memory, static_cast<std::int32_t>(s), engine.filling);
  } else {
    std::string wrong = difference(engine, s, fresh);
    if (!wrong.empty()) return wrong;
  }
  Tokens const next = engine.drawn(20);
  engine.feed(s, next, std::min(7, engine.memory.options().max_chunk_rows));
  fresh.feed(0, next);
  std::string const wrong = difference(engine, s, fresh);
  return wrong.empty() ? "" : wrong + ", 20 tokens later";
}

/// Goes back on a copy, and compares.
inline std::string differs_after_roll_back(Engine engine, std::size_t s, Position p) {
  Verdict const verdict = engine.roll_back(s, p);
  return verdict == Verdict::accepted ? differs_from_fresh_run(engine, s) : text(verdict);
}

/// Every value of every tensor.
inline std::vector<float> contents(Engine const& engine) {
  std::vector<float> values;
  for (rollback::dsv4::Tensor const& t : Memory::tensors(engine.memory.shape(), engine.memory.options())) {
    float const* const first = engine.memory.data(t);
    values.insert(values.end(), first, first + t.bytes / sizeof(float));
  }
  return values;
}

/// Whether two engines without an open batch are byte for byte alike and their books answer alike.
inline bool same(Engine const& a, Engine const& b) {
  return same_bits(contents(a), contents(b)) &&
         refusal::everything(a.books(), Ticket{}) == refusal::everything(b.books(), Ticket{});
}

/// Asks for a rollback that must be refused, and looks whether anything changed.
inline void refuses(Engine& engine, std::size_t s, Position p, Verdict why) {
  CAPTURE(p, text(why));
  Engine const before = engine;
  REQUIRE(engine.books().can_land(engine.slot(s), p) == why);
  REQUIRE(engine.roll_back(s, p) == why);
  REQUIRE(same(engine, before));
}

/// How many compressors have a state above 0 that is not empty.
inline std::int32_t states_at(Position p) { return p == 0 ? 0 : p % 128 == 0 ? 2 : 3; }

/// How many kept states of any compressor the planned chunk restores to the slot's live planes.
inline std::int32_t kept_restores(Engine const& engine, Flight const& f, std::size_t s) {
  std::int32_t count = 0;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    Lists const& lists = f.chunk.lists[static_cast<int>(compressor)];
    rollback::RowMap const& map = engine.memory.row_map(compressor);
    for (std::int32_t i = 0; i < lists.restores; ++i) {
      std::int32_t const from = lists.restore_source[i];
      std::int32_t const to = lists.restore_destination[i];
      bool const kept = from >= 0 && from % map.live_slot_stride >= map.kept;
      bool const live =
          to / map.live_slot_stride == static_cast<std::int32_t>(s) && to % map.live_slot_stride < map.kept;
      if (kept && live) ++count;
    }
  }
  return count;
}

/// Feeds tokens in one batch and calls before(flight) with each chunk, once it is planned and before it runs.
template <class F>
void feed_and(Engine& engine, std::size_t s, std::size_t rows, std::int32_t chunk_rows, F before) {
  Flight f = engine.begin({{s, engine.drawn(rows)}}, chunk_rows);
  for (std::int32_t k = 0; k < f.batch.chunks; ++k) {
    engine.plan(f, k);
    before(std::as_const(f));
    engine.run(f);
    REQUIRE(engine.books().settle(f.ticket, k) == Verdict::accepted);
  }
  engine.commit(f, s, f.positions.back() + 1);
}

/// Feeds, and counts the restores of kept states chunk by chunk.
inline std::vector<std::int32_t> feed_counting(Engine& engine, std::size_t s, std::size_t rows,
                                               std::int32_t chunk_rows) {
  std::vector<std::int32_t> counts;
  feed_and(engine, s, rows, chunk_rows, [&](Flight const& f) { counts.push_back(kept_restores(engine, f, s)); });
  return counts;
}

/// Feeds, and tells whether each compressor that is not empty at the tip was restored in the first chunk, and none in
/// any other.
inline bool restores_once(Engine& engine, std::size_t s, std::size_t rows, std::int32_t chunk_rows) {
  std::int32_t const expected = states_at(engine.tip(s));
  std::vector<std::int32_t> const counts = feed_counting(engine, s, rows, chunk_rows);
  auto const without = static_cast<std::size_t>(std::count(counts.begin() + 1, counts.end(), 0));
  return counts.front() == expected && without + 1 == counts.size();
}

}  // namespace dsv4_scenario
