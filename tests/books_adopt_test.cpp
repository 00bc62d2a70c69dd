// States that the engine reads and writes itself, and places that it holds: rule by rule, and what is refused.
#include <rollback/books.hpp>

#include "catch.hpp"
#include "toy_planes.hpp"

#include <cstdint>
#include <vector>

using namespace toy;
using rollback::Adopt;
using rollback::Batch;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Hold;
using rollback::RowMap;
using rollback::Slot;
using rollback::StatePlaces;
using rollback::Ticket;
using rollback::Verdict;

namespace {

BooksOptions options(std::int32_t pins = 1) {
  BooksOptions o;
  o.slots = 2;
  o.max_rows = o.max_chunks = 8;
  o.max_context = 1000;
  o.pins = pins;
  Component a = ring8();
  a.per_token = 2;
  a.quantum = 8;
  a.aligned = 2;
  Component b = ring128();
  b.quantum = 4;
  b.aligned = 4;
  b.empty_at = 128;
  o.components = {a, b};
  o.windows = {{"raw", 5, 32}};
  return o;
}

void feed(Books& books, Slot slot, Position until) {
  while (books.tip(slot) < until) {
    Position const p = books.tip(slot);
    std::int32_t const one = 1;
    Ticket t;
    REQUIRE(books.begin({&slot, &p, 1, &one, 1, nullptr, 0}, t) == Verdict::accepted);
    REQUIRE(books.settle(t, 0) == Verdict::accepted);
    REQUIRE(books.commit(t, slot, p + 1) == Verdict::accepted);
  }
}

/// Opens a batch of one row.
Ticket opened(Books& books, Slot slot) {
  Position const p = books.tip(slot);
  std::int32_t const one = 1;
  Ticket t;
  REQUIRE(books.begin({&slot, &p, 1, &one, 1, nullptr, 0}, t) == Verdict::accepted);
  return t;
}

Slot stale(Slot slot) {
  ++slot.generation;
  return slot;
}

}  // namespace

TEST_CASE("where states are is said of landings alone") {
  Books books(options());
  Slot const slot = books.slot(0);
  feed(books, slot, 27);
  RowMap const map = RowMap::packed(books.component(0).geometry, books.places(0), 2);
  StatePlaces out;
  out.count = 3;
  CHECK(books.state_at(Slot{}, 24, 0, map, out) == Verdict::unknown_slot);
  CHECK(out.count == 0);
  CHECK(books.state_at(stale(slot), 24, 0, map, out) == Verdict::stale_slot);
  for (std::int32_t component : {-1, 2, INT32_MAX}) {
    CHECK(books.state_at(slot, 24, component, map, out) == Verdict::unknown_component);
  }
  CHECK(books.state_at(slot, -1, 0, map, out) == Verdict::negative_position);
  CHECK(books.state_at(slot, 28, 0, map, out) == Verdict::ahead_of_tip);
  CHECK(books.state_at(slot, 8, 0, map, out) == Verdict::beyond_reach);
  CHECK(books.state_at(slot, 21, 0, map, out) == Verdict::not_a_boundary);
  CHECK(books.state_at(slot, 0, 0, map, out) == Verdict::accepted);
  CHECK(out.count == 0);
  CHECK(books.state_at(slot, 27, 0, map, out) == Verdict::accepted);
  CHECK(out.count == 1);
  CHECK(out.rows[0] == map.live);
  Ticket const t = opened(books, slot);
  CHECK(books.state_at(slot, 27, 0, map, out) == Verdict::in_flight);
  CHECK(books.state_at(slot, 24, 0, map, out) == Verdict::accepted);
  REQUIRE(books.settle(t, 0) == Verdict::accepted);
}

TEST_CASE("the oldest row, the landing before and what tiers keep are asked of whom there is") {
  Books books(options());
  Slot const slot = books.slot(0);
  feed(books, slot, 40);
  CHECK(books.oldest_row(slot, 0) == 8);
  CHECK(books.oldest_row(slot, -1) == -1);
  CHECK(books.oldest_row(slot, 1) == -1);
  CHECK(books.oldest_row(stale(slot), 0) == -1);
  CHECK(books.landing_before(slot, 40) == 32);
  CHECK(books.landing_before(slot, 999) == 40);
  CHECK(books.landing_before(slot, 32) == 0);
  CHECK(books.landing_before(slot, 0) == 0);
  CHECK(books.landing_before(slot, -5) == 0);
  CHECK(books.landing_before(stale(slot), 40) == 0);
  CHECK(books.tiers_keep(32, 40) == Verdict::accepted);
  CHECK(books.tiers_keep(24, 40) == Verdict::beyond_reach);
  CHECK(books.tiers_keep(37, 40) == Verdict::not_a_boundary);
  CHECK_FALSE(books.has_pin(slot, 45));
  REQUIRE(books.pin(slot, 45) == Verdict::accepted);
  CHECK(books.has_pin(slot, 45));
  CHECK_FALSE(books.is_pinned(slot, 45));
  CHECK_FALSE(books.has_pin(slot, 0));
  CHECK_FALSE(books.has_pin(slot, -1));
  CHECK_FALSE(books.has_pin(stale(slot), 45));
}

TEST_CASE("what is adopted is refused where it cannot be kept") {
  Books books(options());
  Slot const slot = books.slot(0);
  feed(books, slot, 27);
  for (Adopt where : {Adopt::live, Adopt::pin, Adopt::tiers}) {
    CHECK(books.adopt(Slot{}, 24, where) == Verdict::unknown_slot);
    CHECK(books.adopt(stale(slot), 24, where) == Verdict::stale_slot);
    CHECK(books.adopt(slot, -1, where) == Verdict::negative_position);
    CHECK(books.adopt(slot, 1001, where) == Verdict::beyond_context);
  }
  CHECK(books.adopt(slot, 26, Adopt::live) == Verdict::position_repeated);
  CHECK(books.adopt(slot, 8, Adopt::tiers) == Verdict::beyond_reach);
  CHECK(books.adopt(slot, 21, Adopt::tiers) == Verdict::not_a_boundary);
  for (Adopt where : {Adopt::pin, Adopt::tiers}) CHECK(books.adopt(slot, 0, where) == Verdict::accepted);
  CHECK(books.tip(slot) == 27);
  CHECK_FALSE(books.is_armed(slot));

  CHECK(books.adopt(slot, 21, Adopt::pin) == Verdict::accepted);
  CHECK(books.is_pinned(slot, 21));
  CHECK(books.can_land(slot, 21) == Verdict::accepted);
  CHECK(books.adopt(slot, 21, Adopt::pin) == Verdict::accepted);  // again
  CHECK(books.adopt(slot, 22, Adopt::pin) == Verdict::no_free_pin);

  Ticket const t = opened(books, slot);
  for (Adopt where : {Adopt::live, Adopt::pin, Adopt::tiers}) CHECK(books.adopt(slot, 40, where) == Verdict::in_flight);
  REQUIRE(books.settle(t, 0) == Verdict::accepted);
  REQUIRE(books.commit(t, slot, 28) == Verdict::accepted);
}

TEST_CASE("a slot goes on from what it adopts beyond its tip") {
  for (Adopt where : {Adopt::live, Adopt::pin, Adopt::tiers}) {
    CAPTURE(static_cast<int>(where));
    Books books(options());
    Slot const slot = books.slot(0);
    feed(books, slot, 27);
    REQUIRE(books.adopt(slot, 1000 - 8, where) == Verdict::accepted);  // the context's end is not passed
    CHECK(books.tip(slot) == 992);
    CHECK(books.head(slot) == 992);
    CHECK(books.is_armed(slot) == (where != Adopt::live));
    CHECK(books.oldest_row(slot, 0) == 988);
    CHECK(books.can_land(slot, 24) != Verdict::accepted);
    feed(books, slot, 1000);
    bool const kept = where != Adopt::live;  // else nothing but the live plane had it
    CHECK(books.can_land(slot, 992) == (kept ? Verdict::accepted : Verdict::beyond_reach));
  }
  Books books(options());
  Slot const slot = books.slot(0);
  Position const rows_from = 900;
  REQUIRE(books.adopt(slot, 1000, Adopt::live, &rows_from) == Verdict::accepted);  // nor is it passed here
  CHECK(books.tip(slot) == 1000);
  CHECK(books.oldest_row(slot, 0) == 968);  // no more than the ring has
}

TEST_CASE("a held place that was given up for a shared one is not taken") {
  Books books(options());
  Slot a = books.slot(0);
  Slot const b = books.slot(1);
  feed(books, a, 27);
  Hold hold;
  REQUIRE(books.hold(a, 24, hold) == Verdict::accepted);
  REQUIRE(books.clear(a) == Verdict::accepted);
  feed(books, b, 27);
  REQUIRE(books.fork(b, 24, a) == Verdict::accepted);  // what `a` had at 24 is free, and held
  for (Position until = 32; until <= 72; until += 8) {
    feed(books, a, until);
    feed(books, b, until);
    for (Slot slot : {a, b}) CHECK(books.can_land(slot, until) == Verdict::accepted);
    for (Slot slot : {a, b}) CHECK(books.can_land(slot, until - 8) == Verdict::accepted);
  }
  books.release(hold);
}

TEST_CASE("no position is beyond 2^56, limit or not") {
  BooksOptions o = options(2);
  o.max_context = GENERATE(Position{0}, Position{INT64_MAX});
  Books books(o);
  Slot const slot = books.slot(0);
  for (Position p : {rollback::max_position + 1, Position{INT64_MAX}}) {
    for (Adopt where : {Adopt::live, Adopt::pin, Adopt::tiers}) {
      CHECK(books.adopt(slot, p, where) == Verdict::beyond_context);
    }
    CHECK(books.pin(slot, p) == Verdict::beyond_context);
    CHECK(books.nearest(slot, p).why == Verdict::ahead_of_tip);
  }
  CHECK(books.tip(slot) == 0);
  REQUIRE(books.adopt(slot, rollback::max_position - 1, Adopt::live) == Verdict::accepted);
  feed(books, slot, rollback::max_position);
  CHECK(books.reach(slot) == rollback::max_position);  // nothing else is kept of both components
  Position const p = rollback::max_position;
  std::int32_t const one = 1;
  Ticket t;
  CHECK(books.begin({&slot, &p, 1, &one, 1, nullptr, 0}, t) == Verdict::beyond_context);
  CHECK(books.tiers_keep(INT64_MIN, INT64_MIN) == Verdict::negative_position);
  CHECK(books.tiers_keep(5, 4) == Verdict::ahead_of_tip);
  CHECK(books.tiers_keep(INT64_MAX, INT64_MAX) != Verdict::accepted);
}

TEST_CASE("places are held of landings that can be held, and no longer") {
  Books books(options());
  Slot const slot = books.slot(0);
  feed(books, slot, 27);
  Hold hold;
  CHECK(books.hold(Slot{}, 24, hold) == Verdict::unknown_slot);
  CHECK(books.hold(stale(slot), 24, hold) == Verdict::stale_slot);
  CHECK(books.hold(slot, -1, hold) == Verdict::negative_position);
  CHECK(books.hold(slot, 28, hold) == Verdict::ahead_of_tip);
  CHECK(books.hold(slot, 27, hold) == Verdict::live_only);
  CHECK(books.hold(slot, 8, hold) == Verdict::beyond_reach);
  CHECK(books.hold(slot, 26, hold) == Verdict::not_a_boundary);
  CHECK(books.hold(slot, 0, hold) == Verdict::accepted);
  for (std::int32_t page : hold.pages) CHECK(page == -1);
  CHECK(hold.pin == -1);

  CHECK(books.hold(slot, 24, hold) == Verdict::accepted);
  REQUIRE(books.hold(slot, 21, hold) == Verdict::not_a_boundary);  // keeps what it held
  feed(books, slot, 50);
  CHECK(books.can_land(slot, 40) == Verdict::accepted);  // in a spare, since 24 is held
  CHECK(books.can_land(slot, 48) == Verdict::accepted);
  books.release(hold);
  books.release(hold);  // of nothing
  feed(books, slot, 66);
  CHECK(books.can_land(slot, 56) == Verdict::accepted);
  CHECK(books.can_land(slot, 64) == Verdict::accepted);
}
