// What the books must list for one slot, worked out from sets of positions alone: the other oracle of the tests.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace toy {

using rollback::Component;
using rollback::Position;

/// The positions that books list for a slot.
inline std::vector<Position> listed(rollback::Books const& books, rollback::Slot slot) {
  std::vector<rollback::Landing> landings(static_cast<std::size_t>(books.landings(slot, nullptr, 0)));
  static_cast<void>(books.landings(slot, landings.data(), static_cast<std::int32_t>(landings.size())));
  std::vector<Position> positions;
  for (rollback::Landing const& landing : landings) positions.push_back(landing.position);
  return positions;
}

/// The rows of a slot in a batch.
struct Rows {
  Position begin = 0;
  Position verified = 0;
  Position end = 0;
  std::vector<std::int32_t> chunk;  // of each row
};

/// One tier: for each place the position kept there, or -1.
struct ExpectedTier {
  Position quantum;
  std::int32_t spares;
  std::vector<Position> kept;

  [[nodiscard]] bool has(Position p) const { return p > 0 && std::count(kept.begin(), kept.end(), p) > 0; }
  [[nodiscard]] Position& place(Position q) {
    return kept[static_cast<std::size_t>(q / quantum) % kept.size()];  // in turn, by default
  }
  [[nodiscard]] bool fits(Position q, Position at) const {
    auto const depth = static_cast<Position>(kept.size());
    return q % quantum == 0 && (quantum == 1 ? q >= at - depth : q > at / quantum * quantum - depth * quantum);
  }
  void forget_if(Position low, Position high) {  // positions in [low, high]
    for (Position& p : kept) p = p >= low && p <= high ? -1 : p;
  }
};

/// The landings of one slot, as the laws give them.
class ExpectedLandings {
 public:
  explicit ExpectedLandings(rollback::BooksOptions const& options) : entry_copy_(options.entry_copy) {
    for (Component const& c : options.components) {
      rollback::Places const p = rollback::places(c, options.entry_copy);
      std::vector<ExpectedTier> tiers;
      if (c.per_token > 0) {
        tiers.push_back({1, p.per_token_spares, std::vector<Position>(static_cast<std::size_t>(c.per_token), -1)});
      }
      if (c.aligned > 0) {
        std::int32_t const spares = options.pages > 0 ? INT32_MAX : p.aligned_spares;  // with enough of them
        tiers.push_back({c.quantum, spares, std::vector<Position>(static_cast<std::size_t>(c.aligned), -1)});
      }
      components_.push_back({tiers, c.empty_at});
    }
    for (rollback::Window const& w : options.windows) windows_.push_back({w, 0});
  }

  Position tip = 0;
  bool armed = false;

  [[nodiscard]] bool lands(Position p) const {
    if (p == 0 || p == tip) return true;
    if (p < 0 || p > tip) return false;
    for (Kind const& c : components_) {
      bool served = c.empty_at > 0 && p % c.empty_at == 0;
      for (ExpectedTier const& tier : c.tiers) served = served || tier.has(p);
      if (!served) return false;
    }
    return covered(p);
  }

  void roll_back(Position p) {
    if (p == tip) return;
    armed = p > 0;
    land(p);
  }

  void clear() {
    for (Kind& c : components_) {
      for (ExpectedTier& tier : c.tiers) std::fill(tier.kept.begin(), tier.kept.end(), -1);
    }
    armed = false;
    land(0);
  }

  /// Goes on from the landing `p` of another slot.
  void fork(ExpectedLandings const& from, Position p) {
    *this = from;
    armed = p > 0;
    land(p);
  }

  /// Loaded at `p`, live or as a landing, with `landings` below it: the tiers take what they would have kept.
  void load(Position p, std::vector<Position> const& landings, bool as_landing) {
    clear();
    std::vector<Position> states = landings;
    if (as_landing) states.insert(states.begin(), p);  // newest first: an older one gives way
    Position lowest = p;
    for (Position q : landings) lowest = std::min(lowest, q);
    for (Raw& w : windows_) { w.lowest = std::max({Position{0}, lowest - (w.window.window - 1), p - w.window.rows}); }
    tip = p;
    armed = as_landing && p > 0;
    for (Position q : states) {
      bool all = covered(q);
      for (Kind& c : components_) {
        bool served = c.empty_at > 0 && q % c.empty_at == 0;
        for (ExpectedTier& tier : c.tiers) served = served || (tier.fits(q, p) && tier.place(q) < q);
        all = all && served;
      }
      for (Kind& c : components_) {
        for (ExpectedTier& tier : c.tiers) {
          if (all && tier.fits(q, p) && tier.place(q) < q) tier.place(q) = q;
        }
      }
    }
  }

  void commit(Rows const& rows, Position accepted) {
    keep(rows, accepted, INT32_MAX, INT32_MAX);
    write(rows.end);
    bool const copied = entry_copy_ && !armed && accepted == rows.begin;
    armed = accepted > 0 && accepted < rows.end && !copied;
    land(accepted);
  }

  /// The best of: the entry, else the end of the good chunks, else the newest landing.
  /// Chunks before `first_bad` ran, those before `end` may have.
  void fail(Rows const& rows, std::int32_t first_bad, std::int32_t end) {
    auto const rows_before = [&rows](std::int32_t chunk) {
      return std::count_if(rows.chunk.begin(), rows.chunk.end(), [&](auto k) { return k < chunk; });
    };
    Position const good_end = rows.begin + rows_before(first_bad);
    Position const torn_end = rows.begin + rows_before(end);
    bool const unknown = torn_end > good_end;
    if (torn_end == rows.begin) return;
    write(torn_end);
    bool const entry = covered(rows.begin);
    if (entry && (armed || entry_copy_)) {
      keep(rows, rows.begin, first_bad, end);
      land(rows.begin);
      return;
    }
    Position const limit = std::min(good_end, rows.verified);
    keep(rows, limit, first_bad, end);
    if (!unknown && good_end <= rows.verified) {
      armed = false;
      land(good_end);
    } else {
      Position newest = limit;
      tip = rows.end;  // so that the limit itself is judged like any other
      while (!lands(newest)) --newest;
      armed = newest > 0;
      land(newest);
    }
  }

 private:
  struct Kind {
    std::vector<ExpectedTier> tiers;
    Position empty_at;
  };
  struct Raw {
    rollback::Window window;
    Position lowest;  // the oldest position whose row exists
  };

  [[nodiscard]] bool covered(Position p) const {
    return std::all_of(windows_.begin(), windows_.end(),
                       [p](Raw const& w) { return w.lowest <= std::max<Position>(0, p - (w.window.window - 1)); });
  }
  void write(Position end) {
    for (Raw& w : windows_) w.lowest = std::max(w.lowest, end - w.window.rows);
  }
  void land(Position p) {
    tip = p;
    for (Raw& w : windows_) w.lowest = std::min(w.lowest, p);
    for (Kind& c : components_) {
      for (ExpectedTier& tier : c.tiers) tier.forget_if(p + 1, INT64_MAX);
    }
  }

  void keep(Rows const& rows, Position limit, std::int32_t first_bad, std::int32_t end) {
    for (Kind& c : components_) {
      for (ExpectedTier& tier : c.tiers) keep(tier, rows, limit, first_bad, end);
    }
  }

  // Keeps what the batch wrote up to `limit`. An armed source and what only unverified rows cross are never written
  // over but go through spares, as far as these reach.
  void keep(ExpectedTier& tier, Rows const& rows, Position limit, std::int32_t first_bad, std::int32_t end) const {
    auto const depth = static_cast<Position>(tier.kept.size());
    Position const q1 = tier.quantum;
    std::vector<Position> states;
    for (Position q = rows.begin; q <= rows.end; ++q) {
      if (q == 0 || q % q1 != 0) continue;
      bool const wanted =
          q1 == 1 ? q < rows.end && q >= rows.end - depth : q > rows.begin && q > rows.verified / q1 * q1 - depth * q1;
      if (wanted) states.push_back(q);
    }
    ExpectedTier const before = tier;
    std::int32_t spares = 0;
    for (Position q : states) {
      if (armed && q == rows.begin && before.has(q)) continue;
      auto const row = static_cast<std::size_t>(std::max(q - 1, rows.begin) - rows.begin);
      bool const ran = rows.chunk[row] < first_bad;
      bool const source = armed && before.kept[static_cast<std::size_t>(q / q1 % depth)] == rows.begin;
      bool const spare = source || (q1 > 1 && q > rows.verified);
      if (spare) ++spares;
      bool const listed = ran && q <= limit;
      if (!listed && (spare || rows.chunk[row] >= end)) continue;
      tier.place(q) = listed && (!spare || spares <= tier.spares) ? q : -1;
      if (listed && (!spare || spares <= tier.spares)) tier.forget_if(0, q - depth * q1);  // no longer among the last
    }
  }

  bool entry_copy_;
  std::vector<Kind> components_;
  std::vector<Raw> windows_;
};

}  // namespace toy
