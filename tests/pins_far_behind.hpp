// Engines whose pins are far behind what their rings of raw rows still have.
#pragma once

#include "catch.hpp"
#include "toy_pinned.hpp"

#include <cstdint>

namespace toy {

/// Chunks of 5 rows, and rings with not a row more than these need.
inline EngineOptions made_for(bool pin_windows, std::int32_t steps = 1) {
  EngineOptions o = engine_options({with(fold(), 2), with(ring8(), 2)}, 2, 12, 5,
                                   {{"wide", 9, 8 + 5 + 2}, {"narrow", 3, 2 + 5 + 2}, {"one", 1, 5 + 2}});
  o.books.pins = 3;
  o.books.pin_windows = pin_windows;
  o.books.steps_in_flight = steps;
  return o;
}

/// Pins of which one is below every wide window's start, one in the middle of a chunk and one at a batch's begin.
inline constexpr Position pinned[] = {2, 20, 36};

inline Pinned far_from_pins(EngineOptions const& o, Position until = 150, std::int32_t chunk = 5) {
  Pinned engine(o);
  for (Position p : pinned) REQUIRE(engine.books.pin(engine.slots[0], p) == Verdict::accepted);
  while (engine.tip(0) < until) REQUIRE(engine.go_on(0, 12, chunk) == "");
  for (Position p : pinned) REQUIRE(engine.books.is_pinned(engine.slots[0], p));
  return engine;
}

}  // namespace toy
