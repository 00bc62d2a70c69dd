#include "hyper_connections.hpp"

#include "catch.hpp"

#include <array>
#include <cmath>
#include <random>
#include <vector>

using dsv4_decoder::StreamMix;
using dsv4_decoder::streams;
using dsv4_decoder::StreamWeights;
namespace hc = dsv4_decoder::hyper_connections;

namespace {

std::vector<float> random_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

}  // namespace

TEST_CASE("the mix equals values computed elsewhere in double", "[hyper_connections]") {
  std::array<float, 24> logits, base;
  for (std::size_t k = 0; k < 24; ++k) {
    logits[k] = static_cast<float>(std::sin(static_cast<double>(k)));
    base[k] = static_cast<float>(0.1 * std::cos(static_cast<double>(k)));
  }
  std::array<float, 3> const scale = {0.5f, 0.8f, 1.2f};
  StreamMix const m = hc::mix(logits.data(), scale.data(), base.data(), 20, 1e-6f);

  std::array<double, 4> const pre = {0.5249802, 0.6165121, 0.6018162, 0.4928917};
  std::array<double, 4> const post = {0.6766326, 0.6465449, 0.9363286, 1.2917607};
  double const matrix[4][4] = {{0.4715500, 0.3098689, 0.1359231, 0.0826570},
                               {0.0425919, 0.1916123, 0.4825205, 0.2832744},
                               {0.1459977, 0.0987928, 0.1915515, 0.5636569},
                               {0.3398595, 0.3997250, 0.1900039, 0.0704106}};
  for (std::size_t a = 0; a < 4; ++a) {
    CHECK(m.pre[a] == Approx(pre[a]).margin(1e-6));
    CHECK(m.post[a] == Approx(post[a]).margin(1e-6));
    for (std::size_t b = 0; b < 4; ++b) CHECK(m.matrix[a][b] == Approx(matrix[a][b]).margin(1e-6));
  }
}

TEST_CASE("columns of the mixing matrix sum to one and rows only after many iterations", "[hyper_connections]") {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  double worst_column = 0, worst_row_early = 0, worst_row_late = 0;
  for (int round = 0; round < 200; ++round) {
    std::array<std::array<float, 4>, 4> c;
    for (auto& row : c) {
      for (float& v : row) v = normal(engine);
    }
    auto early = c;
    hc::sinkhorn(early, 1, 1e-6f);
    hc::sinkhorn(c, 20, 1e-6f);
    for (std::size_t i = 0; i < 4; ++i) {
      worst_column = std::max(worst_column, std::abs(double{c[0][i]} + c[1][i] + c[2][i] + c[3][i] - 1));
      worst_column =
          std::max(worst_column, std::abs(double{early[0][i]} + early[1][i] + early[2][i] + early[3][i] - 1));
      worst_row_late = std::max(worst_row_late, std::abs(double{c[i][0]} + c[i][1] + c[i][2] + c[i][3] - 1));
      worst_row_early =
          std::max(worst_row_early, std::abs(double{early[i][0]} + early[i][1] + early[i][2] + early[i][3] - 1));
    }
  }
  CHECK(worst_column < 1e-5);
  CHECK(worst_row_early > 0.1);
  CHECK(worst_row_late < 1e-3);
}

TEST_CASE("large logits of the mixing matrix do not overflow", "[hyper_connections]") {
  std::array<std::array<float, 4>, 4> c;
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) c[a][b] = a == b ? 1000.0f : -1000.0f;
  }
  hc::sinkhorn(c, 20, 1e-6f);
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) CHECK(c[a][b] == Approx(a == b ? 1.0 : 0.0).margin(1e-4));
  }
}

TEST_CASE("a sublayer reads the streams and writes them back", "[hyper_connections]") {
  std::size_t const width = 10;
  StreamWeights const w{{random_values(24 * 4 * width, 1), 24, 4 * width}, {0.5f, 0.8f, 1.2f}, random_values(24, 2)};
  auto const x = random_values(4 * width, 3);
  auto const f = random_values(width, 4);

  // In double, from the formulas.
  double squares = 0;
  for (float v : x) squares += double{v} * v;
  double const rho = 1 / std::sqrt(squares / (4.0 * width) + 1e-6);
  double logits[24];
  for (std::size_t j = 0; j < 24; ++j) {
    logits[j] = 0;
    for (std::size_t t = 0; t < 4 * width; ++t) logits[j] += rho * w.projection.values[j * 4 * width + t] * x[t];
  }
  std::vector<float> y(width);
  StreamMix const m = hc::read(w, x.data(), 20, 1e-6f, 1e-6f, y.data());
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(m.pre[s] == Approx(sigmoid(logits[s] * w.scale[0] + w.base[s]) + 1e-6).epsilon(1e-5));
    CHECK(m.post[s] == Approx(2 * sigmoid(logits[4 + s] * w.scale[1] + w.base[4 + s])).epsilon(1e-5));
  }
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0;
    for (std::size_t s = 0; s < 4; ++s) sum += double{m.pre[s]} * x[s * width + i];
    CHECK(y[i] == Approx(sum).margin(1e-5));
  }

  auto written = x;
  hc::write(m, f.data(), width, written.data());
  for (std::size_t b = 0; b < 4; ++b) {
    for (std::size_t i = 0; i < width; ++i) {
      double sum = double{m.post[b]} * f[i];
      for (std::size_t a = 0; a < 4; ++a) sum += double{m.matrix[a][b]} * x[a * width + i];  // over the source
      CHECK(written[b * width + i] == Approx(sum).margin(1e-5));
    }
  }
}

TEST_CASE("the head collapses the streams by weights of its own", "[hyper_connections]") {
  std::size_t const width = 6;
  StreamWeights const w{{random_values(4 * 4 * width, 1), 4, 4 * width}, {0.7f}, random_values(4, 2)};
  auto const x = random_values(4 * width, 3);
  double squares = 0;
  for (float v : x) squares += double{v} * v;
  double const rho = 1 / std::sqrt(squares / (4.0 * width) + 1e-6);
  std::vector<double> expected(width, 0.0);
  for (std::size_t s = 0; s < 4; ++s) {
    double logit = 0;
    for (std::size_t t = 0; t < 4 * width; ++t) logit += rho * w.projection.values[s * 4 * width + t] * x[t];
    double const weight = sigmoid(logit * w.scale[0] + w.base[s]) + 1e-3;
    for (std::size_t i = 0; i < width; ++i) expected[i] += weight * x[s * width + i];
  }
  std::vector<float> y(width);
  hc::read_head(w, x.data(), 1e-6f, 1e-3f, y.data());
  for (std::size_t i = 0; i < width; ++i) CHECK(y[i] == Approx(expected[i]).margin(1e-5));
}
