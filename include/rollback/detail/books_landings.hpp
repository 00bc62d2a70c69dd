// Where sequences are and where they can go back to: the question (`can_land`, `nearest`) and the act (`roll_back`).
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

inline Slot Books::slot(std::int32_t index) const noexcept {
  if (index < 0 || index >= slots_) return {};
  return {index, slot_states_[static_cast<std::size_t>(index)].generation};
}

inline Verdict Books::known(Slot slot) const noexcept {
  if (slot.index < 0 || slot.index >= slots_) return Verdict::unknown_slot;
  if (slot.generation != slot_states_[static_cast<std::size_t>(slot.index)].generation) return Verdict::stale_slot;
  return Verdict::accepted;
}

inline Position Books::tip(Slot slot) const noexcept {
  return known(slot) == Verdict::accepted ? slot_states_[static_cast<std::size_t>(slot.index)].tip : -1;
}

inline Position Books::head(Slot slot) const noexcept {
  return known(slot) == Verdict::accepted ? slot_states_[static_cast<std::size_t>(slot.index)].head : -1;
}

inline bool Books::is_armed(Slot slot) const noexcept {
  return known(slot) == Verdict::accepted && armed(slot_states_[static_cast<std::size_t>(slot.index)]);
}

inline std::int32_t Books::live_place(Slot slot) const noexcept {
  return known(slot) == Verdict::accepted ? slot_states_[static_cast<std::size_t>(slot.index)].live_place : -1;
}

inline std::int32_t Books::live_place(Ticket const& ticket, Slot slot) const noexcept {
  OpenBatch const* const batch = find(ticket);
  OpenSlot const* const open = batch != nullptr && known(slot) == Verdict::accepted ? batch->find(slot.index) : nullptr;
  return open != nullptr && !open->pending ? open->live_to : -1;
}

// The largest position at or below p that one component can go back to; its tiers are alternatives.
inline Position Books::floor_of(std::int32_t component, std::int32_t slot, Position p) const noexcept {
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  Position best = c.component.empty_at > 0 ? boundary_at_or_below(p, c.component.empty_at) : 0;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot)];
  auto const floor_in = [&](std::int32_t index) {
    detail::TierTable const& tier = tiers_[static_cast<std::size_t>(index)];
    Position const floor = tier.floor(slot, p);
    return s.pending == 0 || tier.fits(floor, s.head) ? floor : Position{0};  // pending rows may evict the others
  };
  if (c.per_token_tier >= 0) best = std::max(best, floor_in(c.per_token_tier));
  if (c.aligned_tier >= 0 && best < p) best = std::max(best, floor_in(c.aligned_tier));
  return best;
}

// Whether some component keeps a state at or below p for its position's sake, not its boundary's.
inline bool Books::per_token_reaches(std::int32_t slot, Position p) const noexcept {
  return std::any_of(tiers_.begin(), tiers_.end(),
                     [=](detail::TierTable const& tier) { return tier.per_token() && tier.floor(slot, p) > 0; });
}

// The largest position at or below p that all components and windows can go back to, and the first that kept it from
// being p. Each component lowers p to what it can serve until all agree. Below the per-token tiers' states only common
// multiples are asked, or quanta that do not divide each other would be gone through multiple by multiple.
inline Books::Floor Books::joint_floor(std::int32_t slot, Position p) const noexcept {
  Floor result{p, -1};
  auto const lower = [&result](Position to, std::int32_t by) {
    if (to >= result.position) return false;
    result.position = to;
    if (result.limited_by < 0) result.limited_by = by;
    return true;
  };
  for (bool agreed = false; !agreed && result.position > 0;) {
    agreed = true;
    for (std::int32_t c = 0; c < components(); ++c) {
      if (lower(floor_of(c, slot, result.position), c)) agreed = false;
    }
    for (std::int32_t w = 0; w < windows(); ++w) {
      Position const covered = result.position >= lowest_covered(slot, w) ? result.position : 0;
      if (lower(covered, components() + w)) agreed = false;
    }
    if (!agreed && !per_token_reaches(slot, result.position)) {
      result.position = landing_lattice_ > 0 ? boundary_at_or_below(result.position, landing_lattice_) : 0;
    }
  }
  if (result.position == p || pins() == 0) return result;
  Position const pinned = pins_.floor(
      slot, p, [&](detail::Pin const& pin) { return pin.rows || uncovered_window(slot, pin.position) < 0; });
  if (pinned > result.position) result.position = pinned;
  if (pinned == p) {
    result.limited_by = -1;
  } else if (is_pinned(this->slot(slot), p)) {  // every component has its state there
    result.limited_by = components() + uncovered_window(slot, p);
  }
  return result;
}

// Whether the slot's oldest open batch restores the window's ring and is not known to have done so.
inline bool Books::ring_awaits_restore(std::int32_t slot, std::int32_t window) const noexcept {
  for (std::int32_t i = 0; pin_windows_ && i < open_count_; ++i) {
    OpenBatch const& batch = batches_[static_cast<std::size_t>(by_age_[static_cast<std::size_t>(i)])];
    OpenSlot const* const open = batch.find(slot);
    if (open != nullptr) return open->window_source[window].place >= 0 && open->first_chunk >= batch.settled;
  }
  return false;
}

// The smallest position of which a window's ring has all rows that a query reads. A ring that awaits its restore has
// none below the tip yet, although from then on it will have all down to position 0 where the pin was below the window.
inline Position Books::lowest_covered(std::int32_t slot, std::int32_t window) const noexcept {
  Position const lowest = guards_[static_cast<std::size_t>(window)].lowest_covered(slot);
  Position const tip = slot_states_[static_cast<std::size_t>(slot)].tip;
  return ring_awaits_restore(slot, window) ? std::max(lowest, tip + 1) : lowest;
}

// The first window whose ring lacks rows that a query at p reads; -1 where there is none.
inline std::int32_t Books::uncovered_window(std::int32_t slot, Position p) const noexcept {
  for (std::int32_t w = 0; w < windows(); ++w) {
    if (p < lowest_covered(slot, w)) return w;
  }
  return -1;
}

inline Verdict Books::why_not(Position tip, Position p, std::int32_t limited_by) const noexcept {
  if (limited_by >= components()) return Verdict::window_not_covered;
  Component const& c = component(limited_by);
  bool const in_per_token_reach = p >= tip - c.per_token;
  bool const on_lattice = c.aligned > 0 && p % c.quantum == 0;
  bool const has_lattice = c.aligned > 0 || c.empty_at > 0;
  return in_per_token_reach || on_lattice || !has_lattice ? Verdict::beyond_reach : Verdict::not_a_boundary;
}

// The coarsest tier that some component needs for a landing at p; a pin where only that has the window rows.
inline Tier Books::tier_at(std::int32_t slot, Position p) const noexcept {
  if (p == 0) return Tier::start;
  if (uncovered_window(slot, p) >= 0) return Tier::pin;
  bool needs_aligned = false;
  bool needs_per_token = false;
  for (ComponentState const& c : components_) {
    auto const keeps = [&](std::int32_t tier) {
      return tier >= 0 && tiers_[static_cast<std::size_t>(tier)].page_of(slot, p) >= 0;
    };
    bool const by_token = keeps(c.per_token_tier);
    bool const empty = c.component.empty_at > 0 && p % c.component.empty_at == 0;
    if (!by_token && !empty && !keeps(c.aligned_tier)) return Tier::pin;
    needs_per_token = needs_per_token || by_token;
    needs_aligned = needs_aligned || !by_token;
  }
  if (needs_aligned) return Tier::aligned;
  return needs_per_token ? Tier::per_token : Tier::tip;
}

inline Landing Books::nearest(Slot slot, Position wanted) const noexcept {
  Landing landing;
  landing.why = known(slot);
  if (landing.why != Verdict::accepted) return landing;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  if (s.open > 0) {
    landing.why = Verdict::in_flight;
    return landing;
  }
  if (wanted < 0 || wanted >= s.tip) {
    landing.why = wanted < 0 ? Verdict::negative_position : wanted > s.tip ? Verdict::ahead_of_tip : Verdict::accepted;
    landing.position = std::clamp(wanted, Position{0}, s.tip);
    landing.tier = landing.position == 0 ? Tier::start : Tier::tip;
    landing.replay = wanted < 0 ? 0 : wanted - s.tip;
    return landing;
  }
  Floor const floor = joint_floor(slot.index, wanted);
  landing.position = floor.position;
  landing.replay = wanted - floor.position;
  landing.tier = tier_at(slot.index, floor.position);
  landing.limited_by = floor.limited_by;
  if (floor.limited_by >= 0) landing.why = why_not(s.tip, wanted, floor.limited_by);
  return landing;
}

inline Verdict Books::can_land(Slot slot, Position p) const noexcept {
  Landing const landing = nearest(slot, p);
  return landing.why;
}

inline Position Books::landing_before(Slot slot, Position p) const noexcept {
  if (known(slot) != Verdict::accepted || p <= 0) return 0;
  return joint_floor(slot.index, std::min(p - 1, tip(slot))).position;
}

inline Verdict Books::tiers_keep(Position p, Position tip) const noexcept {
  if (p < 0) return Verdict::negative_position;
  if (p > tip) return Verdict::ahead_of_tip;
  return tiers_take(p, tip, [](detail::TierTable const&) { return true; });
}

// As `tiers_keep`, of the tiers of which `room` says that they have a place for the state.
template <class Room>
Verdict Books::tiers_take(Position p, Position tip, Room room) const noexcept {
  for (std::int32_t c = 0; c < components(); ++c) {
    ComponentState const& state = components_[static_cast<std::size_t>(c)];
    Position const empty_at = state.component.empty_at;
    auto const takes = [&](std::int32_t index) {
      if (index < 0) return false;
      detail::TierTable const& tier = tiers_[static_cast<std::size_t>(index)];
      return tier.fits(p, tip) && room(tier);
    };
    bool const taken = (empty_at > 0 && p % empty_at == 0) || takes(state.per_token_tier) || takes(state.aligned_tier);
    if (!taken) return why_not(tip, p, c);
  }
  return Verdict::accepted;
}

inline Position Books::reach(Slot slot) const noexcept {
  if (known(slot) != Verdict::accepted) return -1;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  Position oldest = s.tip;
  if (empty_lattice_ > 0 && empty_lattice_ <= s.tip) {  // the first of these landings without a walk over all of them
    Position covered = empty_lattice_;
    for (std::int32_t w = 0; w < windows(); ++w) covered = std::max(covered, lowest_covered(slot.index, w));
    Position const first = boundary_at_or_below(covered + empty_lattice_ - 1, empty_lattice_);
    oldest = std::min(oldest, first);
  }
  for (Position p = oldest; p > 0;) {
    p = joint_floor(slot.index, p - 1).position;
    if (p > 0) oldest = p;
  }
  return oldest;
}

inline std::int32_t Books::landings(Slot slot, Landing* out, std::int32_t capacity) const noexcept {
  if (known(slot) != Verdict::accepted) return 0;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  auto const for_each_landing = [&](auto f) {  // falling order
    Floor floor = joint_floor(slot.index, s.tip);
    while (floor.position > 0) {
      f(floor.position);
      floor = joint_floor(slot.index, floor.position - 1);
    }
  };
  std::int32_t count = 0;
  for_each_landing([&count](Position) { ++count; });
  if (count > capacity) return count;
  std::int32_t at = count;
  for_each_landing([&](Position p) {
    Landing& landing = out[--at];
    landing = {};
    landing.position = p;
    landing.tier = tier_at(slot.index, p);
  });
  return count;
}

inline void Books::land(std::int32_t slot, Position p) noexcept {
  SlotState& s = slot_states_[static_cast<std::size_t>(slot)];
  s.tip = p;
  for (detail::TierTable& tier : tiers_) tier.land(slot, p);
  if (s.open == 0) {
    s.head = p;
    for (WindowGuard& guard : guards_) guard.land(slot, p);  // younger open batches write above p
  }
  if (pins() > 0) pins_.land(slot, p, armed(s));
}

inline Verdict Books::roll_back(Slot slot, Position p) noexcept {
  Verdict const verdict = can_land(slot, p);
  if (verdict == Verdict::accepted && p != tip(slot)) land(slot.index, p);
  return verdict;
}

// Keeps nothing of the slot, nor of its rows in open batches.
inline void Books::forget(std::int32_t slot) noexcept {
  abandon(slot);
  for (detail::TierTable& tier : tiers_) tier.clear(slot);
  pins_.clear(slot);
  land(slot, 0);
  slot_states_[static_cast<std::size_t>(slot)].live_place = 0;
}

inline Verdict Books::clear(Slot& slot) noexcept {
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  SlotState& s = slot_states_[static_cast<std::size_t>(slot.index)];
  forget(slot.index);
  ++s.generation;
  if (s.generation == 0) s.generation = 1;  // 0 is never live
  slot = this->slot(slot.index);
  return verdict;
}

}  // namespace v0_1
}  // namespace rollback
