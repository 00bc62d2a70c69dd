// Projects a chunk's rows to what a compressor keeps of them: a key and a score.
#pragma once

#include <rollback/config.hpp>
#include <rollback/position.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace kernels {

/// Row-major shapes. All memory is the caller's, where the launched team can reach it, until the launch is done.
struct ProjectParams {
  float const* x;             // [rows, inputs], the normed input of the attention layer
  float const* kv_weight;     // [width, inputs]
  float const* gate_weight;   // [width, inputs]
  float const* ape;           // [ratio, width], the bias by position within a block
  Position const* positions;  // [rows]; negative: a padded row
  std::int32_t ratio;         // tokens of a block
  std::int64_t rows;
  std::int64_t inputs;
  std::int64_t width;  // twice the pooled width where blocks overlap
  float* kv;           // [rows, width]
  float* score;        // [rows, width]
};

/// The scalar product of `a` [n] and `b` [n]: always the same sixteen partial sums, added up in the same order, so that
/// the result depends on nothing but the two rows.
[[nodiscard]] ROLLBACK_HD inline float dot(float const* a, float const* b, std::int64_t n) {
  // Four arrays of four, added up one value after the other, for the compilers' sake: so g++ and clang++ keep them in
  // vector registers at -O2. One array of 16 stays in memory with the one, a tree of sums costs the other its vectors.
  float s0[4] = {}, s1[4] = {}, s2[4] = {}, s3[4] = {};
  std::int64_t const whole = n - n % 16;
  for (std::int64_t i = 0; i < whole; i += 16) {
    for (int lane = 0; lane < 4; ++lane) s0[lane] += a[i + lane] * b[i + lane];
    for (int lane = 0; lane < 4; ++lane) s1[lane] += a[i + 4 + lane] * b[i + 4 + lane];
    for (int lane = 0; lane < 4; ++lane) s2[lane] += a[i + 8 + lane] * b[i + 8 + lane];
    for (int lane = 0; lane < 4; ++lane) s3[lane] += a[i + 12 + lane] * b[i + 12 + lane];
  }
  float sum = 0;
  for (std::int64_t i = whole; i < n; ++i) sum += a[i] * b[i];
  for (int lane = 0; lane < 4; ++lane) sum += s0[lane];
  for (int lane = 0; lane < 4; ++lane) sum += s1[lane];
  for (int lane = 0; lane < 4; ++lane) sum += s2[lane];
  for (int lane = 0; lane < 4; ++lane) sum += s3[lane];
  return sum;
}

/// Writes key row `kv_weight x` and score row `gate_weight x + ape[position % ratio]` of every row that is not padded;
/// of a padded row nothing is written. A row's bytes do not depend on which rows stand beside it.
///
/// One team a row; teams past `rows` do nothing.
/// @par Cost  2 * width * inputs multiply-adds and one reading of both weights a row. An engine that has a matrix
///            product gives `kv` and `score` to the other kernels from there.
struct Project {
  template <class Team>
  ROLLBACK_HD void operator()(Team const& team, ProjectParams const& p) const {
    if (team.index >= p.rows || p.positions[team.index] < 0) return;
    float const* const x = p.x + team.index * p.inputs;
    float const* const bias = p.ape + p.positions[team.index] % p.ratio * p.width;
    float* const kv = p.kv + team.index * p.width;
    float* const score = p.score + team.index * p.width;
    team.for_each(p.width, [&p, x, bias, kv, score](std::int64_t column) {
      kv[column] = dot(p.kv_weight + column * p.inputs, x, p.inputs);
      score[column] = dot(p.gate_weight + column * p.inputs, x, p.inputs) + bias[column];
    });
  }
};

}  // namespace kernels
}  // namespace v0_1
}  // namespace rollback
