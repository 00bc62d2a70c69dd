// The feed-forward sublayer of one token: a router chooses experts by score or by token id, a shared expert always
// runs.
#pragma once

#include "matrix.hpp"
#include "top_k.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dsv4_decoder {

/// A gated feed-forward network: down . (silu(gate . x) * (up . x)).
struct Expert {
  MatrixView gate;  // [hidden, width]
  MatrixView up;    // [hidden, width]
  MatrixView down;  // [width, hidden]
};

/// Runs one expert. The gate is limited to `limit` from above before silu, up to [-limit, limit].
/// @param x       [width]
/// @param hidden  [2 * gate.outputs] scratch
/// @param y       [width]
inline void run_expert(Expert const& expert, float const* x, float limit, float* hidden, float* y) {
  float* gate = hidden;
  float* up = hidden + expert.gate.outputs;
  multiply(expert.gate, x, gate);
  multiply(expert.up, x, up);
  for (std::int64_t i = 0; i < expert.gate.outputs; ++i) {
    float const g = std::min(gate[i], limit);
    gate[i] = g / (1.0f + std::exp(-g)) * std::clamp(up[i], -limit, limit);
  }
  multiply(expert.down, gate, y);
}

/// The router's score of a logit: sqrt(softplus(z)).
[[nodiscard]] inline float router_score(float z) {
  return std::sqrt(z > 20.0f ? z : std::log1p(std::exp(z)));  // softplus(z) = z to the last bit beyond 20
}

/// The `used` experts of the largest score plus bias, best first; the bias only chooses, it weighs nothing.
/// @param scores   [experts]
/// @param bias     [experts]
/// @param biased   [experts] scratch
/// @param scratch  [experts]
/// @param chosen   [used]
inline void choose_experts(float const* scores, float const* bias, std::int64_t experts, std::int64_t used,
                           float* biased, std::uint64_t* scratch, std::int32_t* chosen) {
  for (std::int64_t e = 0; e < experts; ++e) biased[e] = scores[e] + bias[e];
  largest(biased, experts, used, scratch, chosen);
}

/// Weights of the chosen experts: their scores, over the sum of these where `normalise`, times `scale`.
/// @param scores   [experts] by expert
/// @param chosen   [used]
/// @param weights  [used]
inline void weigh_experts(float const* scores, std::int32_t const* chosen, std::int64_t used, bool normalise,
                          float scale, float* weights) {
  float sum = 0.0f;
  for (std::int64_t i = 0; i < used; ++i) sum += scores[chosen[i]];
  // The floor is the smallest normal F16 number, as in the released implementations; no sensible router comes near it.
  float const factor = normalise ? scale / std::max(sum, 6.103515625e-5f) : scale;
  for (std::int64_t i = 0; i < used; ++i) weights[i] = scores[chosen[i]] * factor;
}

}  // namespace dsv4_decoder
