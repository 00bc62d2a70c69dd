#include "matrix.hpp"

#include "catch.hpp"
#include "norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

using dsv4_decoder::add_weighted_rows;
using dsv4_decoder::Matrix;
using dsv4_decoder::MatrixView;
using dsv4_decoder::multiply;

namespace {

struct Shape {
  std::int64_t outputs, inputs;
};

// Those of the fixture, those of the released models' narrow products, and what is left over of every block width.
std::vector<Shape> const shapes = {{24, 512}, {64, 128},  {512, 64}, {128, 128}, {32, 128},  {8, 128},
                                   {128, 64}, {384, 128}, {4, 512},  {16, 128},  {1, 64},    {2, 64},
                                   {160, 64}, {129, 64},  {1, 1},    {1, 3},     {3, 1},     {7, 5},
                                   {13, 17},  {31, 33},   {9, 300},  {5, 8191},  {24, 16384}};

std::vector<float> random_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = normal(engine);
  return values;
}

// Values at a chosen distance from a cache line's start, among bytes that look like nothing.
class Placed {
 public:
  Placed(std::vector<float> const& values, std::size_t offset) : memory_(values.size() + 64) {
    std::memset(memory_.data(), 0x3e, memory_.size() * sizeof(float));
    auto const address = reinterpret_cast<std::uintptr_t>(memory_.data());
    first_ = memory_.data() + (64 - address % 64) % 64 / sizeof(float) + offset;
    std::memcpy(first_, values.data(), values.size() * sizeof(float));
  }
  [[nodiscard]] float* data() { return first_; }

 private:
  std::vector<float> memory_;
  float* first_;
};

bool same_bits(float const* a, float const* b, std::int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a product sums over the inputs", "[matrix]") {
  for (Shape const s : shapes) {
    INFO(s.outputs << " x " << s.inputs);
    auto const w = random_values(s.outputs * s.inputs, 1);
    auto const x = random_values(s.inputs, 2);
    std::vector<float> y(static_cast<std::size_t>(s.outputs), NAN);
    multiply({w.data(), s.outputs, s.inputs}, x.data(), y.data());
    double worst = 0;
    for (std::int64_t o = 0; o < s.outputs; ++o) {
      double sum = 0, magnitude = 0;
      for (std::int64_t i = 0; i < s.inputs; ++i) {
        double const term = double{w[static_cast<std::size_t>(o * s.inputs + i)]} * x[static_cast<std::size_t>(i)];
        sum += term;
        magnitude += std::abs(term);
      }
      worst = std::max(worst, std::abs(y[static_cast<std::size_t>(o)] - sum) / magnitude);
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("a product has the same bits wherever its operands lie", "[matrix]") {
  for (Shape const s : shapes) {
    INFO(s.outputs << " x " << s.inputs);
    auto const w = random_values(s.outputs * s.inputs, 1);
    auto const x = random_values(s.inputs, 2);
    std::vector<float> const nothing(static_cast<std::size_t>(s.outputs));
    Placed w0(w, 0), x0(x, 0), expected(nothing, 0);
    multiply({w0.data(), s.outputs, s.inputs}, x0.data(), expected.data());
    int different = 0;
    for (std::size_t offset = 1; offset < 16; ++offset) {
      for (auto const& [a, b, c] :
           {std::array{offset, std::size_t{0}, std::size_t{0}}, std::array{std::size_t{0}, offset, std::size_t{0}},
            std::array{std::size_t{0}, std::size_t{0}, offset}, std::array{offset, 16 - offset, offset / 2}}) {
        Placed wp(w, a), xp(x, b), y(nothing, c);
        multiply({wp.data(), s.outputs, s.inputs}, xp.data(), y.data());
        different += same_bits(y.data(), expected.data(), s.outputs) ? 0 : 1;
      }
    }
    CHECK(different == 0);
  }
}

TEST_CASE("a row has the same bits alone and at any place of a chunk of any length", "[matrix]") {
  for (Shape const s : shapes) {
    INFO(s.outputs << " x " << s.inputs);
    auto const w = random_values(s.outputs * s.inputs, 1);
    auto const x = random_values(s.inputs, 2);
    std::vector<float> alone(static_cast<std::size_t>(s.outputs));
    multiply({w.data(), s.outputs, s.inputs}, x.data(), alone.data());
    int different = 0;
    for (std::int64_t rows : {2, 3, 4, 5, 8, 9}) {
      for (std::int64_t place = 0; place < rows; ++place) {
        auto all = random_values(rows * s.inputs, 3);
        std::memcpy(all.data() + place * s.inputs, x.data(), x.size() * sizeof(float));
        std::vector<float> y(static_cast<std::size_t>(rows * s.outputs));
        for (std::int64_t r = 0; r < rows; ++r) {
          multiply({w.data(), s.outputs, s.inputs}, all.data() + r * s.inputs, y.data() + r * s.outputs);
        }
        different += same_bits(y.data() + place * s.outputs, alone.data(), s.outputs) ? 0 : 1;
      }
    }
    CHECK(different == 0);
  }
}

TEST_CASE("a part of a matrix is the outputs that were asked for", "[matrix]") {
  Matrix const m{random_values(12 * 7, 4), 12, 7};
  MatrixView const part = m.view().part(4, 3);
  CHECK(part.outputs == 3);
  CHECK(part.inputs == 7);
  CHECK(part.values == m.values.data() + 28);
}

TEST_CASE("weighted rows are added to what is there", "[matrix]") {
  for (Shape const s : shapes) {
    INFO(s.outputs << " rows of " << s.inputs);
    auto const rows = random_values(s.outputs * s.inputs, 1);
    auto const weight = random_values(s.outputs, 2);
    auto const before = random_values(s.inputs, 3);
    auto y = before;
    add_weighted_rows({rows.data(), s.outputs, s.inputs}, weight.data(), y.data());
    double worst = 0;
    for (std::int64_t i = 0; i < s.inputs; ++i) {
      double sum = before[static_cast<std::size_t>(i)], magnitude = std::abs(sum);
      for (std::int64_t o = 0; o < s.outputs; ++o) {
        double const term =
            double{rows[static_cast<std::size_t>(o * s.inputs + i)]} * weight[static_cast<std::size_t>(o)];
        sum += term;
        magnitude += std::abs(term);
      }
      worst = std::max(worst, std::abs(y[static_cast<std::size_t>(i)] - sum) / magnitude);
    }
    CHECK(worst < 2e-6);
  }
}

TEST_CASE("weighted rows have the same bits wherever they lie", "[matrix]") {
  for (Shape const s : shapes) {
    INFO(s.outputs << " rows of " << s.inputs);
    auto const rows = random_values(s.outputs * s.inputs, 1);
    auto const weight = random_values(s.outputs, 2);
    std::vector<float> const zero(static_cast<std::size_t>(s.inputs), 0.0f);
    Placed rows0(rows, 0), weight0(weight, 0), expected(zero, 0);
    add_weighted_rows({rows0.data(), s.outputs, s.inputs}, weight0.data(), expected.data());
    int different = 0;
    for (std::size_t offset = 1; offset < 16; ++offset) {
      Placed rp(rows, offset), wp(weight, 16 - offset), y(zero, offset / 2);
      add_weighted_rows({rp.data(), s.outputs, s.inputs}, wp.data(), y.data());
      different += same_bits(y.data(), expected.data(), s.inputs) ? 0 : 1;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("the RMS norm divides by the root of the mean square", "[norm]") {
  std::vector<float> const x = {3.0f, -4.0f, 0.0f, 12.0f}, weight = {1.0f, 2.0f, 3.0f, -1.0f};
  std::vector<float> y(4);
  dsv4_decoder::rms_norm(x.data(), weight.data(), 4, 0.75f, y.data());
  double const rms = std::sqrt(169.0 / 4 + 0.75);
  CHECK(y[0] == Approx(3.0 / rms));
  CHECK(y[1] == Approx(-8.0 / rms));
  CHECK(y[2] == 0.0f);
  CHECK(y[3] == Approx(-12.0 / rms));

  dsv4_decoder::rms_norm(x.data(), nullptr, 4, 0.75f, y.data());
  CHECK(y[1] == Approx(-4.0 / rms));

  y = x;  // in place
  dsv4_decoder::rms_norm(y.data(), weight.data(), 4, 0.75f, y.data());
  CHECK(y[3] == Approx(-12.0 / rms));
}

TEST_CASE("the RMS norm has the same bits wherever its row lies", "[norm]") {
  for (std::int64_t n : {1, 3, 10, 64, 128, 512, 1000}) {
    auto const x = random_values(n, 5);
    Placed at0(x, 0);
    float const expected = dsv4_decoder::inverse_rms(at0.data(), n, 1e-6f);
    for (std::size_t offset = 1; offset < 16; ++offset) {
      Placed placed(x, offset);
      INFO(n << " values at offset " << offset);
      CHECK(dsv4_decoder::inverse_rms(placed.data(), n, 1e-6f) == expected);
    }
  }
}
