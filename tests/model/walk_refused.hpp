// The walk's calls that must be refused, with the verdict that the model predicts.
#pragma once

#include "walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace model {

inline void Walk::refused(Op const& op) {
  std::size_t const s = slot_of(op.b);
  touch(s);
  Position const tip = model_.slots[s].tip;
  Slot bad = handle(s);
  if (op.c % 2 == 0) bad.index = op.c % 4 == 0 ? options_.slots : -2;
  if (op.c % 2 == 1) bad.generation += 1 + op.c % 3;
  Verdict const who = model_.known(bad);
  Slot to = handle(slot_of(op.d));
  bool const any = !model_.batches.empty();
  ModelBatch* const b = any ? &model_.batches[op.c % model_.batches.size()] : nullptr;
  Ticket unknown = any ? b->ticket : Ticket{};
  if (op.d % 3 == 0) unknown.index = op.d % 2 == 0 ? options_.steps_in_flight : -1;
  if (op.d % 3 != 0) unknown.serial += 1 + op.d;
  std::vector<Outcome> data(model_.slots.size());
  Outcomes outcomes{data.data(), 0, 0};
  Position const beyond = tip + 1 + modulo(op.d, 5);
  switch (op.a % 16) {
    case 0:
      expect("roll_back", books_.roll_back(bad, 0), who);
      break;
    case 1:
      expect("clear", books_.clear(bad), who);
      break;
    case 2:
      expect("pin", books_.pin(bad, 3), who);
      break;
    case 3:
      expect("unpin", books_.unpin(bad, 3), who);
      break;
    case 4:
      expect("fork", books_.fork(bad, 0, to), who);
      break;
    case 5:
      if (judge_fork(handle(s), 0, bad) == Verdict::accepted) break;
      expect("fork", books_.fork(handle(s), 0, bad), judge_fork(handle(s), 0, bad));
      break;
    case 6:
      expect("roll_back", books_.roll_back(handle(s), -1 - modulo(op.d, 3)), model_.nearest(handle(s), -1).why);
      break;
    case 7:
      expect("roll_back", books_.roll_back(handle(s), beyond), model_.nearest(handle(s), beyond).why);
      break;
    case 8:
      expect("pin", books_.pin(handle(s), -1), Verdict::negative_position);
      break;
    case 9:
      expect("fork", books_.fork(handle(s), beyond, to), judge_fork(handle(s), beyond, to));
      break;
    case 10:
      expect("settle", books_.settle(unknown, 0), Verdict::unknown_ticket);
      expect("commit", books_.commit(unknown, handle(s), tip), Verdict::unknown_ticket);
      expect("fail", books_.fail(unknown, 0, BadChunk::may_have_run, outcomes), Verdict::unknown_ticket);
      break;
    case 11:
      refused_chunk(op, b);
      break;
    case 12:
      refused_commit(op, b, bad);
      break;
    default:
      refused_begin(op, bad);
      break;
  }
}

inline void Walk::refused_chunk(Op const& op, ModelBatch* b) {
  if (b == nullptr) return;
  std::int32_t const chunk = op.d % 2 == 0 ? -1 - static_cast<std::int32_t>(op.d % 3) : b->chunks() + 1;
  Shape shape;
  rollback::Lists lists;
  Outcomes outcomes;
  expect("settle", books_.settle(b->ticket, chunk), Verdict::unknown_chunk);
  expect("fail", books_.fail(b->ticket, chunk, BadChunk::ran_last, outcomes), Verdict::unknown_chunk);
  expect("shape", books_.shape(b->ticket, chunk, shape), Verdict::unknown_chunk);
  expect("plan", books_.plan(b->ticket, 0, books_.components(), shape, {}, lists), Verdict::unknown_component);
  if (!engine_.maps.empty()) {
    expect("plan", books_.plan(b->ticket, 0, 0, shape, engine_.maps[0], lists), Verdict::shape_too_small);
  }
  std::int32_t const windows = books_.windows();
  expect("plan_window", books_.plan_window(b->ticket, 0, windows, shape, {}, lists), Verdict::unknown_window);
  if (windows > 0) {
    expect("plan_window", books_.plan_window(b->ticket, chunk, 0, shape, {}, lists), Verdict::unknown_chunk);
  }
  for (std::int32_t k = 0; k < b->chunks(); ++k) {
    if (k < b->settled) {
      expect("fail", books_.fail(b->ticket, k, BadChunk::never_started, outcomes), Verdict::below_settled);
    }
    if (k != b->settled) expect("settle", books_.settle(b->ticket, k), Verdict::out_of_order);
  }
  bool const younger = b != &model_.batches.front() && model_.batches.front().settled < model_.batches.front().chunks();
  if (younger && b->settled < b->chunks()) {
    expect("settle", books_.settle(b->ticket, b->settled), Verdict::out_of_order);
  }
  if (fail_is_refused(*b)) {
    expect("fail", books_.fail(b->ticket, b->chunks(), BadChunk::may_have_run, outcomes), Verdict::out_of_order);
  }
}

inline void Walk::refused_commit(Op const& op, ModelBatch* b, Slot bad) {
  if (b == nullptr) return;
  expect("commit", books_.commit(b->ticket, bad, 1), model_.known(bad));
  for (std::size_t s = 0; s < model_.slots.size(); ++s) {
    OpenRows const* const o = b->find(s);
    Position const p = o == nullptr ? 0 : op.d % 2 == 0 ? o->rows.end + 1 : o->rows.verified - 1;
    Verdict const wanted = o == nullptr                    ? Verdict::slot_not_open
                           : o->chunk.back() >= b->settled ? Verdict::not_settled
                                                           : Verdict::outside_batch;
    expect("commit", books_.commit(b->ticket, handle(s), p), wanted);
  }
}

inline void Walk::refused_begin(Op const& op, Slot bad) {
  std::vector<Unverified> unverified;
  ModelBatch b = make_batch(op, unverified);
  if (b.row_slots.empty()) return;
  std::size_t const i = op.c % b.row_slots.size();
  std::size_t const k = op.c % b.chunk_ends.size();
  switch (op.d % 12) {
    case 0:
      b.row_slots[i] = bad;
      break;
    case 1:
      b.positions[i] += 1;
      break;
    case 2:
      b.positions[i] -= 1;
      break;
    case 3:
      b.positions[i] = -1;
      break;
    case 4:
      b.chunk_ends[k] += 1;
      break;
    case 5:
      b.chunk_ends.pop_back();
      break;
    case 6:
      b.chunk_ends = {static_cast<std::int32_t>(b.row_slots.size())};
      break;  // often a cut is missing
    case 7:
      unverified.push_back({bad, 1});
      break;
    case 8:
      unverified.push_back({handle(slot_of(op.b)), options_.max_rows + 1});
      break;
    case 9:
      std::fill(b.row_slots.begin(), b.row_slots.end(), Slot{});
      break;
    case 10:
      if (!unverified.empty()) unverified.push_back(unverified.front());
      break;
    default:
      for (Unverified& u : unverified) u.rows = -1;
      break;
  }
  begin_with(std::move(b), unverified);
}

}  // namespace model
