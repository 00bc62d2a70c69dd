// Which states one tier of every slot keeps, worked out naively: every place has a number of its own that is never used
// again, and whether a place is shared or about to be written is looked up by going through all of them.
#pragma once

#include "case.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace model {

enum class Ran : std::uint8_t { whole, untouched, torn };

/// A state that an open batch keeps, and where.
struct Write {
  Position position;
  int place;
};

/// The rows of one slot in a batch, for the tiers.
struct Rows {
  Position begin, verified, certain, end;
  bool armed;
};

class KeptStates {
 public:
  KeptStates(std::int32_t slots, Position quantum, std::int32_t depth, std::int32_t spares)
      : quantum_(quantum), depth_(depth), slots_(static_cast<std::size_t>(slots)) {
    for (Held& h : slots_) {
      for (std::int32_t i = 0; i < depth; ++i) h.entries.push_back({-1, false, false, next_place_++});
      for (std::int32_t i = 0; i < spares; ++i) h.spares.push_back({-1, next_place_++});
    }
  }

  [[nodiscard]] Position quantum() const { return quantum_; }
  /// Whether the state at `p` is there and no open batch may write over it.
  [[nodiscard]] bool has(std::size_t slot, Position p) const {
    if (p <= 0 || p % quantum_ != 0) return false;
    Entry const& e = entry(slot, p);
    return e.kept == p && !e.abandoned && !written(e.place);
  }
  /// Whether it is one of the last as well, so that it is listed.
  [[nodiscard]] bool serves(std::size_t slot, Position p) const { return has(slot, p) && entry(slot, p).served; }
  /// The states that a batch is to keep.
  [[nodiscard]] std::vector<Position> wanted(Rows const& rows) const {
    std::vector<Position> states;
    for (Position q = std::max<Position>(rows.begin, 1); q <= rows.end; ++q) {
      if (q % quantum_ != 0) continue;
      bool const last = quantum_ == 1 ? q < rows.end && q >= rows.end - depth_
                                      : q > rows.begin && q > rows.certain / quantum_ * quantum_ - depth_ * quantum_;
      if (last) states.push_back(q);
    }
    return states;
  }

  template <class IsHeld>
  [[nodiscard]] std::vector<Write> open(std::size_t slot, Rows const& rows, IsHeld is_held) {
    std::vector<Write> writes;
    for (Position q : wanted(rows)) {
      if (rows.armed && q == rows.begin && has(slot, q)) continue;
      Entry& e = entry(slot, q);
      int* place = &e.place;
      bool const may_be_rejected = quantum_ > 1 && q > rows.certain;
      if (may_be_rejected || (e.kept > 0 && is_held(e.kept))) {
        place = nullptr;
        for (Spare& s : slots_[slot].spares) {  // the one of an older batch's state that this one evicts in any case
          if (place == nullptr && !may_be_rejected && written(s.place) && (q - s.staged) % (depth_ * quantum_) == 0) {
            place = &s.place;
            s.staged = q;
          }
        }
        for (Spare& s : slots_[slot].spares) {
          if (place == nullptr && !written(s.place)) {
            place = &s.place;
            s.staged = q;
          }
        }
        if (place == nullptr) continue;
      }
      if (shared(*place)) {
        *place = next_place_++;
        if (place == &e.place) e.kept = -1;
      }
      writing_.push_back(*place);
      writes.push_back({q, *place});
    }
    return writes;
  }

  template <class WhatRan>
  void close(std::size_t slot, Rows const& rows, std::vector<Write> const& writes, Position limit, WhatRan what_ran) {
    std::vector<Position> crossed = wanted(rows);
    if (quantum_ == 1) crossed.push_back(rows.end);
    for (Position q : crossed) {
      if (entry(slot, q).kept > rows.begin) entry(slot, q).kept = -1;  // of an abandoned timeline
    }
    for (Position q : wanted(rows)) {
      auto const write = std::find_if(writes.begin(), writes.end(), [q](Write const& w) { return w.position == q; });
      Entry& e = entry(slot, q);
      Ran const ran = what_ran(q);
      bool const keep = ran == Ran::whole && q <= limit;
      if (write == writes.end()) {
        if (keep && q > rows.begin) e.kept = -1;  // the last ones count, kept or not
        continue;
      }
      writing_.erase(std::find(writing_.begin(), writing_.end(), write->place));
      if (keep && e.place != write->place) {
        for (Spare& s : slots_[slot].spares) {
          if (s.place == write->place) {
            std::swap(s.place, e.place);
            break;
          }
        }
      }
      if (e.place == write->place && ran != Ran::untouched) e.kept = keep ? q : -1;
      if (keep) keep_last(slot, q);
    }
  }

  /// The sequence goes back to `p`.
  void land(std::size_t slot, Position p) {
    for (Entry& e : slots_[slot].entries) e.abandoned = e.abandoned || e.kept > p;
  }
  void clear(std::size_t slot) {
    for (Entry& e : slots_[slot].entries) e.kept = -1;
    slots_[slot].newest = 0;
  }
  /// Whether a slot at `tip` keeps the state at `q` <= tip.
  [[nodiscard]] bool fits(Position q, Position tip) const {
    if (quantum_ == 1) return q >= tip - depth_;
    return q % quantum_ == 0 && q > tip / quantum_ * quantum_ - depth_ * quantum_;
  }
  /// Whether no newer state has its place.
  [[nodiscard]] bool has_room(std::size_t slot, Position q) const { return entry(slot, q).kept <= q; }
  /// Keeps a state that was brought, of a slot without batches; newer ones first.
  void adopt(std::size_t slot, Position q) {
    Entry& e = entry(slot, q);
    if (e.kept == q) return;
    e = {q, true, false, shared(e.place) ? next_place_++ : e.place};
    slots_[slot].newest = std::max(slots_[slot].newest, q);
  }
  void fork(std::size_t from, std::size_t to, Position p) {
    for (std::size_t i = 0; i < slots_[from].entries.size(); ++i) {
      Entry const& e = slots_[from].entries[i];
      if (e.kept > 0 && e.kept <= p) slots_[to].entries[i] = e;
    }
    slots_[to].newest = slots_[from].newest;
  }

 private:
  struct Entry {
    Position kept;   // whose state the place holds
    bool served;     // among the last ones
    bool abandoned;  // the sequence went back below it
    int place;
  };
  struct Spare {
    Position staged;
    int place;
  };
  struct Held {
    std::vector<Entry> entries;
    std::vector<Spare> spares;
    Position newest = 0;
  };

  [[nodiscard]] Entry& entry(std::size_t slot, Position q) {
    return slots_[slot].entries[static_cast<std::size_t>(q / quantum_ % depth_)];
  }
  [[nodiscard]] Entry const& entry(std::size_t slot, Position q) const {
    return slots_[slot].entries[static_cast<std::size_t>(q / quantum_ % depth_)];
  }
  [[nodiscard]] bool written(int place) const {
    return std::find(writing_.begin(), writing_.end(), place) != writing_.end();
  }
  [[nodiscard]] bool shared(int place) const {
    int holders = 0;
    for (Held const& h : slots_) {
      for (Entry const& e : h.entries) holders += e.place == place ? 1 : 0;
      for (Spare const& s : h.spares) holders += s.place == place ? 1 : 0;
    }
    return holders > 1;
  }
  // The last `depth` boundaries are those up to `q`, which was just kept; those that were passed over are not kept.
  void keep_last(std::size_t slot, Position q) {
    Position const first = q - (depth_ - 1) * quantum_;
    Position& newest = slots_[slot].newest;
    for (Position hole = std::max(newest + quantum_, first); hole < q; hole += quantum_) entry(slot, hole).kept = -1;
    newest = q;
    for (Entry& e : slots_[slot].entries) {
      if (e.kept < first || e.kept > q) e.served = false;
    }
    entry(slot, q).served = true;
    entry(slot, q).abandoned = false;
  }

  Position quantum_;
  Position depth_;
  std::vector<Held> slots_;
  std::vector<int> writing_;  // places that open batches may write, once for each
  int next_place_ = 0;
};

}  // namespace model
