// Sets of numbers that answer "the largest at or below", against std::set.
#include "catch.hpp"

#include <rollback/detail/ring_bits.hpp>

#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <vector>

using rollback::detail::RingBits;

TEST_CASE("the largest number at or below another is found however many are missing") {
  std::mt19937 random(1);
  for (std::int32_t size : {1, 2, 63, 64, 65, 128, 4096, 4097, 300000}) {
    CAPTURE(size);
    RingBits bits(3, size);
    std::vector<std::set<std::int32_t>> sets(3);
    auto const any = [&] { return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(size)); };
    for (int step = 0; step < 20000; ++step) {
      auto const slot = static_cast<std::int32_t>(random() % 3);
      std::set<std::int32_t>& set = sets[static_cast<std::size_t>(slot)];
      std::int32_t const i = any();
      bool const to = set.size() < 5 ? random() % 2 == 0 : random() % 4 == 0;  // few, so that most are missing
      bits.set(slot, i, to);
      if (to) set.insert(i);
      if (!to) set.erase(i);
      if (!to && !set.empty() && random() % 2 == 0) {
        bits.set(slot, *set.begin(), false);
        set.erase(set.begin());
      }
      std::int32_t const at = any();
      auto const above = set.upper_bound(at);
      REQUIRE(bits.floor(slot, at) == (above == set.begin() ? RingBits::none : *std::prev(above)));
    }
  }
}
