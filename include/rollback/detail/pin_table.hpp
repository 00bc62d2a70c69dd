// The pins of every slot: landings that the engine placed, and what has become of them.
#pragma once

#include <rollback/detail/page_pool.hpp>
#include <rollback/detail/tier_table.hpp>
#include <rollback/position.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// One landing that the engine asked for.
struct Pin {
  enum class Phase : std::uint8_t {
    free,
    wanted,   // the next batch that can keeps the state
    staged,   // an open batch keeps it
    kept,     // a landing
    leaving,  // unpinned, but an armed restore reads it
  };
  Position position = -1;
  std::int32_t page = 0;
  std::int32_t ticket = -1;  // of the batch that keeps it
  Phase phase = Phase::free;
  bool rows = false;  // it holds the window rows below the position as well

  [[nodiscard]] bool holds_state() const noexcept { return phase == Phase::kept || phase == Phase::leaving; }
};

/// `pins` pins a slot, all components alike. All members are O(pins).
class PinTable {
 public:
  PinTable(std::int32_t slots, std::int32_t pins)
      : pins_(pins),
        table_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(pins)),
        pages_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(pins)) {
    for (std::size_t i = 0; i < table_.size(); ++i) table_[i].page = static_cast<std::int32_t>(i);
  }

  [[nodiscard]] std::int32_t pins() const noexcept { return pins_; }
  [[nodiscard]] static std::size_t bytes(std::int32_t slots, std::int32_t pins) noexcept {
    auto const n = static_cast<std::size_t>(slots) * static_cast<std::size_t>(pins);
    return n * sizeof(Pin) + PagePool::bytes(n);
  }

  [[nodiscard]] Pin* begin(std::int32_t slot) noexcept { return table_.data() + slot * std::ptrdiff_t{pins_}; }
  [[nodiscard]] Pin* end(std::int32_t slot) noexcept { return begin(slot) + pins_; }
  [[nodiscard]] Pin const* begin(std::int32_t slot) const noexcept {
    return table_.data() + slot * std::ptrdiff_t{pins_};
  }
  [[nodiscard]] Pin const* end(std::int32_t slot) const noexcept { return begin(slot) + pins_; }

  /// The pin at `p`, whatever its phase; null where there is none.
  [[nodiscard]] Pin* find(std::int32_t slot, Position p) noexcept {
    Pin* const pin = std::find_if(begin(slot), end(slot), [p](Pin const& x) { return x.position == p; });
    return pin == end(slot) ? nullptr : pin;
  }
  /// The page of the state at `p`; negative where none is kept.
  [[nodiscard]] std::int32_t page_of(std::int32_t slot, Position p) const noexcept {
    Pin const* const pin =
        std::find_if(begin(slot), end(slot), [p](Pin const& x) { return x.position == p && x.holds_state(); });
    return pin == end(slot) ? -1 : pin->page;
  }
  /// The page of the window rows below `p`; negative where no pin holds them.
  [[nodiscard]] std::int32_t rows_page_of(std::int32_t slot, Position p) const noexcept {
    Pin const* const pin = std::find_if(begin(slot), end(slot),
                                        [p](Pin const& x) { return x.position == p && x.holds_state() && x.rows; });
    return pin == end(slot) ? -1 : pin->page;
  }
  /// The largest position at or below `p` of a pin of which `usable` says that it can be landed on, or a negative one.
  template <class Usable>
  [[nodiscard]] Position floor(std::int32_t slot, Position p, Usable usable) const noexcept {
    Position best = -1;
    for (Pin const* pin = begin(slot); pin != end(slot); ++pin) {
      if (pin->phase == Pin::Phase::kept && pin->position <= p && pin->position > best && usable(*pin)) {
        best = pin->position;
      }
    }
    return best;
  }

  /// A new pin at `p` is wanted; false where all are in use.
  [[nodiscard]] bool add(std::int32_t slot, Position p) noexcept {
    Pin* const pin = find(slot, -1);
    if (pin == nullptr) return false;
    pin->position = p;
    pin->phase = Pin::Phase::wanted;
    return true;
  }
  void remove(Pin& pin) noexcept {
    pin.position = -1;
    pin.ticket = -1;
    pin.phase = Pin::Phase::free;
  }

  /// Whether a state can be written to the pin's page, or another one in its stead.
  [[nodiscard]] bool writable(Pin const& pin) const noexcept { return pages_.writable(pin.page); }
  void hold(std::int32_t page) noexcept { pages_.hold(page); }
  void release(std::int32_t page) noexcept { pages_.release(page); }

  /// Whether nobody else keeps, or holds, what the slot's pins hold.
  [[nodiscard]] bool exclusive(std::int32_t slot) const noexcept {
    return std::all_of(begin(slot), end(slot), [this](Pin const& pin) { return pages_.exclusive(pin.page); });
  }

  /// An open batch keeps the state, with `rows` the window rows below it too; the pin must be writable.
  void stage(Pin& pin, std::int32_t ticket, bool rows) noexcept {
    if (pages_.shared(pin.page)) pages_.unshare(pin.page);
    pin.phase = Pin::Phase::staged;
    pin.ticket = ticket;
    pin.rows = rows;
  }
  /// A free pin that is writable; null where there is none.
  [[nodiscard]] Pin* find_free(std::int32_t slot) noexcept {
    Pin* const pin = std::find_if(begin(slot), end(slot),
                                  [this](Pin const& x) { return x.phase == Pin::Phase::free && writable(x); });
    return pin == end(slot) ? nullptr : pin;
  }
  /// The writable pin is kept at `p`: whoever calls writes the state, and with `rows` the window rows below it.
  void adopt(Pin& pin, Position p, bool rows) noexcept {
    if (pages_.shared(pin.page)) pages_.unshare(pin.page);
    pin.position = p;
    pin.phase = Pin::Phase::kept;
    pin.rows = rows;
  }
  /// The batch is over for the slot: what it did not keep is wanted again.
  void resolve(Pin& pin, bool keep) noexcept {
    pin.phase = keep ? Pin::Phase::kept : Pin::Phase::wanted;
    pin.ticket = -1;
  }

  /// The sequence is at `tip` now, with a restore armed or not: what lies above is gone, and so is what nobody reads.
  void land(std::int32_t slot, Position tip, bool armed) noexcept {
    for (Pin* pin = begin(slot); pin != end(slot); ++pin) {
      bool const above = pin->phase == Pin::Phase::kept && pin->position > tip;
      bool const read = pin->phase != Pin::Phase::leaving || (armed && pin->position == tip);
      if (above || !read) remove(*pin);
    }
  }

  /// Shares with slot `to`, which has no pins, those of slot `from` at or below `p`.
  void fork(std::int32_t from, std::int32_t to, Position p) noexcept {
    for (std::int32_t i = 0; i < pins_; ++i) {
      Pin const& source = begin(from)[i];
      if (!source.holds_state() || source.position > p) continue;  // one that leaves may be what `p` restores
      Pin& pin = begin(to)[i];
      pages_.exchange(pin.page, source.page);
      pin.position = source.position;
      pin.phase = source.phase;
      pin.rows = source.rows;
    }
  }

  void clear(std::int32_t slot) noexcept {
    for (Pin* pin = begin(slot); pin != end(slot); ++pin) remove(*pin);
  }

 private:
  std::int32_t pins_;
  std::vector<Pin> table_;  // [slots, pins]
  PagePool pages_;
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
