#include "rotation.hpp"

#include "catch.hpp"
#include "random_values.hpp"

#include <cmath>

using dsv4_decoder::Rotation;
using rollback::Position;
using rollback::kernels::Rope;

namespace {

Rope const yarn = Rope::yarn(64, 160000, {16, 65536, 32, 1});
Position const positions[] = {0, 1, 3, 127, 128, 700, 65536, 1048575};

}  // namespace

TEST_CASE("a rotation has the bits of the kernel's rotation forward and back", "[rotation]") {
  for (Rope const& rope : {yarn, Rope::plain(16, 10000), Rope::plain(128, 10000), Rope::plain(0, 10000)}) {
    for (Position p : positions) {
      for (bool inverse : {false, true}) {
        INFO("pairs " << rope.pairs << " position " << p << " inverse " << inverse);
        auto ours = normal_values(512, 1);
        auto kernels = ours;
        Rotation(rope, p).rotate(ours.data(), 512, inverse);
        rope.rotate(kernels.data(), 512, p, inverse);
        CHECK(equal_bits(ours, kernels));
      }
    }
  }
}

TEST_CASE("a rotation turns adjacent pairs at the end of a row by position times frequency", "[rotation]") {
  for (std::int64_t width : {64, 128, 512}) {
    for (Position p : positions) {
      auto const row = normal_values(width, 2);
      auto turned = row;
      Rotation(yarn, p).rotate(turned.data(), width);
      auto const first = static_cast<std::size_t>(width - 64);
      for (std::size_t i = 0; i < first; ++i) CHECK(turned[i] == row[i]);
      double worst = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        double const angle = static_cast<double>(p) * yarn.frequency[i];
        double const x = row[first + 2 * i], y = row[first + 2 * i + 1];
        worst = std::max(worst, std::abs(turned[first + 2 * i] - (x * std::cos(angle) - y * std::sin(angle))));
        worst = std::max(worst, std::abs(turned[first + 2 * i + 1] - (x * std::sin(angle) + y * std::cos(angle))));
      }
      INFO("width " << width << " position " << p);
      CHECK(worst < 1e-6);
    }
  }
}

TEST_CASE("the inverse of a rotation takes it back at the same position and at no other", "[rotation]") {
  auto const row = normal_values(128, 3);
  for (Position p : positions) {
    auto turned = row;
    Rotation(yarn, p).rotate(turned.data(), 128);
    auto elsewhere = turned;
    Rotation(yarn, p).rotate(turned.data(), 128, true);
    Rotation(yarn, p + 1).rotate(elsewhere.data(), 128, true);
    double worst = 0, other = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      worst = std::max(worst, static_cast<double>(std::abs(turned[i] - row[i])));
      other = std::max(other, static_cast<double>(std::abs(elsewhere[i] - row[i])));
    }
    INFO("position " << p);
    CHECK(worst < 1e-6);
    CHECK(other > 0.1);
  }
}

TEST_CASE("what a rotation leaves of a dot product depends on the distance alone", "[rotation]") {
  auto const query = normal_values(64, 4), key = normal_values(64, 5);
  auto const product = [&](Position at_query, Position at_key) {
    auto q = query, k = key;
    Rotation(yarn, at_query).rotate(q.data(), 64);
    Rotation(yarn, at_key).rotate(k.data(), 64);
    double sum = 0;
    for (std::size_t i = 0; i < 64; ++i) sum += static_cast<double>(q[i]) * k[i];
    return sum;
  };
  CHECK(product(17, 5) == Approx(product(1012, 1000)).margin(1e-5));
  CHECK(std::abs(product(17, 5) - product(5, 17)) > 1e-2);
}

TEST_CASE("a rotation touches nothing around its row", "[rotation]") {
  auto row = stale(64 + 2);
  for (std::size_t i = 1; i <= 64; ++i) row[i] = static_cast<float>(i);
  Rotation(yarn, 9).rotate(row.data() + 1, 64);
  auto const untouched = stale(1)[0];
  CHECK(row.front() == untouched);
  CHECK(row.back() == untouched);
  CHECK(row[1] != 1.0f);
}
