// Values for the kernel tests: random ones from a seed, stale ones, and the comparison that counts, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace kernel_tests {

/// Uniform in [-1, 1).
inline std::vector<float> random_values(std::int64_t n, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = uniform(generator);
  return values;
}

/// Every byte 0x3e, which as a float is 0.186: a plausible number, so that a test notices if it takes part.
inline std::vector<float> stale_values(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  if (n > 0) std::memset(values.data(), 0x3e, values.size() * sizeof(float));
  return values;
}

inline bool same_bytes(float const* a, float const* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

inline bool same_bytes(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), static_cast<std::int64_t>(a.size()));
}

inline bool is_stale(float const* values, std::int64_t n) { return same_bytes(values, stale_values(n).data(), n); }

}  // namespace kernel_tests
