#include "attention.hpp"

#include "catch.hpp"
#include "random_values.hpp"
#include "rotation.hpp"

#include <cmath>
#include <limits>

using dsv4_decoder::attend;
using dsv4_decoder::MatrixView;
using dsv4_decoder::Rotation;
using dsv4_decoder::rows_at;
using dsv4_decoder::window_at;
using rollback::Position;
using rollback::kernels::Rope;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// One call of `attend`, with all that it needs beside the result.
struct Attention {
  std::int64_t heads, width, raw_rows, compressed_rows;
  std::vector<float> queries = normal_values(heads * width, 1);
  std::vector<float> raw = normal_values(raw_rows * width, 2);
  std::vector<float> compressed = normal_values(compressed_rows * width, 3);
  std::vector<float> sinks = normal_values(heads, 4);

  [[nodiscard]] std::vector<float> run() const {
    auto weights = stale(raw_rows + compressed_rows);
    auto out = stale(heads * width);
    attend(queries.data(), {raw.data(), raw_rows, width}, {compressed.data(), compressed_rows, width}, sinks.data(),
           heads, weights.data(), out.data());
    return out;
  }

  // From the formulas, in double: the largest logit is not taken off, so values must be moderate.
  [[nodiscard]] std::vector<double> exact() const {
    std::vector<double> out;
    for (std::int64_t h = 0; h < heads; ++h) {
      std::vector<double> sums(static_cast<std::size_t>(width), 0.0);
      double total = std::exp(static_cast<double>(sinks[static_cast<std::size_t>(h)]));
      for (std::int64_t k = 0; k < raw_rows + compressed_rows; ++k) {
        float const* row = k < raw_rows ? raw.data() + k * width : compressed.data() + (k - raw_rows) * width;
        double z = 0;
        for (std::int64_t i = 0; i < width; ++i) {
          z += static_cast<double>(queries[static_cast<std::size_t>(h * width + i)]) * row[i];
        }
        double const weight = std::exp(z / std::sqrt(static_cast<double>(width)));
        total += weight;
        for (std::int64_t i = 0; i < width; ++i) sums[static_cast<std::size_t>(i)] += weight * row[i];
      }
      for (double sum : sums) out.push_back(sum / total);
    }
    return out;
  }
};

double largest_difference(std::vector<float> const& a, std::vector<double> const& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const difference = std::abs(a[i] - b[i]);
    if (!(difference <= worst)) worst = std::isnan(difference) ? infinity : difference;
  }
  return worst;
}

}  // namespace

TEST_CASE("compressed rows are visible from the token that completes their block", "[attention]") {
  CHECK(rows_at(0, 4) == 0);
  CHECK(rows_at(2, 4) == 0);
  CHECK(rows_at(3, 4) == 1);
  CHECK(rows_at(6, 4) == 1);
  CHECK(rows_at(7, 4) == 2);
  CHECK(rows_at(126, 4) == 31);
  CHECK(rows_at(126, 128) == 0);
  CHECK(rows_at(127, 4) == 32);
  CHECK(rows_at(127, 128) == 1);
  CHECK(rows_at(254, 128) == 1);
  CHECK(rows_at(255, 128) == 2);
  CHECK(rows_at(1048575, 4) == 262144);
  CHECK(rows_at((Position{1} << 40) - 1, 4) == std::int64_t{1} << 38);
  for (Position p : {0, 3, 127, 1000}) CHECK(rows_at(p, 0) == 0);
}

TEST_CASE("the window ends with the token itself and holds at most its width", "[attention]") {
  struct Case {
    Position p, width, first, count;
  };
  for (Case const c : {Case{0, 128, 0, 1},
                       {1, 128, 0, 2},
                       {126, 128, 0, 127},
                       {127, 128, 0, 128},
                       {128, 128, 1, 128},
                       {129, 128, 2, 128},
                       {1000, 128, 873, 128},
                       {0, 1, 0, 1},
                       {5, 1, 5, 1},
                       {5, 3, 3, 3}}) {
    INFO("position " << c.p << " width " << c.width);
    CHECK(window_at(c.p, c.width).first == c.first);
    CHECK(window_at(c.p, c.width).count == c.count);
  }
}

TEST_CASE("attention agrees with the formulas in double", "[attention]") {
  for (Attention const& a : {Attention{3, 16, 1, 0},
                             {3, 16, 1, 1},
                             {8, 64, 128, 32},
                             {8, 64, 128, 5},
                             {2, 64, 7, 32},
                             {1, 512, 128, 512},
                             {5, 10, 13, 9},
                             {64, 512, 2, 3}}) {
    INFO(a.heads << " heads of " << a.width << " over " << a.raw_rows << " and " << a.compressed_rows << " rows");
    CHECK(largest_difference(a.run(), a.exact()) < 3e-6);
  }
}

TEST_CASE("raw and compressed rows share one softmax", "[attention]") {
  Attention const apart{4, 32, 9, 6};
  Attention together{4, 32, 15, 0};
  together.raw = apart.raw;
  together.raw.insert(together.raw.end(), apart.compressed.begin(), apart.compressed.end());
  CHECK(largest_difference(together.run(), apart.exact()) < 3e-6);
}

TEST_CASE("a sink takes weight and gives no value", "[attention]") {
  Attention a{2, 16, 5, 3};
  a.sinks = {-infinity, -infinity};
  auto const without = a.run();
  double total = 0;  // of the weights, from rows of ones
  Attention ones = a;
  std::fill(ones.raw.begin(), ones.raw.end(), 1.0f);
  std::fill(ones.compressed.begin(), ones.compressed.end(), 1.0f);
  for (float v : ones.run()) total = std::max(total, std::abs(v - 1.0));
  CHECK(total < 1e-6);

  a.sinks = {0.5f, -infinity};
  auto const with = a.run();
  CHECK(largest_difference(with, a.exact()) < 3e-6);
  for (std::size_t i = 0; i < 16; ++i) CHECK(std::abs(with[i]) < std::abs(without[i]));  // only head 0 has a sink
  for (std::size_t i = 16; i < 32; ++i) CHECK(with[i] == without[i]);

  a.sinks = {1e4f, 1e4f};  // all weight
  for (float v : a.run()) CHECK(v == 0.0f);
}

TEST_CASE("logits and sinks far from zero do not overflow", "[attention]") {
  Attention a{1, 4, 2, 1};
  a.raw = {1000, 0, 0, 0, 0, 1000, 0, 0};
  a.compressed = {0, 0, 1000, 0};
  a.queries = {1000, 999, -1000, 0};
  a.sinks = {-1000};
  auto const out = a.run();
  CHECK(out[0] == Approx(1000));
  CHECK(out[1] == Approx(0).margin(1e-3));
  CHECK(out[2] == 0.0f);
  a.queries = {-1000, -1000, -1000, 0};  // and all of them far below the sink
  for (float v : a.run()) CHECK(v == 0.0f);
}

TEST_CASE("a damaged row shows in the result", "[attention]") {
  for (bool raw : {true, false}) {
    Attention a{2, 8, 3, 3};
    (raw ? a.raw : a.compressed)[9] = std::nanf("");
    for (float v : a.run()) CHECK(std::isnan(v));
  }
}

TEST_CASE("attention has the same bits wherever its rows lie", "[attention]") {
  Attention const a{2, 64, 128, 32};
  auto const expected = a.run();
  for (std::size_t offset = 1; offset < 16; ++offset) {
    auto raw = stale(a.raw_rows * a.width + 16), compressed = stale(a.compressed_rows * a.width + 16);
    std::copy(a.raw.begin(), a.raw.end(), raw.begin() + static_cast<std::ptrdiff_t>(offset));
    std::copy(a.compressed.begin(), a.compressed.end(), compressed.begin() + static_cast<std::ptrdiff_t>(16 - offset));
    auto weights = stale(160);
    auto out = stale(2 * 64);
    attend(a.queries.data(), {raw.data() + offset, 128, 64}, {compressed.data() + 16 - offset, 32, 64}, a.sinks.data(),
           2, weights.data(), out.data());
    CHECK(equal_bits(out, expected));
  }
}

TEST_CASE("attention writes its heads and its weights and nothing around them", "[attention]") {
  Attention const a{2, 8, 3, 2};
  auto weights = stale(5 + 1);
  auto out = stale(16 + 1);
  attend(a.queries.data(), {a.raw.data(), 3, 8}, {a.compressed.data(), 2, 8}, a.sinks.data(), 2, weights.data(),
         out.data());
  CHECK(weights.back() == stale(1)[0]);
  CHECK(out.back() == stale(1)[0]);
}

// Of a lone row all weight goes to that row, whatever the query; the rotation back undoes the row's own.
TEST_CASE("a single visible row without a sink comes back as it was before its rotation", "[attention]") {
  Rope const rope = Rope::yarn(16, 160000, {16, 65536});
  for (Position p : {0, 5, 127, 1000, 100000}) {
    auto const kv = normal_values(64, 6);
    Rotation const rotation(rope, p);
    Attention a{8, 64, 1, 0};
    a.raw = kv;
    rotation.rotate(a.raw.data(), 64);
    for (std::int64_t h = 0; h < 8; ++h) rotation.rotate(a.queries.data() + h * 64, 64);
    a.sinks.assign(8, -infinity);
    auto out = a.run();
    for (std::int64_t h = 0; h < 8; ++h) {
      rotation.rotate(out.data() + h * 64, 64, true);
      INFO("position " << p << " head " << h);
      double worst = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        worst = std::max(worst, static_cast<double>(std::abs(out[static_cast<std::size_t>(h) * 64 + i] - kv[i])));
      }
      CHECK(worst < 1e-6);
    }
  }
}
