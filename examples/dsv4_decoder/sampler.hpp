// Chooses the next token from logits: the best one, or a seeded draw.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace dsv4_decoder {

/// The id of the largest logit; the lowest id wins ties. NaN never wins.
/// @param logits  [vocabulary], at least one
[[nodiscard]] inline std::int32_t greedy(float const* logits, std::int64_t vocabulary) {
  std::int64_t best = 0;
  for (std::int64_t id = 1; id < vocabulary; ++id) {
    if (logits[id] > logits[best] || (std::isnan(logits[best]) && !std::isnan(logits[id]))) best = id;
  }
  return static_cast<std::int32_t>(best);
}

struct SamplerOptions {
  double temperature = 0.0;  // 0: greedy; otherwise logits are divided by it
  double top_p = 1.0;        // draw only among the likeliest tokens that together reach this probability; (0, 1]
  std::uint64_t seed = 0;
};

/// Draws tokens. Equal options and equal logits give equal tokens: the generator is the standard's mt19937_64, whose
/// sequence is fixed, and its numbers become probabilities here and not in the standard library, where that may differ.
/// A copy continues the same sequence, so a caller that goes back to an earlier token can also go back to its sampler.
class Sampler {
 public:
  /// @throws std::invalid_argument  temperature negative or not finite, top_p outside (0, 1], vocabulary below 1
  Sampler(SamplerOptions options, std::int64_t vocabulary) : options_(options), engine_(options.seed) {
    if (!(options.temperature >= 0.0) || !std::isfinite(options.temperature)) {
      throw std::invalid_argument("Sampler: temperature must be 0 or more, and finite");
    }
    if (!(options.top_p > 0.0 && options.top_p <= 1.0)) {
      throw std::invalid_argument("Sampler: top_p must be above 0 and at most 1");
    }
    if (vocabulary < 1) throw std::invalid_argument("Sampler: vocabulary must be at least 1");
    candidates_.resize(static_cast<std::size_t>(vocabulary));
  }

  /// One token; takes one number from the generator, none where temperature is 0. Never allocates.
  /// @param logits  [vocabulary]
  [[nodiscard]] std::int32_t sample(float const* logits) {
    std::int32_t const likeliest = greedy(logits, static_cast<std::int64_t>(candidates_.size()));
    if (options_.temperature == 0.0) return likeliest;

    double const best = logits[likeliest];
    double total = 0.0;
    for (std::size_t id = 0; id < candidates_.size(); ++id) {
      double const weight = std::exp((logits[id] - best) / options_.temperature);
      candidates_[id] = {std::isnan(weight) ? 0.0 : weight, static_cast<std::int32_t>(id)};
      total += candidates_[id].weight;
    }
    std::sort(candidates_.begin(), candidates_.end(), [](Candidate const& a, Candidate const& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });

    std::size_t kept = 0;
    double kept_weight = 0.0;
    while (kept < candidates_.size() && (kept == 0 || kept_weight < options_.top_p * total)) {
      kept_weight += candidates_[kept++].weight;
    }
    double const draw = uniform() * kept_weight;
    double below = 0.0;
    for (std::size_t i = 0; i < kept; ++i) {
      below += candidates_[i].weight;
      if (draw < below) return candidates_[i].id;
    }
    return likeliest;  // only where an infinite logit leaves no weight
  }

 private:
  struct Candidate {
    double weight;
    std::int32_t id;
  };

  // [0, 1), all multiples of 2^-53.
  [[nodiscard]] double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  SamplerOptions options_;
  std::mt19937_64 engine_;
  std::vector<Candidate> candidates_;
};

}  // namespace dsv4_decoder
