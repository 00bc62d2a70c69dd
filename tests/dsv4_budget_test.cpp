// What a dsv4::Memory takes: its budget against what the heap hands out, the released models' figures, the raw rows of
// a reach, sizes that are refused.
#include <rollback/dsv4/memory.hpp>

#include "catch.hpp"
#include "counted_new.hpp"
#include "dsv4_small.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using counted_new::allocations;
using counted_new::live_bytes;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Ticket;
using rollback::Verdict;
using rollback::dsv4::Chunk;
using rollback::dsv4::Flash;
using rollback::dsv4::Memory;
using rollback::dsv4::MemoryBudget;
using rollback::dsv4::Path;
using rollback::dsv4::PathBytes;
using rollback::dsv4::Pro;
using rollback::dsv4::Tensor;
using namespace dsv4_small;

namespace {

constexpr double mib = 1024.0 * 1024.0;

PathBytes const& path(MemoryBudget const& budget, Path which) { return budget.paths[static_cast<int>(which)]; }

double live_and_tiers(MemoryBudget const& budget, Path which) {
  PathBytes const& p = path(budget, which);
  return static_cast<double>(p.live + p.per_token + p.aligned) / mib;
}

// Runs a batch to its end with `rejected` of its rows taken back.
void feed(Memory& memory, Slot slot, std::int32_t rows, std::int32_t rejected = 0) {
  Position const tip = memory.books().tip(slot);
  Rows const r(slot, tip, rows, rejected, rows);
  Ticket ticket;
  REQUIRE(memory.books().begin(r.batch, ticket) == Verdict::accepted);
  REQUIRE(memory.books().settle(ticket, 0) == Verdict::accepted);
  REQUIRE(memory.books().commit(ticket, slot, tip + rows - rejected) == Verdict::accepted);
}

}  // namespace

TEST_CASE("the released models have the layers of their metadata") {
  ModelShape const flash = Flash::shape();
  REQUIRE(flash.layers() == 43);
  REQUIRE(flash.layers_of(0) == 2);
  REQUIRE(flash.layers_of(4) == 21);
  REQUIRE(flash.layers_of(128) == 20);
  REQUIRE(std::vector<int>(flash.ratios.begin(), flash.ratios.begin() + 5) == std::vector<int>{0, 0, 4, 128, 4});
  REQUIRE(flash.ratios.back() == 4);
  ModelShape const pro = Pro::shape();
  REQUIRE(pro.layers() == 61);
  REQUIRE(pro.layers_of(0) == 0);
  REQUIRE(pro.layers_of(4) == 30);
  REQUIRE(pro.layers_of(128) == 31);
  REQUIRE(std::vector<int>(pro.ratios.begin(), pro.ratios.begin() + 5) == std::vector<int>{128, 128, 4, 128, 4});
  REQUIRE(pro.ratios.back() == 4);
}

TEST_CASE("the states of the released models take what their rings of rows do") {
  MemoryOptions options;
  options.per_token = 1;
  options.aligned = 64;
  options.max_context = 4096;
  MemoryBudget const flash = Memory::budget(Flash::shape(), options);
  REQUIRE(live_and_tiers(flash, Path::csa_state) == 86.625);
  REQUIRE(live_and_tiers(flash, Path::hca_state) == 20.0);
  REQUIRE(live_and_tiers(flash, Path::lid_state) == 21.65625);

  // A ring is 8 rows of two halves (CSA, LID) or 128 rows of one (HCA), keys and scores, F32. HCA keeps no boundaries.
  auto const states = [](double layers, double rows, double width, double count) {
    return count * layers * rows * width * 2 * 4 / mib;
  };
  REQUIRE(live_and_tiers(flash, Path::csa_state) == states(21, 8, 1024, 1 + 1 + 64));
  MemoryBudget const pro = Memory::budget(Pro::shape(), options);
  REQUIRE(live_and_tiers(pro, Path::csa_state) == states(30, 8, 1024, 1 + 1 + 64));
  REQUIRE(live_and_tiers(pro, Path::csa_state) == 123.75);
  REQUIRE(live_and_tiers(pro, Path::hca_state) == states(31, 128, 512, 1 + 1));
  REQUIRE(live_and_tiers(pro, Path::hca_state) == 31.0);
  REQUIRE(live_and_tiers(pro, Path::lid_state) == states(30, 8, 256, 1 + 1 + 64));
  REQUIRE(live_and_tiers(pro, Path::lid_state) == 30.9375);

  // One boundary over both overlapping compressors: 1680 and 2400 KiB.
  REQUIRE(path(flash, Path::csa_state).plane + path(flash, Path::lid_state).plane == 1680 * 1024);
  REQUIRE(path(pro, Path::csa_state).plane + path(pro, Path::lid_state).plane == 2400 * 1024);
  REQUIRE(path(flash, Path::hca_state).plane == 20 * 512 * 1024);
  REQUIRE(path(flash, Path::hca_state).aligned == 0);
  REQUIRE(path(flash, Path::window).layers == 43);
  REQUIRE(path(flash, Path::csa_cache).plane == std::size_t{21} * 1024 * 512 * 4);
  REQUIRE(path(flash, Path::hca_cache).plane == std::size_t{20} * 32 * 512 * 4);
  REQUIRE(path(flash, Path::lid_cache).plane == std::size_t{21} * 1024 * 128 * 4);
}

TEST_CASE("the budget of a memory is what it holds to the byte") {
  std::vector<int> const ratios = GENERATE(std::vector<int>{0, 4, 128, 4}, std::vector<int>{4}, std::vector<int>{128},
                                           std::vector<int>{0}, std::vector<int>{128, 128, 4, 4, 4, 128, 0});
  ModelShape shape = small_shape(ratios);
  std::vector<MemoryOptions> variants(9, small_options());
  variants[1].entry_copy = true;
  variants[2].per_token = 0;
  variants[2].max_chunk_rows = 5;
  variants[3].aligned = 0;
  variants[3].max_chunks = 3;
  variants[4].quantum = 128;
  variants[4].slots = 5;
  variants[5].per_token = 30;
  variants[5].raw_rows = 333;
  variants[5].slots = 1;
  variants[6].steps_in_flight = 3;
  variants[6].entry_copy = true;
  variants[7].pins = 7;
  variants[7].quantum = 128;
  variants[8].steps_in_flight = 64;
  variants[8].pins = 1;
  variants[8].per_token = 0;
  variants[8].entry_copy = true;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    CAPTURE(ratios, v);
    MemoryBudget const budget = Memory::budget(shape, variants[v]);
    std::size_t const before = live_bytes;
    auto memory = std::make_unique<Memory>(shape, variants[v]);
    REQUIRE(live_bytes - before == budget.total());
    memory.reset();
    REQUIRE(live_bytes == before);

    std::size_t tensors = 0;
    for (Tensor const& t : Memory::tensors(shape, variants[v])) tensors += t.bytes;
    REQUIRE(budget.tensors() == tensors);
    REQUIRE(budget.total() == tensors + budget.scratch + budget.books);
  }
}

TEST_CASE("entry copies and pins are counted apart, and so are the lists of every open batch") {
  ModelShape const shape = small_shape({0, 4, 128});
  MemoryOptions options = small_options();
  MemoryBudget const plain = Memory::budget(shape, options);
  options.entry_copy = true;
  options.steps_in_flight = 3;
  options.raw_rows = Memory::raw_rows(shape, small_options());
  MemoryBudget const in_flight = Memory::budget(shape, options);
  options.pins = 4;
  MemoryBudget const budget = Memory::budget(shape, options);
  for (int p = 0; p < rollback::dsv4::paths; ++p) {
    PathBytes const& b = budget.paths[p];
    CAPTURE(text(b.path));
    if (b.path < Path::csa_state) {  // windows and caches keep no history
      REQUIRE(b.total() == plain.paths[p].total());
      continue;
    }
    std::size_t const of_slots = 2 * b.plane;
    REQUIRE(b.live == of_slots);
    REQUIRE(b.entry_copy == 3 * of_slots);
    REQUIRE(b.pins == 4 * of_slots);
    REQUIRE(b.spares == (1 + 4 + 1) * of_slots);  // a per-token spare, and one a pin; an aligned one
    REQUIRE(b.total() == (1 + 3 + 4 + 3 + 6 + 2) * of_slots);
    REQUIRE(plain.paths[p].pins == 0);
    REQUIRE(in_flight.paths[p].pins == 0);
  }
  std::size_t const fresh = 2 * 12 * (16 + 8 + 8) * sizeof(float);  // keys and scores of CSA, HCA and LID
  REQUIRE(in_flight.scratch - fresh == 3 * (plain.scratch - fresh));
  REQUIRE(budget.scratch > in_flight.scratch);
}

TEST_CASE("planning never allocates") {
  Memory memory(small_shape({0, 4, 128}), small_options());
  Slot const slot = memory.books().slot(1);
  Rows const r(slot, 0, 12, 3, 5);
  Ticket ticket;
  REQUIRE(memory.books().begin(r.batch, ticket) == Verdict::accepted);
  Chunk chunk;
  std::size_t const before = allocations;
  bool all = true;
  for (std::int32_t k = 0; k < r.batch.chunks; ++k) {
    all = all && memory.plan(ticket, k, r.batch, chunk) == Verdict::accepted;
    all = all && memory.books().settle(ticket, k) == Verdict::accepted;
  }
  all = all && memory.books().commit(ticket, slot, 10) == Verdict::accepted;
  REQUIRE(allocations == before);
  REQUIRE(all);
}

TEST_CASE("the raw rows of a reach cover every boundary that is kept though rows were rejected") {
  ModelShape const shape = small_shape({0, 4, 128});
  MemoryOptions options = small_options();
  auto const depth = GENERATE(1, 2, 5);
  options.aligned = depth;
  Memory memory(shape, options);
  Slot const slot = memory.books().slot(1);
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    auto const rejected = static_cast<std::int32_t>(random() % 4);
    auto const rows = rejected + 1 + static_cast<std::int32_t>(random() % 3);
    if (memory.books().tip(slot) + rows > options.max_context) break;
    feed(memory, slot, rows, rejected);
    Position const tip = memory.books().tip(slot);
    Position const newest = rollback::boundary_at_or_below(tip, options.quantum);
    for (Position b = newest; b > newest - depth * options.quantum && b > 0; b -= options.quantum) {
      CAPTURE(tip, b);
      REQUIRE(memory.books().can_land(slot, b) == Verdict::accepted);
    }
    for (Position p = tip - 1; p >= std::max<Position>(tip - 3, 1); --p) {
      CAPTURE(tip, p);
      REQUIRE(memory.books().can_land(slot, p) != Verdict::window_not_covered);
    }
  }
}

TEST_CASE("the raw rows of a reach outlast a batch that fails") {
  MemoryOptions options = small_options();
  options.aligned = 0;
  options.max_rows = 40;
  options.entry_copy = true;
  auto const per_token = GENERATE(0, 3);
  options.per_token = per_token;
  Memory memory(small_shape({0, 4}), options);
  Slot const slot = memory.books().slot(0);
  feed(memory, slot, 40);
  feed(memory, slot, 40);
  Rows const r(slot, 80, 40, 0, 40);
  Ticket ticket;
  REQUIRE(memory.books().begin(r.batch, ticket) == Verdict::accepted);
  Outcome outcome;
  Outcomes outcomes{&outcome, 1, 0};
  REQUIRE(memory.books().fail(ticket, 0, rollback::BadChunk::may_have_run, outcomes) == Verdict::accepted);
  REQUIRE(outcome.tip == 80);
}

TEST_CASE("the raw rows of a reach outlast all batches in flight when the oldest of them fails late") {
  MemoryOptions options = small_options();
  options.aligned = 0;
  auto const steps = GENERATE(2, 5);
  auto const per_token = GENERATE(0, 3);
  options.per_token = per_token;
  options.steps_in_flight = steps;
  options.entry_copy = true;
  bool const enough = GENERATE(false, true);
  if (!enough) options.raw_rows = Memory::raw_rows(small_shape({0, 4}), options) - per_token - 1;
  Memory memory(small_shape({0, 4}), options);
  Slot const slot = memory.books().slot(0);
  for (int i = 0; i < 20; ++i) feed(memory, slot, 12);
  std::vector<Ticket> tickets(static_cast<std::size_t>(steps));
  for (Ticket& ticket : tickets) {
    Rows const r(slot, memory.books().head(slot), 12, 0, 12);
    REQUIRE(memory.books().begin(r.batch, ticket) == Verdict::accepted);
  }
  Outcome outcome;
  Outcomes outcomes{&outcome, 1, 0};
  REQUIRE(memory.books().fail(tickets[0], 0, rollback::BadChunk::may_have_run, outcomes) == Verdict::accepted);
  REQUIRE(outcome.tip == (enough ? 240 : 0));
}

TEST_CASE("a pin is a landing as long as its window rows outlast what is written") {
  ModelShape const shape = small_shape({0, 4, 128});
  MemoryOptions options = small_options();
  options.pins = 1;
  auto const raw_rows = GENERATE(Position{0}, Position{90});
  options.raw_rows = raw_rows;
  Memory memory(shape, options);
  REQUIRE(memory.options().raw_rows == (raw_rows == 0 ? Memory::raw_rows(shape, small_options()) : 90));
  Slot const slot = memory.books().slot(0);
  REQUIRE(memory.books().pin(slot, 37) == Verdict::accepted);
  for (int i = 0; i < 45; ++i) feed(memory, slot, 1);
  Position const first_lost = 37 + memory.options().raw_rows - (shape.window - 1);  // writing it costs the pin
  for (Position p = 45; p <= first_lost; ++p) {
    CAPTURE(p, first_lost);
    REQUIRE(memory.books().can_land(slot, 37) == Verdict::accepted);
    feed(memory, slot, 1);
  }
  REQUIRE(memory.books().can_land(slot, 37) != Verdict::accepted);
  REQUIRE(memory.books().is_pinned(slot, 37));  // its state is kept all the same
}

TEST_CASE("raw rows are the window below the reach") {
  MemoryOptions options;
  options.max_context = 1 << 20;
  options.aligned = 64;
  options.per_token = 7;
  options.max_rows = 512;
  REQUIRE(Memory::raw_rows(Flash::shape(), options) == 127 + 64 * 128 + 7);
  options.aligned = 2;
  REQUIRE(Memory::raw_rows(Flash::shape(), options) == 127 + 512 + 7);
  options.aligned = 0;
  options.steps_in_flight = 3;
  options.pins = 9;
  REQUIRE(Memory::raw_rows(Flash::shape(), options) == 127 + 3 * 512 + 7);
  options.aligned = 64;
  REQUIRE(Memory::raw_rows(Flash::shape(), options) == 127 + 64 * 128 + 7);
  options.aligned = 0;
  options.steps_in_flight = 1;
  options.raw_rows = 9999;  // what was asked for is not what the reach needs
  REQUIRE(Memory::raw_rows(Flash::shape(), options) == 127 + 512 + 7);
  options.max_rows = 0;
  REQUIRE_THROWS_WITH(Memory::raw_rows(Flash::shape(), options), ContainsSubstring("max_rows"));
}

TEST_CASE("sizes that no memory holds are refused and not wrapped") {
  MemoryOptions options = small_options();
  options.max_context = Position{1} << 40;
  options.slots = 65536;
  options.per_token = 0;
  options.aligned = 0;
  REQUIRE_THROWS_WITH(Memory::tensors(Flash::shape(), options), ContainsSubstring("a tensor is larger"));
  options.slots = 8192;  // a cache of 2^62 bytes a layer, 21 of them
  REQUIRE_THROWS_WITH(Memory::tensors(Flash::shape(), options), ContainsSubstring("together"));
  REQUIRE_THROWS_WITH(Memory::budget(Flash::shape(), options), ContainsSubstring("together"));
  options.raw_rows = std::numeric_limits<Position>::max();
  REQUIRE_THROWS_WITH(Memory::tensors(Flash::shape(), options), ContainsSubstring("a tensor is larger"));
}

TEST_CASE("states beyond what list indices reach are refused and the largest have lists that fit") {
  MemoryOptions options = small_options();
  options.slots = 8;
  options.per_token = 1 << 20;
  options.aligned = 0;
  options.max_rows = 1 << 22;
  options.max_chunks = 1;
  REQUIRE_THROWS_WITH(Memory::budget(small_shape({128}), options), ContainsSubstring("32-bit indices"));
  options.slots = 4;
  MemoryBudget const budget = Memory::budget(small_shape({128}), options);
  // every row of the chunk keeps a state of 128 rows: source and destination lists of 2^23 * 128 entries
  REQUIRE(budget.scratch > std::size_t{2} * (std::size_t{1} << 30) * sizeof(std::int32_t));
  REQUIRE(budget.scratch < std::size_t{3} * (std::size_t{1} << 30) * sizeof(std::int32_t));
}
