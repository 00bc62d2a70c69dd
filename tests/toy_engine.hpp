// A toy engine of several slots: storage of its own, full of 0x3e, in which it carries plans out as `Lists` says, and
// oracles of what must be there and of where a slot must be able to go.
#pragma once

#include <rollback/books.hpp>

#include "toy_landings.hpp"
#include "toy_plan.hpp"
#include "toy_planes.hpp"
#include "toy_storage.hpp"
#include "toy_windows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace toy {

using rollback::BadChunk;
using rollback::Batch;
using rollback::Books;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Places;
using rollback::RowMap;
using rollback::Shape;
using rollback::Slot;
using rollback::Ticket;
using rollback::Unverified;
using rollback::Verdict;

class Engine {
 public:
  explicit Engine(EngineOptions const& o, std::uint32_t seed = 1)
      : books(o.books), options(o), tokens(seed), random(seed) {
    for (std::int32_t s = 0; s < books.slots(); ++s) {
      slots.push_back(books.slot(s));
      history.emplace_back(o.books.components);
      expected.emplace_back(o.books);
    }
    for (std::int32_t c = 0; c < books.components(); ++c) {
      maps.push_back(make_planes(books, c, o, storage));
      std::int32_t const given = std::min(books.pages(c), options.given);
      for (std::int32_t page = 0; page < given; ++page) static_cast<void>(books.give_page(c, page));
    }
    window_maps = make_windows(o.books, o.sinks, storage);
  }

  Books books;
  EngineOptions options;
  Storage storage;
  std::mt19937 tokens;  // apart from `random`, so that equal feeds get equal tokens however they are cut
  std::mt19937 random;
  std::vector<Slot> slots;
  std::vector<History> history;            // of every slot, with the rows of the open batch
  std::vector<ExpectedLandings> expected;  // of every slot, without them
  std::vector<RowMap> maps;
  std::vector<RowMap> window_maps;
  std::string error;  // the first thing that went wrong while a chunk ran

  // The open batch.
  Ticket ticket;
  std::vector<Slot> row_slots;  // no slot: padding
  std::vector<Position> positions;
  std::vector<std::int32_t> chunk_ends;
  std::vector<Unverified> unverified;

  [[nodiscard]] Slot slot(std::size_t s) const { return slots[s]; }
  [[nodiscard]] Position tip(std::size_t s) const { return history[s].size(); }
  [[nodiscard]] std::int32_t chunks() const { return static_cast<std::int32_t>(chunk_ends.size()); }
  [[nodiscard]] std::int32_t pick(std::int64_t low, std::int64_t high) {  // in [low, high]
    return static_cast<std::int32_t>(low +
                                     static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)));
  }

  /// Opens a batch of new tokens: the slot of every row, -1 for padding. Without `ends` it is cut where it must be and
  /// after `chunk` rows.
  Verdict begin(std::vector<std::int32_t> const& slot_of_row, std::int32_t chunk, std::vector<Unverified> u = {},
                std::vector<std::int32_t> ends = {}) {
    row_slots.clear();
    positions.clear();
    unverified = std::move(u);
    std::vector<Position> next;
    for (History const& h : history) next.push_back(h.size());
    for (std::int32_t s : slot_of_row) {
      row_slots.push_back(s < 0 ? Slot{} : slots[static_cast<std::size_t>(s)]);
      positions.push_back(s < 0 ? -7 : next[static_cast<std::size_t>(s)]++);
    }
    chunk_ends = ends.empty() ? cut(next, chunk) : std::move(ends);
    Verdict const verdict = books.begin(batch(), ticket);
    if (verdict == Verdict::accepted) {
      for (std::int32_t s : slot_of_row) {
        if (s >= 0) history[static_cast<std::size_t>(s)].append(static_cast<Token>(tokens()));
      }
    }
    return verdict;
  }

  [[nodiscard]] Batch batch() const {
    return {row_slots.data(), positions.data(),  static_cast<std::int32_t>(row_slots.size()), chunk_ends.data(),
            chunks(),         unverified.data(), static_cast<std::int32_t>(unverified.size())};
  }

  [[nodiscard]] std::int32_t chunk_begin(std::int32_t chunk) const {
    return chunk == 0 ? 0 : chunk_ends[static_cast<std::size_t>(chunk - 1)];
  }
  [[nodiscard]] std::int32_t chunk_end(std::int32_t chunk) const { return chunk_ends[static_cast<std::size_t>(chunk)]; }

  [[nodiscard]] Shape shape(std::int32_t chunk) const {
    Shape shape;
    if (options.worst_shapes) return books.worst_shape(options.books.max_rows, books.slots());
    static_cast<void>(books.shape(ticket, chunk, shape));
    return shape;
  }
  [[nodiscard]] Planned planned(std::int32_t chunk, std::int32_t component) const {
    return plan(books, ticket, chunk, component, shape(chunk), maps[static_cast<std::size_t>(component)]);
  }

  [[nodiscard]] Planned planned_window(std::int32_t chunk, std::size_t w) const {
    return plan_window(books, ticket, chunk, static_cast<std::int32_t>(w), shape(chunk), window_maps[w]);
  }

  /// Runs a chunk, in the order of work that `Lists` names.
  void run(std::int32_t chunk) {
    for (std::int32_t c = 0; c < books.components(); ++c) run(chunk, c);
    for (std::size_t w = 0; w < storage.windows.size(); ++w) run_window(chunk, w);
    for_each_row(chunk, [&](std::int32_t, std::size_t s, Position p) {
      if (!window_holds(s, p + 1, 0)) fail_with("a query reads window rows that are gone", s, p);
    });
  }

  void settle(std::int32_t chunk) {
    if (books.settle(ticket, chunk) != Verdict::accepted) fail_with("settle was refused", 0, chunk);
  }

  /// Leaves garbage in about half of all that a chunk may write.
  void tear(std::int32_t chunk) {
    Row const garbage{0x6a12ba6e, 0x6a12ba6e, 0x6a12ba6e, 0x6a12ba6e};
    auto const spoil = [&](std::vector<Row>& rows, std::int64_t at) {
      if (at >= 0 && pick(0, 1) == 0) rows[static_cast<std::size_t>(at)] = garbage;
    };
    for (std::int32_t c = 0; c < books.components(); ++c) {
      auto const i = static_cast<std::size_t>(c);
      std::int32_t const rows = books.component(c).geometry.rows;
      Planned const p = planned(chunk, c);
      for (std::int32_t at : p.restore_destination) {
        for (std::int32_t r = 0; r < rows && at >= 0; ++r) spoil(storage.planes[i], at + r);
      }
      for (std::int32_t at : p.snapshot_destination) spoil(storage.planes[i], at);
      for (std::int32_t at : p.persist_destination) spoil(storage.planes[i], at);
      for (std::int64_t at : p.block_row) spoil(storage.caches[i], at);
      for_each_row(chunk, [&](std::int32_t, std::size_t s, Position) {
        std::int32_t const live = live_row(i, s);
        for (std::int32_t r = 0; r < rows && !books.component(c).states_inside_chunk; ++r) {
          spoil(storage.planes[i], live + r);
        }
      });
    }
    for (std::size_t w = 0; w < storage.windows.size(); ++w) {
      Planned const p = planned_window(chunk, w);
      for (std::int32_t at : p.restore_destination) spoil(storage.windows[w], at);
      for (std::int32_t at : p.snapshot_destination) spoil(storage.windows[w], at);
      for_each_row(chunk, [&](std::int32_t, std::size_t s, Position at) {
        if (pick(0, 1) == 0) window_row(w, s, at) = garbage;
      });
    }
  }

  void commit(std::size_t s, Position accepted) {
    Rows const rows = rows_of(s);
    if (books.commit(ticket, slots[s], accepted) != Verdict::accepted) fail_with("commit was refused", s, accepted);
    history[s].truncate(accepted);
    expected[s].commit(rows, accepted);
  }

  /// Fails the open batch; what the bad chunks may have written is torn first.
  std::vector<Outcome> fail(std::int32_t first_bad, BadChunk state) {
    std::int32_t const end = state == BadChunk::never_started ? first_bad
                             : state == BadChunk::ran_last    ? std::min(first_bad + 1, chunks())
                                                              : chunks();  // of the chunks that may have run
    for (std::int32_t k = first_bad; k < end; ++k) tear(k);
    std::vector<std::pair<std::size_t, Rows>> failing;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      if (is_open(s)) failing.emplace_back(s, rows_of(s));
    }
    std::vector<Outcome> data(slots.size());
    Outcomes outcomes{data.data(), static_cast<std::int32_t>(data.size()), 0};
    Verdict const verdict = books.fail(ticket, first_bad, state, outcomes);
    if (verdict != Verdict::accepted) fail_with("fail was refused", 0, first_bad);
    data.resize(static_cast<std::size_t>(outcomes.count));
    if (data.size() != failing.size()) fail_with("an outcome is missing", 0, first_bad);
    for (auto const& [s, rows] : failing) {
      expected[s].fail(rows, first_bad, end);
      history[s].truncate(expected[s].tip);
    }
    for (Outcome const& o : data) {
      auto const s = static_cast<std::size_t>(o.slot.index);
      if (o.slot != slots[s] || o.tip != expected[s].tip || o.armed != expected[s].armed ||
          o.reach != books.reach(o.slot)) {
        fail_with("an outcome is not the best one", s, o.tip);
      }
    }
    return data;
  }

  /// Feeds `rows` new tokens to one slot, as one batch, `accepted` of the last `rejectable` of which stand.
  void feed(std::size_t s, std::int32_t rows, std::int32_t chunk, std::int32_t rejectable = 0,
            std::int32_t accepted = 0) {
    std::vector<std::int32_t> const row_slot(static_cast<std::size_t>(rows), static_cast<std::int32_t>(s));
    if (begin(row_slot, chunk, {{slots[s], rejectable}}) != Verdict::accepted) {
      return fail_with("a batch was refused", s, rows);
    }
    for (std::int32_t k = 0; k < chunks(); ++k) run(k), settle(k);
    commit(s, tip(s) - rejectable + accepted);
  }

  Verdict roll_back(std::size_t s, Position p) {
    Verdict const verdict = books.roll_back(slots[s], p);
    if (verdict == Verdict::accepted) {
      history[s].truncate(p);
      expected[s].roll_back(p);
    }
    return verdict;
  }

  void clear(std::size_t s) {
    if (books.clear(slots[s]) != Verdict::accepted) fail_with("clear was refused", s, 0);
    history[s].truncate(0);
    expected[s].clear();
  }

  /// Compares a slot without an open batch with the oracles; empty where all is as it must be.
  [[nodiscard]] std::string check(std::size_t s) const {
    if (!error.empty()) return error;
    Slot const slot = slots[s];
    ExpectedLandings const& e = expected[s];
    if (books.tip(slot) != e.tip || books.head(slot) != e.tip || tip(s) != e.tip) return at("the tip", s, e.tip);
    if (books.is_armed(slot) != e.armed) return at("whether a restore is armed", s, e.tip);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      if (!e.armed && e.tip > 0 && !holds(c, s, live_row(static_cast<std::size_t>(c), s), e.tip)) {
        return at("the live state of ", s, e.tip) + books.component(c).name;
      }
      auto const i = static_cast<std::size_t>(c);
      std::vector<Row> const& blocks = history[s].blocks(i);
      auto const first = storage.caches[i].begin() + maps[i].cache + slot.index * maps[i].cache_slot_stride;
      if (!std::equal(blocks.begin(), blocks.end(), first)) return at("an emitted block", s, e.tip);
    }
    for (Position p = -1; p <= e.tip + 1; ++p) {
      bool const lands = books.can_land(slot, p) == Verdict::accepted;
      if (lands != e.lands(p) && (lands || !options.holes)) return at("whether a landing is listed", s, p);
      if (p > 0 && lands && (p < e.tip || e.armed)) {
        std::string const wrong = check_landing(s, p);
        if (!wrong.empty()) return wrong;
      }
    }
    return window_holds(s, e.tip, 1) ? "" : at("the window rows", s, e.tip);
  }

  /// Whether the slot has rows in the open batch.
  [[nodiscard]] bool is_open(std::size_t s) const { return books.head(slots[s]) != books.tip(slots[s]); }

  /// The slot's rows in the open batch.
  [[nodiscard]] Rows rows_of(std::size_t s) const {
    Rows rows;
    rows.begin = books.tip(slots[s]);
    for (std::int32_t k = 0; k < chunks(); ++k) {
      for (std::int32_t i = chunk_begin(k); i < chunk_end(k); ++i) {
        if (row_slots[static_cast<std::size_t>(i)] == slots[s]) rows.chunk.push_back(k);
      }
    }
    rows.end = rows.verified = rows.begin + static_cast<Position>(rows.chunk.size());
    for (Unverified const& u : unverified) {
      if (u.slot == slots[s]) rows.verified -= u.rows;
    }
    return rows;
  }

  /// First row of the plane that the next chunk of a slot advances.
  [[nodiscard]] std::int32_t live_row(std::size_t c, std::size_t s) const {
    RowMap const& m = maps[c];
    return m.live + slots[s].index * m.live_slot_stride + books.live_place(slots[s]) * m.live_place_stride;
  }

 private:
  // Ends chunks where the books want a cut, and after so many rows.
  [[nodiscard]] std::vector<std::int32_t> cut(std::vector<Position> const& ends, std::int32_t chunk) const {
    std::vector<std::int32_t> out;
    std::vector<Position> next_cut(slots.size(), -1);
    std::vector<std::int32_t> last_row(slots.size(), -1);
    for (std::size_t i = 0; i < row_slots.size(); ++i) {
      auto const row = static_cast<std::int32_t>(i);
      std::int32_t const begin = out.empty() ? 0 : out.back();
      bool must = row - begin >= chunk;
      if (row_slots[i].index >= 0) {
        auto const s = static_cast<std::size_t>(row_slots[i].index);
        must = must || (positions[i] == next_cut[s] && last_row[s] >= begin);
        if (last_row[s] < 0 || positions[i] == next_cut[s]) {
          next_cut[s] = books.next_cut(slots[s], positions[i], ends[s]);
        }
        last_row[s] = row;
      }
      if (must) out.push_back(row);
    }
    out.push_back(static_cast<std::int32_t>(row_slots.size()));
    return out;
  }

  template <class F>
  void for_each_row(std::int32_t chunk, F f) const {
    for (std::int32_t i = chunk_begin(chunk); i < chunk_end(chunk); ++i) {
      Slot const slot = row_slots[static_cast<std::size_t>(i)];
      if (slot.index < 0 || slot != slots[static_cast<std::size_t>(slot.index)]) continue;  // padding, or cleared
      f(i - chunk_begin(chunk), static_cast<std::size_t>(slot.index), positions[static_cast<std::size_t>(i)]);
    }
  }

  // The entries of a list in any order: a plan must not depend on it.
  [[nodiscard]] std::vector<std::size_t> any_order(std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    return order;
  }

  void run(std::int32_t chunk, std::int32_t component) {
    auto const c = static_cast<std::size_t>(component);
    Component const& kind = books.component(component);
    std::vector<Row>& rows = storage.planes[c];
    RowMap const& map = maps[c];
    Planned const p = planned(chunk, component);
    if (p.verdict != Verdict::accepted) return fail_with("a plan was refused or not filled", c, chunk);

    for (std::size_t i : any_order(p.restore_destination.size())) {
      std::int32_t const to = p.restore_destination[i];
      std::int32_t const from = p.restore_source[i];
      for (std::int32_t r = 0; r < kind.geometry.rows && to >= 0; ++r) {
        rows[static_cast<std::size_t>(to + r)] = from < 0 ? Row{} : rows[static_cast<std::size_t>(from + r)];
      }
    }
    if (!kind.states_inside_chunk) {
      for_each_row(chunk, [&](std::int32_t, std::size_t s, Position at) {
        advance(kind, History::salt(c), history[s].token(at), at, rows.data() + live_row(c, s));
      });
    } else {
      for_each_row(chunk, [&](std::int32_t i, std::size_t s, Position at) {
        rows[static_cast<std::size_t>(map.fresh + i)] = history[s].ring_row(c, at);
      });
      emit(chunk, component, p);
    }
    copy_rows(rows, p.snapshot_source, p.snapshot_destination, any_order(p.snapshot_source.size()));
    for (std::size_t i : any_order(p.persist_destination.size())) {
      std::int32_t const to = p.persist_destination[i];
      if (to >= 0 && p.persist_source[i] < 0) return fail_with("a row is persisted from nowhere", c, chunk);
      if (to >= 0) rows[static_cast<std::size_t>(to)] = rows[static_cast<std::size_t>(map.fresh + p.persist_source[i])];
    }
  }

  void run_window(std::int32_t chunk, std::size_t w) {
    std::vector<Row>& rows = storage.windows[w];
    Planned const p = planned_window(chunk, w);
    if (p.verdict != Verdict::accepted) return fail_with("a window's plan was refused or not filled", w, chunk);
    copy_rows(rows, p.restore_source, p.restore_destination, any_order(p.restore_source.size()));
    for_each_row(
        chunk, [&](std::int32_t, std::size_t s, Position at) { window_row(w, s, at) = history[s].window_row(w, at); });
    copy_rows(rows, p.snapshot_source, p.snapshot_destination, any_order(p.snapshot_source.size()));
  }

  void emit(std::int32_t chunk, std::int32_t component, Planned const& p) {
    auto const c = static_cast<std::size_t>(component);
    rollback::RowGeometry const& g = books.component(component).geometry;
    std::vector<Row> const& rows = storage.planes[c];
    auto const read = [&](std::int32_t row) {
      return row < 0 || row == maps[c].empty ? nullptr : &rows[static_cast<std::size_t>(row)];
    };
    auto const block = static_cast<std::size_t>(g.block);
    for (std::size_t i = 0; i < p.block_row.size(); ++i) {
      std::vector<Row const*> previous;
      std::vector<Row const*> current;
      for (std::size_t j = i * block; j < (i + 1) * block; ++j) {
        if (g.overlap) previous.push_back(read(p.block_previous[j]));
        current.push_back(read(p.block_current[j]));
      }
      std::int64_t const to = p.block_row[i];
      if (to >= 0) storage.caches[c][static_cast<std::size_t>(to)] = block_of(previous, current, g.overlap);
    }
    for_each_row(chunk, [&](std::int32_t i, std::size_t s, Position at) {  // attention reads the cache
      std::int64_t const visible = p.visible[static_cast<std::size_t>(i)];
      if (visible != (g.block > 0 ? (at + 1) / g.block : 0)) fail_with("the visible blocks", s, at);
      if (visible == 0) return;
      std::int64_t const last = maps[c].cache + slots[s].index * maps[c].cache_slot_stride + visible - 1;
      if (storage.caches[c][static_cast<std::size_t>(last)] !=
          history[s].blocks(c)[static_cast<std::size_t>(visible - 1)]) {
        fail_with("a visible block", s, at);
      }
    });
  }

  [[nodiscard]] Row& window_row(std::size_t w, std::size_t s, Position p) {
    Position const rows = options.books.windows[w].rows;
    return storage.windows[w][static_cast<std::size_t>(static_cast<Position>(s) * rows + p % rows)];
  }

  // Whether the rows [end - window + missing, end) are there.
  [[nodiscard]] bool window_holds(std::size_t s, Position end, Position missing) const {
    for (std::size_t w = 0; w < storage.windows.size(); ++w) {
      Window const& window = options.books.windows[w];
      for (Position q = std::max<Position>(0, end - window.window + missing); q < end; ++q) {
        auto const row = static_cast<std::size_t>(static_cast<Position>(s) * window.rows + q % window.rows);
        if (storage.windows[w][row] != history[s].window_row(w, q)) return false;
      }
    }
    return true;
  }

  // Whether the plane at `row` holds, of the state at p, all that a later step can read.
  [[nodiscard]] bool holds(std::int32_t component, std::size_t s, std::int32_t row, Position p) const {
    auto const c = static_cast<std::size_t>(component);
    Component const& kind = books.component(component);
    Row const* const plane = storage.planes[c].data() + row;
    if (!kind.states_inside_chunk) return std::equal(plane, plane + kind.geometry.rows, history[s].plane(c, p));
    for (Position q = std::max<Position>(0, p - kind.geometry.rows); q < p; ++q) {
      Row const is = plane[q % kind.geometry.rows];
      Row const wanted = history[s].ring_row(c, q);
      auto const words = static_cast<std::ptrdiff_t>(history[s].readable_words(c, q, p));
      if (!std::equal(wanted.begin(), wanted.begin() + words, is.begin())) return false;
    }
    return true;
  }

  // Goes back on a copy of the books and looks at the state that the restore of the next chunk would bring.
  [[nodiscard]] std::string check_landing(std::size_t s, Position p) const {
    if (!window_holds(s, p, 1)) return at("the window rows of a landing", s, p);
    Books probe = books;
    if (probe.roll_back(slots[s], p) != Verdict::accepted) return at("can_land said otherwise", s, p);
    std::int32_t const one = 1;
    Ticket t;
    if (probe.begin({&slots[s], &p, 1, &one, 1, nullptr, 0}, t) != Verdict::accepted) return at("a batch after", s, p);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      auto const i = static_cast<std::size_t>(c);
      Shape shape;
      static_cast<void>(probe.shape(t, 0, shape));
      Planned const planned = plan(probe, t, 0, c, shape, maps[i]);
      std::int32_t const live = maps[i].live + slots[s].index * maps[i].live_slot_stride +
                                probe.live_place(slots[s]) * maps[i].live_place_stride;
      bool restored = false;
      for (std::int32_t k = 0; k < planned.lists.restores; ++k) {
        auto const entry = static_cast<std::size_t>(k);
        if (planned.restore_destination[entry] != live) continue;
        restored = true;
        std::int32_t const from = planned.restore_source[entry];
        bool const empty = from < 0 || from == maps[i].reset;
        Row const* const plane = history[s].plane(i, p);
        bool const right = empty ? std::count(plane, plane + books.component(c).geometry.rows, Row{}) ==
                                       books.component(c).geometry.rows
                                 : holds(c, s, from, p);
        if (!right) return at("the kept state of ", s, p) + books.component(c).name;
      }
      for (Position q = std::max<Position>(0, p - books.component(c).geometry.rows); q < p && !restored; ++q) {
        bool const ring = books.component(c).states_inside_chunk;
        if (!ring || history[s].readable_words(i, q, p) > 0) return at("a landing without a restore", s, p);
      }
    }
    return "";
  }

  [[nodiscard]] static std::string at(char const* what, std::size_t s, Position p) {
    return "slot " + std::to_string(s) + " at " + std::to_string(p) + ": " + what;
  }
  void fail_with(char const* what, std::size_t s, Position p) {
    if (error.empty()) error = at(what, s, p);
  }
};

inline std::vector<Position> listed(Engine const& engine, std::size_t s) {
  return listed(engine.books, engine.slot(s));
}

}  // namespace toy
