// The RMS norm.
#pragma once

#include <Eigen/Core>

#include <cmath>
#include <cstdint>

namespace dsv4_decoder {

/// 1 / sqrt(mean of x[i]^2 + epsilon), over `n` values.
[[nodiscard]] inline float inverse_rms(float const* x, std::int64_t n, float epsilon) {
  auto const squares = Eigen::Map<Eigen::VectorXf const>(x, n).squaredNorm();
  return 1.0f / std::sqrt(squares / static_cast<float>(n) + epsilon);
}

/// y[i] = x[i] / rms(x) * weight[i]; without a weight (nullptr) the factor is 1. `y` may be `x`.
inline void rms_norm(float const* x, float const* weight, std::int64_t n, float epsilon, float* y) {
  float const scale = inverse_rms(x, n, epsilon);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * (weight != nullptr ? weight[i] : 1.0f);
}

}  // namespace dsv4_decoder
