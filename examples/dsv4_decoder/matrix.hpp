// Products of a weight matrix with one vector at a time, and the matrices themselves.
//
// A token must come out with the same bits whatever other tokens share its chunk, so the shape that the linear algebra
// library sees must not depend on the chunk. Eigen's GEMV on one row at a time does that: it reads unaligned, handles
// each output by the same instructions wherever the output, the row and the memory lie, and never looks at a second
// row. A GEMM over the chunk would not: its order of summation changes with the number of columns.
//
// Measured on one core of an EPYC (Zen 4) with g++ 12 -O2 and 256 rows, in ns a row, against GEMM on tiles of 8 and 16
// rows that are always full, and against a register tile written by hand with the weights packed for it:
//
//   outputs x inputs     24x512   64x128   512x64   128x128   128x64   384x128
//   GEMV                    671      453     2066       948      501      2823     17 multiply-adds a ns
//   GEMM, 8 rows           1063      708     2769      1397      700      4176     and 8 times that for a lone token
//   GEMM, 16 rows           857      565     2218      1115      562      3337     and 16 times
//   register tile           920      446     1766       892      445      2630
//
// So the simplest is also as good as the best; the weights of one layer stay in the second-level cache.
#pragma once

#include <Eigen/Core>

#include <cstdint>
#include <vector>

namespace dsv4_decoder {

/// Weights that somebody else holds: [outputs, inputs].
struct MatrixView {
  float const* values = nullptr;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;

  /// The outputs [first, first + count): one group of a stack of equal groups, or one expert of many.
  [[nodiscard]] MatrixView part(std::int64_t first, std::int64_t count) const {
    return {values + first * inputs, count, inputs};
  }
};

/// Weights that are owned: [outputs, inputs]. Stacks of matrices are one matrix with more outputs; see `part`.
struct Matrix {
  std::vector<float> values;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;

  [[nodiscard]] MatrixView view() const { return {values.data(), outputs, inputs}; }
};

/// y[o] = sum over i of w[o][i] * x[i]. The bits of y[o] depend on the shape and the values of `w`, on `x` and on
/// nothing else. `y` must not overlap the others. Costs outputs * inputs multiply-adds; never allocates.
inline void multiply(MatrixView w, float const* x, float* y) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Eigen::VectorXf>(y, w.outputs).noalias() =
      Eigen::Map<RowMajor const>(w.values, w.outputs, w.inputs) * Eigen::Map<Eigen::VectorXf const>(x, w.inputs);
}

/// The same with the transposed matrix, added: y[i] += sum over o of weight[o] * w[o][i]. This is the weighted sum of
/// rows that attention needs. `y` [inputs], `weight` [outputs].
inline void add_weighted_rows(MatrixView w, float const* weight, float* y) {
  Eigen::Map<Eigen::VectorXf>(y, w.inputs).noalias() +=
      Eigen::Map<Eigen::MatrixXf const>(w.values, w.inputs, w.outputs) *
      Eigen::Map<Eigen::VectorXf const>(weight, w.outputs);
}

}  // namespace dsv4_decoder
