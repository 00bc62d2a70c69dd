// One open batch: its rows, slot by slot, how it is cut into chunks, and where it writes the states that it keeps.
#pragma once

#include <rollback/batch.hpp>
#include <rollback/component.hpp>
#include <rollback/detail/tier_table.hpp>
#include <rollback/position.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// A kept place of a component: of which slot, and its number there; without a slot a page that the engine handed out.
/// A negative number: none.
struct KeptPlace {
  std::int32_t slot = -1;
  std::int32_t place = -1;
};

/// The rows of one slot in an open batch.
struct OpenSlot {
  Span span;
  std::int32_t slot;
  std::int32_t unverified;
  std::int32_t order;  // its rows: rows_by_slot[order + (position - span.begin)]
  std::int32_t first_chunk;
  std::int32_t last_chunk;
  std::int32_t live_from;                // the live place at entry
  std::int32_t live_to;                  // the one that the batch advances
  KeptPlace source[max_components];      // of an armed restore; none where the state is empty
  KeptPlace window_source[max_windows];  // of an armed restore of window rows; none where the ring has them
  Position lowest_before[max_windows];
  bool closed;   // committed, failed or cleared
  bool pending;  // where it starts is not known yet: the positions are those if all before are accepted
};

struct OpenBatch {
  static constexpr std::int32_t none = -1;

  OpenBatch(std::int32_t slot_count, std::int32_t max_rows, std::int32_t max_chunks, std::size_t tiers)
      : slots(static_cast<std::size_t>(std::min(slot_count, max_rows))),
        entry_of_slot(static_cast<std::size_t>(slot_count), none),
        chunk_ends(static_cast<std::size_t>(max_chunks)),
        entry_of_row(static_cast<std::size_t>(max_rows)),
        position_of_row(static_cast<std::size_t>(max_rows)),
        rows_by_slot(static_cast<std::size_t>(max_rows)),
        pages(tiers * static_cast<std::size_t>(max_rows)) {}

  [[nodiscard]] static std::size_t bytes(std::int32_t slots, std::int32_t max_rows, std::int32_t max_chunks,
                                         std::size_t tiers) noexcept {
    auto const rows = static_cast<std::size_t>(max_rows);
    return sizeof(OpenBatch) + static_cast<std::size_t>(std::min(slots, max_rows)) * sizeof(OpenSlot) +
           (static_cast<std::size_t>(slots) + static_cast<std::size_t>(max_chunks) + (2 + tiers) * rows) *
               sizeof(std::int32_t) +
           rows * sizeof(Position);
  }

  /// The slot's rows in the batch, if they are still open; else null.
  [[nodiscard]] OpenSlot* find(std::int32_t slot) noexcept {
    std::int32_t const e = entry_of_slot[static_cast<std::size_t>(slot)];
    return e < 0 ? nullptr : &slots[static_cast<std::size_t>(e)];
  }
  [[nodiscard]] OpenSlot const* find(std::int32_t slot) const noexcept {
    std::int32_t const e = entry_of_slot[static_cast<std::size_t>(slot)];
    return e < 0 ? nullptr : &slots[static_cast<std::size_t>(e)];
  }
  /// The row of a position of the slot.
  [[nodiscard]] std::int32_t row_of(OpenSlot const& open, Position p) const noexcept {
    return rows_by_slot[static_cast<std::size_t>(open.order + (p - open.span.begin))];
  }
  /// The end of the slot's rows that stand before `row` of the batch.
  [[nodiscard]] Position end_of_rows(OpenSlot const& open, std::int32_t row) const noexcept {
    auto const first = rows_by_slot.begin() + open.order;
    return open.span.begin + (std::lower_bound(first, first + (open.span.end - open.span.begin), row) - first);
  }
  [[nodiscard]] std::int32_t chunk_of_row(std::int32_t row) const noexcept {
    auto const first = chunk_ends.begin();
    return static_cast<std::int32_t>(std::upper_bound(first, first + chunks, row) - first);
  }
  /// The first row of a chunk; of the number of chunks, or beyond, the number of rows.
  [[nodiscard]] std::int32_t chunk_begin(std::int32_t chunk) const noexcept {
    return chunk == 0 ? 0 : chunk_ends[static_cast<std::size_t>(std::min(chunk, chunks) - 1)];
  }
  [[nodiscard]] std::int32_t rows() const noexcept { return chunk_begin(chunks); }

  /// Where the state at `q` of a slot goes in a tier: the page, negative where the batch does not keep it.
  [[nodiscard]] std::int32_t page(std::size_t tier, OpenSlot const& open, Position q) const noexcept {
    Position const row = q - page_shift[tier];
    return row >= open.span.begin && row < open.span.end ? pages[page_index(tier, open, row)] : none;
  }
  void set_page(std::size_t tier, OpenSlot const& open, Position q, std::int32_t page) noexcept {
    pages[page_index(tier, open, q - page_shift[tier])] = page;
  }
  void forget_pages(std::size_t tiers) noexcept {
    for (std::size_t t = 0; t < tiers; ++t) {
      std::fill_n(pages.begin() + static_cast<std::ptrdiff_t>(t * rows_by_slot.size()), rows(), none);
    }
  }

  std::uint32_t serial = 0;
  bool is_open = false;
  std::int32_t settled = 0;
  std::int32_t chunks = 0;
  std::int32_t count = 0;                   // entries used of slots
  std::int32_t unclosed = 0;                // of these, not yet closed
  std::int32_t pending = 0;                 // of these, pending
  std::vector<OpenSlot> slots;              // [min(slots, max_rows)]
  std::vector<std::int32_t> entry_of_slot;  // [slots] index into `slots`; -1: not in the batch, or closed
  std::vector<std::int32_t> chunk_ends;     // [max_chunks]
  std::vector<std::int32_t> entry_of_row;   // [max_rows] index into `slots`; -1: padding
  std::vector<Position> position_of_row;    // [max_rows]
  std::vector<std::int32_t> rows_by_slot;   // [max_rows] row indices, slot after slot, rising positions

  std::int8_t page_shift[2 * max_components] = {};  // a tier: 0 per token, 1 for boundaries
  std::vector<std::int32_t> pages;                  // [tiers, max_rows]

 private:
  // A per-token state goes with the row that reads it, a boundary with the row that writes it.
  [[nodiscard]] std::size_t page_index(std::size_t tier, OpenSlot const& open, Position row) const noexcept {
    return tier * rows_by_slot.size() + static_cast<std::size_t>(open.order + (row - open.span.begin));
  }
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
