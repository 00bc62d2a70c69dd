// States whose bytes the engine reads or writes itself: where they are, and how they are taken up.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

inline Position Books::oldest_row(Slot slot, std::int32_t window) const noexcept {
  if (known(slot) != Verdict::accepted || window < 0 || window >= windows()) return -1;
  return guards_[static_cast<std::size_t>(window)].lowest(slot.index);
}

// Whether what is kept at p, or at the tip, stands still where it is.
inline Verdict Books::can_read(std::int32_t slot, Position p) const noexcept {
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot)];
  if (p < 0) return Verdict::negative_position;
  if (p > s.tip) return Verdict::ahead_of_tip;
  if (s.pending > 0 || (p == s.tip && s.open > 0)) return Verdict::in_flight;
  Floor const floor = p < s.tip ? joint_floor(slot, p) : Floor{p, -1};  // an armed tip may be no landing any more
  return floor.position == p ? Verdict::accepted : why_not(s.tip, p, floor.limited_by);
}

inline Verdict Books::state_at(Slot slot, Position p, std::int32_t component, RowMap const& map,
                               StatePlaces& out) const noexcept {
  out = {};
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  if (component < 0 || component >= components()) return Verdict::unknown_component;
  Verdict const there = can_read(slot.index, p);
  Position const empty_at = this->component(component).empty_at;
  if (there != Verdict::accepted || p == 0 || (empty_at > 0 && p % empty_at == 0)) return there;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  if (p == s.tip && !armed(s)) {
    out.rows[out.count++] =
        map.live + std::int64_t{slot.index} * map.live_slot_stride + std::int64_t{s.live_place} * map.live_place_stride;
  }
  KeptPlace places[max_kept_places];
  std::int32_t const kept = kept_places(component, slot.index, p, places);
  for (std::int32_t i = 0; i < kept; ++i) out.rows[out.count++] = kept_row(map, places[i]);
  return Verdict::accepted;
}

inline Verdict Books::window_at(Slot slot, Position p, std::int32_t window, RowMap const& map,
                                WindowRows& out) const noexcept {
  out = {};
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  if (window < 0 || window >= windows()) return Verdict::unknown_window;
  Verdict const there = can_read(slot.index, p);
  if (there != Verdict::accepted) return there;
  if (p >= lowest_covered(slot.index, window)) {
    out.ring = map.live + std::int64_t{slot.index} * map.live_slot_stride;
  }
  std::int32_t const page = p > 0 ? pins_.rows_page_of(slot.index, p) : -1;
  if (page >= 0) {
    out.pin = map.kept + std::int64_t{page / pins()} * map.kept_slot_stride +
              std::int64_t{page % pins()} * map.kept_place_stride;
  }
  return Verdict::accepted;
}

inline Verdict Books::adopt(Slot slot, Position p, Adopt where, Position const* oldest_rows) noexcept {
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  SlotState& s = slot_states_[static_cast<std::size_t>(slot.index)];
  if (s.open > 0) return Verdict::in_flight;
  if (p < 0) return Verdict::negative_position;
  if (p > end_of_context()) return Verdict::beyond_context;
  if (where == Adopt::live && p < s.tip) return Verdict::position_repeated;
  if (p == 0) return Verdict::accepted;
  Position const tip = std::max(p, s.tip);
  detail::Pin* pin = nullptr;
  bool const rows = where == Adopt::pin_with_rows && pin_windows_;
  if (where == Adopt::pin || where == Adopt::pin_with_rows) {
    pin = pins_.find(slot.index, p);
    if (pin != nullptr && pin->holds_state()) {
      pin->phase = detail::Pin::Phase::kept;
      pin->rows = pin->rows || rows;
    }
    if (pin == nullptr) pin = pins_.find_free(slot.index);
    if (pin == nullptr || (!pin->holds_state() && !pins_.writable(*pin))) return Verdict::no_free_pin;
  }
  auto const has_room = [&](detail::TierTable const& tier) { return tier.has_room(slot.index, p, s.tip); };
  if (where == Adopt::tiers) {
    Verdict const kept = tiers_take(p, tip, has_room);
    if (kept != Verdict::accepted) {
      return pages_ > 0 && tiers_keep(p, tip) == Verdict::accepted ? Verdict::no_free_page : kept;
    }
  }

  for (detail::TierTable& tier : tiers_) {
    tier.skip(slot.index, s.tip, tip);
    if (where == Adopt::tiers && tier.fits(p, tip) && has_room(tier)) tier.adopt(slot.index, p);
  }
  if (pin != nullptr && !pin->holds_state()) pins_.adopt(*pin, p, rows);
  for (std::size_t w = 0; w < guards_.size(); ++w) {
    WindowGuard& guard = guards_[w];
    Position const needed = std::max(p - (guard.window().window - 1), Position{0});
    if (oldest_rows != nullptr) {
      guard.adopt(slot.index, std::clamp(oldest_rows[w], Position{0}, needed), tip);
    } else if (p > s.tip || (where == Adopt::live && !guard.covers(slot.index, p))) {
      guard.adopt(slot.index, needed, tip);
    }
  }
  if (where == Adopt::live) {
    s.live = p;
  } else if (p > s.tip) {
    s.live = -1;
  }
  if (p >= s.tip) land(slot.index, p);
  return Verdict::accepted;
}

inline Verdict Books::hold(Slot slot, Position p, Hold& hold) noexcept {
  Verdict verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  if (p < 0) return Verdict::negative_position;
  Position const tip = this->tip(slot);
  if (p > tip) return Verdict::ahead_of_tip;
  if (slot_states_[static_cast<std::size_t>(slot.index)].pending > 0) return Verdict::in_flight;
  if (p == tip && p > 0 && !all_kept(slot.index, p)) return Verdict::live_only;
  Floor const floor = p < tip ? joint_floor(slot.index, p) : Floor{p, -1};  // an armed tip may be no landing any more
  if (floor.position != p) return why_not(tip, p, floor.limited_by);
  Hold found;
  std::int32_t const pin = pins() > 0 ? pins_.page_of(slot.index, p) : -1;
  for (std::int32_t c = 0; c < components(); ++c) {
    ComponentState const& state = components_[static_cast<std::size_t>(c)];
    if (p == 0 || (state.component.empty_at > 0 && p % state.component.empty_at == 0)) continue;
    std::int32_t const tier = state.aligned_tier;
    std::int32_t const page = tier >= 0 ? tiers_[static_cast<std::size_t>(tier)].page_of(slot.index, p) : -1;
    if (page >= 0) found.pages[tier] = page;
    if (page < 0 && pin < 0) return Verdict::not_a_boundary;
    if (page < 0) found.pin = pin;
  }
  if (found.pin < 0 && p > 0) found.pin = pins_.rows_page_of(slot.index, p);
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    if (found.pages[t] >= 0) tiers_[t].hold(found.pages[t]);
  }
  if (found.pin >= 0) pins_.hold(found.pin);
  release(hold);
  hold = found;
  return Verdict::accepted;
}

inline void Books::release(Hold& hold) noexcept {
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    if (hold.pages[t] >= 0) tiers_[t].release(hold.pages[t]);
  }
  if (hold.pin >= 0) pins_.release(hold.pin);
  hold = {};
}

}  // namespace v0_1
}  // namespace rollback
