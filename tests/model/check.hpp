// What must agree after every step: the books with the model, and the engine's bytes with a record of all states.
#pragma once

#include "engine.hpp"
#include "model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace model {

inline bool same(Landing const& is, Landing const& wanted) {
  return is.position == wanted.position && is.replay == wanted.replay && is.warm_up == wanted.warm_up &&
         is.tier == wanted.tier && is.why == wanted.why && is.limited_by == wanted.limited_by;
}

class Checker {
 public:
  explicit Checker(Books const& books) : probe_(books), sources_(static_cast<std::size_t>(books.slots())) {}

  /// Empty where all agrees, else what differs first. Slots that the step did not touch need no new probes.
  std::string check(Books const& books, Model const& m, Engine const& e, std::vector<bool> const& touched) {
    if (!e.error.empty()) return e.error;
    for (std::size_t s = 0; s < m.slots.size(); ++s) {
      std::string const wrong = check(books, m, e, s, touched[s]);
      if (!wrong.empty()) return "slot " + std::to_string(s) + ": " + wrong;
    }
    return "";
  }

 private:
  struct Source {
    Position landing;
    std::vector<std::int32_t> row;                       // [components] of the plane that a restore reads; -1: empty
    std::vector<std::vector<std::int32_t>> window_rows;  // [windows] of those below the landing, in rising order
  };

  std::string check(Books const& books, Model const& m, Engine const& e, std::size_t s, bool touched) {
    Slot const slot = books.slot(static_cast<std::int32_t>(s));
    Position const tip = m.slots[s].tip;
    if (m.known(slot) != Verdict::accepted) return "the generation";
    if (books.tip(slot) != tip) return differs("the tip", books.tip(slot), tip);
    if (books.head(slot) != m.head(s)) return differs("the head", books.head(slot), m.head(s));
    if (books.is_armed(slot) != m.armed(s)) return differs("armed", books.is_armed(slot), m.armed(s));
    bool const in_flight = m.in_flight(s);
    if (touched) {
      std::string const wrong = check_listing(books, m, slot, s);
      if (!wrong.empty()) return wrong;
      sources_[s].clear();
      for (Position p : listing_) {
        if (in_flight || (p == tip && !m.armed(s))) continue;
        std::string const bad = probe(books, e, slot, s, p);
        if (!bad.empty()) return bad;
      }
      if (m.armed(s) && !in_flight && (listing_.empty() || listing_.back() != tip)) {
        std::string const bad = probe(books, e, slot, s, tip);
        if (!bad.empty()) return bad;
      }
    }
    for (Source const& source : sources_[s]) {
      for (std::size_t c = 0; c < source.row.size(); ++c) {
        if (!e.holds(c, s, source.row[c], source.landing)) {
          return at("the kept state of component " + std::to_string(c), source.landing);
        }
      }
    }
    for (std::size_t w = 0; w < e.storage.windows.size() && !in_flight; ++w) {
      Position const window = m.options.windows[w].window;
      Position const from = e.window_from(w, s, tip);
      if (!m.window_armed(s, w) && tip - (window - 1) < from && from > 0) return at("the window rows at the tip", tip);
      for (Source const& source : sources_[s]) {
        Position q = m.rows_from(w, source.landing);
        for (std::int32_t row : source.window_rows[w]) {
          if (e.storage.windows[w][static_cast<std::size_t>(row)] != e.history[s].window_row(w, q++)) {
            return at("the window rows of a landing: that of " + std::to_string(q - 1), source.landing);
          }
        }
      }
    }
    for (std::size_t c = 0; c < e.maps.size(); ++c) {
      bool const reset = !m.options.components[c].states_inside_chunk && m.is_empty(c, tip);  // by the next chunk
      if (!in_flight && !m.armed(s) && tip > 0 && !reset &&
          !e.holds(c, s, e.live_row(c, s, books.live_place(slot)), tip)) {
        return at("the live state of component " + std::to_string(c), tip);
      }
      std::vector<Row> const& blocks = e.history[s].blocks(c);
      if (blocks.empty()) continue;
      auto const n = static_cast<std::ptrdiff_t>(tip / m.options.components[c].geometry.block);
      auto const first = e.storage.caches[c].begin() + static_cast<std::ptrdiff_t>(e.maps[c].cache) +
                         static_cast<std::ptrdiff_t>(s) * static_cast<std::ptrdiff_t>(e.maps[c].cache_slot_stride);
      if (!std::equal(blocks.begin(), blocks.begin() + n, first)) return at("an emitted block", tip);
    }
    return "";
  }

  std::string check_listing(Books const& books, Model const& m, Slot slot, std::size_t s) {
    Position const tip = m.slots[s].tip;
    listing_ = m.listed(s);
    auto const n = static_cast<std::int32_t>(listing_.size());
    std::vector<Landing> landings(listing_.size() + 64);
    std::int32_t const count = books.landings(slot, landings.data(), static_cast<std::int32_t>(landings.size()));
    for (std::int32_t i = 0; i < std::min(n, count); ++i) {
      Landing const& l = landings[static_cast<std::size_t>(i)];
      Position const wanted = listing_[static_cast<std::size_t>(i)];
      if (l.position != wanted) return differs("a listed landing", l.position, wanted);
      if (l.tier != m.tier_at(s, wanted)) {
        return at(std::string("the tier of a landing is ") + text(l.tier) + ", not " + text(m.tier_at(s, wanted)),
                  wanted);
      }
    }
    if (count != n) return differs("how many landings", count, n);
    Position const reach = n > 0 ? listing_.front() : tip;
    if (books.reach(slot) != reach) return differs("the reach", books.reach(slot), reach);
    for (Position p = -1; p <= tip + 1; ++p) {
      Landing const wanted = m.nearest(slot, p);
      if (!same(books.nearest(slot, p), wanted)) return at("nearest", p);
      if (books.is_pinned(slot, p) != (p > 0 && m.pinned(s, p, false))) return at("is_pinned", p);
    }
    return "";
  }

  // Goes back on a copy of the books, to learn which rows the restore of the next chunk would read.
  std::string probe(Books const& books, Engine const& e, Slot slot, std::size_t s, Position p) {
    probe_ = books;
    if (probe_.roll_back(slot, p) != Verdict::accepted) return at("roll_back to a landing", p);
    std::int32_t const one = 1;
    Ticket t;
    Batch const next{&slot, &p, 1, &one, 1, nullptr, 0};
    Verdict verdict = probe_.begin(next, t);
    if (verdict == Verdict::too_many_in_flight) {  // the model's twin of this is the walk's
      for (std::int32_t i = 0; i < probe_.slots(); ++i) {
        Slot other = probe_.slot(i);
        if (other.index != slot.index && probe_.head(other) != probe_.tip(other))
          static_cast<void>(probe_.clear(other));
      }
      verdict = probe_.begin(next, t);
    }
    if (verdict == Verdict::beyond_context) return "";
    if (verdict != Verdict::accepted) return at("a batch after a landing", p);
    Source source{p, {}, {}};
    for (std::size_t c = 0; c < e.maps.size(); ++c) {
      auto const component = static_cast<std::int32_t>(c);
      Shape shape;
      if (probe_.shape(t, 0, shape) != Verdict::accepted) return at("the shape after a landing", p);
      rollback::Lists lists;
      std::int32_t from[16], to[16];
      if (probe_.lengths(component, shape).restores > 16) return at("the restores after a landing", p);
      lists.restore_source = from;
      lists.restore_destination = to;
      if (probe_.plan(t, 0, component, shape, e.maps[c], lists) != Verdict::accepted) return at("the plan after", p);
      std::int32_t const live = e.live_row(c, s, probe_.live_place(slot));
      source.row.push_back(-1);
      for (std::int32_t i = 0; i < lists.restores; ++i) {
        if (to[i] == live) source.row[c] = from[i] == e.maps[c].reset ? -1 : from[i];
      }
    }
    for (std::size_t w = 0; w < e.window_maps.size(); ++w) {
      std::string const wrong = probe_window(e, t, s, p, w, source);
      if (!wrong.empty()) return wrong;
    }
    sources_[s].push_back(source);
    return "";
  }

  // The rows of a window that the next chunk's queries read: in the ring, or where it copies them from.
  std::string probe_window(Engine const& e, Ticket const& t, std::size_t s, Position p, std::size_t w, Source& source) {
    auto const window = static_cast<std::int32_t>(w);
    RowMap const& map = e.window_maps[w];
    Shape shape;
    static_cast<void>(probe_.shape(t, 0, shape));
    toy::Planned const planned = toy::plan_window(probe_, t, 0, window, shape, map);
    if (planned.verdict != Verdict::accepted) return at("a window's plan after", p);
    std::vector<std::int32_t>& rows = source.window_rows.emplace_back();
    rollback::Window const& kind = probe_.window(window);
    for (Position q = std::max<Position>(0, p - (kind.window - 1)); q < p; ++q) {
      auto const ring = static_cast<std::int32_t>(map.live + static_cast<Position>(s) * kind.rows + q % kind.rows);
      auto const copy = std::find(planned.restore_destination.begin(), planned.restore_destination.end(), ring);
      bool const copied = copy != planned.restore_destination.end();
      rows.push_back(
          copied ? planned.restore_source[static_cast<std::size_t>(copy - planned.restore_destination.begin())] : ring);
    }
    return "";
  }

  static std::string at(std::string const& what, Position p) { return what + " at " + std::to_string(p); }
  static std::string differs(char const* what, Position is, Position wanted) {
    return std::string(what) + " is " + std::to_string(is) + ", not " + std::to_string(wanted);
  }

  Books probe_;
  std::vector<Position> listing_;
  std::vector<std::vector<Source>> sources_;  // [slots] where each landing's state is, in rising order
};

}  // namespace model
