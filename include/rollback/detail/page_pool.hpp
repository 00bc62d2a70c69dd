// The places of one tier of all slots, counted by reference: who may write where without touching what others keep.
#pragma once

#include <rollback/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// Pages with reference counts and counts of open batches that write them. Whoever may hold a state always holds one
/// page; where two hold the same one, another page is free in its stead. So a holder that must not write its page
/// because it is shared finds a free one, always. All members are O(1).
class PagePool {
 public:
  /// Every page starts in the hands of the holder with its number.
  explicit PagePool(std::size_t pages) : pages_(pages), free_(pages) {}

  [[nodiscard]] static std::size_t bytes(std::size_t pages) noexcept {
    return pages * (sizeof(Page) + sizeof(std::int32_t));
  }

  [[nodiscard]] bool shared(std::int32_t page) const noexcept { return at(page).holders > 1; }
  [[nodiscard]] bool written(std::int32_t page) const noexcept { return at(page).writers > 0; }
  void begin_write(std::int32_t page) noexcept { ++at(page).writers; }
  void end_write(std::int32_t page) noexcept { --at(page).writers; }

  /// Gives `page` up for `other`, which gets one more holder.
  void exchange(std::int32_t& page, std::int32_t other) noexcept {
    ++at(other).holders;
    if (--at(page).holders == 0) free_[free_count_++] = page;
    page = other;
  }
  /// Gives a shared page up for a free one.
  void unshare(std::int32_t& page) noexcept {
    --at(page).holders;
    page = free_[--free_count_];
    ++at(page).holders;
  }

 private:
  struct Page {
    std::int32_t holders = 1;
    std::int32_t writers = 0;
  };
  [[nodiscard]] Page& at(std::int32_t page) noexcept { return pages_[static_cast<std::size_t>(page)]; }
  [[nodiscard]] Page const& at(std::int32_t page) const noexcept { return pages_[static_cast<std::size_t>(page)]; }

  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;  // [pages] of which `free_count_` are used
  std::size_t free_count_ = 0;
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
