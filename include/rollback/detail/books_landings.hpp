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

// The largest position at or below p that one component can go back to; its tiers are alternatives.
inline Position Books::floor_of(std::int32_t component, std::int32_t slot, Position p) const noexcept {
  ComponentState const& c = components_[static_cast<std::size_t>(component)];
  Position best = c.component.empty_at > 0 ? boundary_at_or_below(p, c.component.empty_at) : 0;
  if (c.per_token_tier >= 0) {
    best = std::max(best, tiers_[static_cast<std::size_t>(c.per_token_tier)].floor(slot, p));
  }
  if (c.aligned_tier >= 0 && best < p) {
    best = std::max(best, tiers_[static_cast<std::size_t>(c.aligned_tier)].floor(slot, p));
  }
  return best;
}

// The largest position at or below p that all components and windows can go back to, and the first that kept it from
// being p. Each component lowers p to what it can serve until all agree.
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
    for (std::size_t w = 0; w < guards_.size(); ++w) {
      Position const covered = guards_[w].covers(slot, result.position) ? result.position : 0;
      if (lower(covered, components() + static_cast<std::int32_t>(w))) agreed = false;
    }
  }
  if (result.position == p || pins() == 0) return result;
  Position const pinned = pins_.floor(slot, p, [&](Position at) {
    return std::all_of(guards_.begin(), guards_.end(), [&](WindowGuard const& g) { return g.covers(slot, at); });
  });
  if (pinned > result.position) result.position = pinned;
  if (pinned == p) result.limited_by = -1;
  return result;
}

inline Verdict Books::why_not(std::int32_t slot, Position p, std::int32_t limited_by) const noexcept {
  if (limited_by >= components()) return Verdict::window_not_covered;
  Component const& c = component(limited_by);
  bool const in_per_token_reach = p >= slot_states_[static_cast<std::size_t>(slot)].tip - c.per_token;
  bool const on_lattice = c.aligned > 0 && p % c.quantum == 0;
  bool const has_lattice = c.aligned > 0 || c.empty_at > 0;
  return in_per_token_reach || on_lattice || !has_lattice ? Verdict::beyond_reach : Verdict::not_a_boundary;
}

// The coarsest tier that some component needs for a landing at p.
inline Tier Books::tier_at(std::int32_t slot, Position p) const noexcept {
  if (p == 0) return Tier::start;
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
    landing.position = wanted < 0 ? 0 : s.tip;
    landing.tier = landing.position == 0 ? Tier::start : Tier::tip;
    landing.replay = wanted < 0 ? 0 : wanted - s.tip;
    return landing;
  }
  Floor const floor = joint_floor(slot.index, wanted);
  landing.position = floor.position;
  landing.replay = wanted - floor.position;
  landing.tier = tier_at(slot.index, floor.position);
  landing.limited_by = floor.limited_by;
  if (floor.limited_by >= 0) landing.why = why_not(slot.index, wanted, floor.limited_by);
  return landing;
}

inline Verdict Books::can_land(Slot slot, Position p) const noexcept {
  Landing const landing = nearest(slot, p);
  return landing.why;
}

inline Position Books::reach(Slot slot) const noexcept {
  if (known(slot) != Verdict::accepted) return -1;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  Position oldest = s.tip;
  if (empty_lattice_ > 0 && empty_lattice_ <= s.tip) {  // the first of these landings without a walk over all of them
    Position covered = empty_lattice_;
    for (WindowGuard const& guard : guards_) covered = std::max(covered, guard.lowest_covered(slot.index));
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
  if (s.open == 0) s.head = p;
  for (WindowGuard& guard : guards_) guard.land(slot, p);
  if (pins() > 0) pins_.land(slot, p, armed(s));
}

inline Verdict Books::roll_back(Slot slot, Position p) noexcept {
  Verdict const verdict = can_land(slot, p);
  if (verdict == Verdict::accepted && p != tip(slot)) land(slot.index, p);
  return verdict;
}

inline Verdict Books::clear(Slot& slot) noexcept {
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  SlotState& s = slot_states_[static_cast<std::size_t>(slot.index)];
  abandon(slot.index);
  for (detail::TierTable& tier : tiers_) tier.clear(slot.index);
  pins_.clear(slot.index);
  land(slot.index, 0);
  s.live = 0;
  ++s.generation;
  if (s.generation == 0) s.generation = 1;  // 0 is never live
  slot = this->slot(slot.index);
  return verdict;
}

}  // namespace v0_1
}  // namespace rollback
