// A case of the model test: what the books are made for, and the operations on them. Numbers only, which are read
// modulo what is possible at the time, so that a case with some of them made smaller, or left out, is a case still.
#pragma once

#include <rollback/books.hpp>

#include "../toy_planes.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace model {

using rollback::BadChunk;
using rollback::Batch;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Component;
using rollback::Landing;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Position;
using rollback::Slot;
using rollback::Ticket;
using rollback::Tier;
using rollback::Unverified;
using rollback::Verdict;

struct ComponentChoice {
  std::uint32_t kind, per_token, quantum, aligned, empty_at;
};
struct WindowChoice {
  std::uint32_t window, more_rows;
};
struct Configuration {
  std::uint32_t slots, steps_in_flight, pins, entry_copy, max_rows, chunk_rows, max_context, sinks, worst_shapes,
      pin_windows;
  std::vector<ComponentChoice> components;
  std::vector<WindowChoice> windows;
  std::uint32_t defect;  // of the engine, on purpose: 1 leaves out every seventh restore, 2 every seventh restored row
                         // of a window; 0 is none
};

enum class Kind : std::uint8_t {
  begin,
  run,
  settle,
  commit,
  fail,
  roll_back,
  pin,
  unpin,
  fork,
  clear,
  ask,
  refused,
  save_and_load
};
struct Op {
  Kind kind;
  std::uint32_t a, b, c, d;
};
struct Case {
  Configuration configuration;
  std::vector<Op> ops;
};

inline Component component_of(ComponentChoice const& choice) {
  static constexpr rollback::RowGeometry geometries[] = {{1, 0, false}, {2, 0, false}, {4, 2, true},
                                                         {4, 4, false}, {3, 0, false}, {5, 2, true}};
  static constexpr char const* names[] = {"FOLD1", "FOLD2", "RING4", "PAGE4", "TRAIL3", "RING5"};
  std::uint32_t const kind = choice.kind % 6;
  Component c;
  c.name = names[kind];
  c.geometry = geometries[kind];
  c.states_inside_chunk = kind >= 2;
  c.per_token = static_cast<std::int32_t>(choice.per_token % 9);
  c.quantum = 2 + choice.quantum % 9;
  c.aligned = static_cast<std::int32_t>(choice.aligned % 5);
  // Only some planes have nothing to read at a position: one that is folded anew, and a ring between its blocks.
  if (kind < 2 && choice.empty_at % 4 == 1) c.empty_at = 2 + choice.empty_at % 11;
  if (kind == 3 && choice.empty_at % 3 == 1) c.empty_at = 4 * (1 + choice.empty_at % 4);
  return c;
}

inline BooksOptions options_of(Configuration const& f) {
  BooksOptions o;
  o.slots = 1 + static_cast<std::int32_t>(f.slots % 8);
  o.steps_in_flight = 1 + static_cast<std::int32_t>(f.steps_in_flight % 3);
  o.pins = static_cast<std::int32_t>(f.pins % 4);
  o.entry_copy = f.entry_copy % 2 == 1;
  o.pin_windows = f.pin_windows % 2 == 1;
  o.max_rows = 4 + static_cast<std::int32_t>(f.max_rows % 21);
  o.max_chunks = o.max_rows;
  o.max_chunk_rows = 1 + static_cast<std::int32_t>(f.chunk_rows % static_cast<std::uint32_t>(o.max_rows));
  o.max_context = f.max_context % 4 == 1 ? 40 + f.max_context % 100 : 0;
  std::int32_t least = f.components.empty() ? o.max_rows : INT32_MAX;
  for (ComponentChoice const& choice : f.components) {
    o.components.push_back(component_of(choice));
    least = std::min(least, o.components.back().per_token);
  }
  for (WindowChoice const& choice : f.windows) {
    rollback::Window w;
    w.window = 1 + choice.window % 8;
    w.rows = w.window - 1 + o.max_chunk_rows + std::min(least, o.steps_in_flight * o.max_rows) + choice.more_rows % 30;
    o.windows.push_back(w);
  }
  return o;
}

}  // namespace model
