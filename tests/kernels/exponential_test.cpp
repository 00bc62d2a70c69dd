#include "catch.hpp"

#include <rollback/kernels/exponential.hpp>

#include <cmath>

namespace {

float exponential_of(float x) {
  float values[] = {x};
  rollback::kernels::exponentials(values);
  return values[0];
}

}  // namespace

TEST_CASE("the exponential is within two units in the last place where floats are normal", "[kernels]") {
  double worst = 0;
  for (float x = 0; x > -87.0f; x -= 1.7e-4f) {
    double const exact = std::exp(static_cast<double>(x));
    worst = std::fmax(worst, std::fabs(exponential_of(x) - exact) / exact);
  }
  CHECK(worst < 2 * 5.97e-8);
  CHECK(worst > 0);
}

TEST_CASE("the exponential of 0 is 1 and of the least exponent 0", "[kernels]") {
  CHECK(exponential_of(0.0f) == 1.0f);
  CHECK(exponential_of(-0.0f) == 1.0f);
  CHECK(exponential_of(-87.8f) == 0.0f);
  CHECK(exponential_of(rollback::kernels::least_exponent) == 0.0f);
}

TEST_CASE("the exponential keeps what is no number", "[kernels]") { CHECK(std::isnan(exponential_of(std::nanf("")))); }

TEST_CASE("the exponential of a value does not depend on its neighbours", "[kernels]") {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = -0.37f * static_cast<float>(i * i % 29);
  float together[16];
  for (int i = 0; i < 16; ++i) together[i] = values[i];
  rollback::kernels::exponentials(together);
  for (int i = 0; i < 16; ++i) CHECK(together[i] == exponential_of(values[i]));
}
