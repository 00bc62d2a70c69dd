// Manifold-constrained hyper-connections (mHC): the four residual streams of a token, how a sublayer reads them and how
// its result is written back.
#pragma once

#include "matrix.hpp"
#include "norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace dsv4_decoder {

inline constexpr std::int64_t streams = 4;
inline constexpr std::int64_t stream_logits = (2 + streams) * streams;  // of a sublayer: pre, post, mixing matrix

/// Weights of one hyper-connection. A sublayer's has `stream_logits` outputs and 3 scales (pre, post, mixing matrix);
/// the output head's has `streams` outputs and 1 scale (pre).
struct StreamWeights {
  Matrix projection;         // [outputs, streams * width]
  std::vector<float> scale;  // [3] or [1]
  std::vector<float> base;   // [outputs]
};

/// How one token's sublayer reads and writes the streams.
struct StreamMix {
  std::array<float, streams> pre;                          // weight of a stream in the sublayer's input
  std::array<float, streams> post;                         // weight of the sublayer's result in a stream
  std::array<std::array<float, streams>, streams> matrix;  // [source stream][destination stream]
};

namespace hyper_connections {

[[nodiscard]] inline float sigmoid(float z) { return 1.0f / (1.0f + std::exp(-z)); }

/// Sinkhorn's iteration: a softmax of each row, then columns and rows in turn scaled to sum 1, ending with the columns.
inline void sinkhorn(std::array<std::array<float, streams>, streams>& c, int iterations, float epsilon) {
  auto const scale_columns = [&] {
    for (std::size_t b = 0; b < streams; ++b) {
      float const sum = c[0][b] + c[1][b] + c[2][b] + c[3][b] + epsilon;
      for (auto& row : c) row[b] /= sum;
    }
  };
  for (auto& row : c) {
    float const most = *std::max_element(row.begin(), row.end());
    for (float& v : row) v = std::exp(v - most);
    float const sum = row[0] + row[1] + row[2] + row[3];
    for (float& v : row) v = v / sum + epsilon;
  }
  scale_columns();
  for (int i = 1; i < iterations; ++i) {
    for (auto& row : c) {
      float const sum = row[0] + row[1] + row[2] + row[3] + epsilon;
      for (float& v : row) v /= sum;
    }
    scale_columns();
  }
}

/// The mix from its logits.
/// @param logits      [stream_logits] pre, post, then the mixing matrix by source stream
/// @param scale       [3]
/// @param base        [stream_logits]
/// @param iterations  of Sinkhorn, at least 1
[[nodiscard]] inline StreamMix mix(float const* logits, float const* scale, float const* base, int iterations,
                                   float epsilon) {
  StreamMix m;
  for (std::size_t s = 0; s < streams; ++s) {
    m.pre[s] = sigmoid(logits[s] * scale[0] + base[s]) + epsilon;
    m.post[s] = 2.0f * sigmoid(logits[streams + s] * scale[1] + base[streams + s]);
    for (std::size_t b = 0; b < streams; ++b) {
      std::size_t const k = (2 + s) * streams + b;
      m.matrix[s][b] = logits[k] * scale[2] + base[k];
    }
  }
  sinkhorn(m.matrix, iterations, epsilon);
  return m;
}

/// logits[j] = projection[j] . all streams, over the root mean square of all streams.
/// @param x       [streams, width], projection.inputs values in all
/// @param logits  [projection.outputs]
inline void project(StreamWeights const& weights, float const* x, float rms_epsilon, float* logits) {
  MatrixView const projection = weights.projection.view();
  float const scale = inverse_rms(x, projection.inputs, rms_epsilon);
  multiply(projection, x, logits);
  for (std::int64_t j = 0; j < projection.outputs; ++j) logits[j] *= scale;
}

/// y[i] = sum over s of pre[s] * x[s][i], with x [streams, width].
inline void collapse(std::array<float, streams> const& pre, float const* x, std::int64_t width, float* y) {
  for (std::int64_t i = 0; i < width; ++i) {
    y[i] = pre[0] * x[i] + pre[1] * x[width + i] + pre[2] * x[2 * width + i] + pre[3] * x[3 * width + i];
  }
}

/// Reads the streams for a sublayer.
/// @param x  [streams, width]
/// @param y  [width] the sublayer's input, before its norm
/// @return   the mix, needed again by `write`
[[nodiscard]] inline StreamMix read(StreamWeights const& weights, float const* x, int iterations, float rms_epsilon,
                                    float epsilon, float* y) {
  std::array<float, stream_logits> logits;
  project(weights, x, rms_epsilon, logits.data());
  StreamMix const m = mix(logits.data(), weights.scale.data(), weights.base.data(), iterations, epsilon);
  collapse(m.pre, x, weights.projection.inputs / streams, y);
  return m;
}

/// Writes a sublayer's result `f` [width]: x[b][i] = post[b] * f[i] + sum over a of matrix[a][b] * x[a][i].
/// @param x  [streams, width] what `read` has seen; overwritten
inline void write(StreamMix const& m, float const* f, std::int64_t width, float* x) {
  for (std::int64_t i = 0; i < width; ++i) {
    float const x0 = x[i], x1 = x[width + i], x2 = x[2 * width + i], x3 = x[3 * width + i];
    for (std::size_t b = 0; b < streams; ++b) {
      x[static_cast<std::int64_t>(b) * width + i] =
          m.post[b] * f[i] + (m.matrix[0][b] * x0 + m.matrix[1][b] * x1 + m.matrix[2][b] * x2 + m.matrix[3][b] * x3);
    }
  }
}

/// Collapses the streams after the last layer, where nothing is written back.
/// @param weights  of the output head: `streams` outputs, 1 scale
/// @param x        [streams, width]
/// @param y        [width]
inline void read_head(StreamWeights const& weights, float const* x, float rms_epsilon, float epsilon, float* y) {
  std::array<float, streams> pre;
  project(weights, x, rms_epsilon, pre.data());
  for (std::size_t s = 0; s < streams; ++s) pre[s] = sigmoid(pre[s] * weights.scale[0] + weights.base[s]) + epsilon;
  collapse(pre, x, weights.projection.inputs / streams, y);
}

}  // namespace hyper_connections
}  // namespace dsv4_decoder
