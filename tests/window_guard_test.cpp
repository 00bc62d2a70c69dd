// The window guard: both ends of what it covers, the high-water mark, landings, and set-ups it refuses.
#include <rollback/window_guard.hpp>

#include "catch.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::Position;
using rollback::Window;
using rollback::WindowGuard;

namespace {

Window window_of(Position window, Position rows) { return {"window", window, rows}; }

}  // namespace

TEST_CASE("both ends of the coverage of a window") {
  WindowGuard guard(1, window_of(8, 32), 1, 0);
  guard.write(0, 100);  // rows 68 .. 99 exist; the query at p reads p - 7 .. p - 1
  REQUIRE(guard.lowest(0) == 68);
  REQUIRE(guard.covers(0, 100));
  REQUIRE(guard.covers(0, 75));
  REQUIRE_FALSE(guard.covers(0, 74));
  REQUIRE_FALSE(guard.covers(0, 1));
  REQUIRE_FALSE(guard.covers(0, 0));  // until the sequence lands there: then nothing below is missed
}

TEST_CASE("near position 0 a query reads what there is") {
  WindowGuard guard(1, window_of(8, 32), 1, 0);
  guard.write(0, 32);
  for (Position p = 0; p <= 32; ++p) REQUIRE(guard.covers(0, p));
  guard.write(0, 33);  // row 0 is gone
  REQUIRE(guard.lowest(0) == 1);
  REQUIRE_FALSE(guard.covers(0, 7));
  REQUIRE(guard.covers(0, 8));
}

TEST_CASE("a window of one row needs nothing below the position") {
  WindowGuard guard(1, window_of(1, 4), 4, 0);
  guard.write(0, 100);
  REQUIRE(guard.covers(0, 96));
  REQUIRE_FALSE(guard.covers(0, 95));
}

TEST_CASE("rows that were rolled back have overwritten older ones all the same") {
  WindowGuard guard(1, window_of(8, 32), 1, 0);
  guard.write(0, 100);
  guard.land(0, 80);
  REQUIRE(guard.lowest(0) == 68);
  guard.write(0, 81);  // far below the highest position ever written
  REQUIRE(guard.lowest(0) == 68);
  REQUIRE_FALSE(guard.covers(0, 74));
  guard.write(0, 101);
  REQUIRE(guard.lowest(0) == 69);
}

TEST_CASE("landing at or below the oldest row makes that position the oldest") {
  WindowGuard guard(1, window_of(8, 32), 1, 0);
  guard.write(0, 100);
  guard.land(0, 68);
  REQUIRE(guard.lowest(0) == 68);
  guard.land(0, 40);
  REQUIRE(guard.lowest(0) == 40);
  guard.land(0, 0);
  REQUIRE(guard.lowest(0) == 0);
  REQUIRE(guard.covers(0, 0));
  guard.write(0, 32);
  REQUIRE(guard.covers(0, 20));
}

TEST_CASE("a write that never happened is taken back") {
  WindowGuard guard(1, window_of(8, 32), 16, 0);
  guard.write(0, 50);
  Position const before = guard.lowest(0);
  guard.write(0, 60);
  REQUIRE(guard.lowest(0) == 28);
  guard.unwrite(0, before);
  REQUIRE(guard.lowest(0) == 18);
}

TEST_CASE("slots of a guard do not see each other") {
  WindowGuard guard(3, window_of(8, 32), 1, 0);
  guard.write(1, 100);
  REQUIRE(guard.lowest(0) == 0);
  REQUIRE(guard.lowest(1) == 68);
  REQUIRE(guard.lowest(2) == 0);
  guard.land(1, 50);
  guard.write(2, 40);
  REQUIRE(guard.lowest(1) == 50);
  REQUIRE(guard.lowest(2) == 8);
  REQUIRE(guard.lowest(0) == 0);
}

TEST_CASE("a guard agrees with a store of rows that remembers what each row holds") {
  constexpr Position window = 5;
  constexpr Position rows = 13;
  std::mt19937 random(20);
  WindowGuard guard(1, window_of(window, rows), 1, 0);
  std::vector<Position> held(rows, -1);
  Position tip = 0;
  int landed = 0;
  int refused = 0;
  for (int step = 0; step < 4000; ++step) {
    if (random() % 4 != 0) {
      held[static_cast<std::size_t>(tip % rows)] = tip;
      guard.write(0, ++tip);
      continue;
    }
    Position const p = std::max<Position>(tip - static_cast<Position>(random() % 16), 0);
    bool all = true;
    for (Position r = std::max<Position>(p - (window - 1), 0); r < p; ++r) {
      all = all && held[static_cast<std::size_t>(r % rows)] == r;
    }
    CAPTURE(step, tip, p);
    // With no row to read the store would say yes at 0; the guard says so once the sequence is there.
    if (p > 0) {
      REQUIRE((!guard.covers(0, p) || all));  // never promised in vain
      bool const later_rows_lost = p - (window - 1) < guard.lowest(0);
      REQUIRE((guard.covers(0, p) || later_rows_lost));
    }
    if (p == 0 || guard.covers(0, p)) {
      guard.land(0, p);
      tip = p;
      ++landed;
    } else {
      REQUIRE_FALSE(all);
      ++refused;
    }
  }
  REQUIRE(landed > 100);
  REQUIRE(refused > 100);
}

TEST_CASE("a guard refuses a store in which a query would read what its own chunk overwrote") {
  REQUIRE_NOTHROW(WindowGuard(1, window_of(128, 127 + 16 + 4), 16, 4));
  REQUIRE_THROWS_WITH(WindowGuard(1, window_of(128, 127 + 16 + 3), 16, 4),
                      ContainsSubstring("window - 1 + rows of a chunk + unverified rows"));
  REQUIRE_NOTHROW(WindowGuard(1, window_of(1, 1), 1, 0));
  REQUIRE_THROWS_AS(WindowGuard(1, window_of(1, 0), 1, 0), std::invalid_argument);
}

TEST_CASE("a guard refuses sizes that mean nothing") {
  REQUIRE_THROWS_WITH(WindowGuard(0, window_of(8, 32), 1, 0), ContainsSubstring("slots"));
  REQUIRE_THROWS_WITH(WindowGuard(-1, window_of(8, 32), 1, 0), ContainsSubstring("slots"));
  REQUIRE_THROWS_WITH(WindowGuard(1, window_of(0, 32), 1, 0),
                      ContainsSubstring("window is the rows that a query sees"));
  REQUIRE_THROWS_WITH(WindowGuard(1, window_of(8, 32), -1, 0), ContainsSubstring("chunk"));
  REQUIRE_THROWS_WITH(WindowGuard(1, window_of(8, 32), 1, -1), ContainsSubstring("unverified"));
}

TEST_CASE("sizes of a guard whose sum passes 64 bits are refused and not wrapped") {
  for (rollback::Window const& window :
       {window_of(INT64_MAX, 1), window_of(INT64_MAX, INT64_MAX), window_of(8, INT64_MIN), window_of(1, INT64_MAX)}) {
    REQUIRE_THROWS_WITH(WindowGuard(1, window, INT64_MAX, INT64_MAX), ContainsSubstring("rows must be at least"));
  }
  REQUIRE_THROWS_AS(WindowGuard(1, window_of(INT64_MAX, INT64_MAX), 2, 0), std::invalid_argument);
  REQUIRE_NOTHROW(WindowGuard(1, window_of(INT64_MAX, INT64_MAX), 1, 0));
}

TEST_CASE("a guard knows the window it was made for") {
  WindowGuard const guard(1, window_of(8, 32), 1, 0);
  REQUIRE(guard.window().window == 8);
  REQUIRE(guard.window().rows == 32);
}
