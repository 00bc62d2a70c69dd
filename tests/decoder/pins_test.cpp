// Pins and forks over the whole decoder: a landing that its tiers have forgotten, and one that another slot goes on
// from, continue with the bits of a fresh run.
#include "flights.hpp"

namespace {

using namespace flights;
using rollback::Position;
using rollback::Slot;
using rollback::Tier;
using rollback::Verdict;

constexpr std::size_t longest = 100;  // rows of a batch
Tokens const tail = other_tokens(141, 41);

// Raw rows for the whole context: pins may lie anywhere.
rollback::dsv4::MemoryOptions options_of(std::int32_t slots, std::int32_t pins) {
  rollback::dsv4::MemoryOptions options;
  options.slots = slots;
  options.per_token = 2;
  options.aligned = 1;
  options.max_context = 1024;
  options.max_rows = static_cast<std::int32_t>(longest);
  options.raw_rows = 1024;
  options.pins = pins;
  return options;
}

// What has no history is the engine's to copy: raw rows, and the finished compressed rows.
void copy_history(rollback::dsv4::Memory& memory, std::int32_t from, std::int32_t to) {
  using rollback::dsv4::Compressor;
  Position const p = memory.books().tip(memory.books().slot(to));
  for (int layer = 0; layer < memory.shape().layers(); ++layer) {
    std::copy_n(memory.raw_row(layer, from, 0), memory.options().raw_rows * memory.shape().head_width,
                memory.raw_row(layer, to, 0));
    int const ratio = memory.shape().ratios[static_cast<std::size_t>(layer)];
    for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
      if (ratio != (compressor == Compressor::hca ? 128 : 4)) continue;
      auto const& view = memory.view(compressor, layer);
      std::int64_t const pooled = memory.pooled(compressor);
      std::copy_n(view.cache + from * view.cache_rows * pooled, p / ratio * pooled,
                  view.cache + to * view.cache_rows * pooled);
    }
  }
}

}  // namespace

TEST_CASE("a pin that every tier has forgotten continues with the bits of a fresh run", "[decoder]") {
  for (float filling : fillings()) {
    for (Position p : {Position{1}, Position{131}, Position{200}, Position{256}, Position{299}}) {
      INFO("pinned at " << p);
      Flights engine(options_of(1, 2));
      fill_all(engine.memory, filling);
      Slot const slot = engine.slot(0);
      REQUIRE(engine.books().pin(slot, p) == Verdict::accepted);
      engine.feed(slot, joined(tiny_tokens(), 519, {}), longest);
      REQUIRE(engine.books().is_pinned(slot, p));
      REQUIRE(engine.books().nearest(slot, p).tier == Tier::pin);
      REQUIRE(engine.books().can_land(slot, p + 1) != Verdict::accepted);
      REQUIRE(engine.books().roll_back(slot, p) == Verdict::accepted);
      poison_unreadable(engine.memory, 0, filling);
      check_equal(engine, slot, joined(tiny_tokens(), p, {}), tail, engine.feed(slot, tail, longest));
      REQUIRE(engine.books().is_pinned(slot, p));  // until it is given up
    }
  }
}

TEST_CASE("a pin placed behind the tip and one at the tip outlive their tiers with the bits of a fresh run",
          "[decoder]") {
  for (Position p : {Position{256}, Position{388}, Position{390}}) {  // of the aligned tier, the per-token tier, live
    INFO("pinned at " << p);
    Flights engine(options_of(1, 1));
    fill_all(engine.memory, fillings()[0]);
    Slot const slot = engine.slot(0);
    engine.feed(slot, joined(tiny_tokens(), p == 256 ? 300 : 390, {}), longest);
    REQUIRE(engine.books().pin(slot, p) == Verdict::accepted);
    REQUIRE_FALSE(engine.books().is_pinned(slot, p));
    engine.feed(slot, Tokens(tiny_tokens().begin() + engine.books().tip(slot), tiny_tokens().begin() + 600), longest);
    REQUIRE(engine.books().nearest(slot, p).tier == Tier::pin);
    REQUIRE(engine.books().roll_back(slot, p) == Verdict::accepted);
    poison_unreadable(engine.memory, 0, fillings()[0]);
    check_equal(engine, slot, joined(tiny_tokens(), p, {}), tail, engine.feed(slot, tail, longest));
  }
}

TEST_CASE("a pin that a batch in flight keeps is a landing once the batch is committed", "[decoder]") {
  rollback::dsv4::MemoryOptions options = options_of(1, 1);
  options.steps_in_flight = 3;
  options.entry_copy = true;
  options.per_token = 12;
  Flights engine(options);
  fill_all(engine.memory, fillings()[0]);
  Slot const slot = engine.slot(0);
  engine.feed(slot, joined(tiny_tokens(), 250, {}), longest);
  std::vector<Flight> open;
  open.push_back(engine.begin({{slot, other_tokens(3, 42)}}));
  REQUIRE(engine.books().pin(slot, 259) == Verdict::accepted);  // beyond the head
  open.push_back(engine.begin({{slot, other_tokens(8, 43), 3}}));
  open.push_back(engine.begin({{slot, other_tokens(5, 44)}}));
  for (Flight& f : open) {
    engine.run(f);
    engine.settle(f);
  }
  engine.commit(open[0], slot, 253);
  REQUIRE_FALSE(engine.books().is_pinned(slot, 259));
  engine.commit(open[1], slot, 260);  // one token rejected: the youngest batch falls, the pin stands
  REQUIRE(engine.books().is_pinned(slot, 259));
  engine.feed(slot, other_tokens(300, 45), longest);
  REQUIRE(engine.books().roll_back(slot, 259) == Verdict::accepted);
  poison_unreadable(engine.memory, 0, fillings()[0]);
  Tokens const held =
      joined(joined(joined(tiny_tokens(), 250, other_tokens(3, 42)), 253, other_tokens(8, 43)), 259, {});
  check_equal(engine, slot, held, tail, engine.feed(slot, tail, longest));
}

TEST_CASE("a fork and the slot that it came from go on with the bits of fresh runs", "[decoder]") {
  for (float filling : fillings()) {
    for (Position p : {Position{300}, Position{512}, Position{518}}) {  // a pin, and a landing of either tier
      for (bool source_first : {false, true}) {
        INFO("forked at " << p << (source_first ? ", the source goes on first" : ", the fork goes on first"));
        Flights engine(options_of(2, 1));
        fill_all(engine.memory, filling);
        Slot const from = engine.slot(0);
        REQUIRE(engine.books().pin(from, 300) == Verdict::accepted);
        engine.feed(from, joined(tiny_tokens(), 519, {}), longest);
        Slot to = engine.slot(1);
        REQUIRE(engine.books().fork(from, p, to) == Verdict::accepted);
        REQUIRE(engine.books().is_armed(to));
        copy_history(engine.memory, from.index, to.index);  // its other rows are the filling still
        Tokens const other = other_tokens(141, 46);
        std::vector<float> of_source;
        if (source_first) of_source = engine.feed(from, other, longest);  // writes where the fork's places were shared
        std::vector<float> const of_fork = engine.feed(to, tail, longest);
        if (!source_first) of_source = engine.feed(from, other, longest);
        check_equal(engine, from, joined(tiny_tokens(), 519, {}), other, of_source);
        check_equal(engine, to, joined(tiny_tokens(), p, {}), tail, of_fork);
        // and the pin is a landing of both, for the same state
        Slot const last = source_first ? from : to;
        REQUIRE(engine.books().roll_back(last, 300) == Verdict::accepted);
        poison_unreadable(engine.memory, last.index, filling);
        check_equal(engine, last, joined(tiny_tokens(), 300, {}), tail, engine.feed(last, tail, longest));
      }
    }
  }
}
