// Attention of one token: which rows it sees, and the joint softmax over them.
#pragma once

#include "matrix.hpp"

#include <rollback/position.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dsv4_decoder {

/// The raw rows that a token sees: positions [first, first + count), itself the last.
struct Window {
  rollback::Position first = 0;
  std::int64_t count = 0;
};

/// The newest `width` positions up to and with `p`; fewer near the start.
[[nodiscard]] inline Window window_at(rollback::Position p, std::int64_t width) {
  rollback::Position const first = std::max<rollback::Position>(0, p - (width - 1));
  return {first, p + 1 - first};
}

/// How many compressed rows a token at `p` sees: those whose block is complete, its own included. 0 for ratio 0.
[[nodiscard]] inline std::int64_t rows_at(rollback::Position p, int ratio) { return ratio == 0 ? 0 : (p + 1) / ratio; }

/// One softmax a head over raw rows, compressed rows and the head's sink, which has a logit and no value:
/// out[h] = sum over k of exp(z[h][k] - m) * row[k] / (exp(sink[h] - m) + sum over k of exp(z[h][k] - m)),
/// z[h][k] = queries[h] . row[k] / sqrt(width), m the largest of z[h] and sink[h]. Rows are keys and values at once.
///
/// The bits depend on the rows and their two counts, not on where the rows lie.
///
/// @param queries     [heads, width] rotated
/// @param raw         [rows, width] in order of position, rotated; at least one row
/// @param compressed  [rows, width] in ascending order, rotated; may be empty
/// @param sinks       [heads]
/// @param weights     [raw rows + compressed rows] scratch
/// @param out         [heads, width], to be rotated back by the caller
/// @par Cost          2 * heads * rows * width multiply-adds, heads * rows exponentials; never allocates
inline void attend(float const* queries, MatrixView raw, MatrixView compressed, float const* sinks, std::int64_t heads,
                   float* weights, float* out) {
  std::int64_t const width = raw.inputs;
  std::int64_t const count = raw.outputs + compressed.outputs;
  float const scale = 1.0f / std::sqrt(static_cast<float>(width));
  for (std::int64_t head = 0; head < heads; ++head) {
    float const* query = queries + head * width;
    float* o = out + head * width;
    multiply(raw, query, weights);
    if (compressed.outputs > 0) multiply(compressed, query, weights + raw.outputs);

    float most = sinks[head];
    for (std::int64_t k = 0; k < count; ++k) {
      weights[k] *= scale;
      most = std::max(most, weights[k]);
    }
    float sum = std::exp(sinks[head] - most);
    for (std::int64_t k = 0; k < count; ++k) {
      weights[k] = std::exp(weights[k] - most);
      sum += weights[k];
    }

    std::fill_n(o, width, 0.0f);
    add_weighted_rows(raw, weights, o);
    if (compressed.outputs > 0) add_weighted_rows(compressed, weights + raw.outputs, o);
    for (std::int64_t i = 0; i < width; ++i) o[i] /= sum;
  }
}

}  // namespace dsv4_decoder
