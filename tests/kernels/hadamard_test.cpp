#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/hadamard.hpp>
#include <rollback/kernels/team.hpp>

#include <bitset>
#include <cmath>

using namespace kernel_tests;
using rollback::kernels::hadamard;
using rollback::kernels::HostTeam;

TEST_CASE("the transform of 128 values has its known values", "[kernels]") {
  std::vector<float> values;
  for (int i = 0; i < 128; ++i) values.push_back(1.0f / static_cast<float>(1 + i));
  hadamard(HostTeam{0}, values.data(), 128);
  CHECK(values[0] == Approx(0.4802269).margin(1e-7));
  CHECK(values[1] == Approx(0.0609222).margin(1e-7));
  CHECK(values[2] == Approx(0.0993653).margin(1e-7));
  CHECK(values[64] == Approx(0.3583825).margin(1e-7));
  CHECK(values[127] == Approx(0.0352458).margin(1e-7));
}

TEST_CASE("the transform is the Hadamard matrix in natural order for every power of two", "[kernels]") {
  for (int n = 1; n <= 256; n *= 2) {
    auto const x = random_values(n, static_cast<std::uint32_t>(n));
    auto y = x;
    hadamard(HostTeam{0}, y.data(), n);
    for (unsigned i = 0; i < static_cast<unsigned>(n); ++i) {
      double sum = 0;
      for (unsigned j = 0; j < static_cast<unsigned>(n); ++j) {
        sum += std::bitset<32>(i & j).count() % 2 == 0 ? x[j] : -x[j];
      }
      INFO("n " << n << " row " << i);
      CHECK(y[i] == Approx(sum / std::sqrt(n)).margin(1e-6));
    }
  }
}

TEST_CASE("the transform undoes itself and touches nothing beyond", "[kernels]") {
  auto const x = random_values(32, 9);
  auto y = stale_values(40);
  std::copy(x.begin(), x.end(), y.begin() + 4);
  hadamard(HostTeam{0}, y.data() + 4, 32);
  hadamard(HostTeam{0}, y.data() + 4, 32);
  for (std::size_t i = 0; i < 32; ++i) CHECK(y[4 + i] == Approx(x[i]).margin(1e-6));
  CHECK(is_stale(y.data(), 4));
  CHECK(is_stale(y.data() + 36, 4));
}
