// What the recipes share that were distilled from failures of real engines: engines on both kinds of memory, and the
// proof that counts, equality with a fresh run that saw only the surviving tokens.
#pragma once

#include "books_refusal.hpp"
#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace scenario {

using rollback::Landing;
using rollback::Tier;
using namespace toy;

inline constexpr std::int32_t whole = 1200;  // rows of the largest batch and chunk

/// The tiers of every plane: a state a token, and `aligned` boundaries of `quantum` tokens.
struct Depths {
  std::int32_t per_token = 0;
  Position quantum = 0;
  std::int32_t aligned = 0;
};

inline Component with(Component c, Depths d) { return toy::with(std::move(c), d.per_token, d.quantum, d.aligned); }

/// The three planes of the recipes; and the rings alone, since FOLD makes the books cut where states are kept.
inline std::vector<Component> all_planes(Depths d) { return {with(fold(), d), with(ring8(), d), with(ring128(), d)}; }
inline std::vector<Component> rings(Depths d) { return {with(ring8(), d), with(ring128(), d)}; }

inline EngineOptions options(std::vector<Component> components, std::int32_t slots = 1) {
  return engine_options(std::move(components), slots, whole, whole, {{"raw", 128, 4096}});
}

inline void zero(Storage& storage) {
  for (auto* const kind : {&storage.planes, &storage.caches, &storage.windows}) {
    for (std::vector<Row>& rows : *kind) std::fill(rows.begin(), rows.end(), Row{});
  }
}

/// Calls f(an engine that was fed nothing): on memory full of 0x3e and on zeroed memory, with one live plane a slot and
/// with an entry copy and sink rows.
template <class F>
void on_every_storage(EngineOptions const& o, F f) {
  for (bool zeroed : {false, true}) {
    for (bool copied : {false, true}) {
      CAPTURE(zeroed, copied);
      EngineOptions variant = o;
      variant.books.entry_copy = variant.sinks = copied;
      Engine engine(variant);
      if (zeroed) zero(engine.storage);
      f(std::as_const(engine));
    }
  }
}

/// The same with the three planes joined, and with the rings alone.
template <class F>
void on_every_engine(Depths d, std::int32_t slots, F f) {
  on_every_storage(options(all_planes(d), slots), f);
  on_every_storage(options(rings(d), slots), f);
}

inline std::vector<Landing> landings(Books const& books, Slot slot) {
  std::vector<Landing> out(static_cast<std::size_t>(books.landings(slot, nullptr, 0)));
  static_cast<void>(books.landings(slot, out.data(), static_cast<std::int32_t>(out.size())));
  return out;
}

/// The multiples of `quantum` in [first, last].
inline std::vector<Position> multiples(Position quantum, Position first, Position last) {
  std::vector<Position> out;
  for (Position p = first; p <= last; p += quantum) out.push_back(p);
  return out;
}

/// Runs, settles and commits an open batch of one slot; calls before(chunk) before each chunk runs.
template <class F>
void finish(Engine& engine, std::size_t s, Position accepted, F before) {
  for (std::int32_t k = 0; k < engine.chunks(); ++k) {
    before(k);
    engine.run(k);
    engine.settle(k);
  }
  engine.commit(s, accepted);
}

/// Feeds new tokens to one slot and calls before(chunk) before each chunk runs.
template <class F>
void feed_and(Engine& engine, std::size_t s, std::int32_t rows, std::int32_t chunk, F before) {
  std::vector<std::int32_t> const slot_of_row(static_cast<std::size_t>(rows), static_cast<std::int32_t>(s));
  REQUIRE(engine.begin(slot_of_row, chunk) == Verdict::accepted);
  finish(engine, s, engine.tip(s), before);
}

/// Feeds the given tokens to one slot, in batches of at most `batch` rows.
inline void feed_tokens(Engine& engine, std::size_t s, std::vector<Token> const& tokens, std::int32_t batch = whole) {
  std::int32_t const most = std::min(batch, engine.options.books.max_rows);
  std::int32_t const chunk = engine.options.books.max_chunk_rows;
  for (std::size_t at = 0; at < tokens.size();) {
    std::size_t const rows = std::min(static_cast<std::size_t>(most), tokens.size() - at);
    Position const tip = engine.tip(s);
    REQUIRE(engine.begin(std::vector<std::int32_t>(rows, static_cast<std::int32_t>(s)), chunk) == Verdict::accepted);
    engine.history[s].truncate(tip);  // `begin` drew tokens of its own
    for (std::size_t i = 0; i < rows; ++i) engine.history[s].append(tokens[at + i]);
    finish(engine, s, engine.tip(s), [](std::int32_t) {});
    at += rows;
  }
}

/// All words that a step at the tip of a slot without an armed restore can read, and all that was emitted.
inline std::vector<std::uint32_t> readable(Engine const& engine, std::size_t s) {
  std::vector<std::uint32_t> words;
  auto const add = [&words](Row const& row, std::size_t count) {
    words.insert(words.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(count));
  };
  Position const tip = engine.tip(s);
  auto const first_kept = [tip](Position rows) { return std::max<Position>(0, tip - rows); };
  for (std::size_t c = 0; c < engine.maps.size(); ++c) {
    Component const& kind = engine.books.component(static_cast<std::int32_t>(c));
    Row const* const plane = engine.storage.planes[c].data() + engine.live_row(c, s);
    Position const rows = kind.geometry.rows;
    for (Position r = 0; r < rows && !kind.states_inside_chunk && tip > 0; ++r) add(plane[r], 4);
    for (Position q = first_kept(rows); q < tip && kind.states_inside_chunk; ++q) {
      add(plane[q % rows], engine.history[s].readable_words(c, q, tip));
    }
    std::int64_t const blocks = kind.geometry.block > 0 ? tip / kind.geometry.block : 0;
    std::int64_t const cache = engine.maps[c].cache + engine.slot(s).index * engine.maps[c].cache_slot_stride;
    for (std::int64_t b = 0; b < blocks; ++b) add(engine.storage.caches[c][static_cast<std::size_t>(cache + b)], 4);
  }
  for (std::size_t w = 0; w < engine.storage.windows.size(); ++w) {
    rollback::Window const& window = engine.options.books.windows[w];
    for (Position q = first_kept(window.window - 1); q < tip; ++q) {
      add(engine.storage.windows[w][static_cast<std::size_t>(static_cast<Position>(s) * window.rows + q % window.rows)],
          4);
    }
  }
  return words;
}

inline std::vector<Token> tokens_of(Engine const& engine, std::size_t s, Position first = 0) {
  std::vector<Token> tokens;
  for (Position p = first; p < engine.tip(s); ++p) tokens.push_back(engine.history[s].token(p));
  return tokens;
}

/// What of a slot is not as in a fresh run over its tokens, in batches of `batch` rows: the state, what was emitted,
/// and all of both after 20 more tokens. Empty where nothing is.
inline std::string differs_from_fresh_run(Engine engine, std::size_t s, std::int32_t batch = whole) {
  std::string wrong = engine.check(s);
  if (!wrong.empty()) return wrong;
  Engine fresh(engine.options);
  feed_tokens(fresh, s, tokens_of(engine, s), batch);
  Position const tip = engine.tip(s);
  bool const armed = engine.books.is_armed(engine.slot(s));  // the live state is what was before, until it is restored
  if (!armed && readable(engine, s) != readable(fresh, s)) return "what is there at " + std::to_string(tip);
  std::int32_t const most = std::min(20, engine.options.books.max_rows);
  while (engine.tip(s) < tip + 20 && engine.error.empty()) {
    Position const left = tip + 20 - engine.tip(s);
    engine.feed(s, static_cast<std::int32_t>(std::min<Position>(most, left)),
                std::min(7, engine.options.books.max_chunk_rows));
  }
  feed_tokens(fresh, s, tokens_of(engine, s, tip));
  wrong = engine.check(s);
  if (!wrong.empty()) return "20 tokens after " + std::to_string(tip) + ": " + wrong;
  return readable(engine, s) == readable(fresh, s) ? "" : "what is there 20 tokens after " + std::to_string(tip);
}

/// Goes back on a copy, and compares.
inline std::string differs_after_roll_back(Engine engine, std::size_t s, Position p) {
  Verdict const verdict = engine.roll_back(s, p);
  return verdict == Verdict::accepted ? differs_from_fresh_run(std::move(engine), s) : text(verdict);
}

/// Whether two engines are byte for byte alike and their books answer alike.
inline bool same(Engine const& a, Engine const& b) {
  return a.storage == b.storage && refusal::everything(a.books, a.ticket) == refusal::everything(b.books, b.ticket);
}

/// Asks for a rollback that must be refused, and looks whether anything changed.
inline void refuses(Engine& engine, std::size_t s, Position p, Verdict why) {
  CAPTURE(p, text(why));
  Engine const before = engine;
  REQUIRE(engine.books.can_land(engine.slot(s), p) == why);
  REQUIRE(engine.roll_back(s, p) == why);
  REQUIRE(same(engine, before));
}

/// All rows of a slot's planes of one component: the live places, then the kept ones.
inline std::vector<std::int32_t> rows_of_slot(Engine const& engine, std::size_t c, std::int32_t slot) {
  auto const component = static_cast<std::int32_t>(c);
  std::int32_t const rows = engine.books.component(component).geometry.rows;
  Places const places = engine.books.places(component);
  RowMap const& m = engine.maps[c];
  std::vector<std::int32_t> all;
  for (std::int32_t r = 0; r < places.live * rows; ++r) {
    all.push_back(m.live + slot * m.live_slot_stride + r / rows * m.live_place_stride + r % rows);
  }
  for (std::int32_t r = 0; r < (places.total() - places.live) * rows; ++r) {
    all.push_back(m.kept + slot * m.kept_slot_stride + r / rows * m.kept_place_stride + r % rows);
  }
  return all;
}

inline std::vector<std::vector<Row>> planes_of_slot(Engine const& engine, std::int32_t slot) {
  std::vector<std::vector<Row>> planes;
  for (std::size_t c = 0; c < engine.maps.size(); ++c) {
    planes.emplace_back();
    for (std::int32_t r : rows_of_slot(engine, c, slot)) {
      planes.back().push_back(engine.storage.planes[c][static_cast<std::size_t>(r)]);
    }
  }
  return planes;
}

/// How many kept states of any component the plan of a chunk restores to the slot's live plane.
inline std::int32_t kept_restores(Engine const& engine, std::size_t s, std::int32_t chunk) {
  std::int32_t count = 0;
  for (std::size_t c = 0; c < engine.maps.size(); ++c) {
    auto const component = static_cast<std::int32_t>(c);
    Planned const p = engine.planned(chunk, component);
    std::vector<std::int32_t> const rows = rows_of_slot(engine, c, engine.slot(s).index);
    std::int32_t const live_rows =
        engine.books.places(component).live * engine.books.component(component).geometry.rows;
    for (std::size_t i = 0; i < p.restore_destination.size(); ++i) {
      bool const kept = std::count(rows.begin() + live_rows, rows.end(), p.restore_source[i]) > 0;
      if (kept && p.restore_destination[i] == engine.live_row(c, s)) ++count;
    }
  }
  return count;
}

/// Feeds as `Engine::feed` does, and counts the restores of kept states chunk by chunk.
inline std::vector<std::int32_t> feed_counting(Engine& engine, std::size_t s, std::int32_t rows, std::int32_t chunk) {
  std::vector<std::int32_t> counts;
  feed_and(engine, s, rows, chunk, [&](std::int32_t k) { counts.push_back(kept_restores(engine, s, k)); });
  return counts;
}

/// Feeds, and tells whether a restore of every component stood in the first chunk and none in any other.
inline bool restores_once(Engine& engine, std::size_t s, std::int32_t rows, std::int32_t chunk) {
  std::vector<std::int32_t> const counts = feed_counting(engine, s, rows, chunk);
  auto const without = static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0));
  return counts.front() == engine.books.components() && without + 1 == counts.size();
}

/// All lists of a plan, to compare.
inline auto lists_of(Planned const& p) {
  return std::tie(p.restore_source, p.restore_destination, p.snapshot_source, p.snapshot_destination, p.persist_source,
                  p.persist_destination, p.block_previous, p.block_current, p.block_slot, p.block_row, p.block_position,
                  p.visible);
}

/// The plans of one-row chunks in memory that is allocated once, as a captured graph needs them.
class CapturedLists {
 public:
  explicit CapturedLists(Books const& books) : shape_(books.worst_shape(1, books.slots())) {
    planned_.resize(static_cast<std::size_t>(books.components()));
    for (std::int32_t c = 0; c < books.components(); ++c) {
      Planned& p = planned_[static_cast<std::size_t>(c)];
      p.lengths = books.lengths(c, shape_);
      p.for_each_list(books.component(c).geometry.overlap, [](auto& memory, auto*& list, std::int32_t length) {
        memory.resize(static_cast<std::size_t>(length));
        list = memory.data();
      });
    }
  }

  /// Plans the only chunk of the engine's open batch, and sees that a plan in new memory says the same.
  void plan(Engine const& engine) {
    for (std::size_t c = 0; c < planned_.size(); ++c) {
      auto const component = static_cast<std::int32_t>(c);
      REQUIRE(engine.books.plan(engine.ticket, 0, component, shape_, engine.maps[c], planned_[c].lists) ==
              Verdict::accepted);
      Planned const other = engine.planned(0, component);
      bool const equal = lists_of(planned_[c]) == lists_of(other);
      REQUIRE(equal);
    }
  }

  [[nodiscard]] std::vector<Planned> const& planned() const { return planned_; }

 private:
  Shape shape_;
  std::vector<Planned> planned_;
};

}  // namespace scenario
