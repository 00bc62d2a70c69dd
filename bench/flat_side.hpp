// One side of a pair: books at a setting, and the questions whose cost is compared between two of them.
#pragma once

#include "prepared.hpp"

#include <array>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>

namespace flat {

using axes::Setting;
using rollback::Books;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;

inline constexpr std::int32_t pair_count = 20;
inline constexpr std::int32_t tries = 3;  // of a line: what breaks a limit is measured again

/// Slots apart from those that are rolled back: a new one for every pair, and for the call before the first pair, of
/// every try, since plans and steps move a slot on.
inline constexpr std::int32_t lanes = tries * (pair_count + 1);
inline constexpr std::int32_t first_plan = 0;
inline constexpr std::int32_t first_block_end = first_plan + lanes;
inline constexpr std::int32_t first_step = first_block_end + lanes;
inline constexpr std::int32_t asked = first_step + lanes;
inline constexpr std::int32_t own_slots = asked + 1;

inline void require(Verdict verdict, char const* what) {
  if (verdict != Verdict::accepted) throw std::runtime_error(std::string(what) + ": " + text(verdict));
}

/// The lists of every component for a chunk of one row, in memory that fits any such chunk.
class PlanMemory {
 public:
  explicit PlanMemory(Books const& books) {
    rollback::Shape const worst = books.worst_shape(1, 1);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      Part& part = parts_[static_cast<std::size_t>(c)];
      rollback::Lengths const n = books.lengths(c, worst);
      part.map = rollback::RowMap::packed(books.component(c).geometry, books.places(c), books.slots());
      auto const of = [](auto& memory, std::int32_t length) {
        memory.emplace_back(static_cast<std::size_t>(length));
        return memory.back().data();
      };
      rollback::Lists& l = part.lists;
      l.restore_source = of(part.rows, n.restores);
      l.restore_destination = of(part.rows, n.restores);
      l.snapshot_source = of(part.rows, n.snapshots);
      l.snapshot_destination = of(part.rows, n.snapshots);
      l.persist_source = of(part.rows, n.rows);
      l.persist_destination = of(part.rows, n.rows);
      l.block_previous = of(part.rows, n.block_reads);
      l.block_current = of(part.rows, n.block_reads);
      l.block_slot = of(part.rows, n.blocks);
      l.block_row = of(part.wide, n.blocks);
      l.block_position = of(part.wide, n.blocks);
      l.visible = of(part.wide, n.rows);
    }
  }

  /// The plans of all components.
  Verdict plan(Books const& books, rollback::Ticket const& ticket, rollback::Shape const& shape) {
    for (std::int32_t c = 0; c < books.components(); ++c) {
      Part& part = parts_[static_cast<std::size_t>(c)];
      Verdict const verdict = books.plan(ticket, 0, c, shape, part.map, part.lists);
      if (verdict != Verdict::accepted) return verdict;
    }
    return Verdict::accepted;
  }

 private:
  struct Part {
    rollback::RowMap map;
    rollback::Lists lists;
    std::vector<std::vector<std::int32_t>> rows;
    std::vector<std::vector<std::int64_t>> wide;
  };
  std::array<Part, rollback::max_components> parts_;
};

/// All members that measure return ns an operation.
class Side {
 public:
  explicit Side(Setting const& s) : setting_(with_own_slots(s)), books_(dsv4_books(setting_)), lists_(books_) {
    require(prepare_all(books_, setting_), "prepare");
    Slot const last = books_.slot(books_.slots() - 1);
    missing_ = axes::missing_boundaries(books_, last, s.aligned);
    if (s.holes ? 2 * missing_ < s.aligned : missing_ > 0) throw std::runtime_error("holes: not as many as wanted");
    if (kept_pins(books_, last, s) != s.pinned) throw std::runtime_error("pins: not all of them are kept");
    // Inside a quantum and a block, where most tokens are; and where every component ends a block.
    for (std::int32_t i = 0; i < lanes; ++i) {
      require(feeder_.up_to(books_.slot(first_plan + i), s.tip + 100), "feed");
      require(feeder_.up_to(books_.slot(first_block_end + i), s.tip + axes::quantum - 1), "feed");
    }
    require(feeder_.up_to(books_.slot(asked), s.tip + 100), "feed");
    Position const oldest = rollback::boundary_at_or_below(s.tip, axes::quantum) - (s.aligned - 1) * axes::quantum;
    Position const newest = s.tip + 100 - s.per_token;
    boundaries_ = positions(std::max(oldest, books_.reach(books_.slot(asked))), newest);
    tokens_ = positions(newest, s.tip + 100);
    last_token_.assign(tokens_.size(), s.tip + 99);
  }

  [[nodiscard]] std::int64_t missing() const { return missing_; }
  [[nodiscard]] Setting const& setting() const { return setting_; }

  /// The nearest landing to positions anywhere in reach of the aligned tier.
  double nearest_boundary(std::int64_t operations) { return nearest(boundaries_, operations); }
  /// The same for the last `per_token` tokens.
  double nearest_token(std::int64_t operations) { return nearest(tokens_, operations); }
  /// The same for the last token, over and over: the same way through the code, whatever the depth.
  double nearest_last(std::int64_t operations) { return nearest(last_token_, operations); }

  /// Takes the last token of `count` slots back, in `passes` passes: a second call on the same slot would be a no-op,
  /// so every slot is fed one token between passes, unmeasured.
  double roll_back(std::int32_t count, std::int64_t passes) {
    std::int32_t const end = own_slots + count;
    double ns = 0;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      require(feeder_.one_each(own_slots, end), "feed");
      Verdict verdict = Verdict::accepted;
      auto const start = std::chrono::steady_clock::now();
      for (std::int32_t s = own_slots; s < end; ++s) {
        Verdict const v = books_.roll_back(books_.slot(s), setting_.tip);
        if (v != Verdict::accepted) verdict = v;
      }
      benchmark::ClobberMemory();
      ns += since(start);
      require(verdict, "roll_back");
      if (books_.tip(books_.slot(end - 1)) != setting_.tip) throw std::runtime_error("roll_back: not at its target");
    }
    return ns / static_cast<double>(passes * count);
  }

  /// The plans of the next token of a slot for all components together.
  double plan(std::int32_t slot_index, std::int64_t operations) {
    Slot const slot = books_.slot(slot_index);
    rollback::Ticket const ticket = begin_one(slot);
    rollback::Shape shape;
    require(books_.shape(ticket, 0, shape), "shape");
    auto const start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < operations; ++i) {
      require(lists_.plan(books_, ticket, shape), "plan");
      benchmark::ClobberMemory();
    }
    double const ns = since(start);
    require(books_.settle(ticket, 0), "settle");
    require(books_.commit(ticket, slot, books_.head(slot)), "commit");
    return ns / static_cast<double>(operations);
  }

  /// All that the books do for a token, for the next tokens of a slot.
  double step(std::int32_t slot_index, std::int64_t operations) {
    Slot const slot = books_.slot(slot_index);
    auto const start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < operations; ++i) {
      rollback::Ticket const ticket = begin_one(slot);
      rollback::Shape shape;
      require(books_.shape(ticket, 0, shape), "shape");
      require(lists_.plan(books_, ticket, shape), "plan");
      require(books_.settle(ticket, 0), "settle");
      require(books_.commit(ticket, slot, books_.head(slot)), "commit");
      benchmark::ClobberMemory();
    }
    return since(start) / static_cast<double>(operations);
  }

 private:
  static Setting with_own_slots(Setting s) {
    s.sequences += own_slots;
    return s;
  }
  static double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  }
  /// Positions in [from, to), made up before they are measured; so many that no branch learns the answers.
  static std::vector<Position> positions(Position from, Position to) {
    std::vector<Position> out;
    if (from >= to) return out;
    std::mt19937_64 random(1);
    std::uniform_int_distribution<Position> in_range(from, to - 1);
    for (int i = 0; i < 4096; ++i) out.push_back(in_range(random));
    return out;
  }

  double nearest(std::vector<Position> const& wanted, std::int64_t operations) {
    Slot const slot = books_.slot(asked);
    std::int64_t const rounds = std::max<std::int64_t>(operations / static_cast<std::int64_t>(wanted.size()), 1);
    Position lowest = setting_.tip;
    auto const start = std::chrono::steady_clock::now();
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (Position const p : wanted) {
        Position const at = books_.nearest(slot, p).position;
        lowest = std::min(lowest, at);
        benchmark::ClobberMemory();
      }
    }
    double const ns = since(start);
    if (lowest <= 0) throw std::runtime_error("nearest: no landing in reach");
    return ns / static_cast<double>(rounds * static_cast<std::int64_t>(wanted.size()));
  }

  rollback::Ticket begin_one(Slot slot) {
    Position const p = books_.tip(slot);
    std::int32_t const one = 1;
    rollback::Ticket ticket;
    require(books_.begin({&slot, &p, 1, &one, 1, nullptr, 0}, ticket), "begin");
    return ticket;
  }

  Setting setting_;
  Books books_;
  PlanMemory lists_;
  axes::Feeder feeder_{books_};
  std::int64_t missing_ = 0;
  std::vector<Position> boundaries_;
  std::vector<Position> tokens_;
  std::vector<Position> last_token_;
};

}  // namespace flat
