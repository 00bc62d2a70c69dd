// The sizes at which a benchmark stands unless it sweeps them, and a way to feed books.
#pragma once

#include <rollback/books.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace axes {

using rollback::Books;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;

inline constexpr std::int64_t sequences = 10000;
inline constexpr std::int64_t per_token = 8;  // depth of the per-token tier
inline constexpr std::int64_t aligned = 64;   // depth of the aligned tier
inline constexpr Position quantum = 128;
inline constexpr Position tip = 4096;
inline constexpr std::int32_t max_rows = 1 << 16;  // of a batch, which far tips are fed in

/// Stops a benchmark whose operation was refused, or its figure would be that of a refusal.
inline bool accepted(benchmark::State& state, Verdict verdict) {
  if (verdict == Verdict::accepted) return true;
  state.SkipWithError(text(verdict));
  return false;
}

/// Feeds the books: batches of one chunk, nothing unverified, no state behind them.
class Feeder {
 public:
  explicit Feeder(Books& books) : books_(books), slots_(max_rows), positions_(max_rows) {}

  /// One more token to each of the slots [first, last), all in one batch.
  Verdict one_each(std::int32_t first, std::int32_t last) {
    for (std::int32_t s = first; s < last; ++s) put(s - first, books_.slot(s), books_.tip(books_.slot(s)));
    return run(last - first, last - first);
  }

  /// The next tokens of one slot, up to `end`.
  Verdict up_to(Slot slot, Position end) {
    Verdict verdict = Verdict::accepted;
    while (verdict == Verdict::accepted && books_.tip(slot) < end) {
      Position const at = books_.tip(slot);
      auto const n = static_cast<std::int32_t>(std::min<Position>(end - at, max_rows));
      for (std::int32_t i = 0; i < n; ++i) put(i, slot, at + i);
      verdict = run(n, 1);
    }
    return verdict;
  }

 private:
  void put(std::int32_t row, Slot slot, Position p) {
    slots_[static_cast<std::size_t>(row)] = slot;
    positions_[static_cast<std::size_t>(row)] = p;
  }

  Verdict run(std::int32_t rows, std::int32_t batch_slots) {
    rollback::Ticket ticket;
    Verdict verdict = books_.begin({slots_.data(), positions_.data(), rows, &rows, 1, nullptr, 0}, ticket);
    if (verdict == Verdict::accepted) verdict = books_.settle(ticket, 0);
    for (std::int32_t i = 0; i < batch_slots && verdict == Verdict::accepted; ++i) {
      Slot const slot = slots_[static_cast<std::size_t>(i)];
      verdict = books_.commit(ticket, slot, books_.head(slot));
    }
    return verdict;
  }

  Books& books_;
  std::vector<Slot> slots_;
  std::vector<Position> positions_;
};

}  // namespace axes
