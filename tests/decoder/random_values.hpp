// Values for the tests of parts: random ones from a seed, stale ones, and the comparison that counts, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

/// Normal, of mean 0 and deviation 1.
inline std::vector<float> normal_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = normal(engine);
  return values;
}

/// Every byte 0x3e: plausible numbers, so that a byte that was forgotten shows.
template <class T = float>
std::vector<T> stale(std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  if (count > 0) std::memset(values.data(), 0x3e, values.size() * sizeof(T));
  return values;
}

template <class T>
bool equal_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
