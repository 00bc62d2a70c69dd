#include "indexer.hpp"

#include "catch.hpp"
#include "random_values.hpp"
#include "top_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

using dsv4_decoder::largest;
using dsv4_decoder::score_rows;
using dsv4_decoder::select_rows;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int32_t> best(std::vector<float> const& scores, std::int64_t k) {
  auto scratch = stale<std::uint64_t>(static_cast<std::int64_t>(scores.size()));
  std::vector<std::int32_t> indices(static_cast<std::size_t>(k), -1);
  largest(scores.data(), static_cast<std::int64_t>(scores.size()), k, scratch.data(), indices.data());
  return indices;
}

struct Selection {
  std::int64_t count;
  std::vector<std::int32_t> rows;  // those that were written
};

Selection select(std::vector<float> const& scores, std::int64_t top_k) {
  auto const visible = static_cast<std::int64_t>(scores.size());
  auto scratch = stale<std::uint64_t>(visible);
  std::vector<std::int32_t> rows(scores.size() + 1, -1);
  Selection s{select_rows(scores.data(), visible, top_k, scratch.data(), rows.data()), rows};
  REQUIRE(s.rows.back() == -1);
  s.rows.erase(std::find(s.rows.begin(), s.rows.end(), -1), s.rows.end());
  return s;
}

using Rows = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("scores of rows agree with the formula in double", "[indexer]") {
  struct Shape {
    std::int64_t heads, rows, width;
  };
  for (Shape const s : {Shape{16, 33, 32}, {64, 128, 128}, {3, 1, 8}, {1, 7, 4}, {5, 8, 16}, {2, 9, 5}, {4, 100, 64}}) {
    auto const queries = normal_values(s.heads * s.width, 1);
    auto const weights = normal_values(s.heads, 2);
    auto const keys = normal_values(s.rows * s.width, 3);
    auto dots = stale(s.rows), scores = stale(s.rows + 1);
    score_rows(queries.data(), weights.data(), s.heads, {keys.data(), s.rows, s.width}, dots.data(), scores.data());
    double worst = 0;
    for (std::int64_t row = 0; row < s.rows; ++row) {
      double sum = 0, magnitude = 1;
      for (std::int64_t h = 0; h < s.heads; ++h) {
        double dot = 0;
        for (std::int64_t i = 0; i < s.width; ++i) {
          dot += static_cast<double>(queries[static_cast<std::size_t>(h * s.width + i)]) *
                 keys[static_cast<std::size_t>(row * s.width + i)];
        }
        sum += weights[static_cast<std::size_t>(h)] * std::max(0.0, dot);
        magnitude += std::abs(weights[static_cast<std::size_t>(h)] * dot);
      }
      worst = std::max(worst, std::abs(scores[static_cast<std::size_t>(row)] - sum) / magnitude);
    }
    INFO(s.heads << " heads " << s.rows << " rows of " << s.width);
    CHECK(worst < 1e-6);
    CHECK(scores.back() == stale(1)[0]);
  }
}

TEST_CASE("a negative product counts nothing and a negative weight takes away", "[indexer]") {
  for (std::int64_t rows : {1, 8, 11}) {  // all in a block, and some behind one
    std::vector<float> keys;
    for (std::int64_t row = 0; row < rows; ++row) keys.insert(keys.end(), {1.0f, -1.0f});
    std::vector<float> const queries = {2, 0, 0, 3, 5, 0};  // products 2, -3, 5
    std::vector<float> const weights = {10, 100, -1};
    auto dots = stale(rows), scores = stale(rows);
    score_rows(queries.data(), weights.data(), 3, {keys.data(), rows, 2}, dots.data(), scores.data());
    for (float score : scores) CHECK(score == 15.0f);
  }
}

TEST_CASE("a row has the same score however many rows stand behind it", "[indexer]") {
  auto const queries = normal_values(16 * 32, 1), weights = normal_values(16, 2), keys = normal_values(64 * 32, 3);
  auto dots = stale(64), all = stale(64);
  score_rows(queries.data(), weights.data(), 16, {keys.data(), 64, 32}, dots.data(), all.data());
  for (std::int64_t rows = 1; rows < 64; ++rows) {
    auto scores = stale(rows);
    score_rows(queries.data(), weights.data(), 16, {keys.data(), rows, 32}, dots.data(), scores.data());
    INFO(rows << " rows");
    for (std::size_t i = 0; i < scores.size(); ++i) CHECK(scores[i] == Approx(all[i]).margin(1e-5));
  }
}

TEST_CASE("the largest come best first and of equal ones the lower index", "[top_k]") {
  CHECK(best({1, 5, 3, 4}, 2) == Rows{1, 3});
  CHECK(best({1, 5, 3, 4}, 4) == Rows{1, 3, 2, 0});
  CHECK(best({7, 7, 7, 7, 7}, 3) == Rows{0, 1, 2});
  CHECK(best({0, 2, 1, 2, 2, 1}, 4) == Rows{1, 3, 4, 2});
  CHECK(best({-3, -1, -2}, 2) == Rows{1, 2});
  CHECK(best({-1, 1, 0}, 3) == Rows{1, 2, 0});
  CHECK(best({4}, 1) == Rows{0});
  CHECK(best({1, 2}, 0).empty());
  CHECK(best({0.0f, -0.0f, 0.0f}, 3) == Rows{0, 1, 2});
  CHECK(best({-0.0f, 0.0f}, 1) == Rows{0});
}

TEST_CASE("a number of largest below one writes nothing", "[top_k]") {
  std::vector<float> const scores = {1, 2};
  auto scratch = stale<std::uint64_t>(2);
  std::int32_t untouched = -7;
  largest(scores.data(), 2, 0, scratch.data(), &untouched);
  largest(scores.data(), 2, -1, scratch.data(), &untouched);
  CHECK(untouched == -7);
}

TEST_CASE("infinities and what is no number have their places in the order", "[top_k]") {
  CHECK(best({1, -infinity, infinity, 2}, 4) == Rows{2, 3, 0, 1});
  CHECK(best({-infinity, -infinity, -infinity}, 2) == Rows{0, 1});
  CHECK(best({1, std::copysign(no_number, 1.0f), infinity, -infinity, std::copysign(no_number, -1.0f)}, 5) ==
        Rows{1, 2, 0, 3, 4});
  CHECK(best({std::copysign(no_number, -1.0f), 0, std::copysign(no_number, -1.0f)}, 1) == Rows{1});
  CHECK(best(std::vector<float>(9, no_number), 3) == Rows{0, 1, 2});
}

TEST_CASE("the largest are those of a stable sort", "[top_k]") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    auto const n = 1 + random() % 200;
    std::vector<float> scores(n);
    for (float& score : scores) {
      score = round % 2 == 0 ? static_cast<float>(static_cast<int>(random() % 9) - 4)  // many ties
                             : static_cast<float>(random()) / 1e5f - 2e4f;
    }
    std::vector<std::int32_t> sorted(n);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::int32_t a, std::int32_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    auto const k = static_cast<std::int64_t>(random() % (n + 1));
    sorted.resize(static_cast<std::size_t>(k));
    INFO("round " << round);
    CHECK(best(scores, k) == sorted);
  }
}

TEST_CASE("rows are selected by score and listed in ascending order", "[indexer]") {
  auto const some = select({1, 9, 3, 8, 8, 2}, 3);
  CHECK(some.count == 3);
  CHECK(some.rows == Rows{1, 3, 4});
  CHECK(select({1, 8, 9, 8, 8, 2}, 3).rows == Rows{1, 2, 3});  // of three equal ones two fit
  CHECK(select({5, 5, 5, 5}, 2).rows == Rows{0, 1});
}

TEST_CASE("a selection larger than the rows takes all of them", "[indexer]") {
  for (std::int64_t top_k : {4, 5, 1024}) {
    auto const all = select({2, -infinity, 7, 1}, top_k);
    CHECK(all.count == 4);
    CHECK(all.rows == Rows{0, 1, 2, 3});
  }
  CHECK(select({}, 3).count == 0);
  CHECK(select({1, 2}, 0).count == 0);
}

TEST_CASE("scores that are no numbers lead to rows that exist and differ", "[indexer]") {
  for (float score : {no_number, -no_number, infinity, -infinity}) {
    auto const s = select(std::vector<float>(40, score), 7);
    CHECK(s.rows == Rows{0, 1, 2, 3, 4, 5, 6});
  }
}
