// Owned tensors: one zeroed block, its sizes and addresses, moves, and sizes that no memory holds.
#include <rollback/planes/owning.hpp>

#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

// What the replaced functions below counted: blocks of owned tensors are the only aligned allocations of this program.
int live_blocks = 0;
std::size_t last_bytes = 0;

}  // namespace

// Hands out memory full of 0x3e, so that a byte that was not zeroed shows; never more than a test can need.
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (bytes > (std::size_t{1} << 30)) throw std::bad_alloc{};
  auto const a = static_cast<std::size_t>(alignment);
  void* const block = std::aligned_alloc(a, (bytes + a - 1) / a * a);
  if (block == nullptr) throw std::bad_alloc{};
  std::memset(block, 0x3e, bytes);
  ++live_blocks;
  last_bytes = bytes;
  return block;
}
void operator delete(void* block, std::align_val_t) noexcept {
  --live_blocks;
  std::free(block);
}

using Catch::Matchers::ContainsSubstring;
using rollback::OwnedTensors;

TEST_CASE("tensors are zeroed and stand apart at multiples of 64 bytes") {
  std::vector<std::size_t> const sizes{1, 64, 65, 4096, 3};
  OwnedTensors const tensors(sizes);
  REQUIRE(tensors.count() == sizes.size());
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    CAPTURE(t);
    REQUIRE(tensors.size(t) == sizes[t]);
    REQUIRE(reinterpret_cast<std::uintptr_t>(tensors.data(t)) % 64 == 0);
    for (std::size_t i = 0; i < sizes[t]; ++i) REQUIRE(tensors.data(t)[i] == std::byte{0});
    if (t > 0) REQUIRE(tensors.data(t) >= tensors.data(t - 1) + sizes[t - 1]);
  }
  std::byte const* const end = tensors.data(4) + sizes[4];
  REQUIRE(end <= tensors.data(0) + OwnedTensors::bytes(sizes));
}

TEST_CASE("writing one tensor leaves the others alone") {
  OwnedTensors const tensors({70, 70, 70});
  std::memset(tensors.data(1), 0x55, 70);
  for (std::size_t i = 0; i < 70; ++i) {
    REQUIRE(tensors.data(0)[i] == std::byte{0});
    REQUIRE(tensors.data(2)[i] == std::byte{0});
  }
}

TEST_CASE("the bytes asked for before are the bytes allocated") {
  REQUIRE(OwnedTensors::bytes({}) == 0);
  REQUIRE(OwnedTensors::bytes({0}) == 0);
  REQUIRE(OwnedTensors::bytes({1}) == 64);
  REQUIRE(OwnedTensors::bytes({64}) == 64);
  REQUIRE(OwnedTensors::bytes({65, 1}) == 192);
  OwnedTensors const tensors({65, 1, 640});
  REQUIRE(last_bytes == OwnedTensors::bytes({65, 1, 640}));
}

TEST_CASE("no tensors at all and empty tensors are fine") {
  OwnedTensors const none(std::vector<std::size_t>{});
  REQUIRE(none.count() == 0);
  OwnedTensors const empty({0, 16});
  REQUIRE(empty.size(0) == 0);
  REQUIRE(empty.data(1) != nullptr);
}

TEST_CASE("a move keeps the addresses and frees once") {
  int const before = live_blocks;
  {
    OwnedTensors first({100, 200});
    std::byte* const a = first.data(0);
    std::byte* const b = first.data(1);
    a[0] = std::byte{7};
    OwnedTensors second(std::move(first));
    REQUIRE(second.data(0) == a);
    REQUIRE(second.data(1) == b);
    REQUIRE(second.data(0)[0] == std::byte{7});
    OwnedTensors third({8});
    REQUIRE(live_blocks == before + 2);
    third = std::move(second);
    REQUIRE(live_blocks == before + 1);
    REQUIRE(third.count() == 2);
    REQUIRE(third.data(1) == b);
  }
  REQUIRE(live_blocks == before);
}

TEST_CASE("sizes beyond an address space are refused and not wrapped") {
  REQUIRE_THROWS_WITH(OwnedTensors::bytes({SIZE_MAX}), ContainsSubstring("more than memory can hold"));
  REQUIRE_THROWS_AS(OwnedTensors::bytes({SIZE_MAX - 62}), std::invalid_argument);
  REQUIRE_THROWS_AS(OwnedTensors::bytes({SIZE_MAX / 2, SIZE_MAX / 2, 128}), std::invalid_argument);
  REQUIRE_THROWS_AS(OwnedTensors::bytes({64, SIZE_MAX - 127}), std::invalid_argument);
  REQUIRE_THROWS_AS(OwnedTensors({SIZE_MAX / 2, SIZE_MAX / 2, 128}), std::invalid_argument);
  REQUIRE(OwnedTensors::bytes({SIZE_MAX / 2}) == SIZE_MAX / 2 + 1);
}

TEST_CASE("memory that is not to be had is a bad_alloc and leaks nothing") {
  int const before = live_blocks;
  REQUIRE_THROWS_AS(OwnedTensors({std::size_t{1} << 40}), std::bad_alloc);
  REQUIRE(live_blocks == before);
}
