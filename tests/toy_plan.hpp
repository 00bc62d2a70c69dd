// The lists of one component for one chunk, in memory that shows what was not written and what was written too far.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace toy {

/// A plan with its memory: every list filled with 0x3e bytes and followed by a few more of them.
struct Planned {
  rollback::Verdict verdict = rollback::Verdict::accepted;
  rollback::Lengths lengths;
  rollback::Lists lists;
  std::vector<std::int32_t> restore_source, restore_destination, snapshot_source, snapshot_destination, persist_source,
      persist_destination, block_previous, block_current, block_slot;
  std::vector<std::int64_t> block_row, block_position, visible;

  static constexpr std::size_t guard = 4;

  template <class F>
  void for_each_list(bool overlap, F f) {
    f(restore_source, lists.restore_source, lengths.restores);
    f(restore_destination, lists.restore_destination, lengths.restores);
    f(snapshot_source, lists.snapshot_source, lengths.snapshots);
    f(snapshot_destination, lists.snapshot_destination, lengths.snapshots);
    f(persist_source, lists.persist_source, lengths.rows);
    f(persist_destination, lists.persist_destination, lengths.rows);
    f(visible, lists.visible, lengths.rows);
    f(block_row, lists.block_row, lengths.blocks);
    f(block_position, lists.block_position, lengths.blocks);
    f(block_slot, lists.block_slot, lengths.blocks);
    f(block_current, lists.block_current, lengths.block_reads);
    f(block_previous, lists.block_previous, overlap ? lengths.block_reads : 0);
  }
};

template <class T>
inline constexpr T blank = static_cast<T>(0x3e3e3e3e3e3e3e3e);

/// Asks for a plan; the verdict is `shape_too_small` in the place of lists that are not exactly filled.
inline Planned plan(rollback::Books const& books, rollback::Ticket const& ticket, std::int32_t chunk,
                    std::int32_t component, rollback::Shape const& shape, rollback::RowMap const& map) {
  Planned p;
  bool const overlap = books.component(component).geometry.overlap;
  p.lengths = books.lengths(component, shape);
  p.for_each_list(overlap, [](auto& memory, auto*& list, std::int32_t length) {
    using T = std::remove_reference_t<decltype(memory[0])>;
    memory.assign(static_cast<std::size_t>(length) + Planned::guard, blank<T>);
    list = memory.data();
  });
  p.verdict = books.plan(ticket, chunk, component, shape, map, p.lists);
  if (p.verdict != rollback::Verdict::accepted) return p;
  p.for_each_list(overlap, [&p](auto& memory, auto*&, std::int32_t length) {
    using T = std::remove_reference_t<decltype(memory[0])>;
    auto const unwritten = std::count(memory.begin(), memory.end(), blank<T>);
    auto const beyond = std::count(memory.begin() + length, memory.end(), blank<T>);
    if (unwritten != static_cast<std::ptrdiff_t>(Planned::guard) || beyond != unwritten) {
      p.verdict = rollback::Verdict::shape_too_small;
    }
    memory.resize(static_cast<std::size_t>(length));
  });
  return p;
}

/// The same for what a chunk copies of one window's raw rows.
inline Planned plan_window(rollback::Books const& books, rollback::Ticket const& ticket, std::int32_t chunk,
                           std::int32_t window, rollback::Shape const& shape, rollback::RowMap const& map) {
  Planned p;
  p.lengths = books.window_lengths(window, shape);
  auto const for_each_list = [&p](auto f) {
    f(p.restore_source, p.lists.restore_source, p.lengths.restores);
    f(p.restore_destination, p.lists.restore_destination, p.lengths.restores);
    f(p.snapshot_source, p.lists.snapshot_source, p.lengths.snapshots);
    f(p.snapshot_destination, p.lists.snapshot_destination, p.lengths.snapshots);
  };
  for_each_list([](auto& memory, auto*& list, std::int32_t length) {
    memory.assign(static_cast<std::size_t>(length) + Planned::guard, blank<std::int32_t>);
    list = memory.data();
  });
  p.verdict = books.plan_window(ticket, chunk, window, shape, map, p.lists);
  if (p.verdict != rollback::Verdict::accepted) return p;
  for_each_list([&p](auto& memory, auto*&, std::int32_t length) {
    auto const unwritten = std::count(memory.begin(), memory.end(), blank<std::int32_t>);
    auto const beyond = std::count(memory.begin() + length, memory.end(), blank<std::int32_t>);
    if (unwritten != static_cast<std::ptrdiff_t>(Planned::guard) || beyond != unwritten) {
      p.verdict = rollback::Verdict::shape_too_small;
    }
    memory.resize(static_cast<std::size_t>(length));
  });
  return p;
}

}  // namespace toy
