// The checksum of saved states: XXH3, 64 bits, by way of the xxHash library.
#pragma once

#include <rollback/config.hpp>

#include <cstddef>
#include <cstdint>

#if !defined(XXH_INLINE_ALL)
#  define XXH_INLINE_ALL  // header only: nothing to link, no symbols shared with another version
#endif
#include <xxhash.h>

namespace rollback {
inline namespace v0_1 {

/// A running checksum of bytes, in the order in which they are given, however they are cut.
class Checksum {
 public:
  Checksum() noexcept { reset(0); }  // xxHash reads the state it seeds: garbage could pass for the seed's own
  /// Starts anew. Different `seed`s give different checksums of the same bytes.
  void reset(std::uint64_t seed) noexcept { static_cast<void>(XXH3_64bits_reset_withSeed(&state_, seed)); }
  void update(void const* data, std::size_t size) noexcept {
    if (size > 0) static_cast<void>(XXH3_64bits_update(&state_, data, size));
  }
  [[nodiscard]] std::uint64_t digest() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace v0_1
}  // namespace rollback
