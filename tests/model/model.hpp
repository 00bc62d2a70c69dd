// The model: what every call must answer and where every slot can go, worked out naively from sets of positions.
#pragma once

#include "case.hpp"
#include "kept_states.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace model {

struct ModelPin {
  enum class Phase : std::uint8_t { wanted, staged, kept, leaving };
  Position position;
  Phase phase;
  std::uint32_t batch;  // the serial of the one that keeps it
  bool rows = false;    // it keeps the window rows below it as well
};

struct OpenRows {
  std::size_t slot;
  Rows rows;
  std::int32_t unverified;
  std::vector<std::int32_t> chunk;  // of each row
  bool copied;                      // the batch advances a copy of the plane at entry
  std::vector<Position> lowest_before;
  std::vector<bool> restored;              // a window: whether the batch copies its rows out of a pin first
  std::vector<std::vector<Write>> writes;  // [tiers]

  [[nodiscard]] std::int32_t chunk_of(Position p) const { return chunk[static_cast<std::size_t>(p - rows.begin)]; }
};

struct ModelBatch {
  Ticket ticket;
  std::vector<Slot> row_slots;
  std::vector<Position> positions;
  std::vector<std::int32_t> chunk_ends;
  std::vector<OpenRows> slots;  // those that are still open
  std::int32_t settled = 0;

  [[nodiscard]] std::int32_t chunks() const { return static_cast<std::int32_t>(chunk_ends.size()); }
  [[nodiscard]] std::int32_t chunk_begin(std::int32_t k) const {
    return k == 0 ? 0 : chunk_ends[static_cast<std::size_t>(k - 1)];
  }
  [[nodiscard]] OpenRows const* find(std::size_t slot) const {
    for (OpenRows const& o : slots) {
      if (o.slot == slot) return &o;
    }
    return nullptr;
  }
};

struct ModelSlot {
  Position tip = 0;
  bool live_known = true;  // the live plane holds the state at the tip, or will once open batches are accepted
  std::uint32_t generation = 1;
  std::vector<ModelPin> pins;
  std::vector<Position> lowest;  // a window: the oldest position whose raw row exists
};

class Model {
 public:
  explicit Model(BooksOptions const& o) : options(o) {
    slots.resize(static_cast<std::size_t>(o.slots));
    for (ModelSlot& s : slots) s.lowest.assign(o.windows.size(), 0);
    per_token = o.components.empty() ? o.max_rows : INT32_MAX;
    for (std::size_t c = 0; c < o.components.size(); ++c) {
      Component const& kind = o.components[c];
      rollback::Places const p = rollback::places(kind, o.entry_copy, o.steps_in_flight, o.pins);
      per_token = std::min(per_token, kind.per_token);
      by_token.push_back(-1);
      aligned.push_back(-1);
      if (kind.per_token > 0) {
        by_token[c] = static_cast<int>(tiers.size());
        tiers.emplace_back(o.slots, 1, p.per_token, p.per_token_spares);
      }
      if (kind.aligned > 0) {
        aligned[c] = static_cast<int>(tiers.size());
        tiers.emplace_back(o.slots, kind.quantum, p.aligned, p.aligned_spares);
      }
    }
  }

  BooksOptions options;
  std::vector<ModelSlot> slots;
  std::deque<ModelBatch> batches;  // oldest first
  std::int32_t per_token;
  std::vector<int> by_token, aligned;  // a component: its tiers, or -1
  std::vector<KeptStates> tiers;

  // ---- where slots are and can go ----------------------------------------------------------------------------------

  [[nodiscard]] Verdict known(Slot slot) const {
    if (slot.index < 0 || slot.index >= options.slots) return Verdict::unknown_slot;
    bool const live = slot.generation == slots[static_cast<std::size_t>(slot.index)].generation;
    return live ? Verdict::accepted : Verdict::stale_slot;
  }
  [[nodiscard]] bool in_flight(std::size_t s) const {
    return std::any_of(batches.begin(), batches.end(), [s](ModelBatch const& b) { return b.find(s) != nullptr; });
  }
  [[nodiscard]] Position head(std::size_t s) const {
    Position end = slots[s].tip;
    for (ModelBatch const& b : batches) {
      if (OpenRows const* const o = b.find(s)) end = o->rows.end;
    }
    return end;
  }
  [[nodiscard]] bool armed(std::size_t s) const { return slots[s].tip > 0 && !slots[s].live_known; }

  [[nodiscard]] bool ring_covers(std::size_t s, std::size_t w, Position p) const {
    return slots[s].lowest[w] <= rows_from(w, p);
  }
  /// The same, but for rows that an open batch has yet to copy into the ring.
  [[nodiscard]] bool covers(std::size_t s, std::size_t w, Position p) const {
    for (ModelBatch const& b : batches) {
      OpenRows const* const o = b.find(s);
      if (o == nullptr) continue;
      if (o->restored[w] && o->chunk.front() >= b.settled && p <= slots[s].tip) return false;
      break;
    }
    return ring_covers(s, w, p);
  }
  /// The first of the rows that a query at `p` reads below itself.
  [[nodiscard]] Position rows_from(std::size_t w, Position p) const {
    return std::max<Position>(0, p - (options.windows[w].window - 1));
  }
  [[nodiscard]] bool covered(std::size_t s, Position p) const {
    for (std::size_t w = 0; w < options.windows.size(); ++w) {
      if (!covers(s, w, p)) return false;
    }
    return true;
  }
  [[nodiscard]] bool is_empty(std::size_t c, Position p) const {
    return options.components[c].empty_at > 0 && p % options.components[c].empty_at == 0;
  }
  [[nodiscard]] bool tier_has(int tier, std::size_t s, Position p) const {
    return tier >= 0 && tiers[static_cast<std::size_t>(tier)].has(s, p);
  }
  [[nodiscard]] bool tier_serves(int tier, std::size_t s, Position p) const {
    return tier >= 0 && tiers[static_cast<std::size_t>(tier)].serves(s, p);
  }
  /// Whether a component lists the state at `p`.
  [[nodiscard]] bool serves(std::size_t c, std::size_t s, Position p) const {
    return is_empty(c, p) || tier_serves(by_token[c], s, p) || tier_serves(aligned[c], s, p);
  }
  [[nodiscard]] bool pinned(std::size_t s, Position p, bool or_leaving) const {
    return std::any_of(slots[s].pins.begin(), slots[s].pins.end(), [&](ModelPin const& pin) {
      return pin.position == p &&
             (pin.phase == ModelPin::Phase::kept || (or_leaving && pin.phase == ModelPin::Phase::leaving));
    });
  }
  /// Whether a pin keeps the window rows below `p`.
  [[nodiscard]] bool pin_has_rows(std::size_t s, Position p) const {
    return pinned(s, p, true) && std::any_of(slots[s].pins.begin(), slots[s].pins.end(),
                                             [p](ModelPin const& pin) { return pin.position == p && pin.rows; });
  }
  /// Whether the next batch copies the rows of a window at the tip out of a pin.
  [[nodiscard]] bool window_armed(std::size_t s, std::size_t w) const {
    return armed(s) && !in_flight(s) && !covers(s, w, slots[s].tip);
  }
  /// Whether every component has the state at `p`, in a tier or a pin, or is empty there.
  [[nodiscard]] bool all_kept(std::size_t s, Position p) const {
    for (std::size_t c = 0; c < options.components.size(); ++c) {
      if (!is_empty(c, p) && !tier_has(by_token[c], s, p) && !tier_has(aligned[c], s, p) && !pinned(s, p, true)) {
        return false;
      }
    }
    return true;
  }
  /// Whether `p` is a landing, apart from being the tip.
  [[nodiscard]] bool lands(std::size_t s, Position p) const { return p == 0 || limit(s, p) < 0; }
  /// The first component, or components + window, that keeps the slot from `p`; -1: nothing does.
  [[nodiscard]] std::int32_t limit(std::size_t s, Position p) const {
    bool const is_pinned = pinned(s, p, false);
    if (is_pinned && (covered(s, p) || pin_has_rows(s, p))) return -1;
    auto const components = static_cast<std::int32_t>(options.components.size());
    for (std::int32_t c = 0; c < components && !is_pinned; ++c) {
      if (!serves(static_cast<std::size_t>(c), s, p)) return c;
    }
    for (std::size_t w = 0; w < options.windows.size(); ++w) {
      if (!covers(s, w, p)) return components + static_cast<std::int32_t>(w);
    }
    return -1;
  }
  [[nodiscard]] Position floor(std::size_t s, Position p) const {
    while (!lands(s, p)) --p;
    return p;
  }
  [[nodiscard]] Tier tier_at(std::size_t s, Position p) const {
    if (p == 0) return Tier::start;
    if (!covered(s, p)) return Tier::pin;
    Tier coarsest = Tier::tip;
    for (std::size_t c = 0; c < options.components.size(); ++c) {
      bool const token = tier_has(by_token[c], s, p);
      if (!token && !is_empty(c, p) && !tier_has(aligned[c], s, p)) return Tier::pin;
      if (!token) coarsest = Tier::aligned;
      if (token && coarsest == Tier::tip) coarsest = Tier::per_token;
    }
    return coarsest;
  }
  [[nodiscard]] Landing nearest(Slot slot, Position wanted) const {
    Landing l;
    l.why = known(slot);
    if (l.why != Verdict::accepted) return l;
    auto const s = static_cast<std::size_t>(slot.index);
    Position const tip = slots[s].tip;
    if (in_flight(s)) {
      l.why = Verdict::in_flight;
    } else if (wanted < 0) {
      l.position = 0;
      l.tier = Tier::start;
      l.why = Verdict::negative_position;
    } else if (wanted >= tip) {
      l.position = tip;
      l.tier = tip == 0 ? Tier::start : Tier::tip;
      l.replay = wanted - tip;
      if (wanted > tip) l.why = Verdict::ahead_of_tip;
    } else {
      l.position = floor(s, wanted);
      l.replay = wanted - l.position;
      l.tier = tier_at(s, l.position);
      if (l.position < wanted) {
        l.limited_by = limit(s, wanted);
        l.why = why_not(s, wanted, l.limited_by);
      }
    }
    return l;
  }
  [[nodiscard]] std::vector<Position> listed(std::size_t s) const {
    std::vector<Position> out;
    for (Position p = 1; p <= slots[s].tip; ++p) {
      if (lands(s, p)) out.push_back(p);
    }
    return out;
  }

  /// The positions inside (from, end) at which a chunk must end.
  [[nodiscard]] bool must_cut(std::size_t s, Position q, Position from, Position end) const {
    bool in_place = false;
    for (Component const& c : options.components) {
      if (c.states_inside_chunk) continue;
      in_place = true;
      if (c.per_token > 0 && q >= end - c.per_token) return true;
      if (c.aligned > 0 && q % c.quantum == 0) return true;
    }
    return in_place && q > from && std::any_of(slots[s].pins.begin(), slots[s].pins.end(), [q](ModelPin const& pin) {
             return pin.position == q && pin.phase == ModelPin::Phase::wanted;
           });
  }
  [[nodiscard]] Position next_cut(std::size_t s, Position from, Position end) const {
    Position q = from + 1;
    while (q < end && !must_cut(s, q, from, end)) ++q;
    return std::min(q, end);
  }

  // ---- what changes them -------------------------------------------------------------------------------------------

  void land(std::size_t s, Position p) {
    slots[s].tip = p;
    // With younger batches open nothing was taken back: what they may have overwritten is still lost.
    for (Position& lowest : slots[s].lowest) lowest = in_flight(s) ? lowest : std::min(lowest, p);
    for (KeptStates& t : tiers) t.land(s, p);
    bool const is_armed = armed(s);
    remove_pins(s, [&](ModelPin const& pin) {
      return (pin.phase == ModelPin::Phase::kept && pin.position > p) ||
             (pin.phase == ModelPin::Phase::leaving && !(is_armed && pin.position == p));
    });
  }
  void roll_back(std::size_t s, Position p) {
    if (p == slots[s].tip) return;
    slots[s].live_known = false;
    land(s, p);
  }
  void clear(std::size_t s) {
    abandon(s);
    slots[s].pins.clear();
    for (KeptStates& t : tiers) t.clear(s);
    slots[s].live_known = true;
    land(s, 0);
    ++slots[s].generation;
  }
  void fork(std::size_t from, Position p, std::size_t to) {
    clear(to);
    for (KeptStates& t : tiers) t.fork(from, to, p);
    for (ModelPin const& pin : slots[from].pins) {
      bool const there = pin.phase == ModelPin::Phase::kept || pin.phase == ModelPin::Phase::leaving;
      if (there && pin.position <= p) slots[to].pins.push_back(pin);
    }
    slots[to].lowest = slots[from].lowest;
    slots[to].live_known = false;
    land(to, p);
  }
  [[nodiscard]] bool has_pin(std::size_t s, Position p) const {
    return std::any_of(slots[s].pins.begin(), slots[s].pins.end(),
                       [p](ModelPin const& pin) { return pin.position == p && pin.phase != ModelPin::Phase::leaving; });
  }
  /// Whether every component is empty at `p`.
  [[nodiscard]] bool all_empty(Position p) const {
    for (std::size_t c = 0; c < options.components.size(); ++c) {
      if (!is_empty(c, p)) return false;
    }
    return true;
  }
  /// Lists a state that is brought in the tiers that have a place for it, if all components can have one.
  bool adopt(std::size_t s, Position q) {
    for (std::size_t c = 0; c < options.components.size(); ++c) {
      auto const takes = [&](int tier) {
        if (tier < 0) return false;
        KeptStates const& t = tiers[static_cast<std::size_t>(tier)];
        return t.fits(q, slots[s].tip) && t.has_room(s, q);
      };
      if (!is_empty(c, q) && !takes(by_token[c]) && !takes(aligned[c])) return false;
    }
    for (KeptStates& t : tiers) {
      if (t.fits(q, slots[s].tip) && t.has_room(s, q)) t.adopt(s, q);
    }
    return true;
  }
  struct Saved {
    Position position;
    bool pinned;
    bool rows;     // a pin has the window rows below it
    bool covered;  // the rings have them
  };
  /// What a save at `p` of a slot names, newest first.
  [[nodiscard]] std::vector<Saved> saved(std::size_t s, Position p) const {
    std::vector<Saved> out;
    auto const add = [&](Position q) {
      bool const rows = !options.windows.empty() && has_pin(s, q) && pin_has_rows(s, q);
      out.push_back({q, has_pin(s, q), rows, covered(s, q)});
    };
    if (p > 0 && has_pin(s, p)) add(p);
    for (Position q = p - 1; q > 0; --q) {
      if (lands(s, q) && (has_pin(s, q) || !all_empty(q))) add(q);
    }
    return out;
  }
  void load(std::size_t s, Position p, std::vector<Saved> const& landings, bool as_landing) {
    clear(s);
    if (p == 0) return;
    slots[s].tip = p;
    slots[s].live_known = !as_landing;
    Position oldest = p;
    for (Saved const& landing : landings) oldest = landing.covered ? landing.position : oldest;
    for (std::size_t w = 0; w < options.windows.size(); ++w) {
      rollback::Window const& window = options.windows[w];
      slots[s].lowest[w] = std::max<Position>({0, oldest - (window.window - 1), p - window.rows});
    }
    auto const add_pin = [&](Position q, bool rows, bool at_hand) {
      if (static_cast<std::int32_t>(slots[s].pins.size()) == options.pins) return false;
      bool const wanted = at_hand && options.pin_windows && !options.windows.empty() && !rows;
      slots[s].pins.push_back(
          {q, wanted ? ModelPin::Phase::wanted : ModelPin::Phase::kept, 0, rows && options.pin_windows});
      return true;
    };
    if (as_landing && !add_pin(p, true, false)) adopt(s, p);
    bool const pinned = !landings.empty() && landings.front().position == p;
    if (!as_landing && pinned) add_pin(p, landings.front().rows, true);
    for (Saved const& landing : landings) {
      bool const there = covered(s, landing.position);
      if (landing.position == p || (!there && !(landing.rows && options.pin_windows))) continue;
      bool const in_tiers = there && adopt(s, landing.position);
      if (landing.pinned) add_pin(landing.position, landing.rows, in_tiers);
    }
  }
  [[nodiscard]] Verdict pin(Slot slot, Position p) {
    if (known(slot) != Verdict::accepted) return known(slot);
    if (p < 0) return Verdict::negative_position;
    auto const s = static_cast<std::size_t>(slot.index);
    std::vector<ModelPin>& pins = slots[s].pins;
    auto const old = std::find_if(pins.begin(), pins.end(), [p](ModelPin const& x) { return x.position == p; });
    if (p == 0 || (old != pins.end() && old->phase != ModelPin::Phase::leaving)) return Verdict::accepted;
    if (options.max_context > 0 && p > options.max_context) return Verdict::beyond_context;
    if (in_flight(s) && p <= head(s)) return Verdict::in_flight;
    if (!in_flight(s)) {
      Verdict const why = nearest(slot, p).why;
      if (why != Verdict::accepted && why != Verdict::ahead_of_tip) return why;
    }
    if (old != pins.end()) {
      old->phase = ModelPin::Phase::kept;
      return Verdict::accepted;
    }
    if (static_cast<std::int32_t>(pins.size()) == options.pins) return Verdict::no_free_pin;
    pins.push_back({p, ModelPin::Phase::wanted, 0});
    return Verdict::accepted;
  }
  [[nodiscard]] Verdict unpin(Slot slot, Position p) {
    if (known(slot) != Verdict::accepted) return known(slot);
    auto const s = static_cast<std::size_t>(slot.index);
    for (ModelPin& pin : slots[s].pins) {
      if (pin.position != p || pin.phase == ModelPin::Phase::leaving) continue;
      if (in_flight(s) && pin.phase != ModelPin::Phase::wanted) return Verdict::in_flight;
      if (pin.phase == ModelPin::Phase::kept && armed(s) && slots[s].tip == p) {
        pin.phase = ModelPin::Phase::leaving;
      } else {
        remove_pins(s, [p](ModelPin const& x) { return x.position == p; });
      }
      return Verdict::accepted;
    }
    return Verdict::unknown_pin;
  }

  template <class F>
  void remove_pins(std::size_t s, F f) {
    std::vector<ModelPin>& pins = slots[s].pins;
    pins.erase(std::remove_if(pins.begin(), pins.end(), f), pins.end());
  }

  /// Closes the slot in one batch, whose rows ran as `what_ran` says of the row that writes a state.
  template <class WhatRan>
  void close(ModelBatch& b, std::size_t s, Position limit, WhatRan what_ran) {
    OpenRows const o = *b.find(s);
    for (std::size_t t = 0; t < tiers.size(); ++t) {
      tiers[t].close(s, o.rows, o.writes[t], limit,
                     [&](Position q) { return what_ran(std::max(q - 1, o.rows.begin)); });
    }
    for (ModelPin& pin : slots[s].pins) {
      if (pin.phase != ModelPin::Phase::staged || pin.batch != b.ticket.serial) continue;
      Position const p = std::max(pin.position, o.rows.begin);  // older ones are copied with the first row
      bool const ran = what_ran(std::max(p - 1, o.rows.begin)) == Ran::whole;
      pin.phase = ran && p <= std::max(limit, o.rows.begin) ? ModelPin::Phase::kept : ModelPin::Phase::wanted;
      pin.rows = options.pin_windows;
    }
    b.slots.erase(std::find_if(b.slots.begin(), b.slots.end(), [s](OpenRows const& x) { return x.slot == s; }));
  }
  void forget_closed() {
    batches.erase(std::remove_if(batches.begin(), batches.end(), [](ModelBatch const& b) { return b.slots.empty(); }),
                  batches.end());
  }
  void abandon(std::size_t s) {
    for (ModelBatch& b : batches) {
      if (b.find(s) != nullptr) close(b, s, slots[s].tip, [](Position) { return Ran::torn; });
    }
    forget_closed();
  }

  [[nodiscard]] Verdict why_not(std::size_t s, Position p, std::int32_t limited_by) const {
    if (limited_by >= static_cast<std::int32_t>(options.components.size())) return Verdict::window_not_covered;
    Component const& c = options.components[static_cast<std::size_t>(limited_by)];
    bool const kept_once = p >= slots[s].tip - c.per_token || (c.aligned > 0 && p % c.quantum == 0);
    bool const has_lattice = c.aligned > 0 || c.empty_at > 0;
    return kept_once || !has_lattice ? Verdict::beyond_reach : Verdict::not_a_boundary;
  }
};

}  // namespace model
