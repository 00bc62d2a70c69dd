// What a batch costs the host: its plans, and the whole way of a token, against depths, tips and chunk lengths.
#include "prepared.hpp"

namespace {

using rollback::Batch;
using rollback::Position;
using rollback::Slot;
using rollback::Ticket;
using rollback::Verdict;
using rollback::dsv4::Memory;

/// A memory of one slot with all three compressors. Its rows are narrow: plans name rows, whatever their width.
struct SetUp {
  SetUp(std::int64_t per_token, std::int64_t aligned) : memory(shape(), options(per_token, aligned)) {}

  static rollback::dsv4::ModelShape shape() {
    rollback::dsv4::ModelShape s;
    s.ratios = {rollback::dsv4::csa_ratio, rollback::dsv4::hca_ratio};
    s.head_width = s.indexer_width = s.rotary_width = 4;
    return s;
  }
  static rollback::dsv4::MemoryOptions options(std::int64_t per_token, std::int64_t aligned) {
    rollback::dsv4::MemoryOptions o;
    o.per_token = static_cast<std::int32_t>(per_token);
    o.aligned = static_cast<std::int32_t>(aligned);
    o.max_context = Position{1} << 24;
    o.max_rows = axes::max_rows;
    return o;
  }

  Slot slot() { return memory.books().slot(0); }

  Memory memory;
  Ticket ticket;
  rollback::dsv4::Chunk chunk;
};

/// Plans of one chunk for all three components. Arguments: rows, per_token, aligned, tip.
void plan(benchmark::State& state) {
  auto const rows = static_cast<std::int32_t>(state.range(0));
  SetUp s(state.range(1), state.range(2));
  Position const tip = state.range(3);
  if (!axes::accepted(state, axes::prepare(s.memory.books(), s.slot(), tip))) return;
  std::vector<Slot> const slots(static_cast<std::size_t>(rows), s.slot());
  std::vector<Position> positions(slots.size(), tip);
  for (std::int32_t i = 0; i < rows; ++i) positions[static_cast<std::size_t>(i)] += i;
  Batch const batch{slots.data(), positions.data(), rows, &rows, 1, nullptr, 0};
  if (!axes::accepted(state, s.memory.books().begin(batch, s.ticket))) return;
  for (auto _ : state) {
    if (!axes::accepted(state, s.memory.plan(s.ticket, 0, batch, s.chunk))) return;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

/// All that the books do for a token: begin, three plans, settle, commit. Arguments: per_token, aligned, tip.
void decode_step(benchmark::State& state) {
  SetUp s(state.range(0), state.range(1));
  rollback::Books& books = s.memory.books();
  if (!axes::accepted(state, axes::prepare(books, s.slot(), state.range(2)))) return;
  Slot const slot = s.slot();
  std::int32_t const one = 1;
  for (auto _ : state) {
    Position const p = books.tip(slot);
    Batch const batch{&slot, &p, 1, &one, 1, nullptr, 0};
    Verdict verdict = books.begin(batch, s.ticket);
    if (verdict == Verdict::accepted) verdict = s.memory.plan(s.ticket, 0, batch, s.chunk);
    if (verdict == Verdict::accepted) verdict = books.settle(s.ticket, 0);
    if (verdict == Verdict::accepted) verdict = books.commit(s.ticket, slot, p + 1);
    if (!axes::accepted(state, verdict)) return;
  }
}

BENCHMARK(plan)
    ->ArgNames({"rows", "per_token", "aligned", "tip"})
    ->Args({1, 0, axes::aligned, axes::tip})
    ->Args({1, 1, axes::aligned, axes::tip})
    ->Args({1, axes::per_token, axes::aligned, axes::tip})
    ->Args({1, 64, axes::aligned, axes::tip})
    ->Args({1, 4096, axes::aligned, 1 << 14})
    ->Args({1, axes::per_token, 1024, axes::tip})
    ->Args({1, axes::per_token, 4096, 1 << 20})
    ->Args({1, axes::per_token, axes::aligned, 1 << 20})
    ->Args({1, axes::per_token, axes::aligned, axes::tip + 127})  // ends a block everywhere, and keeps a boundary
    ->Args({16, axes::per_token, axes::aligned, axes::tip})
    ->Args({128, axes::per_token, axes::aligned, axes::tip})
    ->Args({1024, axes::per_token, axes::aligned, axes::tip});

BENCHMARK(decode_step)
    ->ArgNames({"per_token", "aligned", "tip"})
    ->Args({0, axes::aligned, axes::tip})
    ->Args({1, axes::aligned, axes::tip})
    ->Args({axes::per_token, axes::aligned, axes::tip})
    ->Args({64, axes::aligned, axes::tip})
    ->Args({4096, axes::aligned, 1 << 14})
    ->Args({axes::per_token, 1024, axes::tip})
    ->Args({axes::per_token, 4096, 1 << 20})
    ->Args({axes::per_token, axes::aligned, 1 << 20});

}  // namespace
