// The naive memory behind the callbacks of the conformance suite.
#pragma once

#include <rollback/testing/memory.hpp>

#include "naive_memory.hpp"

#include <memory>

namespace naive {

/// What the suite gets to see: a new memory behind the callbacks.
inline rollback::testing::Memory adapt(Config const& config) {
  auto const memory = std::make_shared<Memory>(config);
  rollback::testing::Memory m;
  m.description.slots = config.slots;
  m.description.max_rows = config.max_rows;
  m.description.unverified = config.unverified;
  m.description.window = config.window;
  m.description.window_rows = config.window_rows;
  m.description.promises = {config.fold, config.ring};
  m.clear = [memory](auto slot) { return memory->clear(slot); };
  m.feed = [memory](auto const& rows, auto& outputs) { return memory->feed(rows, outputs); };
  m.tip = [memory](auto slot) { return memory->tip(slot); };
  m.can = [memory](auto slot, auto p) { return memory->can(slot, p); };
  m.roll = [memory](auto slot, auto p) { return memory->roll(slot, p); };
  m.nearest = [memory](auto slot, auto wanted) { return memory->nearest(slot, wanted); };
  m.state = [memory](auto slot) { return memory->state(slot); };
  m.verify = [memory](auto const& rows, auto accepted, auto& outputs) {
    return memory->verify(rows, accepted, outputs);
  };
  m.batch = [memory](auto const& rows, auto& outputs) { return memory->batch(rows, outputs); };
  m.save = [memory](auto slot) { return memory->save(slot); };
  m.load = [memory](auto slot, auto const& bytes) { return memory->load(slot, bytes); };
  m.copy = [memory](auto source, auto destination) { return memory->copy(source, destination); };
  m.fail_next = [memory](auto rows_run) { memory->fail_next(rows_run); };
  m.held = [memory] { return memory->held(); };
  return m;
}

}  // namespace naive
