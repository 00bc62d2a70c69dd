// Positions and slots: the arithmetic of boundaries against counting, and what makes two slots the same.
#include <rollback/position.hpp>

#include "catch.hpp"

#include <cstdint>
#include <type_traits>

using rollback::boundary_above;
using rollback::boundary_at_or_below;
using rollback::Position;
using rollback::Slot;

static_assert(std::is_same_v<Position, std::int64_t>);
static_assert(boundary_at_or_below(255, 128) == 128 && boundary_above(255, 128) == 256);

TEST_CASE("boundaries around a position agree with counting") {
  Position const quantum = GENERATE(Position{1}, Position{2}, Position{3}, Position{4}, Position{128});
  Position last = 0;
  for (Position p = 0; p < 4 * quantum + 3; ++p) {
    bool is_boundary = false;
    for (Position b = 0; b <= p; b += quantum) is_boundary = is_boundary || b == p;
    if (is_boundary) last = p;
    CAPTURE(quantum, p);
    REQUIRE(boundary_at_or_below(p, quantum) == last);
    REQUIRE(boundary_above(p, quantum) == last + quantum);
  }
}

TEST_CASE("boundaries far beyond 32 bits keep every bit") {
  Position const far = (Position{1} << 40) + 77;
  REQUIRE(boundary_at_or_below(far, 128) == (Position{1} << 40));
  REQUIRE(boundary_above(far, 128) == (Position{1} << 40) + 128);
  Position const quantum = (Position{1} << 33) + 1;
  REQUIRE(boundary_at_or_below(3 * quantum - 1, quantum) == 2 * quantum);
  REQUIRE(boundary_above(3 * quantum, quantum) == 4 * quantum);
}

TEST_CASE("slots are the same where index and generation are") {
  Slot const a{3, 7};
  REQUIRE(a == Slot{3, 7});
  REQUIRE_FALSE(a != Slot{3, 7});
  REQUIRE(a != Slot{3, 8});
  REQUIRE_FALSE(a == Slot{3, 8});
  REQUIRE(a != Slot{4, 7});
  REQUIRE_FALSE(a == Slot{4, 7});
}

TEST_CASE("a slot that nobody filled in is no slot") {
  REQUIRE(Slot{}.index < 0);
  REQUIRE(Slot{}.generation == 0);
}
