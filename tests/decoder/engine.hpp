// The books' calling side spelled out, one call at a time, over the whole decoder: for tests that stop in the middle.
#pragma once

#include "model.hpp"

#include <rollback/dsv4/memory.hpp>
#include <rollback/dsv4/restore.hpp>
#include <rollback/kernels/launch_host.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

/// One slot of a memory, and the batch that is open in it.
class Engine {
 public:
  Engine(dsv4_decoder::Model& model, rollback::dsv4::MemoryOptions const& options)
      : memory(model.hyper().shape(), options), model_(&model) {}

  [[nodiscard]] rollback::Books& books() { return memory.books(); }
  [[nodiscard]] rollback::Slot slot() { return books().slot(0); }
  [[nodiscard]] rollback::Position tip() { return books().tip(slot()); }

  /// Opens a batch of the next `tokens`, in chunks of `chunk`, of which the last `unverified` may be rejected.
  [[nodiscard]] rollback::Verdict begin(std::vector<std::int32_t> const& tokens, std::int32_t chunk,
                                        std::int32_t unverified = 0) {
    tokens_ = tokens;
    auto const rows = static_cast<std::int32_t>(tokens.size());
    slots_.assign(tokens.size(), slot());
    positions_.clear();
    chunk_ends_.clear();
    for (std::int32_t i = 0; i < rows; ++i) positions_.push_back(tip() + i);
    for (std::int32_t end = 0; end < rows;) chunk_ends_.push_back(end = std::min(end + chunk, rows));
    unverified_ = {slot(), unverified};
    batch_ = {slots_.data(),
              positions_.data(),
              rows,
              chunk_ends_.data(),
              static_cast<std::int32_t>(chunk_ends_.size()),
              &unverified_,
              1};
    logits.assign(tokens.size() * static_cast<std::size_t>(model_->hyper().vocabulary), 0.0f);
    return books().begin(batch_, ticket);
  }
  [[nodiscard]] std::int32_t chunks() const { return batch_.chunks; }

  /// Plans a chunk and does nothing about it.
  [[nodiscard]] rollback::Verdict plan_only(std::int32_t chunk) {
    rollback::dsv4::Chunk planned;
    return memory.plan(ticket, chunk, batch_, planned);
  }
  /// Plans a chunk and carries it out.
  [[nodiscard]] rollback::Verdict run(std::int32_t chunk) {
    rollback::dsv4::Chunk planned;
    rollback::Verdict const verdict = memory.plan(ticket, chunk, batch_, planned);
    if (verdict != rollback::Verdict::accepted) return verdict;
    rollback::dsv4::restore(rollback::kernels::HostLoop{}, memory, planned);
    std::int64_t const first = planned.positions[0] - positions_[0];
    std::vector<std::uint8_t> const wants(static_cast<std::size_t>(planned.rows), 1);
    model_->forward(memory, planned, tokens_.data() + first, wants.data(),
                    logits.data() + first * model_->hyper().vocabulary);
    return verdict;
  }
  /// Runs and settles every chunk.
  [[nodiscard]] rollback::Verdict run_all() {
    for (std::int32_t k = 0; k < chunks(); ++k) {
      rollback::Verdict verdict = run(k);
      if (verdict == rollback::Verdict::accepted) verdict = books().settle(ticket, k);
      if (verdict != rollback::Verdict::accepted) return verdict;
    }
    return rollback::Verdict::accepted;
  }
  /// Feeds tokens that are all accepted.
  [[nodiscard]] rollback::Verdict feed(std::vector<std::int32_t> const& tokens, std::int32_t chunk) {
    rollback::Verdict verdict = begin(tokens, chunk);
    if (verdict == rollback::Verdict::accepted) verdict = run_all();
    if (verdict == rollback::Verdict::accepted) { verdict = books().commit(ticket, slot(), positions_.back() + 1); }
    return verdict;
  }

  rollback::dsv4::Memory memory;
  rollback::Ticket ticket;
  std::vector<float> logits;  // of the batch, [rows, vocabulary]

 private:
  dsv4_decoder::Model* model_;
  std::vector<std::int32_t> tokens_;
  std::vector<rollback::Slot> slots_;
  std::vector<rollback::Position> positions_;
  std::vector<std::int32_t> chunk_ends_;
  rollback::Unverified unverified_;
  rollback::Batch batch_;
};
