// Pins that keep the raw window rows below them: landings wherever the rings have gone on to.
#include "catch.hpp"
#include "pins_far_behind.hpp"
#include "refusal.hpp"
#include "toy_state.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace toy;
using rollback::Adopt;
using rollback::Hold;
using rollback::Landing;
using rollback::Tier;
using rollback::WindowRows;

TEST_CASE("every pin is a landing however far behind, and what follows is as in a fresh run") {
  bool const sinks = GENERATE(false, true);
  bool const worst_shapes = GENERATE(false, true);
  std::int32_t const chunk = GENERATE(1, 3, 5);
  EngineOptions o = made_for(true);
  o.sinks = sinks;
  o.worst_shapes = worst_shapes;
  Pinned const engine = far_from_pins(o, 150, chunk);
  Slot const slot = engine.slots[0];
  CAPTURE(sinks, worst_shapes, chunk);
  REQUIRE(engine.books.reach(slot) == 2);
  for (Position p = 1; p < engine.tip(0); ++p) {
    bool const is_pin = p == 2 || p == 20 || p == 36;
    REQUIRE((engine.books.can_land(slot, p) == Verdict::accepted) == (is_pin || p >= engine.tip(0) - 2));
    REQUIRE(engine.books.landing_before(slot, p + 1) == engine.books.nearest(slot, p).position);
    if (!is_pin) continue;
    REQUIRE(engine.books.nearest(slot, p + 7).position == p);
    REQUIRE(engine.books.nearest(slot, p).tier == Tier::pin);
    for (std::int32_t next : {1, 2, 5}) REQUIRE(engine.lands(0, p, next) == "");
  }
  Landing landings[8];
  REQUIRE(engine.books.landings(slot, landings, 8) == 5);
  REQUIRE(landings[1].position == 20);
  REQUIRE(landings[1].tier == Tier::pin);
}

TEST_CASE("a pin whose window rows are gone says so and names the window") {
  Pinned const engine = far_from_pins(made_for(false));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.books.reach(slot) == engine.tip(0) - 2);
  for (Position p : pinned) {
    Landing const landing = engine.books.nearest(slot, p);
    REQUIRE(landing.position == 0);
    REQUIRE(landing.why == Verdict::window_not_covered);
    REQUIRE(std::string(engine.books.name(landing.limited_by)) == "wide");
    Books books = engine.books;
    REQUIRE(books.roll_back(slot, p) == Verdict::window_not_covered);
    WindowRows rows;
    REQUIRE(books.window_at(slot, p, 0, engine.window_maps[0], rows) == Verdict::window_not_covered);
  }
  REQUIRE(engine.books.can_land(slot, 21) == Verdict::beyond_reach);  // of the states, no pin
  Shape const worst = engine.books.worst_shape(5, 2);
  for (rollback::ComponentShape const& shape : worst.windows) REQUIRE(shape == rollback::ComponentShape{});
}

TEST_CASE("the rows of a pin are restored in the first chunk with the slot and nowhere else") {
  EngineOptions o = made_for(true);
  o.books.components = {with(ring8(), 2)};
  Pinned engine = far_from_pins(o);
  REQUIRE(engine.back(0, 20));
  REQUIRE(engine.begin({1, 1, 0, 0, 0, 0}, 5, {}, {2, 4, 6}) == Verdict::accepted);
  for (std::int32_t window = 0; window < 3; ++window) {
    for (std::int32_t chunk = 0; chunk < 3; ++chunk) {
      Planned const p = engine.planned_window(chunk, static_cast<std::size_t>(window));
      REQUIRE(p.verdict == Verdict::accepted);
      REQUIRE(p.lists.restores == (chunk == 1 && window < 2 ? 1 : 0));
      REQUIRE(p.restore_source == engine.planned_window(chunk, static_cast<std::size_t>(window)).restore_source);
    }
  }
  Planned const p = engine.planned_window(1, 0);
  rollback::RowMap const& map = engine.window_maps[0];
  for (Position q = 12; q < 20; ++q) {
    auto const i = static_cast<std::size_t>(q - 12);
    REQUIRE(p.restore_destination[i] == q % 15);
    REQUIRE(p.restore_source[i] >= map.kept);
    REQUIRE((p.restore_source[i] - map.kept) % 8 == q % 8);
  }
  engine.run_all();
  REQUIRE(engine.stand(1, 2));
  REQUIRE(engine.stand(0, 24));
  REQUIRE(engine.differs(0) == "");
  REQUIRE(engine.books.begin(engine.batch(), engine.ticket) != Verdict::accepted);
  REQUIRE(engine.begin_one(0, 1, 5) == Verdict::accepted);
  REQUIRE(engine.planned_window(0, 0).lists.restores == 0);
}

TEST_CASE("the rows of a pin are copied out once, in the chunk that starts at it or has its position") {
  Pinned engine(made_for(true));
  for (int i = 0; i < 2; ++i) REQUIRE(engine.go_on(0, 12, 5) == "");
  for (Position p : {24, 33}) REQUIRE(engine.books.pin(engine.slots[0], p) == Verdict::accepted);
  REQUIRE(engine.begin_one(0, 12, 5) == Verdict::accepted);
  REQUIRE(engine.chunks() > 2);
  for (std::int32_t k = 0; k < engine.chunks(); ++k) {
    CAPTURE(k);
    Position const begin = 24 + engine.chunk_begin(k);
    Position const end = 24 + engine.chunk_end(k);
    Planned const p = engine.planned_window(k, 0);
    REQUIRE(p.lists.restores == 0);
    REQUIRE(p.lists.snapshots == (begin == 24 ? 1 : 0) + (begin < 33 && 33 <= end ? 1 : 0));
  }
  engine.run_all();
  REQUIRE(engine.stand(0, 36));
  for (int i = 0; i < 4; ++i) REQUIRE(engine.go_on(0, 12, 5) == "");
  for (Position p : {24, 33}) REQUIRE(engine.lands(0, p, 5) == "");
}

TEST_CASE("where the ring has the rows nothing is restored") {
  Pinned engine = far_from_pins(made_for(true), 36);
  REQUIRE(engine.back(0, 36));
  REQUIRE(engine.begin_one(0, 1, 1) == Verdict::accepted);
  REQUIRE(engine.planned_window(0, 0).lists.restores == 0);
  engine.run_all();
  REQUIRE(engine.stand(0, 37));
  REQUIRE(engine.differs(0) == "");
}

TEST_CASE("rows below position 0 and unused entries are the map's sink") {
  EngineOptions o = made_for(true);
  o.sinks = true;
  Pinned engine = far_from_pins(o);
  REQUIRE(engine.back(0, 2));
  REQUIRE(engine.begin_one(0, 1, 1) == Verdict::accepted);
  std::int32_t const sink = engine.window_maps[0].sink;
  Shape shape = engine.shape(0);
  shape.windows[0].restores = 2;
  Planned const p = plan_window(engine.books, engine.ticket, 0, 0, shape, engine.window_maps[0]);
  REQUIRE(p.restore_source.size() == 16);
  for (std::size_t i = 0; i < 16; ++i) {
    bool const there = i == 6 || i == 7;
    CAPTURE(i);
    REQUIRE((p.restore_source[i] == sink) == !there);
    REQUIRE((p.restore_destination[i] == sink) == !there);
  }
  shape.windows[0].restores = 0;
  rollback::Lists lists;
  REQUIRE(engine.books.plan_window(engine.ticket, 0, 0, shape, {}, lists) == Verdict::shape_too_small);
  REQUIRE(engine.books.plan_window(engine.ticket, 0, 3, shape, {}, lists) == Verdict::unknown_window);
  REQUIRE(engine.books.plan_window(engine.ticket, 0, -1, shape, {}, lists) == Verdict::unknown_window);
  REQUIRE(engine.books.plan_window(engine.ticket, 1, 0, shape, {}, lists) == Verdict::unknown_chunk);
  REQUIRE(engine.books.plan_window({}, 0, 0, shape, {}, lists) == Verdict::unknown_ticket);
}

TEST_CASE("an armed restore of rows that fails is made again") {
  for (BadChunk const state : {BadChunk::may_have_run, BadChunk::ran_last, BadChunk::never_started}) {
    for (std::int32_t good = 0; good <= 3; ++good) {
      for (Position p : pinned) {
        CAPTURE(static_cast<int>(state), good, p);
        Pinned engine = far_from_pins(made_for(true));
        REQUIRE(engine.back(0, p));
        for (int tries = 0; tries < 3; ++tries) {
          REQUIRE(engine.begin_one(0, 12, 4) == Verdict::accepted);
          for (std::int32_t k = 0; k < good && k < engine.chunks(); ++k) engine.run(k);
          Outcome const outcome = engine.fail_at(std::min(good, engine.chunks()), state);
          REQUIRE(outcome.tip == p);
          REQUIRE(outcome.armed);
          REQUIRE(engine.books.can_land(engine.slots[0], p) == Verdict::accepted);
        }
        REQUIRE(engine.lands(0, p, 5) == "");
        REQUIRE(engine.go_on(0, 12, 5) == "");
      }
    }
  }
}

TEST_CASE("several batches go on from a pin, are rejected or fail, and the next ones go on") {
  std::int32_t const steps = GENERATE(2, 3);
  for (int what = 0; what < 3; ++what) {
    for (Position p : pinned) {
      CAPTURE(steps, what, p);
      Pinned engine = far_from_pins(made_for(true, steps));
      REQUIRE(engine.back(0, p));
      std::vector<Pinned::Held> open;
      for (std::int32_t i = 0; i < steps; ++i) {
        bool const last = i == steps - 1;
        REQUIRE(engine.begin_one(0, 2 + i, 2, last && what == 1 ? 1 : 0) == Verdict::accepted);
        open.push_back(engine.hold_open());
        REQUIRE(engine.planned_window(0, 0).lists.restores == (i == 0 ? 1 : 0));
        for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.run(k);  // before the older ones are committed
      }
      if (what == 2) {
        engine.resume(open.front());
        REQUIRE(engine.fail_at(0, BadChunk::may_have_run).tip == p);
      } else {
        for (std::int32_t i = 0; i < steps; ++i) {
          engine.resume(open[static_cast<std::size_t>(i)]);
          for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.settle(k);
          Position const end = engine.positions.back() + 1;
          REQUIRE(engine.stand(0, i == steps - 1 && what == 1 ? end - 1 : end));
        }
      }
      REQUIRE(engine.go_on(0, 7, 5) == "");
      REQUIRE(engine.lands(0, p, 5) == "");
    }
  }
}

TEST_CASE("while the rows are yet to be restored nothing is said to be in the ring") {
  EngineOptions o = made_for(true);
  o.books.components = {with(ring8(), 2, 4, 100)};
  o.books.windows.resize(1);
  Pinned engine(o);
  Slot const slot = engine.slots[0];
  REQUIRE(engine.books.pin(slot, 6) == Verdict::accepted);
  while (engine.tip(0) < 96) REQUIRE(engine.go_on(0, 12, 5) == "");
  REQUIRE(engine.back(0, 6));
  REQUIRE(engine.books.can_land(slot, 4) == Verdict::window_not_covered);
  REQUIRE(engine.begin_one(0, 4, 2) == Verdict::accepted);
  WindowRows rows;
  REQUIRE(engine.books.window_at(slot, 4, 0, engine.window_maps[0], rows) == Verdict::window_not_covered);
  REQUIRE(engine.books.landing_before(slot, 6) == 0);
  REQUIRE(engine.books.reach(slot) == 6);
  engine.run(0);
  engine.settle(0);
  REQUIRE(engine.books.window_at(slot, 4, 0, engine.window_maps[0], rows) == Verdict::accepted);
  REQUIRE(engine.books.landing_before(slot, 6) == 4);
  Blob blob;
  REQUIRE(save(engine, 0, 4, blob) == Verdict::accepted);
  engine.run(1);
  engine.settle(1);
  REQUIRE(engine.stand(0, 10));
  REQUIRE(engine.lands(0, 4, 5) == "");
}

TEST_CASE("another slot goes on from a pin far behind, and the pin's rows are not touched") {
  for (Position p : pinned) {
    EngineOptions o = made_for(true);
    o.books.components = {with(fold(), 2), with(trail(), 2)};  // without caches, which the engine would have to copy
    Pinned engine = far_from_pins(o);
    REQUIRE(engine.go_on(1, 12, 5) == "");
    REQUIRE(engine.books.fork(engine.slots[0], p, engine.slots[1]) == Verdict::accepted);
    engine.history[1] = engine.history[0];
    engine.history[1].truncate(p);
    REQUIRE(engine.books.unpin(engine.slots[0], p) == Verdict::accepted);
    REQUIRE(engine.books.pin(engine.slots[0], engine.tip(0) + 3) == Verdict::accepted);
    REQUIRE(engine.go_on(0, 6, 5) == "");  // writes another place
    REQUIRE(engine.go_on(1, 12, 5) == "");
    REQUIRE(engine.go_on(1, 12, 5) == "");
    REQUIRE(engine.lands(1, p, 5) == "");
    REQUIRE(engine.lands(0, engine.tip(0) - 3, 5) == "");
  }
}

TEST_CASE("an armed source that is unpinned is read all the same, and then gone") {
  Pinned engine = far_from_pins(made_for(true));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.back(0, 20));
  REQUIRE(engine.books.unpin(slot, 20) == Verdict::accepted);
  REQUIRE(engine.books.can_land(slot, 20) == Verdict::accepted);
  REQUIRE_FALSE(engine.books.is_pinned(slot, 20));

  Pinned lower = engine;  // a second rollback drops it
  REQUIRE(lower.back(0, 2));
  REQUIRE(lower.go_on(0, 12, 5) == "");

  Pinned again = engine;  // and pinned again it stays
  REQUIRE(again.books.pin(slot, 20) == Verdict::accepted);
  REQUIRE(again.go_on(0, 12, 5) == "");
  REQUIRE(again.go_on(0, 12, 5) == "");
  REQUIRE(again.go_on(0, 12, 5) == "");
  REQUIRE(again.lands(0, 20, 5) == "");

  REQUIRE(engine.begin_one(0, 12, 5) == Verdict::accepted);
  REQUIRE(engine.fail_at(0, BadChunk::may_have_run).tip == 20);
  REQUIRE(engine.go_on(0, 12, 5) == "");
  REQUIRE(engine.go_on(0, 12, 5) == "");
  REQUIRE(engine.books.can_land(slot, 20) == Verdict::beyond_reach);
}

TEST_CASE("a position that was passed is pinned with its rows as long as the rings have them") {
  Pinned engine = far_from_pins(made_for(true));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.books.unpin(slot, 36) == Verdict::accepted);
  Position const p = engine.tip(0) - 2;
  REQUIRE(engine.books.pin(slot, p) == Verdict::accepted);
  REQUIRE(engine.begin_one(0, 12, 5) == Verdict::accepted);
  REQUIRE(engine.planned_window(0, 0).lists.restores == 1);
  REQUIRE(engine.planned_window(0, 0).lists.snapshots == 0);
  engine.run_all();
  REQUIRE(engine.stand(0, engine.tip(0)));
  for (int i = 0; i < 4; ++i) REQUIRE(engine.go_on(0, 12, 5) == "");
  REQUIRE(engine.lands(0, p, 5) == "");
}

TEST_CASE("a position whose rows went before its pin could be written is given up") {
  EngineOptions o = made_for(true);
  o.books.components = {with(fold(), 2, 16, 8)};
  o.books.pins = 1;
  Pinned engine(o);
  Slot const slot = engine.slots[0];
  REQUIRE(engine.books.pin(slot, 4) == Verdict::accepted);
  for (int i = 0; i < 3; ++i) REQUIRE(engine.go_on(0, 12, 5) == "");
  Hold hold;
  REQUIRE(engine.books.hold(slot, 4, hold) == Verdict::accepted);
  REQUIRE(engine.books.unpin(slot, 4) == Verdict::accepted);
  REQUIRE(engine.books.pin(slot, 32) == Verdict::accepted);
  for (int i = 0; i < 3; ++i) REQUIRE(engine.go_on(0, 12, 5) == "");  // the only place is being read
  REQUIRE(engine.books.has_pin(slot, 32));
  engine.books.release(hold);
  REQUIRE(engine.go_on(0, 1, 5) == "");
  REQUIRE_FALSE(engine.books.has_pin(slot, 32));
  REQUIRE(engine.books.can_land(slot, 32) == Verdict::window_not_covered);
}

TEST_CASE("a pin that is adopted has rows if the engine brings them") {
  for (Adopt const as : {Adopt::pin, Adopt::pin_with_rows}) {
    Pinned engine = far_from_pins(made_for(true));
    Slot const slot = engine.slots[0];
    WindowRows rows;
    REQUIRE(engine.books.window_at(slot, 20, 0, engine.window_maps[0], rows) == Verdict::accepted);
    REQUIRE(rows.ring == -1);
    REQUIRE(rows.pin >= engine.window_maps[0].kept);
    REQUIRE(engine.books.window_at(slot, engine.tip(0), 0, engine.window_maps[0], rows) == Verdict::accepted);
    REQUIRE(rows.ring == 0);
    REQUIRE(rows.pin == -1);
    REQUIRE(engine.books.window_at(slot, 20, 3, engine.window_maps[0], rows) == Verdict::unknown_window);
    REQUIRE(engine.books.window_at(slot, 21, 0, engine.window_maps[0], rows) == Verdict::beyond_reach);
    REQUIRE(engine.books.window_at(slot, -1, 0, engine.window_maps[0], rows) == Verdict::negative_position);
    REQUIRE(engine.books.window_at(slot, 900, 0, engine.window_maps[0], rows) == Verdict::ahead_of_tip);
    REQUIRE(engine.books.window_at({}, 1, 0, engine.window_maps[0], rows) == Verdict::unknown_slot);
    REQUIRE(engine.books.unpin(slot, 36) == Verdict::accepted);
    REQUIRE(engine.books.adopt(slot, 50, as) == Verdict::accepted);
    bool const lands = as == Adopt::pin_with_rows;
    REQUIRE((engine.books.can_land(slot, 50) == Verdict::accepted) == lands);
    if (!lands) REQUIRE(engine.books.can_land(slot, 50) == Verdict::window_not_covered);
  }
}

TEST_CASE("a pin that was adopted without rows has them once the engine brings them") {
  Pinned engine = far_from_pins(made_for(true));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.books.unpin(slot, 36) == Verdict::accepted);
  REQUIRE(engine.books.adopt(slot, 50, Adopt::pin) == Verdict::accepted);
  REQUIRE(engine.books.adopt(slot, 50, Adopt::pin_with_rows) == Verdict::accepted);
  REQUIRE(engine.books.can_land(slot, 50) == Verdict::accepted);
}

TEST_CASE("an engine that makes an armed restore itself makes that of window rows as well") {
  Pinned engine = far_from_pins(made_for(true));
  Slot const slot = engine.slots[0];
  REQUIRE(engine.back(0, 20));
  REQUIRE(engine.books.adopt(slot, 20, Adopt::live) == Verdict::accepted);
  WindowRows rows;
  REQUIRE(engine.books.window_at(slot, 20, 0, engine.window_maps[0], rows) == Verdict::accepted);
  REQUIRE(rows.ring == 0);
  REQUIRE(engine.books.unpin(slot, 20) == Verdict::accepted);
  REQUIRE(engine.begin_one(0, 4, 4) == Verdict::accepted);
  REQUIRE(engine.planned_window(0, 0).lists.restores == 0);
}

TEST_CASE("a landing whose rows only a pin has is a pin's, whichever tier has the state") {
  EngineOptions o = made_for(true);
  o.books.components = {with(fold(), 2, 10, 100)};
  Pinned const engine = far_from_pins(o);
  REQUIRE(engine.books.nearest(engine.slots[0], 20).tier == Tier::pin);
  REQUIRE(engine.books.can_land(engine.slots[0], 30) == Verdict::window_not_covered);
  REQUIRE(engine.lands(0, 20, 5) == "");
}

TEST_CASE("a pin's window rows are held while they are being read, whichever tier has the state") {
  EngineOptions o = made_for(true);
  o.books.components = {with(fold(), 2, 10, 100)};
  o.books.pins = 1;
  Pinned engine(o);
  Slot const slot = engine.slots[0];
  REQUIRE(engine.books.pin(slot, 20) == Verdict::accepted);
  while (engine.tip(0) < 72) REQUIRE(engine.go_on(0, 12, 5) == "");
  Hold hold;
  REQUIRE(engine.books.hold(slot, 20, hold) == Verdict::accepted);
  REQUIRE(engine.books.unpin(slot, 20) == Verdict::accepted);
  REQUIRE(engine.books.pin(slot, 75) == Verdict::accepted);
  REQUIRE(engine.go_on(0, 4, 4) == "");
  REQUIRE_FALSE(engine.books.is_pinned(slot, 75));
  engine.books.release(hold);
}

TEST_CASE("windows whose rows 32 bits cannot name are refused") {
  EngineOptions o = made_for(true);
  o.books.windows[0] = {"wide", 1 << 20, 1 << 21};
  REQUIRE(Books(o.books).pin_windows());
  o.books.pins = 600;
  REQUIRE(refusal_with<std::invalid_argument>([&] { Books const books(o.books); }).find("pin_windows") !=
          std::string::npos);
  REQUIRE(refusal_with<std::invalid_argument>([&] { static_cast<void>(Books::bytes(o.books)); }).size() > 0);
  o.books.pin_windows = false;
  REQUIRE_FALSE(Books(o.books).pin_windows());
}
