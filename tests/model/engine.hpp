// The test engine: storage full of 0x3e in which it carries plans out as `Lists` says, for batches of many slots.
#pragma once

#include "model.hpp"

#include "../toy_plan.hpp"
#include "../toy_planes.hpp"
#include "../toy_storage.hpp"
#include "../toy_windows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace model {

using rollback::RowMap;
using rollback::Shape;
using toy::History;
using toy::Row;

class Engine {
 public:
  Engine(Configuration const& f, BooksOptions const& o)
      : options(o), defect_(f.defect), worst_(f.worst_shapes % 2 == 1) {
    for (std::int32_t s = 0; s < o.slots; ++s) history.emplace_back(o.components);
    for (Component const& c : o.components) {
      rollback::Places const places = rollback::places(c, o.entry_copy, o.steps_in_flight, o.pins);
      std::int32_t const rows = c.geometry.rows;
      Position const cache_rows = c.geometry.block > 0 ? context / c.geometry.block : 0;
      RowMap map = RowMap::packed(c.geometry, places, o.slots, cache_rows);
      if (f.sinks % 2 == 1) {  // sink, reset and empty rows come first
        map.sink = 0;
        map.reset = rows;
        map.empty = 2 * rows;
        map.live = 2 * rows + 1;
        map.kept += map.live;
        map.fresh += map.live;
        map.cache = 1;
        map.cache_sink = 0;
      }
      maps.push_back(map);
      storage.planes.push_back(toy::storage_rows(map.fresh + o.max_chunk_rows));
      storage.caches.push_back(toy::storage_rows(map.cache + o.slots * cache_rows));
      if (map.reset >= 0) std::fill_n(storage.planes.back().begin() + map.reset, rows, Row{});
    }
    window_maps = toy::make_windows(o, f.sinks % 2 == 1, storage);
  }

  static constexpr Position context = 600;
  BooksOptions options;
  toy::Storage storage;
  std::vector<RowMap> maps, window_maps;
  std::vector<History> history;  // of every slot, with the rows in flight
  std::string error;             // the first thing that went wrong while a chunk ran

  /// What the engine knows of an open batch beside its rows.
  struct Running {
    std::int32_t ran = 0;                  // chunks
    std::vector<std::int32_t> live_place;  // [slots]
  };
  std::map<std::uint32_t, Running> running;  // by the ticket's serial

  [[nodiscard]] std::int32_t live_row(std::size_t c, std::size_t s, std::int32_t place) const {
    RowMap const& m = maps[c];
    return m.live + static_cast<std::int32_t>(s) * m.live_slot_stride + place * m.live_place_stride;
  }
  [[nodiscard]] Row& window_row(std::size_t w, std::size_t s, Position p) {
    Position const rows = options.windows[w].rows;
    return storage.windows[w][static_cast<std::size_t>(static_cast<Position>(s) * rows + p % rows)];
  }
  /// The lowest position from which on the rows of a window up to `end` are there.
  [[nodiscard]] Position window_from(std::size_t w, std::size_t s, Position end) const {
    Position const rows = options.windows[w].rows;
    Position q = end;
    while (q > 0 && q > end - rows &&
           storage.windows[w][static_cast<std::size_t>(static_cast<Position>(s) * rows + (q - 1) % rows)] ==
               history[s].window_row(w, q - 1)) {
      --q;
    }
    return q;
  }
  /// Whether the plane at `row` holds, of the state at p, all that a later step can read; a negative row is empty.
  [[nodiscard]] bool holds(std::size_t c, std::size_t s, std::int32_t row, Position p) const {
    Component const& kind = options.components[c];
    Position const n = kind.geometry.rows;
    Row const* const plane = row < 0 ? nullptr : storage.planes[c].data() + row;
    if (!kind.states_inside_chunk) {
      Row const* const wanted = history[s].plane(c, p);
      return plane != nullptr ? std::equal(plane, plane + n, wanted) : std::count(wanted, wanted + n, Row{}) == n;
    }
    for (Position q = std::max<Position>(0, p - n); q < p; ++q) {
      auto const words = static_cast<std::ptrdiff_t>(history[s].readable_words(c, q, p));
      if (words == 0) continue;
      Row const wanted = history[s].ring_row(c, q);
      if (plane == nullptr || !std::equal(wanted.begin(), wanted.begin() + words, plane[q % n].begin())) return false;
    }
    return true;
  }

  /// Runs a chunk, in the order of work that `Lists` names.
  void run(Books const& books, ModelBatch const& b, std::int32_t chunk, std::uint32_t seed) {
    random_.seed(seed);
    for (std::size_t c = 0; c < options.components.size(); ++c) run(books, b, chunk, c);
    for (std::size_t w = 0; w < storage.windows.size(); ++w) run_window(books, b, chunk, w);
    for_each_row(b, chunk, [&](std::int32_t, std::size_t s, Position p) {  // attention reads
      for (std::size_t w = 0; w < storage.windows.size(); ++w) {
        Position const window = options.windows[w].window;
        for (Position q = std::max<Position>(0, p + 1 - window); q <= p; ++q) {
          if (window_row(w, s, q) != history[s].window_row(w, q))
            fail_with("a query reads window rows that are gone", s, p);
        }
      }
    });
  }

  /// Leaves garbage in about half of all that a chunk may write.
  void tear(Books const& books, ModelBatch const& b, std::int32_t chunk, std::uint32_t seed) {
    random_.seed(seed);
    auto const spoil = [&](std::vector<Row>& rows, std::int64_t at) {
      if (at >= 0 && random_() % 2 == 0) rows[static_cast<std::size_t>(at)] = Row{0x6a12ba6e, 1, 2, 3};
    };
    for (std::size_t c = 0; c < options.components.size(); ++c) {
      Component const& kind = options.components[c];
      toy::Planned const p = planned(books, b, chunk, c);
      if (p.verdict != Verdict::accepted) return fail_with("a plan was refused or not filled", c, chunk);
      std::vector<Row>& rows = storage.planes[c];
      for (std::int32_t at : p.restore_destination) {
        for (std::int32_t r = 0; r < kind.geometry.rows && at >= 0; ++r) spoil(rows, at + r);
      }
      for (std::int32_t at : p.snapshot_destination) spoil(rows, at);
      for (std::int32_t at : p.persist_destination) spoil(rows, at);
      for (std::int64_t at : p.block_row) spoil(storage.caches[c], at);
      for_each_row(b, chunk, [&](std::int32_t, std::size_t s, Position) {
        std::int32_t const live = live_row(c, s, running[b.ticket.serial].live_place[s]);
        for (std::int32_t r = 0; r < kind.geometry.rows && !kind.states_inside_chunk; ++r) spoil(rows, live + r);
      });
    }
    for (std::size_t w = 0; w < storage.windows.size(); ++w) {
      toy::Planned const p = planned_window(books, b, chunk, w);
      if (p.verdict != Verdict::accepted) return fail_with("a window's plan was refused or not filled", w, chunk);
      for (std::int32_t at : p.restore_destination) spoil(storage.windows[w], at);
      for (std::int32_t at : p.snapshot_destination) spoil(storage.windows[w], at);
    }
    for_each_row(b, chunk, [&](std::int32_t, std::size_t s, Position p) {
      for (std::size_t w = 0; w < storage.windows.size(); ++w) {
        if (random_() % 2 == 0) window_row(w, s, p) = Row{0x6a12ba6e, 1, 2, 3};
      }
    });
  }

  /// What has no history is the engine's to copy when slots share a landing.
  void fork(std::size_t from, Position p, std::size_t to) {
    history[to] = history[from];
    history[to].truncate(p);
    for (std::size_t c = 0; c < maps.size(); ++c) {
      auto const stride = static_cast<std::ptrdiff_t>(maps[c].cache_slot_stride);
      auto const first = storage.caches[c].begin() + static_cast<std::ptrdiff_t>(maps[c].cache);
      std::copy_n(first + static_cast<std::ptrdiff_t>(from) * stride, stride,
                  first + static_cast<std::ptrdiff_t>(to) * stride);
    }
    for (std::size_t w = 0; w < storage.windows.size(); ++w) {
      auto const rows = static_cast<std::ptrdiff_t>(options.windows[w].rows);
      std::copy_n(storage.windows[w].begin() + static_cast<std::ptrdiff_t>(from) * rows, rows,
                  storage.windows[w].begin() + static_cast<std::ptrdiff_t>(to) * rows);
    }
  }

  void fail_with(char const* what, std::size_t s, Position p) {
    if (error.empty()) error = std::string(what) + ", slot " + std::to_string(s) + " at " + std::to_string(p);
  }

 private:
  template <class F>
  void for_each_row(ModelBatch const& b, std::int32_t chunk, F f) const {
    std::int32_t const begin = b.chunk_begin(chunk);
    for (std::int32_t i = begin; i < b.chunk_ends[static_cast<std::size_t>(chunk)]; ++i) {
      Slot const slot = b.row_slots[static_cast<std::size_t>(i)];
      if (slot.index < 0 || b.find(static_cast<std::size_t>(slot.index)) == nullptr) continue;  // padding
      f(i - begin, static_cast<std::size_t>(slot.index), b.positions[static_cast<std::size_t>(i)]);
    }
  }

  [[nodiscard]] toy::Planned planned(Books const& books, ModelBatch const& b, std::int32_t chunk, std::size_t c) const {
    Shape shape = books.worst_shape(options.max_chunk_rows, options.slots);
    if (!worst_) static_cast<void>(books.shape(b.ticket, chunk, shape));
    return toy::plan(books, b.ticket, chunk, static_cast<std::int32_t>(c), shape, maps[c]);
  }

  [[nodiscard]] toy::Planned planned_window(Books const& books, ModelBatch const& b, std::int32_t chunk,
                                            std::size_t w) const {
    Shape shape = books.worst_shape(options.max_chunk_rows, options.slots);
    if (!worst_) static_cast<void>(books.shape(b.ticket, chunk, shape));
    return toy::plan_window(books, b.ticket, chunk, static_cast<std::int32_t>(w), shape, window_maps[w]);
  }

  // The entries of a list in any order: a plan must not depend on it.
  [[nodiscard]] std::vector<std::size_t> any_order(std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  void run(Books const& books, ModelBatch const& b, std::int32_t chunk, std::size_t c) {
    Component const& kind = options.components[c];
    std::vector<Row>& rows = storage.planes[c];
    RowMap const& map = maps[c];
    toy::Planned const p = planned(books, b, chunk, c);
    if (p.verdict != Verdict::accepted) return fail_with("a plan was refused or not filled", c, chunk);
    for (std::size_t i : any_order(p.restore_destination.size())) {
      std::int32_t const to = p.restore_destination[i];
      std::int32_t const from = p.restore_source[i];
      if (defect_ == 1 && to >= 0 && ++restores_ % 7 == 0) continue;
      for (std::int32_t r = 0; r < kind.geometry.rows && to >= 0; ++r) {
        rows[static_cast<std::size_t>(to + r)] = from < 0 ? Row{} : rows[static_cast<std::size_t>(from + r)];
      }
    }
    for_each_row(b, chunk, [&](std::int32_t i, std::size_t s, Position at) {
      if (kind.states_inside_chunk) {
        rows[static_cast<std::size_t>(map.fresh + i)] = history[s].ring_row(c, at);
        return;
      }
      std::int32_t const live = live_row(c, s, running[b.ticket.serial].live_place[s]);
      toy::advance(kind, History::salt(c), history[s].token(at), at, rows.data() + live);
      if (!holds(c, s, live, at + 1)) fail_with("a row left another state than it must", s, at);
    });
    if (kind.states_inside_chunk) emit(b, chunk, c, p);
    toy::copy_rows(rows, p.snapshot_source, p.snapshot_destination, any_order(p.snapshot_source.size()));
    for (std::size_t i : any_order(p.persist_destination.size())) {
      std::int32_t const to = p.persist_destination[i];
      if (to >= 0 && p.persist_source[i] < 0) return fail_with("a row is persisted from nowhere", c, chunk);
      if (to >= 0) rows[static_cast<std::size_t>(to)] = rows[static_cast<std::size_t>(map.fresh + p.persist_source[i])];
    }
  }

  void run_window(Books const& books, ModelBatch const& b, std::int32_t chunk, std::size_t w) {
    std::vector<Row>& rows = storage.windows[w];
    toy::Planned const p = planned_window(books, b, chunk, w);
    if (p.verdict != Verdict::accepted) return fail_with("a window's plan was refused or not filled", w, chunk);
    for (std::size_t i : any_order(p.restore_destination.size())) {
      std::int32_t const to = p.restore_destination[i];
      if (defect_ == 2 && to >= 0 && ++restores_ % 7 == 0) continue;
      if (to >= 0) rows[static_cast<std::size_t>(to)] = rows[static_cast<std::size_t>(p.restore_source[i])];
    }
    for_each_row(b, chunk, [&](std::int32_t, std::size_t s, Position at) {
      window_row(w, s, at) = history[s].window_row(w, at);
    });
    toy::copy_rows(rows, p.snapshot_source, p.snapshot_destination, any_order(p.snapshot_source.size()));
  }

  void emit(ModelBatch const& b, std::int32_t chunk, std::size_t c, toy::Planned const& p) {
    rollback::RowGeometry const& g = options.components[c].geometry;
    auto const read = [&](std::int32_t row) {
      return row < 0 || row == maps[c].empty ? nullptr : &storage.planes[c][static_cast<std::size_t>(row)];
    };
    auto const block = static_cast<std::size_t>(g.block);
    for (std::size_t i = 0; i < p.block_row.size(); ++i) {
      std::vector<Row const*> previous, current;
      for (std::size_t j = i * block; j < (i + 1) * block; ++j) {
        if (g.overlap) previous.push_back(read(p.block_previous[j]));
        current.push_back(read(p.block_current[j]));
      }
      std::int64_t const to = p.block_row[i];
      if (to >= 0) storage.caches[c][static_cast<std::size_t>(to)] = toy::block_of(previous, current, g.overlap);
    }
    for_each_row(b, chunk, [&](std::int32_t i, std::size_t s, Position at) {  // attention reads the cache
      std::int64_t const visible = p.visible[static_cast<std::size_t>(i)];
      if (visible != (g.block > 0 ? (at + 1) / g.block : 0)) return fail_with("the visible blocks", s, at);
      if (visible == 0) return;
      std::int64_t const last = maps[c].cache + static_cast<Position>(s) * maps[c].cache_slot_stride + visible - 1;
      if (storage.caches[c][static_cast<std::size_t>(last)] !=
          history[s].blocks(c)[static_cast<std::size_t>(visible - 1)]) {
        fail_with("a visible block", s, at);
      }
    });
  }

  std::mt19937 random_;
  std::uint32_t defect_;
  std::uint32_t restores_ = 0;
  bool worst_;
};

}  // namespace model
