// The lightning indexer of a layer of ratio 4: which compressed rows a token attends to.
#pragma once

#include "matrix.hpp"
#include "top_k.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cstdint>

namespace dsv4_decoder {

/// Scores every visible row: scores[w] = sum over h of weights[h] * max(0, queries[h] . keys[w]), heads in order.
///
/// @param queries  [heads, keys.inputs] after rotation (and the Hadamard transform, where the keys have it)
/// @param weights  [heads], of any sign, 1 / sqrt(heads * width) included
/// @param keys     [rows, width] the indexer's rows [0, visible)
/// @param dots     [rows] scratch
/// @param scores   [rows]
/// @par Cost       heads * rows * width multiply-adds; never allocates
inline void score_rows(float const* queries, float const* weights, std::int64_t heads, MatrixView keys, float* dots,
                       float* scores) {
  using Block = Eigen::Array<float, 8, 1>;
  std::fill_n(scores, keys.outputs, 0.0f);
  for (std::int64_t head = 0; head < heads; ++head) {
    multiply(keys, queries + head * keys.inputs, dots);
    float const weight = weights[head];
    std::int64_t row = 0;
    for (; row + 8 <= keys.outputs; row += 8) {  // whole blocks, which the compiler turns into vector instructions
      Eigen::Map<Block>(scores + row) += weight * Eigen::Map<Block const>(dots + row).max(0.0f);
    }
    for (; row < keys.outputs; ++row) scores[row] += weight * std::max(0.0f, dots[row]);
  }
}

/// The min(top_k, visible) best rows in ascending order, which is the order in which they are attended to. Of equal
/// scores the lower row wins.
///
/// @param scores   [visible]
/// @param scratch  [visible]
/// @param rows     [min(top_k, visible)]
/// @return         min(top_k, visible)
inline std::int64_t select_rows(float const* scores, std::int64_t visible, std::int64_t top_k, std::uint64_t* scratch,
                                std::int32_t* rows) {
  std::int64_t const count = std::min(top_k, visible);
  largest(scores, visible, count, scratch, rows);
  std::sort(rows, rows + count);
  return count;
}

}  // namespace dsv4_decoder
