// The raw window rows of a toy engine: rings and what pins keep, in one store a window, and how plans copy between
// them.
#pragma once

#include "toy_plan.hpp"
#include "toy_storage.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace toy {

/// Stores full of 0x3e for all windows; with `sinks` unused entries point at a row of their own behind the others.
inline std::vector<rollback::RowMap> make_windows(BooksOptions const& o, bool sinks, Storage& storage) {
  std::vector<rollback::RowMap> maps;
  for (Window const& w : o.windows) {
    rollback::RowMap map = rollback::RowMap::packed_window(w, o.slots, o.pins);
    std::int32_t const rows = map.kept + o.slots * map.kept_slot_stride;
    if (sinks) map.sink = rows;
    maps.push_back(map);
    storage.windows.push_back(storage_rows(rows + 1));
  }
  return maps;
}

/// Copies rows as two lists say, entry by entry in the order given; a negative destination is none.
inline void copy_rows(std::vector<Row>& rows, std::vector<std::int32_t> const& sources,
                      std::vector<std::int32_t> const& destinations, std::vector<std::size_t> const& order) {
  for (std::size_t i : order) {
    if (destinations[i] < 0) continue;
    rows[static_cast<std::size_t>(destinations[i])] = rows[static_cast<std::size_t>(sources[i])];
  }
}

}  // namespace toy
