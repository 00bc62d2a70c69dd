// The whole plane: copies and clears of all tensors, nothing beside them, and views that are refused.
#include <rollback/planes/whole.hpp>

#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::PlaneTensor;
using rollback::WholePlane;

namespace {

constexpr std::int32_t states = 5;
constexpr std::byte untouched{0x3e};

// Three layers with rows of sizes that share nothing, each between guard bytes.
struct Layers {
  static constexpr std::int64_t row_bytes[3] = {1, 48, 37};
  static constexpr std::size_t guard = 64;
  std::vector<std::byte> memory[3];
  std::vector<PlaneTensor> tensors;

  Layers() {
    for (int t = 0; t < 3; ++t) {
      memory[t].assign(static_cast<std::size_t>(states * row_bytes[t]) + 2 * guard, untouched);
      tensors.push_back({memory[t].data() + guard, row_bytes[t]});
      for (std::int32_t s = 0; s < states; ++s) {
        for (std::int64_t i = 0; i < row_bytes[t]; ++i)
          tensors[static_cast<std::size_t>(t)].base[s * row_bytes[t] + i] = value(t, s, i);
      }
    }
  }
  static std::byte value(int t, std::int32_t s, std::int64_t i) {
    return static_cast<std::byte>(64 * t + 8 * s + i % 7 + 1);
  }
  // Whether state s of every layer holds what state `as` held at first, or zeroes where `as` is negative.
  bool holds(std::int32_t s, std::int32_t as) const {
    for (int t = 0; t < 3; ++t) {
      for (std::int64_t i = 0; i < row_bytes[t]; ++i) {
        std::byte const expected = as < 0 ? std::byte{0} : value(t, as, i);
        if (tensors[static_cast<std::size_t>(t)].base[s * row_bytes[t] + i] != expected) return false;
      }
    }
    return true;
  }
  bool guards_hold() const {
    for (auto const& m : memory) {
      for (std::size_t i = 0; i < guard; ++i) {
        if (m[i] != untouched || m[m.size() - 1 - i] != untouched) return false;
      }
    }
    return true;
  }
};

}  // namespace

TEST_CASE("a copy moves one state of every layer and nothing else") {
  Layers layers;
  WholePlane plane(layers.tensors.data(), 3, states);
  plane.copy(1, 4);
  REQUIRE(layers.holds(4, 1));
  for (std::int32_t s : {0, 1, 2, 3}) REQUIRE(layers.holds(s, s));
  plane.copy(4, 0);
  REQUIRE(layers.holds(0, 1));
  for (std::int32_t s : {1, 2, 3}) REQUIRE(layers.holds(s, s));
  REQUIRE(layers.guards_hold());
}

TEST_CASE("a clear empties one state of every layer and nothing else") {
  Layers layers;
  WholePlane plane(layers.tensors.data(), 3, states);
  plane.clear(2);
  REQUIRE(layers.holds(2, -1));
  for (std::int32_t s : {0, 1, 3, 4}) REQUIRE(layers.holds(s, s));
  plane.clear(0);
  plane.clear(4);
  REQUIRE(layers.holds(0, -1));
  REQUIRE(layers.holds(4, -1));
  REQUIRE(layers.guards_hold());
}

TEST_CASE("a plane knows its states and the bytes of one over all layers") {
  Layers layers;
  WholePlane const plane(layers.tensors.data(), 3, states);
  REQUIRE(plane.states() == states);
  REQUIRE(plane.state_bytes() == 1 + 48 + 37);
  REQUIRE(WholePlane(layers.tensors.data(), 1, 2).state_bytes() == 1);
}

TEST_CASE("a row is where the tensor holds the state") {
  Layers layers;
  WholePlane const plane(layers.tensors.data(), 3, states);
  REQUIRE(plane.row(0, 3) == layers.tensors[0].base + 3);
  REQUIRE(plane.row(2, 0) == layers.tensors[2].base);
  REQUIRE(plane.row(1, 4) == layers.tensors[1].base + 4 * 48);
}

TEST_CASE("rows beyond four gigabytes are addressed in 64 bits") {
  auto* const base = reinterpret_cast<std::byte*>(std::uintptr_t{4096});  // an address is all that is asked for
  PlaneTensor const tensor{base, std::int64_t{1} << 20};
  WholePlane const plane(&tensor, 1, 1 << 16);
  auto const at = reinterpret_cast<std::uintptr_t>(plane.row(0, 1 << 15));
  REQUIRE(at - reinterpret_cast<std::uintptr_t>(base) == std::uintptr_t{1} << 35);
}

TEST_CASE("views that cannot be are refused by name") {
  Layers layers;
  auto const* const tensors = layers.tensors.data();
  REQUIRE_THROWS_WITH(WholePlane(nullptr, 3, states), ContainsSubstring("count"));
  REQUIRE_THROWS_WITH(WholePlane(tensors, 0, states), ContainsSubstring("count"));
  REQUIRE_THROWS_WITH(WholePlane(tensors, -1, states), ContainsSubstring("count"));
  REQUIRE_THROWS_WITH(WholePlane(tensors, 3, 0), ContainsSubstring("states"));
  layers.tensors[2].row_bytes = 0;
  REQUIRE_THROWS_WITH(WholePlane(tensors, 3, states), ContainsSubstring("row_bytes"));
  REQUIRE_NOTHROW(WholePlane(tensors, 2, states));
  layers.tensors[2].row_bytes = 37;
  layers.tensors[1].base = nullptr;
  REQUIRE_THROWS_AS(WholePlane(tensors, 3, states), std::invalid_argument);
}
