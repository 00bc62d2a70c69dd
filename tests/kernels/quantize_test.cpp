#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/quantize.hpp>
#include <rollback/kernels/team.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

using namespace kernel_tests;
using rollback::kernels::HostTeam;
using rollback::kernels::round_fp4_32;
using rollback::kernels::round_fp8_64;
using rollback::kernels::detail::power_of_two_at_least;

namespace {

std::vector<float> sines(int n) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(static_cast<float>(3 * std::sin(0.37 * i)));
  return values;
}

// The magnitudes of a format with a sign bit, in the order of their codes.
std::vector<double> magnitudes(int mantissa_bits, int bias, int codes) {
  std::vector<double> values;
  int const steps = 1 << mantissa_bits;
  for (int code = 0; code < codes; ++code) {
    int const exponent = code / steps;
    int const mantissa = code % steps;
    values.push_back(exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                   : std::ldexp(steps + mantissa, exponent - bias - mantissa_bits));
  }
  return values;
}

// By search: the nearest magnitude, of two equally near the one whose code is even.
double nearest(std::vector<double> const& table, double x) {
  std::size_t best = 0;
  for (std::size_t code = 1; code < table.size(); ++code) {
    double const distance = std::fabs(table[code] - std::fabs(x));
    double const best_distance = std::fabs(table[best] - std::fabs(x));
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return std::copysign(table[best], x);
}

auto const e4m3 = magnitudes(3, 7, 127);  // the last code is NaN
auto const e2m1 = magnitudes(1, 1, 8);

}  // namespace

TEST_CASE("rounding to E4M3 has its known values", "[kernels]") {
  auto values = sines(64);
  round_fp8_64(HostTeam{0}, values.data(), 64);
  CHECK(values[0] == 0.0f);
  CHECK(values[1] == 1.125f);
  CHECK(values[2] == 2.0f);
  CHECK(values[3] == 2.75f);
  CHECK(values[63] == -3.0f);
}

TEST_CASE("rounding to E2M1 has its known values", "[kernels]") {
  auto values = sines(32);
  round_fp4_32(HostTeam{0}, values.data(), 32);
  CHECK(values[0] == 0.0f);
  CHECK(values[1] == 1.0f);
  CHECK(values[2] == 2.0f);
  CHECK(values[3] == 3.0f);
  CHECK(values[5] == 3.0f);
  CHECK(values[31] == -3.0f);
}

TEST_CASE("the blocks of the known values have their known magnitudes and scales", "[kernels]") {
  auto const x = sines(64);
  auto const largest = [&x](std::size_t n) {
    float most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::fmax(most, std::fabs(x[i]));
    return most;
  };
  CHECK(largest(64) == Approx(2.9925789).margin(1e-7));
  CHECK(power_of_two_at_least(largest(64) / 448) == 0.0078125f);
  CHECK(largest(32) == Approx(2.9894268).margin(1e-7));
  CHECK(power_of_two_at_least(largest(32) / 6) == 0.5f);
  CHECK(x[1] == Approx(1.0848463).margin(1e-7));
  CHECK(x[2] == Approx(2.0228637).margin(1e-7));
  CHECK(x[3] == Approx(2.6870961).margin(1e-7));
  CHECK(x[5] == Approx(2.8838256).margin(1e-7));
  CHECK(x[31] == Approx(-2.6686657).margin(1e-7));
  CHECK(x[63] == Approx(-2.9052882).margin(1e-7));
}

TEST_CASE("the tables of the formats are those of the formats", "[kernels]") {
  CHECK(e4m3.back() == 448.0);
  CHECK(e4m3[1] == 0x1p-9);
  CHECK(e2m1 == std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6});
}

// The last value of a block sets its scale to 1, so that the others are rounded as they stand.
TEST_CASE("every midpoint between neighbours of E4M3 goes to the even code", "[kernels]") {
  for (std::size_t code = 0; code + 1 < e4m3.size(); ++code) {
    double const middle = (e4m3[code] + e4m3[code + 1]) / 2;
    for (double x : {middle, -middle, std::nextafter(static_cast<float>(middle), 0.0f) * 1.0,
                     std::nextafter(static_cast<float>(middle), 1e9f) * 1.0, e4m3[code], -e4m3[code]}) {
      float block[64] = {static_cast<float>(x)};
      block[63] = 448;
      round_fp8_64(HostTeam{0}, block, 64);
      INFO(x);
      CHECK(block[0] == nearest(e4m3, x));
      CHECK(block[63] == 448);
    }
  }
}

TEST_CASE("every midpoint between neighbours of E2M1 goes to the even code", "[kernels]") {
  for (std::size_t code = 0; code + 1 < e2m1.size(); ++code) {
    double const middle = (e2m1[code] + e2m1[code + 1]) / 2;
    for (double x : {middle, -middle, std::nextafter(static_cast<float>(middle), 0.0f) * 1.0,
                     std::nextafter(static_cast<float>(middle), 1e9f) * 1.0, e2m1[code], -e2m1[code]}) {
      float block[32] = {static_cast<float>(x)};
      block[31] = -6;
      round_fp4_32(HostTeam{0}, block, 32);
      INFO(x);
      CHECK(block[0] == nearest(e2m1, x));
      CHECK(block[31] == -6);
    }
  }
}

TEST_CASE("blocks have scales of their own and a short last block is one too", "[kernels]") {
  for (int n : {1, 63, 64, 65, 112, 448, 500}) {
    auto const x = random_values(n, static_cast<std::uint32_t>(n));
    std::vector<float> scaled = x;
    for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= std::ldexp(1.0f, 3 * static_cast<int>(i / 64));
    auto rounded = scaled;
    round_fp8_64(HostTeam{0}, rounded.data(), n);
    for (std::size_t first = 0; first < rounded.size(); first += 64) {
      std::size_t const last = std::min(first + 64, rounded.size());
      double largest = 1e-4f;
      for (std::size_t i = first; i < last; ++i) largest = std::fmax(largest, std::fabs(scaled[i]));
      double const scale = std::exp2(std::ceil(std::log2(largest / 448)));
      for (std::size_t i = first; i < last; ++i) CHECK(rounded[i] == nearest(e4m3, scaled[i] / scale) * scale);
    }
  }
  for (int n : {1, 31, 32, 33, 100, 128}) {
    auto const x = random_values(n, static_cast<std::uint32_t>(n));
    auto rounded = x;
    round_fp4_32(HostTeam{0}, rounded.data(), n);
    for (std::size_t first = 0; first < rounded.size(); first += 32) {
      std::size_t const last = std::min(first + 32, rounded.size());
      double largest = 0;
      for (std::size_t i = first; i < last; ++i) largest = std::fmax(largest, std::fabs(x[i]));
      double const scale = std::exp2(std::ceil(std::log2(largest / 6)));
      for (std::size_t i = first; i < last; ++i) CHECK(rounded[i] == nearest(e2m1, x[i] / scale) * scale);
    }
  }
}

TEST_CASE("a block of zeros stays zero and tiny values fall to zero or the floor of the scale", "[kernels]") {
  float values[64] = {};
  round_fp8_64(HostTeam{0}, values, 64);
  round_fp4_32(HostTeam{0}, values, 32);
  for (float value : values) CHECK(value == 0.0f);
  values[0] = 1e-12f;  // against a magnitude of 1e-4 this is below half the smallest step
  values[1] = 1e-5f;
  round_fp8_64(HostTeam{0}, values, 64);
  CHECK(values[0] == 0.0f);
  CHECK(values[1] == Approx(1e-5).epsilon(0.07));
}

TEST_CASE("what is no number stays none", "[kernels]") {
  float values[64] = {1, std::nanf(""), 2};
  round_fp8_64(HostTeam{0}, values, 64);
  CHECK(std::isnan(values[1]));
  CHECK(values[2] == 2.0f);
  round_fp4_32(HostTeam{0}, values, 32);
  CHECK(std::isnan(values[1]));
}

TEST_CASE("rounding touches nothing beyond its values", "[kernels]") {
  auto values = stale_values(100);
  round_fp8_64(HostTeam{0}, values.data() + 4, 90);
  round_fp4_32(HostTeam{0}, values.data() + 4, 90);
  CHECK(is_stale(values.data(), 4));
  CHECK(is_stale(values.data() + 94, 6));
  CHECK_FALSE(is_stale(values.data() + 4, 90));
}
