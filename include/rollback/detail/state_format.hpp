// What a saved state consists of, section by section, and how its header is written: docs/state-format.md in code.
#pragma once

#include <rollback/books.hpp>
#include <rollback/checksum.hpp>
#include <rollback/state_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rollback {
inline namespace v0_1 {
namespace detail {

inline constexpr char state_magic[8] = {'r', 'o', 'l', 'l', 'b', 'a', 'c', 'k'};
inline constexpr std::uint32_t state_version = 1;
inline constexpr std::uint32_t state_checksums = 1;  // flags of a state
inline constexpr std::uint32_t state_pinned = 1;     // flags of a landing
inline constexpr std::uint32_t state_with_rows = 2;
inline constexpr std::int32_t max_layers = 1 << 20;
inline constexpr std::uint64_t max_row_bytes = std::uint64_t{1} << 40;

/// A landing of a saved state.
struct SavedLanding {
  Position position = 0;
  bool pinned = false;
  bool rows = false;  // the pin has the window rows below it
};

/// Rows of one tensor in a saved state. Of a ring, of a window and of what a pin has of one those of positions [first,
/// first + count); of a plane that is overwritten in place, and of a cache, rows of that number.
struct StateSection {
  StateRows::Store store;
  std::int32_t index;
  std::int32_t layer;
  Position at;  // whose state it belongs to
  Position first;
  Position count;
  std::uint64_t row_bytes;
};

/// Every number the header holds, little-endian whatever the machine, through `put(bytes, size)`.
template <class Put>
struct LittleEndian {
  Put put;
  template <class T>
  void number(T value, std::size_t size) {
    unsigned char bytes[8];
    auto const v = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(v >> (8 * i));
    put(bytes, size);
  }
  void u32(std::uint32_t v) { number(v, 4); }
  void u64(std::uint64_t v) { number(v, 8); }
  void i64(Position v) { number(v, 8); }
};

[[nodiscard]] inline std::uint64_t from_little_endian(unsigned char const* bytes, std::size_t size) noexcept {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < size; ++i) v |= std::uint64_t{bytes[i]} << (8 * i);
  return v;
}

[[nodiscard]] inline bool usable(StoreLayers const& store) noexcept {
  if (store.layers < 0 || store.layers > max_layers || (store.layers > 0 && store.row_bytes == nullptr)) return false;
  return std::all_of(store.row_bytes, store.row_bytes + store.layers,
                     [](std::uint64_t bytes) { return bytes > 0 && bytes <= max_row_bytes; });
}

[[nodiscard]] inline bool usable(Books const& books, StateLayout const& layout) noexcept {
  for (std::int32_t c = 0; c < books.components(); ++c) {
    if (!usable(layout.states[c]) || !usable(layout.caches[c])) return false;
    if (layout.caches[c].layers > 0 && books.component(c).geometry.block == 0) return false;
  }
  return std::all_of(layout.windows, layout.windows + books.windows(), [](auto const& w) { return usable(w); });
}

/// What of the header depends on the engine alone: equal for states that it can load.
template <class Put>
void write_geometry(Books const& books, StateLayout const& layout, Put put) {
  LittleEndian<Put> out{put};
  auto const layers = [&out](StoreLayers const& store) {
    out.u32(static_cast<std::uint32_t>(store.layers));
    std::for_each(store.row_bytes, store.row_bytes + store.layers, [&out](std::uint64_t bytes) { out.u64(bytes); });
  };
  out.u64(layout.model);
  out.u32(static_cast<std::uint32_t>(books.components()));
  out.u32(static_cast<std::uint32_t>(books.windows()));
  for (std::int32_t c = 0; c < books.components(); ++c) {
    Component const& component = books.component(c);
    out.u32(static_cast<std::uint32_t>(component.geometry.rows));
    out.u32(static_cast<std::uint32_t>(component.geometry.block));
    out.u32((component.geometry.overlap ? 1u : 0u) | (component.states_inside_chunk ? 2u : 0u));
    out.i64(component.empty_at);
    layers(layout.states[c]);
    layers(layout.caches[c]);
  }
  for (std::int32_t w = 0; w < books.windows(); ++w) {
    out.i64(books.window(w).window);
    layers(layout.windows[w]);
  }
}

/// The rows of a component's state at `p` that a step at `p` or later can read.
[[nodiscard]] inline StateSection readable_rows(Component const& c, Position p) noexcept {
  StateSection section{};
  section.at = p;
  bool const empty = p == 0 || (c.empty_at > 0 && p % c.empty_at == 0);
  if (!c.states_inside_chunk) {
    section.count = empty ? 0 : c.geometry.rows;
    return section;
  }
  Position const block = c.geometry.block;
  Position const first = block == 0 ? p - c.geometry.rows : p / block * block - (c.geometry.overlap ? block : 0);
  section.first = std::max(first, Position{0});
  section.count = empty ? 0 : p - section.first;
  return section;
}

/// Calls f(section) for the state of every component at `p`, a layer at a time.
/// @return accepted, or the first other verdict of f, after which it is not called again
template <class F>
[[nodiscard]] Verdict for_each_state(Books const& books, StateLayout const& layout, Position p, F f) {
  for (std::int32_t c = 0; c < books.components(); ++c) {
    StateSection section = readable_rows(books.component(c), p);
    section.store = StateRows::Store::state;
    section.index = c;
    for (section.layer = 0; section.count > 0 && section.layer < layout.states[c].layers; ++section.layer) {
      section.row_bytes = layout.states[c].row_bytes[section.layer];
      Verdict const verdict = f(section);
      if (verdict != Verdict::accepted) return verdict;
    }
  }
  return Verdict::accepted;
}

/// The same for the layers of one store.
template <class F>
[[nodiscard]] Verdict for_each_layer(StateSection section, StoreLayers const& store, F f) {
  for (section.layer = 0; section.count > 0 && section.layer < store.layers; ++section.layer) {
    section.row_bytes = store.row_bytes[section.layer];
    Verdict const verdict = f(section);
    if (verdict != Verdict::accepted) return verdict;
  }
  return Verdict::accepted;
}

/// The first window row that a landing at `p` needs.
[[nodiscard]] inline Position first_row_of(Window const& window, Position p) noexcept {
  return std::max(p - (window.window - 1), Position{0});
}

/// The same for the window rows that a pin at `p` has.
template <class F>
[[nodiscard]] Verdict for_each_pinned(Books const& books, StateLayout const& layout, Position p, F f) {
  for (std::int32_t w = 0; w < books.windows(); ++w) {
    Position const first = first_row_of(books.window(w), p);
    Verdict const verdict =
        for_each_layer({StateRows::Store::pinned, w, 0, p, first, p - first, 0}, layout.windows[w], f);
    if (verdict != Verdict::accepted) return verdict;
  }
  return Verdict::accepted;
}

/// The same for what is there once: emitted blocks, and window rows from `oldest` on.
/// @param oldest  [windows]
template <class F>
[[nodiscard]] Verdict for_each_history(Books const& books, StateLayout const& layout, Position p,
                                       Position const* oldest, F f) {
  for (std::int32_t c = 0; c < books.components(); ++c) {
    Position const block = books.component(c).geometry.block;
    Position const blocks = block > 0 ? p / block : 0;
    Verdict const verdict = for_each_layer({StateRows::Store::cache, c, 0, p, 0, blocks, 0}, layout.caches[c], f);
    if (verdict != Verdict::accepted) return verdict;
  }
  for (std::int32_t w = 0; w < books.windows(); ++w) {
    Verdict const verdict =
        for_each_layer({StateRows::Store::window, w, 0, p, oldest[w], p - oldest[w], 0}, layout.windows[w], f);
    if (verdict != Verdict::accepted) return verdict;
  }
  return Verdict::accepted;
}

/// Calls f(first row, count) for the runs of rows in a row that a section is made of, where its rows 0 .. are at `base`
/// and it goes around after `around` of them (a cache and a plane overwritten in place never do).
template <class F>
[[nodiscard]] bool for_each_run(StateSection const& section, Position around, F f) {
  Position const end = section.first + section.count;
  for (Position p = section.first; p < end;) {
    Position const row = around > 0 ? p % around : p;
    Position const count = around > 0 ? std::min(end - p, around - row) : end - p;
    if (!f(row, count)) return false;
    p += count;
  }
  return true;
}

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
