// The pages of one tier, counted by reference: who may write where without touching what others keep.
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
/// because it is shared finds a free one, always. All members are O(1), but for pages that are held.
///
/// Common pages are the engine's to give and to take: a holder has none until it claims one, which may fail, and a page
/// is free as soon as nobody holds, writes or reads it.
class PagePool {
 public:
  static constexpr std::int32_t none = -1;

  /// Every page starts in the hands of the holder with its number; common ones in the engine's.
  explicit PagePool(std::size_t pages, bool common = false)
      : pages_(pages, Page{common ? absent : 1}), free_(pages), common_(common) {}

  [[nodiscard]] static std::size_t bytes(std::size_t pages) noexcept {
    return pages * (sizeof(Page) + sizeof(std::int32_t));
  }

  [[nodiscard]] bool shared(std::int32_t page) const noexcept { return at(page).holders > 1; }
  [[nodiscard]] bool written(std::int32_t page) const noexcept { return at(page).writers > 0; }
  /// Whether a holder of the page may have it written, or another one in its stead.
  [[nodiscard]] bool writable(std::int32_t page) const noexcept {
    return !held(page) && (!shared(page) || (!common_ && last_free() > 0));
  }
  [[nodiscard]] bool held(std::int32_t page) const noexcept { return at(page).holds > 0; }
  /// Whether the page has one holder and nobody reads it.
  [[nodiscard]] bool exclusive(std::int32_t page) const noexcept { return at(page).holders == 1 && !held(page); }
  /// Somebody reads the page, so that nobody may write it; as often as wanted.
  void hold(std::int32_t page) noexcept { ++at(page).holds; }
  void release(std::int32_t page) noexcept {
    --at(page).holds;
    free_if_idle(page);
  }
  void begin_write(std::int32_t page) noexcept { ++at(page).writers; }
  void end_write(std::int32_t page) noexcept {
    --at(page).writers;
    free_if_idle(page);
  }

  /// Gives `page`, if it is one, up for `other`, which gets one more holder.
  void exchange(std::int32_t& page, std::int32_t other) noexcept {
    ++at(other).holders;
    if (page >= 0) leave(page);
    page = other;
  }
  /// The page has one holder less.
  void leave(std::int32_t page) noexcept {
    --at(page).holders;
    if (common_) {
      free_if_idle(page);
    } else if (at(page).holders == 0) {
      free_[free_count_++] = page;
    }
  }
  /// Gives a shared page, which must be `writable`, up for a free one.
  void unshare(std::int32_t& page) noexcept {
    --at(page).holders;
    std::size_t const i = last_free() - 1;
    page = free_[i];
    free_[i] = free_[--free_count_];
    ++at(page).holders;
  }

  /// The engine hands a common page out; false where it did already.
  [[nodiscard]] bool give(std::int32_t page) noexcept {
    if (at(page).holders != absent) return false;
    at(page).holders = 0;
    free_if_idle(page);
    return true;
  }
  /// The engine takes a free common page back; `none` where there is none.
  [[nodiscard]] std::int32_t take() noexcept {
    std::int32_t const page = claim();
    if (page >= 0) at(page).holders = absent;
    return page;
  }
  /// A free common page for whoever holds or writes it next; `none` where there is none.
  [[nodiscard]] std::int32_t claim() noexcept { return free_count_ > 0 ? free_[--free_count_] : none; }
  [[nodiscard]] std::int32_t free_count() const noexcept { return static_cast<std::int32_t>(free_count_); }

 private:
  static constexpr std::int32_t absent = -1;  // holders of a common page that the engine has

  struct Page {
    std::int32_t holders = 1;
    std::int32_t writers = 0;
    std::int32_t holds = 0;
  };
  // How many free pages there are up to the last one that nobody reads; 0 where there is none. O(1 + pages held).
  [[nodiscard]] std::size_t last_free() const noexcept {
    std::size_t count = free_count_;
    while (count > 0 && at(free_[count - 1]).holds > 0) --count;
    return count;
  }
  // Nobody holds, writes or reads a common page any more: whoever does not have it may.
  void free_if_idle(std::int32_t page) noexcept {
    Page const& p = at(page);
    if (common_ && p.holders == 0 && p.writers == 0 && p.holds == 0) free_[free_count_++] = page;
  }
  [[nodiscard]] Page& at(std::int32_t page) noexcept { return pages_[static_cast<std::size_t>(page)]; }
  [[nodiscard]] Page const& at(std::int32_t page) const noexcept { return pages_[static_cast<std::size_t>(page)]; }

  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;  // [pages] of which `free_count_` are used
  std::size_t free_count_ = 0;
  bool common_;
};

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
