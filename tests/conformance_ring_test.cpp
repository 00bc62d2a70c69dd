// The conformance suite on RollbackRing, wired in as an engine would: tokens advance a state in place, outputs are
// bytes of that state.
#include <rollback/ring.hpp>
#include <rollback/testing/conformance.hpp>

#include "catch.hpp"
#include "ring_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

using namespace ring_engine;
using rollback::testing::Bytes;
using rollback::testing::Description;
using rollback::testing::Memory;
using rollback::testing::Options;
using rollback::testing::Outputs;
using rollback::testing::Report;
using rollback::testing::Rows;
using rollback::testing::Status;

namespace {

template <int Quantum>
struct Engine {
  using Ring = RollbackRing<WholePlane, Quantum, rollback::dynamic_depth>;
  RingOptions options;
  Storage storage;
  Ring ring;
  std::vector<Slot> slots;
  std::int32_t fail_after = -1;

  explicit Engine(RingOptions const& o)
      : options(o), storage(Ring::states(o)), ring(WholePlane(storage.tensors.data(), 2, storage.states), o) {
    for (std::int32_t s = 0; s < o.slots; ++s) slots.push_back(ring.slot(s));
  }

  [[nodiscard]] bool exists(std::int32_t slot) const { return slot >= 0 && slot < options.slots; }
  [[nodiscard]] Slot at(std::int32_t slot) const {
    return exists(slot) ? slots[static_cast<std::size_t>(slot)] : Slot{slot, 1};
  }
  [[nodiscard]] Bytes bytes_of(std::int32_t state) {
    State const s = storage.state(state);
    Bytes bytes(s.size());
    std::memcpy(bytes.data(), s.data(), s.size());
    return bytes;
  }

  // Advances a state by rows of a call, until the one that is to fail.
  auto step(Rows const& rows, Outputs& outputs) {
    return [this, &rows, &outputs](std::int32_t state, Position begin, Position end) {
      for (Position p = begin; p < end; ++p) {
        if (p - rows.position == fail_after) {
          fail_after = -1;
          std::memset(storage.at(1, state), 0x11, static_cast<std::size_t>(row_bytes[1]));
          return false;
        }
        advance(storage.at(0, state), storage.at(1, state), rows.tokens[static_cast<std::size_t>(p - rows.position)],
                p);
        outputs.push_back(bytes_of(state));
      }
      return true;
    };
  }

  bool feed(Rows const& rows, Outputs& outputs) {
    if (ring.tip(at(rows.slot)) != rows.position) return false;
    if (fail_after == 0) {  // nothing ran, so the ring need not know
      fail_after = -1;
      return false;
    }
    auto const n = static_cast<std::int32_t>(rows.tokens.size());
    std::int32_t const chunk = rows.chunk_rows > 0 ? rows.chunk_rows : n;
    for (std::int32_t i = 0; i < n; i += chunk) {
      if (ring.feed(at(rows.slot), std::min(chunk, n - i), step(rows, outputs)) != Verdict::accepted) return false;
    }
    return true;
  }
  bool verify(Rows const& rows, std::int32_t accepted, Outputs& outputs) {
    if (ring.tip(at(rows.slot)) != rows.position) return false;
    auto const n = static_cast<std::int32_t>(rows.tokens.size());
    Position const tip = rows.position + accepted;
    return ring.verify(at(rows.slot), n, n, step(rows, outputs), [tip] { return tip; }) == Verdict::accepted;
  }
};

template <int Quantum>
Memory adapt(RingOptions const& options) {
  auto const engine = std::make_shared<Engine<Quantum>>(options);
  Memory m;
  Description& d = m.description;
  d.slots = options.slots;
  d.max_rows = options.max_rows;
  d.unverified = Quantum == 1 ? options.depth : options.per_token;
  if (Quantum == 1) d.promises = {{options.depth, 0, 0, 0}};
  if (Quantum > 1) d.promises = {{options.per_token, Quantum, options.depth, 0}};
  m.clear = [engine](std::int32_t slot) {
    return engine->exists(slot) &&
           engine->ring.clear(engine->slots[static_cast<std::size_t>(slot)]) == Verdict::accepted;
  };
  m.feed = [engine](Rows const& rows, Outputs& outputs) { return engine->feed(rows, outputs); };
  m.verify = [engine](Rows const& rows, std::int32_t accepted, Outputs& outputs) {
    return engine->verify(rows, accepted, outputs);
  };
  m.tip = [engine](std::int32_t slot) { return engine->ring.tip(engine->at(slot)); };
  m.can = [engine](std::int32_t slot, Position p) {
    return engine->ring.can_land(engine->at(slot), p) == Verdict::accepted;
  };
  m.roll = [engine](std::int32_t slot, Position p) {
    return engine->ring.roll_back(engine->at(slot), p) == Verdict::accepted;
  };
  m.nearest = [engine](std::int32_t slot, Position wanted) {
    return engine->ring.nearest(engine->at(slot), wanted).position;
  };
  m.state = [engine](std::int32_t slot) { return engine->bytes_of(engine->ring.live(engine->at(slot))); };
  m.copy = [](std::int32_t, std::int32_t) { return false; };  // a ring copies no sequences
  m.fail_next = [engine](std::int32_t rows_run) { engine->fail_after = rows_run; };
  m.held = [engine] { return static_cast<std::size_t>(engine->storage.states) * state_bytes; };
  return m;
}

template <int Quantum>
void conforms(std::int32_t depth, std::int32_t per_token) {
  for (bool entry_copy : {false, true}) {
    RingOptions options = options_of(3, depth, per_token, entry_copy);
    for (std::int32_t max_rows : {1024, 7}) {
      options.max_rows = max_rows;
      Options how;
      how.seed = static_cast<std::uint64_t>(max_rows);
      Report const report = rollback::testing::run([options] { return adapt<Quantum>(options); }, how);
      INFO(report.text());
      CHECK(report.ok());
      CHECK(report.find("random walk")->status == Status::passed);
      CHECK(report.find("BR-47")->status == Status::skipped);  // a ring saves nothing
    }
  }
}

}  // namespace

TEST_CASE("a ring with both tiers conforms") { conforms<32>(4, 8); }
TEST_CASE("a ring of boundaries only conforms") { conforms<16>(3, 0); }
TEST_CASE("a ring of one boundary conforms") { conforms<8>(1, 1); }
TEST_CASE("a ring of one state a token conforms") { conforms<1>(12, 0); }
