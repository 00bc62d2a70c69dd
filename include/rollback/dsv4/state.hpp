// Saving and loading the sequences of a DSV4 memory. Opt-in, as state_io.hpp: needs xxHash's header.
#pragma once

#include <rollback/dsv4/memory.hpp>
#include <rollback/state_io.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace dsv4 {

/// The `StateLayout` of a memory, and which of its tensors have the rows that saving and loading name. Knows no
/// pointers to state; good for every slot of the memory, and for any other memory of the same shape and options.
///
/// A saved state goes to every memory whose shape, `hadamard`, `rounding` and `weights` are the same: its depths,
/// quantum, slots, pins, entry copies and raw rows may differ. Others refuse it (`other_layout`).
class MemoryLayout {
 public:
  /// @param weights  tells models of one shape apart: the engine's choice
  /// @throws std::bad_alloc
  explicit MemoryLayout(Memory const& memory, std::uint64_t weights = 0);

  /// For `rollback::save` and its like. Points into this object: valid as long as it is, and is not assigned to.
  [[nodiscard]] StateLayout state_layout() const& noexcept;
  StateLayout state_layout() const&& = delete;

  /// The tensor that has the rows, as an index into `Memory::tensors`. Row r is at byte `r * rows.row_bytes` of it.
  [[nodiscard]] std::size_t tensor(StateRows const& rows) const noexcept {
    return store(rows.store, rows.index).tensors[static_cast<std::size_t>(rows.layer)];
  }
  /// Where the rows are in a memory's tensors: the first of them, of so many copies.
  [[nodiscard]] std::byte* data(Memory const& memory, StateRows const& rows, std::int32_t copy = 0) const noexcept {
    return reinterpret_cast<std::byte*>(memory.data(tensors_[tensor(rows)])) +
           rows.first[copy] * static_cast<std::int64_t>(rows.row_bytes);
  }

 private:
  struct Store {
    std::vector<std::size_t> tensors;      // [layers] indices into `Memory::tensors`; of states keys, then scores
    std::vector<std::uint64_t> row_bytes;  // [layers]
    [[nodiscard]] StoreLayers layers() const noexcept {
      return {static_cast<std::int32_t>(row_bytes.size()), row_bytes.data()};
    }
  };
  [[nodiscard]] Store const& store(StateRows::Store kind, std::int32_t component) const noexcept {
    if (kind == StateRows::Store::window) return window_;
    return (kind == StateRows::Store::state ? states_ : caches_)[component];
  }

  std::uint64_t model_ = 0;
  std::vector<Tensor> tensors_;
  Store states_[compressors];  // by the books' components
  Store caches_[compressors];
  Store window_;
  RowMap maps_[compressors];
};

/// `rollback::save` for tensors that the host can read.
/// @param write  bool(void const* data, std::size_t size): writes these bytes, and says whether it did
template <class Write>
[[nodiscard]] Verdict save(Memory const& memory, Slot slot, Position p, MemoryLayout const& layout,
                           SaveOptions const& options, Write&& write);
/// `rollback::check`, through the same function as `load`.
template <class Read>
[[nodiscard]] Verdict check(Memory const& memory, MemoryLayout const& layout, LoadAs as, Read&& read);
/// `rollback::load` for tensors that the host can write.
/// @param read  bool(void* data, std::size_t size): reads so many bytes, and says whether it did
template <class Read>
[[nodiscard]] Verdict load(Memory& memory, Slot& slot, MemoryLayout const& layout, LoadAs as, Read&& read);

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback

#include <rollback/detail/dsv4_state.hpp>
