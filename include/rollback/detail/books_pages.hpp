// Pages that the engine hands out and takes back, and how it makes a slot give some up.
#pragma once

#include <rollback/books.hpp>

namespace rollback {
inline namespace v0_1 {

// The aligned tier of a component, as an index into `tiers_`, whose pages are the engine's; negative where there is
// none.
inline std::int32_t Books::paged_tier(std::int32_t component) const noexcept {
  if (pages_ == 0 || component < 0 || component >= components()) return -1;
  return components_[static_cast<std::size_t>(component)].aligned_tier;
}

inline Verdict Books::give_page(std::int32_t component, std::int32_t page) noexcept {
  if (component < 0 || component >= components()) return Verdict::unknown_component;
  std::int32_t const tier = paged_tier(component);
  if (tier < 0 || page < 0 || page >= pages_) return Verdict::unknown_page;
  return tiers_[static_cast<std::size_t>(tier)].give(page) ? Verdict::accepted : Verdict::page_given;
}

inline std::int32_t Books::take_page(std::int32_t component) noexcept {
  std::int32_t const tier = paged_tier(component);
  return tier < 0 ? -1 : tiers_[static_cast<std::size_t>(tier)].take();
}

inline std::int32_t Books::free_pages(std::int32_t component) const noexcept {
  std::int32_t const tier = paged_tier(component);
  return tier < 0 ? 0 : tiers_[static_cast<std::size_t>(tier)].free_pages();
}

inline Verdict Books::evict(Slot slot, Position p) noexcept {
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  if (s.open > 0) return Verdict::in_flight;
  if (p < 0) return Verdict::negative_position;
  if (p > s.tip) return Verdict::ahead_of_tip;
  bool kept = false;
  for (detail::TierTable const& tier : tiers_) {
    kept = kept || (!tier.per_token() && tier.page_of(slot.index, p) >= 0);
  }
  if (!kept) return Verdict::beyond_reach;
  if (p == s.tip && armed(s)) return Verdict::restore_armed;
  for (detail::TierTable& tier : tiers_) {
    if (!tier.per_token() && tier.page_of(slot.index, p) >= 0) tier.evict(slot.index, p);
  }
  return Verdict::accepted;
}

}  // namespace v0_1
}  // namespace rollback
