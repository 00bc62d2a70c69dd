#include "sampler.hpp"

#include "catch.hpp"
#include "random_values.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

using dsv4_decoder::greedy;
using dsv4_decoder::Sampler;
using dsv4_decoder::SamplerOptions;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

std::int32_t greedy_of(std::vector<float> const& logits) {
  return greedy(logits.data(), static_cast<std::int64_t>(logits.size()));
}

Sampler sampler(SamplerOptions options, std::vector<float> const& logits) {
  return Sampler(options, static_cast<std::int64_t>(logits.size()));
}

std::vector<std::int32_t> draws(SamplerOptions options, std::vector<float> const& logits, int count) {
  Sampler s = sampler(options, logits);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(s.sample(logits.data()));
  return ids;
}

std::vector<double> shares(SamplerOptions options, std::vector<float> const& logits, int count) {
  std::vector<double> of(logits.size(), 0.0);
  for (std::int32_t id : draws(options, logits, count)) of.at(static_cast<std::size_t>(id)) += 1.0 / count;
  return of;
}

}  // namespace

TEST_CASE("greedy takes the largest logit and of equal ones the lowest id", "[sampler]") {
  CHECK(greedy_of({1, 3, 2}) == 1);
  CHECK(greedy_of({3, 3, 3}) == 0);
  CHECK(greedy_of({0, 5, 1, 5}) == 1);
  CHECK(greedy_of({-4, -2, -3}) == 1);
  CHECK(greedy_of({7}) == 0);
  CHECK(greedy_of({0.0f, -0.0f}) == 0);
  CHECK(greedy_of({-0.0f, 0.0f}) == 0);
  CHECK(greedy_of({1, infinity, infinity}) == 1);
  CHECK(greedy_of({-infinity, -infinity}) == 0);
}

TEST_CASE("what is no number never wins", "[sampler]") {
  CHECK(greedy_of({no_number, 1, 2}) == 2);
  CHECK(greedy_of({1, no_number, 0}) == 0);
  CHECK(greedy_of({no_number, no_number, -infinity, no_number}) == 2);
  CHECK(greedy_of({no_number, no_number}) == 0);
}

TEST_CASE("temperature zero is greedy whatever the rest says", "[sampler]") {
  auto const logits = normal_values(100, 1);
  for (std::uint64_t seed : {0U, 1U, 99U}) {
    for (std::int32_t id : draws({0.0, 0.3, seed}, logits, 5)) CHECK(id == greedy_of(logits));
  }
}

TEST_CASE("equal seeds draw equal tokens and others do not", "[sampler]") {
  auto const logits = normal_values(50, 2);
  auto const first = draws({1.0, 1.0, 7}, logits, 200);
  CHECK(draws({1.0, 1.0, 7}, logits, 200) == first);
  CHECK(draws({1.0, 1.0, 8}, logits, 200) != first);
}

// The generator's numbers are fixed by the standard and all else is computed here, so the ids are the same everywhere.
TEST_CASE("a seed draws the tokens that it always drew", "[sampler]") {
  std::vector<float> const logits = {0, 1, 2, 3, 2, 1, 0, -1};
  std::vector<std::int32_t> expected;
  std::mt19937_64 engine(42);
  std::vector<std::pair<int, double>> const by_weight = {{3, 3}, {2, 2}, {4, 2}, {1, 1},
                                                         {5, 1}, {0, 0}, {6, 0}, {7, -1}};
  for (int i = 0; i < 100; ++i) {
    double total = 0;
    for (auto const& [id, logit] : by_weight) total += std::exp(logit - 3);
    double left = static_cast<double>(engine() >> 11) / 9007199254740992.0 * total;
    for (auto const& [id, logit] : by_weight) {
      left -= std::exp(logit - 3);
      if (left < 0) {
        expected.push_back(id);
        break;
      }
    }
  }
  CHECK(draws({1.0, 1.0, 42}, logits, 100) == expected);
}

TEST_CASE("a copy goes on with the same tokens", "[sampler]") {
  auto const logits = normal_values(50, 3);
  Sampler original = sampler({1.0, 1.0, 5}, logits);
  for (int i = 0; i < 10; ++i) static_cast<void>(original.sample(logits.data()));
  Sampler copy = original;
  for (int i = 0; i < 50; ++i) CHECK(copy.sample(logits.data()) == original.sample(logits.data()));
}

TEST_CASE("the number of a draw does not depend on the logits before", "[sampler]") {
  auto const a = normal_values(30, 4), b = normal_values(30, 5);
  Sampler one = sampler({1.0, 1.0, 6}, a), other = one;
  static_cast<void>(one.sample(a.data()));
  static_cast<void>(other.sample(b.data()));
  for (int i = 0; i < 20; ++i) CHECK(one.sample(a.data()) == other.sample(a.data()));
}

TEST_CASE("tokens are drawn with their probabilities", "[sampler]") {
  std::vector<float> const logits = {std::log(0.5f), std::log(0.1f), std::log(0.3f), std::log(0.1f)};
  int const count = 40000;  // four deviations of a share are at most 0.01
  auto const at_one = shares({1.0, 1.0, 11}, logits, count);
  CHECK(at_one[0] == Approx(0.5).margin(0.01));
  CHECK(at_one[1] == Approx(0.1).margin(0.01));
  CHECK(at_one[2] == Approx(0.3).margin(0.01));
  CHECK(at_one[3] == Approx(0.1).margin(0.01));

  auto const at_half = shares({0.5, 1.0, 12}, logits, count);  // squares: 0.25, 0.01, 0.09, 0.01 over 0.36
  CHECK(at_half[0] == Approx(0.694).margin(0.01));
  CHECK(at_half[2] == Approx(0.25).margin(0.01));
  auto const at_two = shares({2.0, 1.0, 13}, logits, count);  // roots: 0.7071, 0.3162, 0.5477, 0.3162 over 1.8872
  CHECK(at_two[0] == Approx(0.3747).margin(0.01));
  CHECK(at_two[1] == Approx(0.1676).margin(0.01));
}

TEST_CASE("top p keeps the likeliest tokens until they reach it", "[sampler]") {
  std::vector<float> const logits = {std::log(0.5f), std::log(0.1f), std::log(0.3f), std::log(0.1f)};
  int const count = 20000;
  auto const two = shares({1.0, 0.7, 1}, logits, count);  // 0.5 is too little, 0.8 is enough
  CHECK(two[0] == Approx(0.625).margin(0.015));
  CHECK(two[2] == Approx(0.375).margin(0.015));
  CHECK(two[1] + two[3] == 0.0);
  auto const one = shares({1.0, 0.45, 1}, logits, count);
  CHECK(one[0] == Approx(1.0));
  CHECK(shares({1.0, 1e-9, 1}, logits, 100)[0] == Approx(1.0));  // one token at least
  auto const three = shares({1.0, 0.85, 1}, logits, count);      // of the two at 0.1 the lower id
  CHECK(three[1] == Approx(0.1 / 0.9).margin(0.01));
  CHECK(three[3] == 0.0);
}

TEST_CASE("a low temperature and far logits draw the best token without overflow", "[sampler]") {
  for (std::int32_t id : draws({1e-3, 1.0, 1}, {1, 2, 1.5f}, 100)) CHECK(id == 1);
  for (std::int32_t id : draws({1e-300, 1.0, 1}, {1, 2, 1.5f}, 100)) CHECK(id == 1);
  for (std::int32_t id : draws({1.0, 1.0, 1}, {-1e30f, 1e30f, 0}, 100)) CHECK(id == 1);
  for (std::int32_t id : draws({1e300, 1.0, 1}, {-1e30f, 1e30f}, 100)) CHECK((id == 0 || id == 1));
}

TEST_CASE("tokens without a probability are never drawn", "[sampler]") {
  auto const of = shares({1.0, 1.0, 3}, {no_number, 0, -infinity, 0, no_number}, 4000);
  CHECK(of[0] + of[2] + of[4] == 0.0);
  CHECK(of[1] == Approx(0.5).margin(0.04));
}

TEST_CASE("logits that leave no probabilities draw what greedy takes", "[sampler]") {
  for (std::int32_t id : draws({1.0, 1.0, 1}, {0, infinity, infinity}, 50)) CHECK(id == 1);
  for (std::int32_t id : draws({1.0, 1.0, 1}, {no_number, no_number}, 50)) CHECK(id == 0);
  for (std::int32_t id : draws({1.0, 1.0, 1}, {-infinity, -infinity}, 50)) CHECK(id == 0);
  for (std::int32_t id : draws({1.0, 0.5, 1}, {no_number, -infinity}, 50)) CHECK(id == 1);
}

TEST_CASE("a sampler with impossible options is refused", "[sampler]") {
  CHECK_NOTHROW(Sampler({0.0, 1.0, 0}, 1));
  CHECK_THROWS_AS(Sampler({-0.1, 1.0, 0}, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({std::nan(""), 1.0, 0}, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({HUGE_VAL, 1.0, 0}, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({1.0, 0.0, 0}, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({1.0, 1.01, 0}, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({1.0, std::nan(""), 0}, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({1.0, 1.0, 0}, 0), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({1.0, 1.0, 0}, -3), std::invalid_argument);
}
