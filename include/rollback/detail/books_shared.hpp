// Landings that the engine placed, and landings that slots share.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {

inline Verdict Books::pin(Slot slot, Position p) noexcept {
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  if (p < 0) return Verdict::negative_position;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  detail::Pin* const old = pins_.find(slot.index, p);
  if (p == 0 || (old != nullptr && old->phase != detail::Pin::Phase::leaving)) return Verdict::accepted;
  if (p > end_of_context()) return Verdict::beyond_context;
  if (s.open > 0 && p <= s.head) return Verdict::in_flight;
  if (s.open == 0) {
    Verdict const kept = can_land(slot, p);
    if (kept != Verdict::accepted && kept != Verdict::ahead_of_tip) return kept;
  }
  if (old != nullptr) {
    old->phase = detail::Pin::Phase::kept;
    return Verdict::accepted;
  }
  return pins_.add(slot.index, p) ? Verdict::accepted : Verdict::no_free_pin;
}

inline Verdict Books::unpin(Slot slot, Position p) noexcept {
  Verdict const verdict = known(slot);
  if (verdict != Verdict::accepted) return verdict;
  SlotState const& s = slot_states_[static_cast<std::size_t>(slot.index)];
  detail::Pin* const pin = pins_.find(slot.index, p);
  using Phase = detail::Pin::Phase;  // free ones are at -1
  if (pin == nullptr || pin->phase == Phase::free || pin->phase == Phase::leaving) return Verdict::unknown_pin;
  if (s.pending > 0 || (s.open > 0 && pin->phase != Phase::wanted)) return Verdict::in_flight;
  if (pin->phase == Phase::kept && armed(s) && s.tip == p) {
    pin->phase = Phase::leaving;
  } else {
    pins_.remove(*pin);
  }
  return Verdict::accepted;
}

inline bool Books::is_pinned(Slot slot, Position p) const noexcept {
  if (known(slot) != Verdict::accepted || p <= 0) return false;
  return std::any_of(pins_.begin(slot.index), pins_.end(slot.index), [p](detail::Pin const& pin) {
    return pin.position == p && pin.phase == detail::Pin::Phase::kept;
  });
}

inline bool Books::has_pin(Slot slot, Position p) const noexcept {
  if (known(slot) != Verdict::accepted || p <= 0) return false;
  return std::any_of(pins_.begin(slot.index), pins_.end(slot.index), [p](detail::Pin const& pin) {
    return pin.position == p && pin.phase != detail::Pin::Phase::leaving;
  });
}

inline Verdict Books::fork(Slot from, Position p, Slot& to) noexcept {
  Verdict verdict = can_land(from, p);
  if (verdict == Verdict::accepted) verdict = known(to);
  if (verdict != Verdict::accepted) return verdict;
  if (from.index == to.index) return Verdict::same_slot;
  if (p > 0 && !all_kept(from.index, p)) return Verdict::live_only;
  verdict = clear(to);
  SlotState& s = slot_states_[static_cast<std::size_t>(to.index)];
  for (detail::TierTable& tier : tiers_) tier.fork(from.index, to.index, p);
  pins_.fork(from.index, to.index, p);
  for (WindowGuard& guard : guards_) guard.unwrite(to.index, guard.lowest(from.index));
  s.live = -1;
  land(to.index, p);
  return verdict;
}

inline Slot Books::nearest_over(Position const* wanted, std::int32_t count, Landing& landing) const noexcept {
  Slot best;
  landing = {};
  for (std::int32_t i = 0; i < std::min(count, slots_); ++i) {
    if (wanted[i] < 0) continue;
    Landing const here = nearest(slot(i), wanted[i]);
    if (here.position <= 0 || (best.index >= 0 && here.position <= landing.position)) continue;
    landing = here;
    best = slot(i);
  }
  return best;
}

inline std::int32_t Books::lost(Slot slot, Position const* positions, std::int32_t count,
                                Position* lost) const noexcept {
  std::int32_t n = 0;
  bool const is_known = known(slot) == Verdict::accepted;
  for (std::int32_t i = 0; i < count; ++i) {
    Position const p = positions[i];
    bool const landing = is_known && p >= 0 && p <= tip(slot) && joint_floor(slot.index, p).position == p;
    if (!landing && !(is_known && p == tip(slot))) lost[n++] = p;
  }
  return n;
}

}  // namespace v0_1
}  // namespace rollback
