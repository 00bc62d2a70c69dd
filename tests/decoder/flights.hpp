// Batches of several slots over the whole decoder, any number of them open, and what a fresh run over the same tokens
// gives: for tests of batches in flight, of pins and of forks.
#pragma once

#include "catch.hpp"
#include "readable_state.hpp"
#include "tiny_model.hpp"

#include <rollback/dsv4/memory.hpp>
#include <rollback/dsv4/restore.hpp>
#include <rollback/kernels/launch_host.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace flights {

using Tokens = std::vector<std::int32_t>;

/// What a slot has in a batch.
struct Part {
  rollback::Slot slot;
  Tokens tokens;
  std::int32_t unverified = 0;
};

/// An open batch of one chunk, with all that it was begun with and its plan.
struct Flight {
  Tokens tokens;
  std::vector<rollback::Slot> slots;
  std::vector<rollback::Position> positions;
  std::vector<rollback::Unverified> unverified;
  std::vector<std::int32_t> ends;
  rollback::Batch batch;
  rollback::Ticket ticket;
  rollback::dsv4::Chunk chunk;
  std::vector<float> logits;  // [rows, vocabulary]
};

class Flights {
 public:
  explicit Flights(rollback::dsv4::MemoryOptions const& options) : memory(tiny_model().hyper().shape(), options) {}

  [[nodiscard]] rollback::Books& books() { return memory.books(); }
  [[nodiscard]] rollback::Slot slot(std::int32_t index) { return books().slot(index); }

  /// Opens a batch and plans its chunk; nothing runs.
  [[nodiscard]] Flight begin(std::vector<Part> const& parts) {
    Flight f;
    for (Part const& part : parts) {
      rollback::Position p = books().head(part.slot);
      for (std::int32_t token : part.tokens) {
        f.tokens.push_back(token);
        f.slots.push_back(part.slot);
        f.positions.push_back(p++);
      }
      f.unverified.push_back({part.slot, part.unverified});
    }
    auto const rows = static_cast<std::int32_t>(f.tokens.size());
    f.ends = {rows};
    f.batch = {f.slots.data(),
               f.positions.data(),
               rows,
               f.ends.data(),
               1,
               f.unverified.data(),
               static_cast<std::int32_t>(f.unverified.size())};
    REQUIRE(books().begin(f.batch, f.ticket) == rollback::Verdict::accepted);
    plan(f);
    return f;
  }
  void plan(Flight& f) { REQUIRE(memory.plan(f.ticket, 0, f.batch, f.chunk) == rollback::Verdict::accepted); }
  /// Carries out what was planned, however long ago.
  void run(Flight& f) {
    rollback::dsv4::restore(rollback::kernels::HostLoop{}, memory, f.chunk);
    std::vector<std::uint8_t> const wants(f.tokens.size(), 1);
    f.logits.resize(f.tokens.size() * static_cast<std::size_t>(tiny_model().hyper().vocabulary));
    tiny_model().forward(memory, f.chunk, f.tokens.data(), wants.data(), f.logits.data());
  }
  void settle(Flight const& f) { REQUIRE(books().settle(f.ticket, 0) == rollback::Verdict::accepted); }
  void commit(Flight const& f, rollback::Slot slot, rollback::Position accepted) {
    REQUIRE(books().commit(f.ticket, slot, accepted) == rollback::Verdict::accepted);
  }
  /// Feeds a slot, in batches of at most `rows`. @return the logits of all rows
  std::vector<float> feed(rollback::Slot slot, Tokens const& tokens, std::size_t rows) {
    std::vector<float> logits;
    for (std::size_t at = 0; at < tokens.size(); at += rows) {
      auto const first = tokens.begin() + static_cast<std::ptrdiff_t>(at);
      auto const count = static_cast<std::ptrdiff_t>(std::min(rows, tokens.size() - at));
      Flight f = begin({{slot, Tokens(first, first + count)}});
      run(f);
      settle(f);
      commit(f, slot, books().head(slot));
      logits.insert(logits.end(), f.logits.begin(), f.logits.end());
    }
    return logits;
  }

  rollback::dsv4::Memory memory;
};

/// Every byte 0x3e: a number that a forgotten row would bring in; and no number at all.
inline std::vector<float> const& fillings() {
  static std::vector<float> const values = [] {
    float number = 0;
    std::memset(&number, 0x3e, sizeof number);
    return std::vector<float>{number, std::numeric_limits<float>::quiet_NaN()};
  }();
  return values;
}

/// What a slot that held `tokens`, and was fed `tail` then, must have: the logits of the tail, and the state.
inline void check_equal(Flights& engine, rollback::Slot slot, Tokens const& tokens, Tokens const& tail,
                        std::vector<float> const& logits) {
  rollback::dsv4::MemoryOptions options;
  options.max_context = 1024;
  options.max_rows = 64;
  Flights fresh(options);
  fresh.feed(fresh.slot(0), tokens, 64);
  CHECK(same_bits(logits, fresh.feed(fresh.slot(0), tail, 64)));
  CHECK(same_bits(readable_state(engine.memory, slot.index), readable_state(fresh.memory, 0)));
}

}  // namespace flights
