// Places of a component: how many planes a slot has and what for, and where a packed row map puts them.
#include <rollback/component.hpp>
#include <rollback/plan.hpp>

#include "catch.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

using rollback::Component;
using rollback::Places;
using rollback::places;
using rollback::Position;
using rollback::RowGeometry;
using rollback::RowMap;

namespace {

Component tiers(std::int32_t per_token, Position quantum, std::int32_t aligned) {
  Component c;
  c.per_token = per_token;
  c.quantum = quantum;
  c.aligned = aligned;
  return c;
}

}  // namespace

TEST_CASE("a component without tiers has its live place only") {
  Places const p = places(Component{}, false);
  REQUIRE(p.live == 1);
  REQUIRE(p.total() == 1);
}

TEST_CASE("an entry copy is one more live place") {
  REQUIRE(places(Component{}, true).live == 2);
  REQUIRE(places(Component{}, true).total() == 2);
  REQUIRE(places(tiers(3, 8, 2), true).total() == places(tiers(3, 8, 2), false).total() + 1);
}

TEST_CASE("each tier that is on has its depth and a spare") {
  Places const p = places(tiers(7, 128, 64), false);
  REQUIRE(p.per_token == 7);
  REQUIRE(p.per_token_spares == 1);
  REQUIRE(p.aligned == 64);
  REQUIRE(p.aligned_spares == 1);
  REQUIRE(p.total() == 1 + 7 + 1 + 64 + 1);

  Places const only_per_token = places(tiers(7, 0, 0), false);
  REQUIRE(only_per_token.total() == 1 + 7 + 1);
  REQUIRE(only_per_token.aligned_spares == 0);
  Places const only_aligned = places(tiers(0, 128, 64), false);
  REQUIRE(only_aligned.total() == 1 + 64 + 1);
  REQUIRE(only_aligned.per_token_spares == 0);
}

TEST_CASE("the aligned tier has a spare for every boundary that unverified rows can cross") {
  for (Position quantum : {2, 3, 4, 128}) {
    for (std::int32_t unverified = 0; unverified < 3 * quantum; ++unverified) {
      Position most = 0;  // boundaries in (begin, begin + unverified], over every begin
      for (Position begin = 0; begin < quantum; ++begin) {
        Position crossed = 0;
        for (Position p = begin + 1; p <= begin + unverified; ++p) crossed += p % quantum == 0 ? 1 : 0;
        most = std::max(most, crossed);
      }
      CAPTURE(quantum, unverified);
      REQUIRE(places(tiers(unverified, quantum, 2), false).aligned_spares == std::max<Position>(most, 1));
    }
  }
}

TEST_CASE("a packed row map gives every row of every place its own number") {
  bool const entry_copy = GENERATE(false, true);
  RowGeometry const geometry{8, 4, true};
  Component c = tiers(3, 16, 2);
  c.geometry = geometry;
  Places const p = places(c, entry_copy);
  std::int32_t const slots = 3;
  RowMap const map = RowMap::packed(geometry, p, slots, 10);

  std::vector<int> used(static_cast<std::size_t>(slots * p.total() * geometry.rows), 0);
  auto const take = [&](std::int32_t first) {
    for (std::int32_t r = 0; r < geometry.rows; ++r) ++used.at(static_cast<std::size_t>(first + r));
  };
  for (std::int32_t slot = 0; slot < slots; ++slot) {
    for (std::int32_t place = 0; place < p.live; ++place) {
      take(map.live + slot * map.live_slot_stride + place * map.live_place_stride);
    }
    for (std::int32_t place = 0; place < p.total() - p.live; ++place) {
      take(map.kept + slot * map.kept_slot_stride + place * map.kept_place_stride);
    }
  }
  for (int times : used) REQUIRE(times == 1);
  REQUIRE(map.fresh == static_cast<std::int32_t>(used.size()));
  REQUIRE(map.cache_slot_stride == 10);
  REQUIRE(map.sink == -1);
  REQUIRE(map.cache_sink == -1);
}
