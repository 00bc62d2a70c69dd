// Books of DSV4 without any of its state, brought to where a benchmark begins: far tips, pins, holes, many slots.
#pragma once

#include "axes.hpp"

#include <rollback/dsv4/memory.hpp>

namespace axes {

/// Where books stand. The last `quantum` tokens at most are every slot's own; what is older, slots share.
struct Setting {
  std::int64_t sequences = axes::sequences;
  std::int64_t per_token = axes::per_token;
  std::int64_t aligned = axes::aligned;
  Position tip = axes::tip;
  std::int32_t pins = 0;    // that a slot has room for
  std::int32_t pinned = 0;  // of these, kept
  bool holes = false;       // all but one of `pins` boundaries are missing
};

/// CSA, HCA and LID of DSV4 and its raw window.
inline rollback::BooksOptions dsv4_books(Setting const& s) {
  using rollback::dsv4::Compressor;
  rollback::BooksOptions o;
  o.slots = static_cast<std::int32_t>(s.sequences);
  o.max_rows = axes::max_rows;
  o.pins = s.pins;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    rollback::Component c;
    c.name = compressor == Compressor::csa ? "CSA" : compressor == Compressor::hca ? "HCA" : "LID";
    c.geometry = rollback::dsv4::Memory::geometry(compressor);
    c.states_inside_chunk = true;
    c.per_token = static_cast<std::int32_t>(s.per_token);
    if (compressor == Compressor::hca) {
      c.empty_at = axes::quantum;
    } else if (s.aligned > 0) {
      c.quantum = axes::quantum;
      c.aligned = static_cast<std::int32_t>(s.aligned);
    }
    o.components.push_back(c);
  }
  o.windows.push_back({"window", axes::quantum, axes::quantum * (s.aligned + 2) + s.per_token + axes::max_rows});
  return o;
}

/// Brings a slot to `end` as if all before had been fed, so that every tier is as full as it gets.
inline Verdict prepare(Books& books, Slot slot, Position end) { return Feeder(books).up_to(slot, end); }

/// Where the pins of a slot are that was prepared up to `end`: all over the reach of the aligned tier.
inline Position pin_position(Setting const& s, Position end, std::int32_t pin) {
  Position const from = std::max(end - s.aligned * quantum, Position{0});
  return (from + (end - from) * (pin + 1) / (s.pinned + 1)) | 1;  // odd: no boundary
}

/// Brings a slot to `end` with pins kept.
inline Verdict prepare_pins(Books& books, Slot slot, Position end, Setting const& s) {
  Verdict verdict = prepare(books, slot, std::max(end - s.aligned * quantum, Position{0}));
  for (std::int32_t i = 0; i < s.pinned && verdict == Verdict::accepted; ++i) {
    verdict = books.pin(slot, pin_position(s, end, i));
  }
  return verdict == Verdict::accepted ? Feeder(books).up_to(slot, end) : verdict;
}

/// Brings a slot to the boundary `end` with holes: of as many boundaries as there is room for pins only one is kept.
///
/// A state that a pin is copied from stays until it is copied. Here the oldest boundaries are pinned and one batch
/// crosses as many new ones, which need the very same entries. The first goes to the tier's spare; for the others there
/// is no place, so they are skipped, and the old ones evicted all the same. Then the pins are given up. The last
/// boundary, `end`, is crossed alone, and is there.
inline Verdict prepare_holes(Books& books, Slot slot, Position end, std::int64_t depth) {
  Position const step = books.pins() * quantum;
  Position at = end - quantum - depth * quantum;
  Verdict verdict = prepare(books, slot, at);
  Feeder feeder(books);
  for (; at + quantum < end && verdict == Verdict::accepted; at += step) {
    Position const oldest = at - (depth - 1) * quantum;
    for (Position p = oldest; p < oldest + step && verdict == Verdict::accepted; p += quantum) {
      verdict = books.pin(slot, p);
    }
    if (verdict == Verdict::accepted) verdict = feeder.up_to(slot, at + step);
    for (Position p = oldest; p < oldest + step && verdict == Verdict::accepted; p += quantum) {
      verdict = books.unpin(slot, p);
    }
  }
  return verdict == Verdict::accepted ? feeder.up_to(slot, end) : verdict;
}

/// Brings every slot to the setting: the first one is prepared up to the last boundary below the tip, the others go on
/// from there, and all are fed what follows.
inline Verdict prepare_all(Books& books, Setting const& s) {
  Slot const first = books.slot(0);
  Position const shared = rollback::boundary_at_or_below(s.tip - 1, quantum);
  Verdict verdict = s.holes        ? prepare_holes(books, first, shared, s.aligned)
                    : s.pinned > 0 ? prepare_pins(books, first, shared, s)
                                   : prepare(books, first, shared);
  for (std::int32_t i = 1; i < books.slots() && verdict == Verdict::accepted; ++i) {
    Slot to = books.slot(i);
    verdict = books.fork(first, shared, to);
  }
  Feeder feeder(books);
  for (Position p = shared; p < s.tip && verdict == Verdict::accepted; ++p) {
    verdict = feeder.one_each(0, books.slots());
  }
  return verdict;
}

/// How many of the boundaries in reach of the aligned tier are no landings.
inline std::int64_t missing_boundaries(Books const& books, Slot slot, std::int64_t depth) {
  Position const newest = rollback::boundary_at_or_below(books.tip(slot), quantum);
  std::int64_t missing = 0;
  for (std::int64_t i = 0; i < depth; ++i) {
    Position const p = newest - i * quantum;
    if (p > 0 && books.can_land(slot, p) != Verdict::accepted) ++missing;
  }
  return missing;
}

/// How many pins of a prepared slot are kept.
inline std::int32_t kept_pins(Books const& books, Slot slot, Setting const& s) {
  Position const end = rollback::boundary_at_or_below(s.tip - 1, quantum);
  std::int32_t kept = 0;
  for (std::int32_t i = 0; i < s.pinned; ++i) kept += books.is_pinned(slot, pin_position(s, end, i)) ? 1 : 0;
  return kept;
}

}  // namespace axes
