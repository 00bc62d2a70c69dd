// Pins with window rows of their own, saved and loaded.
#include "catch.hpp"
#include "pins_far_behind.hpp"
#include "toy_state.hpp"

#include <cstddef>
#include <cstdint>

using namespace toy;
using rollback::LoadAs;

TEST_CASE("pins far behind survive a save and a load, and give up what the other side does not keep") {
  bool const pin_windows = GENERATE(true, false);
  bool const checksums = GENERATE(true, false);
  Pinned source = far_from_pins(made_for(true));
  for (Position p : {Position{2}, Position{20}, Position{36}, source.tip(0)}) {
    for (LoadAs as : {LoadAs::state, LoadAs::landing}) {
      CAPTURE(pin_windows, p, as == LoadAs::landing);
      Blob blob;
      REQUIRE(save(source, 0, p, blob, {true, checksums}) == Verdict::accepted);
      EngineOptions o = made_for(pin_windows);
      o.books.pins = 4;  // one more: for a position that is loaded as a landing
      Pinned other(o, 77);
      REQUIRE(other.go_on(1, 12, 5) == "");
      ToyLayout const toy(other.books, other.maps, other.window_maps);
      StateSource checked{other.storage, blob};
      REQUIRE(rollback::check(other.books, toy.layout, as, checked) == Verdict::accepted);
      StateSource reader{other.storage, blob};
      REQUIRE(rollback::load(other.books, other.slots[1], toy.layout, as, reader) == Verdict::accepted);
      REQUIRE(reader.at == blob.size());
      other.history[1] = source.history[0];
      other.history[1].truncate(p);
      REQUIRE(other.lands(1, p, 5) == "");
      for (Position q : pinned) {
        if (q >= p) continue;
        REQUIRE((other.books.can_land(other.slots[1], q) == Verdict::accepted) == pin_windows);
        if (pin_windows) REQUIRE(other.lands(1, q, 5) == "");
      }
      Blob again;
      REQUIRE(save(other, 1, p, again, {true, checksums}) == Verdict::accepted);
      if (pin_windows && as == LoadAs::state) REQUIRE(again == blob);
      for (int i = 0; i < 3; ++i) REQUIRE(other.go_on(1, 12, 5) == "");
      if (pin_windows && p > 2) REQUIRE(other.lands(1, 2, 5) == "");
      bool const comes_back = pin_windows && (as == LoadAs::landing || p <= 36);
      REQUIRE((other.books.can_land(other.slots[1], p) == Verdict::accepted) == comes_back);
      if (comes_back) REQUIRE(other.lands(1, p, 5) == "");
    }
  }
}

TEST_CASE("a pin that was saved before its rows were copied gets them after a load") {
  EngineOptions o = made_for(true);
  o.books.windows.resize(GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{3}));
  for (Position back : {0, 1}) {
    CAPTURE(o.books.windows.size(), back);
    Pinned source(o);
    for (int i = 0; i < 3; ++i) REQUIRE(source.go_on(0, 12, 5) == "");
    Position const tip = source.tip(0);
    REQUIRE(source.books.pin(source.slots[0], tip - back) == Verdict::accepted);
    Blob blob;
    REQUIRE(save(source, 0, tip, blob, {}) == Verdict::accepted);
    Pinned other(o, 77);
    ToyLayout const toy(other.books, other.maps, other.window_maps);
    StateSource reader{other.storage, blob};
    REQUIRE(rollback::load(other.books, other.slots[1], toy.layout, LoadAs::state, reader) == Verdict::accepted);
    other.history[1] = source.history[0];
    for (int i = 0; i < 3; ++i) REQUIRE(source.go_on(0, 12, 5) == "");
    for (int i = 0; i < 3; ++i) REQUIRE(other.go_on(1, 12, 5) == "");
    REQUIRE(source.lands(0, tip - back, 5) == "");
    REQUIRE(other.lands(1, tip - back, 5) == "");
  }
}

TEST_CASE("a slot that is armed with a pin's rows is saved from the pin") {
  Pinned source = far_from_pins(made_for(true));
  REQUIRE(source.back(0, 20));
  REQUIRE(source.books.unpin(source.slots[0], 20) == Verdict::accepted);
  Blob blob;
  REQUIRE(save(source, 0, 20, blob) == Verdict::accepted);
  Pinned other(made_for(true), 5);
  ToyLayout const toy(other.books, other.maps, other.window_maps);
  StateSource reader{other.storage, blob};
  REQUIRE(rollback::load(other.books, other.slots[1], toy.layout, LoadAs::state, reader) == Verdict::accepted);
  other.history[1] = source.history[0];
  REQUIRE(other.differs(1) == "");
  REQUIRE(other.go_on(1, 12, 5) == "");
  REQUIRE(other.lands(1, 2, 5) == "");
}

TEST_CASE("pins whose rows start at row 0 of a store of their own are saved with them") {
  Pinned source = far_from_pins(made_for(true));
  ToyLayout toy(source.books, source.maps, source.window_maps);
  std::uint64_t const bytes = rollback::saved_bytes(source.books, source.slots[0], source.tip(0), toy.layout, {});
  REQUIRE(bytes > 0);
  for (std::int32_t w = 0; w < source.books.windows(); ++w) toy.layout.window_maps[w].kept = 0;
  REQUIRE(rollback::saved_bytes(source.books, source.slots[0], source.tip(0), toy.layout, {}) == bytes);
}
