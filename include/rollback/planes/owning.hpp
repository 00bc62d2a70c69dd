// Memory for those who have none: one block, carved into tensors by the same code that counts its bytes.
#pragma once

#include <rollback/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace rollback {
inline namespace v0_1 {

/// One allocation that holds several tensors, each at a multiple of 64 bytes. Not copied; moves keep the addresses.
class OwnedTensors {
 public:
  static constexpr std::size_t alignment = 64;

  /// Bytes that tensors of these sizes take together, alignment included.
  /// @throws std::invalid_argument where they are more than an address space holds
  [[nodiscard]] static std::size_t bytes(std::vector<std::size_t> const& sizes) {
    std::size_t total = 0;
    for (std::size_t size : sizes) {
      if (size > SIZE_MAX - alignment || total > SIZE_MAX - alignment - size) {
        detail::refuse_setup("OwnedTensors: the sizes add up to more than memory can hold");
      }
      total += (size + alignment - 1) / alignment * alignment;
    }
    return total;
  }

  /// Host bytes beside the block: the object and its lists of sizes and offsets, for so many tensors.
  [[nodiscard]] static constexpr std::size_t bookkeeping_bytes(std::size_t count) noexcept {
    return sizeof(OwnedTensors) + 2 * count * sizeof(std::size_t);
  }

  /// Zeroed. @throws std::bad_alloc; std::invalid_argument as `bytes`
  explicit OwnedTensors(std::vector<std::size_t> const& sizes) : sizes_(sizes) {
    std::size_t const total = bytes(sizes);
    block_.reset(static_cast<std::byte*>(::operator new (total == 0 ? 1 : total, std::align_val_t{alignment})));
    offsets_.reserve(sizes.size());
    std::size_t offset = 0;
    for (std::size_t size : sizes) {
      offsets_.push_back(offset);
      offset += bytes({size});
    }
    if (total > 0) std::memset(block_.get(), 0, total);
  }

  [[nodiscard]] std::size_t count() const noexcept { return sizes_.size(); }
  [[nodiscard]] std::size_t size(std::size_t tensor) const noexcept { return sizes_[tensor]; }
  [[nodiscard]] std::byte* data(std::size_t tensor) const noexcept { return block_.get() + offsets_[tensor]; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { ::operator delete (p, std::align_val_t{alignment}); }
  };
  std::unique_ptr<std::byte, Free> block_;
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> offsets_;
};

}  // namespace v0_1
}  // namespace rollback
