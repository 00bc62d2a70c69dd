#include "mixture_of_experts.hpp"

#include "catch.hpp"
#include "random_values.hpp"

#include <cmath>
#include <limits>

using dsv4_decoder::choose_experts;
using dsv4_decoder::Expert;
using dsv4_decoder::Matrix;
using dsv4_decoder::router_score;
using dsv4_decoder::run_expert;
using dsv4_decoder::weigh_experts;

namespace {

struct OwnExpert {
  std::int64_t width, hidden;
  Matrix gate{normal_values(hidden * width, 1), hidden, width};
  Matrix up{normal_values(hidden * width, 2), hidden, width};
  Matrix down{normal_values(width * hidden, 3), width, hidden};

  [[nodiscard]] std::vector<float> run(std::vector<float> const& x, float limit) const {
    auto scratch = stale(2 * hidden);
    auto y = stale(width + 1);
    run_expert({gate.view(), up.view(), down.view()}, x.data(), limit, scratch.data(), y.data());
    REQUIRE(y.back() == stale(1)[0]);
    y.pop_back();
    return y;
  }

  [[nodiscard]] std::vector<double> exact(std::vector<float> const& x, double limit) const {
    auto const times = [](Matrix const& m, auto const& v, std::int64_t row) {
      double sum = 0;
      for (std::int64_t i = 0; i < m.inputs; ++i) {
        sum += m.values[static_cast<std::size_t>(row * m.inputs + i)] *
               static_cast<double>(v[static_cast<std::size_t>(i)]);
      }
      return sum;
    };
    std::vector<double> inner, out;
    for (std::int64_t row = 0; row < hidden; ++row) {
      double const g = std::min(times(gate, x, row), limit);
      double const u = std::max(-limit, std::min(times(up, x, row), limit));
      inner.push_back(g / (1 + std::exp(-g)) * u);
    }
    for (std::int64_t row = 0; row < width; ++row) out.push_back(times(down, inner, row));
    return out;
  }
};

// One hidden value: gate and up are given, and the result is silu(gate) * up.
float lone(float gate, float up, float limit) {
  float const one = 1;
  float hidden[2];
  float y = 0;
  run_expert({{&gate, 1, 1}, {&up, 1, 1}, {&one, 1, 1}}, &one, limit, hidden, &y);
  return y;
}

double silu(double z) { return z / (1 + std::exp(-z)); }

using Chosen = std::vector<std::int32_t>;

Chosen choose(std::vector<float> const& scores, std::vector<float> const& bias, std::int64_t used) {
  auto const experts = static_cast<std::int64_t>(scores.size());
  auto biased = stale(experts);
  auto scratch = stale<std::uint64_t>(experts);
  Chosen chosen(static_cast<std::size_t>(used), -1);
  choose_experts(scores.data(), bias.data(), experts, used, biased.data(), scratch.data(), chosen.data());
  return chosen;
}

std::vector<float> weigh(std::vector<float> const& scores, Chosen const& chosen, bool normalise, float scale) {
  auto weights = stale(static_cast<std::int64_t>(chosen.size()) + 1);
  weigh_experts(scores.data(), chosen.data(), static_cast<std::int64_t>(chosen.size()), normalise, scale,
                weights.data());
  REQUIRE(weights.back() == stale(1)[0]);
  weights.pop_back();
  return weights;
}

}  // namespace

TEST_CASE("an expert agrees with the formulas in double", "[experts]") {
  for (OwnExpert const& e : {OwnExpert{128, 64}, {12, 9}, {1, 1}, {5, 33}}) {
    auto const x = normal_values(e.width, 7);
    for (float limit : {10.0f, 2.0f, 0.5f, 1e30f}) {
      auto const y = e.run(x, limit);
      auto const exact = e.exact(x, static_cast<double>(limit));
      INFO(e.width << " x " << e.hidden << " limit " << limit);
      double worst = 0, size = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        worst = std::max(worst, std::abs(y[i] - exact[i]));
        size = std::max(size, std::abs(exact[i]));
      }
      CHECK(worst <= 1e-5 * size);
    }
  }
}

TEST_CASE("the gate is limited from above before silu and up on both sides", "[experts]") {
  CHECK(lone(2, 3, 10) == Approx(silu(2) * 3));
  CHECK(lone(50, 1, 10) == Approx(silu(10)).epsilon(1e-7));  // silu(10) is 9.99955, not 10
  CHECK(lone(50, 1, 10) != 10.0f);
  CHECK(lone(-20, 1, 10) == Approx(silu(-20)));  // no limit from below: silu(-10) would be 220,000 times as much
  CHECK(lone(1, 25, 10) == Approx(silu(1) * 10));
  CHECK(lone(1, -25, 10) == Approx(silu(1) * -10));
  CHECK(lone(1, 9, 10) == Approx(silu(1) * 9));
  CHECK(lone(3, 3, 0.25f) == Approx(silu(0.25) * 0.25));
  CHECK(lone(0, 5, 10) == 0.0f);
}

TEST_CASE("far gates saturate and what is no number stays none", "[experts]") {
  CHECK(lone(-1000, 1, 10) == 0.0f);
  CHECK(lone(1000, 1, 1e30f) == Approx(1000));
  CHECK(std::isnan(lone(std::nanf(""), 1, 10)));
  CHECK(std::isnan(lone(1, std::nanf(""), 10)));
}

TEST_CASE("a router's score is the root of softplus", "[experts]") {
  for (double z : {-30.0, -5.0, -1.0, 0.0, 0.5, 3.0, 19.9, 20.1, 25.0}) {
    INFO(z);
    CHECK(router_score(static_cast<float>(z)) == Approx(std::sqrt(std::log1p(std::exp(z)))).epsilon(1e-6));
  }
  CHECK(router_score(0.0f) == Approx(0.8325546));
  CHECK(router_score(1e30f) == Approx(1e15));
  CHECK(router_score(-200.0f) == 0.0f);
  CHECK(std::isnan(router_score(std::nanf(""))));
}

TEST_CASE("the bias chooses experts and weighs none", "[experts]") {
  std::vector<float> const scores = {0.5f, 0.9f, 0.7f, 0.1f};
  CHECK(choose(scores, {0, 0, 0, 0}, 2) == Chosen{1, 2});
  auto const chosen = choose(scores, {0, 0, 0, 5}, 2);
  CHECK(chosen == Chosen{3, 1});
  auto const weights = weigh(scores, chosen, true, 1.5f);
  CHECK(weights[0] == Approx(1.5 * 0.1 / (0.1 + 0.9)));  // and not 5.1 / 6
  CHECK(weights[1] == Approx(1.5 * 0.9 / (0.1 + 0.9)));
  CHECK(choose(scores, {0, -1, 0, 0}, 2) == Chosen{2, 0});
}

TEST_CASE("of equal experts the lower ones are chosen and all can be", "[experts]") {
  CHECK(choose({1, 1, 1, 1}, {0, 0, 0, 0}, 3) == Chosen{0, 1, 2});
  CHECK(choose({0.25f, 0.5f, 0.125f}, {0.25f, 0, 0.375f}, 3) == Chosen{0, 1, 2});
  CHECK(choose({3, 1, 2}, {0, 0, 0}, 3) == Chosen{0, 2, 1});
  CHECK(choose({2}, {-9}, 1) == Chosen{0});
}

TEST_CASE("damaged scores choose experts that exist and differ", "[experts]") {
  auto const chosen = choose(std::vector<float>(8, std::nanf("")), std::vector<float>(8, 0.0f), 3);
  CHECK(chosen == Chosen{0, 1, 2});
}

TEST_CASE("weights are the scores over their sum and scaled", "[experts]") {
  std::vector<float> const scores = {0.2f, 9.0f, 0.3f, 0.5f, 9.0f};
  auto const weights = weigh(scores, {3, 0, 2}, true, 2.5f);  // in the order in which they were chosen
  CHECK(weights[0] == Approx(2.5 * 0.5));
  CHECK(weights[1] == Approx(2.5 * 0.2));
  CHECK(weights[2] == Approx(2.5 * 0.3));
  auto const plain = weigh(scores, {3, 0, 2}, false, 2.5f);
  CHECK(plain[0] == Approx(2.5 * 0.5));
  CHECK(plain[1] == Approx(2.5 * 0.2));
  auto const unscaled = weigh({1, 3}, {0, 1}, true, 1.0f);
  CHECK(unscaled[0] == 0.25f);
  CHECK(unscaled[1] == 0.75f);
  CHECK(weigh({1, 3}, {0, 1}, false, 2.0f) == std::vector<float>{2, 6});
}

TEST_CASE("an expert may stand twice in a table by token and then counts twice", "[experts]") {
  CHECK(weigh({1, 2}, {1, 1}, true, 1.0f) == std::vector<float>{0.5f, 0.5f});
}

TEST_CASE("scores without a sum to speak of give small weights and no infinity", "[experts]") {
  CHECK(weigh({0, 0}, {0, 1}, true, 1.5f) == std::vector<float>{0, 0});
  auto const tiny = weigh({1e-6f, 1e-6f}, {0, 1}, true, 1.0f);
  CHECK(tiny[0] == Approx(1e-6 / 6.103515625e-5));                     // the floor under the sum
  CHECK(weigh({4e-5f, 4e-5f}, {0, 1}, true, 1.0f)[0] == Approx(0.5));  // above it
}
