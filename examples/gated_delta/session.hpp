// One sequence of a gated delta model that can go back: its states in memory of its own, and a ring over them.
#pragma once

#include "gated_delta/gated_delta.hpp"

#include <rollback/rollback.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace gated_delta {

/// Which tensors the plane holds. A model needs both kinds; the others are there to see what goes wrong without.
enum class Kept { both, convolution_only, matrix_only };

inline constexpr int quantum = 16;  // small, so that short prompts have several boundaries
using Ring = rollback::RollbackRing<rollback::WholePlane, quantum, rollback::dynamic_depth>;
using Logits = std::vector<float>;

/// The most likely token.
[[nodiscard]] inline int greedy(Logits const& logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// A sequence of tokens with the logits after each of them.
class Session {
 public:
  /// @throws std::invalid_argument as `Ring`
  Session(Model const& model, rollback::RingOptions const& options, Kept kept = Kept::both)
      : model_(&model),
        memory_(sizes(model.shape(), static_cast<std::size_t>(Ring::states(options)))),
        tensors_(tensors(model.shape(), memory_, kept)),
        ring_(rollback::WholePlane(tensors_.data(), static_cast<std::int32_t>(tensors_.size()), Ring::states(options)),
              options) {}

  [[nodiscard]] std::vector<int> const& tokens() const { return tokens_; }
  /// The logits after the token at a position.
  [[nodiscard]] Logits const& logits(std::size_t position) const { return logits_[position]; }
  [[nodiscard]] Ring const& ring() const { return ring_; }
  [[nodiscard]] rollback::Slot slot() const { return ring_.slot(0); }

  /// Feeds the tokens `more` after those that are in.
  [[nodiscard]] rollback::Verdict feed(std::vector<int> const& more) {
    std::vector<int> const before = tokens_;
    tokens_.insert(tokens_.end(), more.begin(), more.end());
    auto const step = [this](std::int32_t state, rollback::Position begin, rollback::Position end) {
      return decode(state, begin, end);
    };
    rollback::Verdict const verdict = ring_.feed(slot(), static_cast<std::int32_t>(more.size()), step);
    if (verdict != rollback::Verdict::accepted) tokens_ = before;
    return verdict;
  }

  /// Feeds `next` and a draft of what follows, and keeps of the draft what the model itself would have said.
  [[nodiscard]] rollback::Verdict verify(int next, std::vector<int> const& draft) {
    std::vector<int> const before = tokens_;
    std::size_t const first = tokens_.size();
    tokens_.push_back(next);
    tokens_.insert(tokens_.end(), draft.begin(), draft.end());
    auto const step = [this](std::int32_t state, rollback::Position begin, rollback::Position end) {
      return decode(state, begin, end);
    };
    std::size_t accepted = 0;
    auto const accept = [&] {
      while (accepted < draft.size() && greedy(logits_[first + accepted]) == draft[accepted]) ++accepted;
      return static_cast<rollback::Position>(first + 1 + accepted);
    };
    rollback::Verdict const verdict = ring_.verify(slot(), static_cast<std::int32_t>(1 + draft.size()),
                                                   static_cast<std::int32_t>(draft.size()), step, accept);
    tokens_.resize(verdict == rollback::Verdict::accepted ? first + 1 + accepted : before.size());
    return verdict;
  }

  /// Takes back everything from position `p` on, where that is a landing.
  [[nodiscard]] rollback::Verdict roll_back(rollback::Position p) {
    rollback::Verdict const verdict = ring_.roll_back(slot(), p);
    if (verdict == rollback::Verdict::accepted) tokens_.resize(static_cast<std::size_t>(p));
    return verdict;
  }

  /// Makes `prompt` the sequence: goes back to the nearest landing at or below the first difference and feeds the rest.
  /// One token is always fed, for its logits.
  /// @return where it landed
  /// @throws std::runtime_error with the verdict's text
  rollback::Landing replace(std::vector<int> const& prompt) {
    auto const end = std::min(tokens_.size(), prompt.size() - 1);
    std::size_t same = 0;
    while (same < end && tokens_[same] == prompt[same]) ++same;
    rollback::Landing const landing = ring_.nearest(slot(), static_cast<rollback::Position>(same));
    rollback::Verdict verdict = roll_back(landing.position);
    if (verdict == rollback::Verdict::accepted) verdict = feed({prompt.begin() + landing.position, prompt.end()});
    if (verdict != rollback::Verdict::accepted) throw std::runtime_error(text(verdict));
    return landing;
  }

 private:
  // One convolution tensor and one matrix tensor a layer, each [states, values].
  static std::vector<std::size_t> sizes(Shape const& shape, std::size_t states) {
    std::vector<std::size_t> bytes;
    for (std::size_t l = 0; l < shape.layers; ++l) {
      bytes.push_back(states * shape.convolution_values() * sizeof(float));
      bytes.push_back(states * shape.matrix_values() * sizeof(float));
    }
    return bytes;
  }

  static std::vector<rollback::PlaneTensor> tensors(Shape const& shape, rollback::OwnedTensors const& memory,
                                                    Kept kept) {
    std::vector<rollback::PlaneTensor> list;
    for (std::size_t t = 0; t < memory.count(); ++t) {
      bool const matrix = t % 2 == 1;
      if (kept == (matrix ? Kept::convolution_only : Kept::matrix_only)) continue;
      std::size_t const values = matrix ? shape.matrix_values() : shape.convolution_values();
      list.push_back({memory.data(t), static_cast<std::int64_t>(values * sizeof(float))});
    }
    return list;
  }

  [[nodiscard]] std::vector<LayerState> states(std::int32_t number) const {
    Shape const& shape = model_->shape();
    auto const s = static_cast<std::size_t>(number);
    std::vector<LayerState> list;
    for (std::size_t l = 0; l < shape.layers; ++l) {
      list.push_back({reinterpret_cast<float*>(memory_.data(2 * l)) + s * shape.convolution_values(),
                      reinterpret_cast<float*>(memory_.data(2 * l + 1)) + s * shape.matrix_values()});
    }
    return list;
  }

  // Advances a state in place and keeps the logits of every token.
  bool decode(std::int32_t state, rollback::Position begin, rollback::Position end) {
    std::vector<LayerState> const layers = states(state);
    logits_.resize(static_cast<std::size_t>(end));
    for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
      logits_[p] = model_->advance(layers, tokens_[p]);
    }
    return true;
  }

  Model const* model_;
  rollback::OwnedTensors memory_;
  std::vector<rollback::PlaneTensor> tensors_;
  Ring ring_;
  std::vector<int> tokens_;
  std::vector<Logits> logits_;  // [positions]
};

/// The logits after every token of a sequence, by a model that never heard of rollbacks.
[[nodiscard]] inline std::vector<Logits> fresh_run(Model const& model, std::vector<int> const& tokens) {
  Shape const& shape = model.shape();
  std::vector<float> convolutions(shape.layers * shape.convolution_values(), 0.0f);
  std::vector<float> matrices(shape.layers * shape.matrix_values(), 0.0f);
  std::vector<LayerState> layers;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    layers.push_back({&convolutions[l * shape.convolution_values()], &matrices[l * shape.matrix_values()]});
  }
  std::vector<Logits> logits;
  for (int token : tokens) logits.push_back(model.advance(layers, token));
  return logits;
}

/// The `count` tokens that the model itself says after `tokens`.
[[nodiscard]] inline std::vector<int> continuation(Model const& model, std::vector<int> tokens, std::size_t count) {
  std::vector<int> said;
  while (said.size() < count) {
    said.push_back(greedy(fresh_run(model, tokens).back()));
    tokens.push_back(said.back());
  }
  return said;
}

}  // namespace gated_delta
