// Which landings a memory has promised, worked out from positions alone.
#pragma once

#include <rollback/testing/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// What is wrong with a description; null where nothing is.
[[nodiscard]] inline char const* wrong_with(Description const& d) noexcept {
  if (d.slots < 1) return "slots must be at least 1";
  if (d.max_rows < 1) return "max_rows must be at least 1";
  if (d.unverified < 0) return "unverified must be at least 0";
  if (d.max_context != 0 && d.max_context < 512) return "max_context must be 0 (no limit) or at least 512";
  if (d.window < 0 || d.window_rows < d.window) return "window must be at least 0, and window_rows no less";
  for (Promise const& p : d.promises) {
    if (p.per_token < 0 || p.boundaries < 0 || p.empty_at < 0) return "what is promised must be at least 0";
    if (p.boundaries > 0 && p.quantum < 1) return "a quantum must be at least 1";
  }
  return nullptr;
}

/// What all promises of a memory make together.
struct Reach {
  Position alignment = 0;       // tokens between boundaries that all kinds keep; 0: they share none
  std::int32_t boundaries = 0;  // how many of them
  std::int32_t per_token = 0;   // how far below the tip all keep every state
};

[[nodiscard]] inline Reach reach_of(Description const& d) {
  Reach r;
  if (d.promises.empty()) return r;
  r.alignment = 1;
  for (Promise const& p : d.promises) {
    Position const step = p.boundaries > 0 ? p.quantum : p.empty_at;
    r.alignment = step > 0 ? std::lcm(r.alignment, step) : 0;
  }
  r.per_token = d.promises[0].per_token;
  Position span = INT32_MAX;
  for (Promise const& p : d.promises) {
    r.per_token = std::min(r.per_token, p.per_token);
    if (p.boundaries > 0) span = std::min(span, p.quantum * p.boundaries);
  }
  if (r.alignment > 0) r.boundaries = static_cast<std::int32_t>(span / r.alignment);
  if (span == INT32_MAX) r.boundaries = 0;
  if (r.boundaries == 0) r.alignment = 0;
  return r;
}

/// The landings promised of one slot. What it names a good memory keeps; a good memory may keep more.
class Promised {
 public:
  explicit Promised(Description const& d) : description_(&d), kept_(d.promises.size()) {}

  [[nodiscard]] bool lands(Position p, Position tip) const {
    if (p == 0 || p == tip) return true;
    if (p < 0 || p > tip) return false;
    if (description_->promises.empty()) return false;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      Position const empty_at = description_->promises[i].empty_at;
      bool const empty = empty_at > 0 && p % empty_at == 0;
      if (!empty && kept_[i].per_token.count(p) == 0 && kept_[i].aligned.count(p) == 0) return false;
    }
    return description_->window == 0 || std::max<Position>(0, p - (description_->window - 1)) >= lowest_;
  }

  /// Rows [begin, end) ran and those below `accepted` stand. A boundary that only rows of a `verify` cross right after
  /// a rollback is not counted on: it and the state to restore may want the same spare room.
  void ran(Position begin, Position end, Position accepted, bool armed) {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      Promise const& promise = description_->promises[i];
      std::set<Position>& states = kept_[i].per_token;
      for (Position q = std::max(begin, end - promise.per_token); q < end; ++q) states.insert(q);
      states.erase(states.begin(), states.lower_bound(end - promise.per_token));
      if (promise.boundaries == 0) continue;
      std::set<Position>& aligned = kept_[i].aligned;
      Position const counted = armed && accepted < end ? begin : accepted;
      for (Position q = boundary_above(begin, promise.quantum); q <= counted; q += promise.quantum) aligned.insert(q);
      Position const newest = boundary_at_or_below(accepted, promise.quantum);
      aligned.erase(aligned.begin(), aligned.upper_bound(newest - promise.boundaries * promise.quantum));
    }
    lowest_ = std::max(lowest_, end - description_->window_rows);
    land(accepted);
  }
  /// The tip is now `p`; nothing above is kept.
  void land(Position p) {
    for (Kept& kept : kept_) {
      kept.per_token.erase(kept.per_token.upper_bound(p), kept.per_token.end());
      kept.aligned.erase(kept.aligned.upper_bound(p), kept.aligned.end());
    }
    lowest_ = std::min(lowest_, p);
  }
  /// Nothing is promised below `tip`: after a load, a copy or a failure.
  void forget(Position tip) {
    for (Kept& kept : kept_) kept = {};
    lowest_ = tip;
  }

 private:
  struct Kept {
    std::set<Position> per_token, aligned;
  };

  Description const* description_;
  std::vector<Kept> kept_;
  Position lowest_ = 0;  // the oldest position whose window row exists
};

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
