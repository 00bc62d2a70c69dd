// The bodies of `dsv4::MemoryLayout` and of saving and loading through the host.
#pragma once

#include <rollback/dsv4/state.hpp>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// What of a model its layers, widths and window do not say: docs/state-format.md.
[[nodiscard]] inline std::uint64_t memory_model(dsv4::ModelShape const& shape, dsv4::MemoryOptions const& options,
                                                std::uint64_t weights) noexcept {
  Checksum checksum;
  checksum.reset(weights);
  auto const put = [&checksum](void const* data, std::size_t size) { checksum.update(data, size); };
  LittleEndian<decltype(put)> out{put};
  out.u32(static_cast<std::uint32_t>(shape.rotary_width));
  out.u32((options.hadamard ? 1u : 0u) | (options.rounding ? 2u : 0u));
  for (int ratio : shape.ratios) out.u32(static_cast<std::uint32_t>(ratio));
  return checksum.digest();
}

template <class Write>
struct MemorySink {
  dsv4::Memory const& memory;
  dsv4::MemoryLayout const& layout;
  Write& write;
  bool bytes(void const* data, std::size_t size) { return write(data, size); }
  bool rows(StateRows const& rows, Checksum& checksum) {
    std::byte const* const first = layout.data(memory, rows);
    std::size_t const size = static_cast<std::size_t>(rows.count) * rows.row_bytes;
    checksum.update(first, size);
    return write(first, size);
  }
};

template <class Read>
struct MemorySource {
  dsv4::Memory const& memory;
  dsv4::MemoryLayout const& layout;
  Read& read;
  bool bytes(void* data, std::size_t size) { return read(data, size); }
  bool rows(StateRows const& rows, Checksum& checksum) {
    std::byte* const first = layout.data(memory, rows);
    std::size_t const size = static_cast<std::size_t>(rows.count) * rows.row_bytes;
    if (!read(first, size)) return false;
    checksum.update(first, size);
    for (std::int32_t i = 1; i < rows.copies; ++i) std::memcpy(layout.data(memory, rows, i), first, size);
    return true;
  }
};

}  // namespace detail

namespace dsv4 {

inline MemoryLayout::MemoryLayout(Memory const& memory, std::uint64_t weights)
    : model_(detail::memory_model(memory.shape(), memory.options(), weights)),
      tensors_(Memory::tensors(memory.shape(), memory.options())) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Tensor const& t = tensors_[i];
    Store* store = &window_;
    if (t.path != Path::window) {
      bool const state = t.path >= Path::csa_state;
      auto const first = static_cast<int>(state ? Path::csa_state : Path::csa_cache);
      auto const compressor = static_cast<Compressor>(static_cast<int>(t.path) - first);
      store = &(state ? states_ : caches_)[memory.component(compressor)];
    }
    store->tensors.push_back(i);
    store->row_bytes.push_back(static_cast<std::uint64_t>(t.width) * sizeof(float));
  }
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    std::int32_t const component = memory.component(compressor);
    if (component >= 0) maps_[component] = memory.row_map(compressor);
  }
}

inline StateLayout MemoryLayout::state_layout() const& noexcept {
  StateLayout layout;
  layout.model = model_;
  for (int c = 0; c < compressors; ++c) {
    layout.states[c] = states_[c].layers();
    layout.caches[c] = caches_[c].layers();
    layout.maps[c] = maps_[c];
  }
  layout.windows[0] = window_.layers();
  return layout;
}

template <class Write>
Verdict save(Memory const& memory, Slot slot, Position p, MemoryLayout const& layout, SaveOptions const& options,
             Write&& write) {
  detail::MemorySink<std::remove_reference_t<Write>> sink{memory, layout, write};
  return rollback::save(memory.books(), slot, p, layout.state_layout(), options, sink);
}

template <class Read>
Verdict check(Memory const& memory, MemoryLayout const& layout, LoadAs as, Read&& read) {
  detail::MemorySource<std::remove_reference_t<Read>> source{memory, layout, read};
  return rollback::check(memory.books(), layout.state_layout(), as, source);
}

template <class Read>
Verdict load(Memory& memory, Slot& slot, MemoryLayout const& layout, LoadAs as, Read&& read) {
  detail::MemorySource<std::remove_reference_t<Read>> source{memory, layout, read};
  return rollback::load(memory.books(), slot, layout.state_layout(), as, source);
}

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback
