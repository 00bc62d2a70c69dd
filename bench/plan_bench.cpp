// What a batch costs the host: its plans, and the whole way of a token, against depths, tips and chunk lengths.
#include "axes.hpp"

namespace {

using rollback::Lengths;
using rollback::Lists;
using rollback::RowMap;
using rollback::Shape;
using rollback::Ticket;

/// Plans of one chunk for every component, in memory taken once.
class Planner {
 public:
  explicit Planner(Books const& books, std::int32_t rows) : books_(books) {
    Shape const worst = books.worst_shape(rows, 1);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      maps_.push_back(RowMap::packed(books.component(c).geometry, books.places(c), books.slots(), 1 << 24));
      Lengths const n = books.lengths(c, worst);
      indices_.emplace_back(static_cast<std::size_t>(2 * std::int64_t{n.restores} + 2 * std::int64_t{n.snapshots} +
                                                     2 * n.rows + n.blocks + 2 * n.block_reads));
      positions_.emplace_back(static_cast<std::size_t>(2 * n.blocks + n.rows));
    }
  }

  Verdict plan(Ticket const& ticket) {
    Shape shape;
    Verdict verdict = books_.shape(ticket, 0, shape);
    for (std::int32_t c = 0; c < books_.components() && verdict == Verdict::accepted; ++c) {
      auto const i = static_cast<std::size_t>(c);
      Lengths const n = books_.lengths(c, shape);
      Lists lists;
      std::int32_t* index = indices_[i].data();
      std::int64_t* position = positions_[i].data();
      auto const take = [](auto*& list, auto*& memory, std::int32_t length) {
        list = memory;
        memory += length;
      };
      take(lists.restore_source, index, n.restores);
      take(lists.restore_destination, index, n.restores);
      take(lists.snapshot_source, index, n.snapshots);
      take(lists.snapshot_destination, index, n.snapshots);
      take(lists.persist_source, index, n.rows);
      take(lists.persist_destination, index, n.rows);
      take(lists.block_slot, index, n.blocks);
      take(lists.block_previous, index, n.block_reads);
      take(lists.block_current, index, n.block_reads);
      take(lists.block_row, position, n.blocks);
      take(lists.block_position, position, n.blocks);
      take(lists.visible, position, n.rows);
      verdict = books_.plan(ticket, 0, c, shape, maps_[i], lists);
    }
    benchmark::ClobberMemory();
    return verdict;
  }

 private:
  Books const& books_;
  std::vector<RowMap> maps_;
  std::vector<std::vector<std::int32_t>> indices_;
  std::vector<std::vector<std::int64_t>> positions_;
};

/// Opens a batch of `rows` tokens, one chunk.
Verdict begin(Books& books, std::int32_t rows, Ticket& ticket) {
  std::vector<Slot> const slots(static_cast<std::size_t>(rows), books.slot(0));
  std::vector<Position> positions(slots.size(), books.tip(books.slot(0)));
  for (std::int32_t i = 0; i < rows; ++i) positions[static_cast<std::size_t>(i)] += i;
  return books.begin({slots.data(), positions.data(), rows, &rows, 1, nullptr, 0}, ticket);
}

/// Shape and plans of one chunk of all three components. Arguments: rows, per_token, aligned, tip.
void plan(benchmark::State& state) {
  auto const rows = static_cast<std::int32_t>(state.range(0));
  Books books(axes::dsv4_books(1, state.range(1), state.range(2)));
  axes::Feeder feeder(books);
  Ticket ticket;
  if (!axes::accepted(state, feeder.all_up_to(state.range(3)))) return;
  if (!axes::accepted(state, begin(books, rows, ticket))) return;
  Planner planner(books, rows);
  for (auto _ : state) {
    if (!axes::accepted(state, planner.plan(ticket))) return;
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

/// All that the books do for a token: begin, shape, three plans, settle, commit. Arguments: per_token, aligned, tip.
void decode_step(benchmark::State& state) {
  Books books(axes::dsv4_books(1, state.range(0), state.range(1)));
  axes::Feeder feeder(books);
  if (!axes::accepted(state, feeder.all_up_to(state.range(2)))) return;
  Planner planner(books, 1);
  Slot const slot = books.slot(0);
  std::int32_t const one = 1;
  for (auto _ : state) {
    Position const p = books.tip(slot);
    Ticket ticket;
    Verdict verdict = books.begin({&slot, &p, 1, &one, 1, nullptr, 0}, ticket);
    if (verdict == Verdict::accepted) verdict = planner.plan(ticket);
    if (verdict == Verdict::accepted) verdict = books.settle(ticket, 0);
    if (verdict == Verdict::accepted) verdict = books.commit(ticket, slot, p + 1);
    if (!axes::accepted(state, verdict)) return;
  }
}

BENCHMARK(plan)
    ->ArgNames({"rows", "per_token", "aligned", "tip"})
    ->Args({1, 0, axes::aligned, axes::tip})
    ->Args({1, 1, axes::aligned, axes::tip})
    ->Args({1, axes::per_token, axes::aligned, axes::tip})
    ->Args({1, 64, axes::aligned, axes::tip})
    ->Args({1, axes::per_token, 1024, axes::tip})
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
    ->Args({axes::per_token, 1024, axes::tip})
    ->Args({axes::per_token, axes::aligned, 1 << 20});

}  // namespace
