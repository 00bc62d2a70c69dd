#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/rope.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

using namespace kernel_tests;
using rollback::kernels::Rope;

namespace {

struct Frequency {
  int pair;
  double value;
};

}  // namespace

TEST_CASE("plain frequencies are powers of theta", "[kernels]") {
  Rope const rope = Rope::plain(64, 10000);
  CHECK(rope.pairs == 32);
  CHECK(rope.frequency[0] == 1.0);
  CHECK(rope.frequency[1] == Approx(7.498942093e-1).epsilon(1e-9));
  CHECK(rope.frequency[31] == Approx(1.333521432e-4).epsilon(1e-9));
}

TEST_CASE("YaRN frequencies of the released models have their known values", "[kernels]") {
  Rope const rope = Rope::yarn(64, 160000, {16, 65536, 32, 1});
  CHECK(rope.pairs == 32);
  for (Frequency known : {Frequency{0, 1.0},
                          {1, 6.876560219e-1},
                          {8, 5.000000000e-2},
                          {14, 5.286856317e-3},
                          {15, 3.635538584e-3},
                          {16, 2.265625000e-3},
                          {18, 8.496897268e-4},
                          {20, 2.969777783e-4},
                          {22, 9.086784295e-5},
                          {24, 1.953125000e-5},
                          {25, 5.372312671e-6},
                          {31, 5.680529037e-7}}) {
    INFO("pair " << known.pair);
    CHECK(rope.frequency[known.pair] == Approx(known.value).epsilon(1e-9));
  }
}

TEST_CASE("YaRN frequencies of another rotary width ramp between other pairs", "[kernels]") {
  Rope const rope = Rope::yarn(16, 160000, {16, 65536});
  CHECK(rope.pairs == 8);
  for (Frequency known : {Frequency{0, 1.0},
                          {1, 2.236067977e-1},
                          {3, 1.118033989e-2},
                          {4, 1.914062500e-3},
                          {5, 2.969777783e-4},
                          {6, 3.710937500e-5},
                          {7, 1.746928107e-6}}) {
    INFO("pair " << known.pair);
    CHECK(rope.frequency[known.pair] == Approx(known.value).epsilon(1e-9));
  }
}

TEST_CASE("the ramp of YaRN begins at pair 0 and ends at the rotary width at the latest", "[kernels]") {
  Rope const begins = Rope::yarn(8, 10000, {4, 64});  // by the formula from -0.5 to 1.01
  for (Frequency known : {Frequency{0, 1.0}, {1, 6.25e-2}, {2, 2.5e-3}, {3, 2.5e-4}}) {
    CHECK(begins.frequency[known.pair] == Approx(known.value).epsilon(1e-9));
  }
  Rope const ends = Rope::yarn(8, 2.2, {4, 329});  // from 2.5 to 20.1
  for (Frequency known : {Frequency{0, 1.0}, {1, 8.210967437e-1}, {2, 6.741998625e-1}, {3, 4.705458149e-1}}) {
    CHECK(ends.frequency[known.pair] == Approx(known.value).epsilon(1e-9));
  }
}

TEST_CASE("a quarter turn takes x to y and y to minus x", "[kernels]") {
  Rope rope;
  rope.pairs = 1;
  rope.frequency[0] = 1.57079632679489661923;
  float row[] = {5, 3, 4};
  rope.rotate(row, 3, 1);
  CHECK(row[0] == 5);
  CHECK(row[1] == Approx(-4));
  CHECK(row[2] == Approx(3));
}

TEST_CASE("each pair turns by its own angle and only the trailing values turn", "[kernels]") {
  for (std::int64_t width : {16, 33, 64, 512}) {
    Rope const rope = Rope::yarn(16, 160000, {16, 65536});
    auto const row = random_values(width, 5);
    auto rotated = row;
    rollback::Position const position = 1000003;
    rope.rotate(rotated.data(), width, position);
    CHECK(same_bytes(rotated.data(), row.data(), width - 16));
    for (int i = 0; i < 8; ++i) {
      auto const at = static_cast<std::size_t>(width - 16 + 2 * i);
      long double const angle = static_cast<long double>(position) * rope.frequency[i];
      long double const x = row[at] * std::cos(angle) - row[at + 1] * std::sin(angle);
      long double const y = row[at] * std::sin(angle) + row[at + 1] * std::cos(angle);
      INFO("width " << width << " pair " << i);
      CHECK(rotated[at] == Approx(static_cast<double>(x)).margin(3e-7));
      CHECK(rotated[at + 1] == Approx(static_cast<double>(y)).margin(3e-7));
    }
  }
}

TEST_CASE("the inverse rotation undoes the rotation", "[kernels]") {
  Rope const rope = Rope::plain(64, 10000);
  for (rollback::Position position : {0, 1, 127, 700, 1048575}) {
    auto const row = random_values(512, 6);
    auto turned = row;
    rope.rotate(turned.data(), 512, position);
    CHECK(same_bytes(turned, row) == (position == 0));
    rope.rotate(turned.data(), 512, position, true);
    for (std::size_t i = 0; i < row.size(); ++i) CHECK(turned[i] == Approx(row[i]).margin(3e-7));
  }
}

TEST_CASE("a rope without pairs leaves a row as it is", "[kernels]") {
  auto const row = random_values(8, 7);
  auto rotated = row;
  Rope{}.rotate(rotated.data(), 8, 12345);
  Rope::plain(0, 10000).rotate(rotated.data(), 8, 12345);
  CHECK(same_bytes(rotated, row));
}

TEST_CASE("an impossible rope is refused", "[kernels]") {
  CHECK_THROWS_AS(Rope::plain(15, 10000), std::invalid_argument);
  CHECK_THROWS_AS(Rope::plain(-2, 10000), std::invalid_argument);
  CHECK_THROWS_AS(Rope::plain(130, 10000), std::invalid_argument);
  CHECK_NOTHROW(Rope::plain(128, 10000));
  CHECK_THROWS_AS(Rope::plain(64, 1), std::invalid_argument);
  CHECK_THROWS_AS(Rope::plain(64, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
  CHECK_THROWS_AS(Rope::yarn(64, 160000, {0, 65536}), std::invalid_argument);
  CHECK_THROWS_AS(Rope::yarn(64, 160000, {16, -1}), std::invalid_argument);
  CHECK_THROWS_AS(Rope::yarn(64, 160000, {16, 65536, 0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(Rope::yarn(64, 160000, {16, 65536, 32, 0}), std::invalid_argument);
}
