// What the books do not know of an engine's memory, and how saving and loading name rows in it.
#pragma once

#include <rollback/component.hpp>
#include <rollback/plan.hpp>
#include <rollback/position.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

/// The tensors that one component or window has: one a layer, or two where keys and scores are apart.
struct StoreLayers {
  std::int32_t layers = 0;                   // at most 2^20; 0: the engine sees to them itself, or there are none
  std::uint64_t const* row_bytes = nullptr;  // [layers] bytes of a row, at most 2^40
};

/// What the books do not know of an engine's memory. States go from one engine to another whose layout, apart from the
/// maps, is the same; depths, quanta, slots, places and raw rows may differ.
struct StateLayout {
  std::uint64_t model = 0;             // says which model's states these are: the engine's choice, compared
  StoreLayers states[max_components];  // planes of components
  StoreLayers caches[max_components];  // emitted blocks of components
  StoreLayers windows[max_windows];    // raw rows
  RowMap maps[max_components];         // where the rows of components are
  RowMap window_maps[max_windows];     // where pins keep raw rows, with `pin_windows`: of these the kept numbers alone
};

/// Rows to read or to write: `count` rows of `row_bytes` bytes, one after the other.
struct StateRows {
  enum class Store : std::uint8_t {
    state,   // rows as the component's map numbers live and kept places
    cache,   // rows as the component's map numbers emitted blocks
    window,  // row `slot * Window::rows + p % Window::rows` of position p
    pinned,  // raw rows where a pin keeps them, as the window's map numbers kept rows
  };
  Store store = Store::state;
  std::int32_t index = 0;  // the component, or the window
  std::int32_t layer = 0;
  std::int64_t count = 0;
  std::uint64_t row_bytes = 0;
  std::int32_t copies = 1;     // saving: 1; loading: the same bytes go to so many places
  std::int64_t first[4] = {};  // [copies] their first rows
};

}  // namespace v0_1
}  // namespace rollback
