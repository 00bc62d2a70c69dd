// Several batches open at once, landings that the engine placed, and landings that slots share: a seeded walk against a
// record of every state there ever was, and each rule by itself.
#include "books_refusal.hpp"
#include "catch.hpp"
#include "toy_pipeline.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace pipeline;
using toy::listed;

TEST_CASE("a walk with up to three batches in flight, pins and forks") {
  for (std::uint32_t v = 0; v < 4; ++v) {
    bool const entry_copy = (v & 2) != 0;
    Pipeline p((v & 1) != 0 ? options(7, 4, 3, entry_copy) : options(5, 8, 2, entry_copy), 100 + v);
    for (int i = 0; i < 1000; ++i) {
      CAPTURE(v, i);
      for (std::size_t s = 0; s < 3; ++s) {
        if (p.history[s].size() > 300 && !p.in_flight(s)) {
          REQUIRE(p.books.clear(p.slots[s]) == Verdict::accepted);
          p.history[s].truncate(0);
        }
      }
      p.step();
    }
    CHECK(p.commits > 100);
    CHECK(p.partial > 20);
    CHECK(p.failures > 10);
    CHECK(p.forks > 3);
    CHECK(p.pinned > 10);
  }
}

namespace {

/// Opens a batch of one chunk with the next rows of a slot.
Ticket opened(Books& books, Slot slot, std::int32_t rows, std::int32_t unverified = 0) {
  std::vector<Slot> const slots(static_cast<std::size_t>(rows), slot);
  std::vector<Position> positions;
  for (std::int32_t i = 0; i < rows; ++i) positions.push_back(books.head(slot) + i);
  Unverified const u{slot, unverified};
  Ticket t;
  REQUIRE(books.begin({slots.data(), positions.data(), rows, &rows, 1, &u, 1}, t) == Verdict::accepted);
  return t;
}

}  // namespace

TEST_CASE("batches in flight keep what the same batches keep one after another") {
  std::mt19937 random(3);
  auto const pick = [&random](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    std::int32_t const per_token = 2 + pick(8);
    std::int32_t const quantum = 2 + pick(8);
    BooksOptions o = options(per_token, quantum, 1 + pick(4), false);
    o.components = {o.components[1]};
    Books serial(o);
    Books together(o);
    Slot const slot = serial.slot(0);
    for (int group = 0; group < 4; ++group) {
      if (group > 0) {
        Position const p = serial.nearest(slot, serial.tip(slot) - pick(6)).position;
        REQUIRE(serial.roll_back(slot, std::max(p, Position{0})) == Verdict::accepted);
        REQUIRE(together.roll_back(slot, std::max(p, Position{0})) == Verdict::accepted);
      }
      std::vector<Ticket> tickets;
      for (int i = 0; i < 3; ++i) {
        std::int32_t const rows = 1 + pick(12);
        Ticket const t = opened(serial, slot, rows);
        REQUIRE(serial.settle(t, 0) == Verdict::accepted);
        REQUIRE(serial.commit(t, slot, serial.head(slot)) == Verdict::accepted);
        if (i > 0 && pick(2) == 0) {  // the older one may have run by now, and its restore with it
          static_cast<void>(together.settle(tickets.back(), 0));
        }
        tickets.push_back(opened(together, slot, rows));
      }
      for (Ticket const& t : tickets) static_cast<void>(together.settle(t, 0));
      for (std::size_t i = 0; i < 3; ++i) {
        Position accepted = together.tip(slot) + 1;
        while (together.commit(tickets[i], slot, accepted) != Verdict::accepted) ++accepted;
      }
      CAPTURE(round, group);
      REQUIRE(together.tip(slot) == serial.tip(slot));
      REQUIRE(listed(together, slot) == listed(serial, slot));
    }
  }
}

TEST_CASE("a batch may not follow more unverified rows than the per-token tier reaches") {
  BooksOptions o = options(5, 8, 2, false);
  o.components = {o.components[1]};
  Books ring(o);
  std::int32_t const rows = 3;
  Slot const slot = ring.slot(1);
  Ticket const first = opened(ring, slot, rows, 2);
  std::vector<Slot> const slots(4, slot);
  std::vector<Position> const positions{3, 4, 5, 6};
  Ticket second;
  std::int32_t const four = 4;
  refusal::refuses(ring, first, Verdict::too_many_unverified, [&] {
    return ring.begin({slots.data(), positions.data(), 4, &four, 1, nullptr, 0}, second);
  });
  REQUIRE(ring.begin({slots.data(), positions.data(), 3, &rows, 1, nullptr, 0}, second) == Verdict::accepted);
  REQUIRE(ring.settle(second, 0) == Verdict::out_of_order);
  REQUIRE(ring.settle(first, 0) == Verdict::accepted);
  REQUIRE(ring.settle(second, 0) == Verdict::accepted);
  Outcome outcome;
  Outcomes outcomes{&outcome, 1, 0};
  REQUIRE(ring.commit(second, slot, 6) == Verdict::out_of_order);
  REQUIRE(ring.fail(second, 1, BadChunk::may_have_run, outcomes) == Verdict::out_of_order);
  REQUIRE(ring.commit(first, slot, 1) == Verdict::accepted);  // takes the second one with it
  REQUIRE(ring.commit(second, slot, 6) == Verdict::unknown_ticket);
  REQUIRE(ring.tip(slot) == 1);
  REQUIRE(ring.head(slot) == 1);
  REQUIRE(ring.is_armed(slot));
}

TEST_CASE("a late failure keeps what younger batches were known to have run") {
  BooksOptions o = options(5, 8, 2, false);
  o.components = {o.components[1]};
  Books books(o);
  Slot const slot = books.slot(0);
  Ticket const first = opened(books, slot, 4);
  Ticket const second = opened(books, slot, 3);
  REQUIRE(books.settle(first, 0) == Verdict::accepted);
  REQUIRE(books.settle(second, 0) == Verdict::accepted);
  Outcome outcome;
  Outcomes outcomes{&outcome, 1, 0};
  REQUIRE(books.fail(first, 1, BadChunk::never_started, outcomes) == Verdict::accepted);
  REQUIRE(outcomes.count == 1);
  REQUIRE(outcome.tip == 7);
  REQUIRE_FALSE(outcome.armed);
}

TEST_CASE("an entry copy undoes a batch of which nothing is accepted, and what followed it") {
  BooksOptions o = options(5, 8, 2, true);
  o.components = {o.components[1]};
  Books books(o);
  Slot const slot = books.slot(0);
  Ticket const before = opened(books, slot, 4);
  REQUIRE(books.settle(before, 0) == Verdict::accepted);
  REQUIRE(books.commit(before, slot, 4) == Verdict::accepted);
  std::int32_t const place = books.live_place(slot);
  Ticket const first = opened(books, slot, 2, 2);
  static_cast<void>(opened(books, slot, 2));
  REQUIRE(books.settle(first, 0) == Verdict::accepted);
  REQUIRE(books.commit(first, slot, 4) == Verdict::accepted);
  REQUIRE_FALSE(books.is_armed(slot));
  REQUIRE(books.live_place(slot) == place);
}

TEST_CASE("calls that place and share landings change nothing where they are refused") {
  Books books(options(4, 8, 2, false));
  Slot const a = books.slot(0);
  Ticket none;
  auto const refuses = [&](Verdict why, auto const& call) { refusal::refuses(books, none, why, call); };
  Slot const stale{0, 9};
  Slot to = books.slot(1);
  for (std::int32_t id : {-2, 3, 4, INT32_MAX}) {
    Slot unknown{id, 1};
    refuses(Verdict::unknown_slot, [&] { return books.pin(unknown, 1); });
    refuses(Verdict::unknown_slot, [&] { return books.unpin(unknown, 1); });
    refuses(Verdict::unknown_slot, [&] { return books.fork(unknown, 0, to); });
    refuses(Verdict::unknown_slot, [&] { return books.fork(a, 0, unknown); });
    REQUIRE_FALSE(books.is_pinned(unknown, 1));
  }
  refuses(Verdict::stale_slot, [&] { return books.pin(stale, 1); });
  refuses(Verdict::stale_slot, [&] { return books.unpin(stale, 1); });
  refuses(Verdict::stale_slot, [&] { return books.fork(stale, 0, to); });
  refuses(Verdict::negative_position, [&] { return books.pin(a, -1); });
  refuses(Verdict::unknown_pin, [&] { return books.unpin(a, -1); });
  refuses(Verdict::unknown_pin, [&] { return books.unpin(a, 0); });
  refuses(Verdict::ahead_of_tip, [&] { return books.fork(a, 1, to); });
  REQUIRE(books.fork(a, 0, to) == Verdict::accepted);
  REQUIRE(to.generation == 2);
  none = opened(books, a, 1);
  refuses(Verdict::in_flight, [&] { return books.pin(a, 1); });
  refuses(Verdict::in_flight, [&] { return books.fork(a, 0, to); });
}

TEST_CASE("pins and forks that cannot be are refused, and lost landings are named") {
  Books books(options(4, 8, 2, false));
  Slot a = books.slot(0);
  Slot b = books.slot(1);
  auto const feed = [&books](Slot slot, Position rows) {
    for (Position i = 0; i < rows; ++i) {
      Position const p = books.tip(slot);
      std::int32_t const one = 1;
      Ticket t;
      REQUIRE(books.begin({&slot, &p, 1, &one, 1, nullptr, 0}, t) == Verdict::accepted);
      REQUIRE(books.settle(t, 0) == Verdict::accepted);
      REQUIRE(books.commit(t, slot, p + 1) == Verdict::accepted);
    }
  };
  REQUIRE(books.pin(a, 5) == Verdict::accepted);
  REQUIRE_FALSE(books.is_pinned(a, 5));
  feed(a, 30);
  REQUIRE(books.is_pinned(a, 5));
  REQUIRE(books.can_land(a, 5) == Verdict::accepted);
  REQUIRE(books.nearest(a, 7).tier == rollback::Tier::pin);
  REQUIRE(books.pin(a, 9) == Verdict::not_a_boundary);
  REQUIRE(books.pin(a, 31) == Verdict::accepted);
  REQUIRE(books.pin(a, 32) == Verdict::no_free_pin);
  REQUIRE(books.unpin(a, 9) == Verdict::unknown_pin);
  REQUIRE(books.fork(a, 30, b) == Verdict::live_only);
  REQUIRE(books.fork(a, 24, a) == Verdict::same_slot);
  REQUIRE(books.fork(a, 24, b) == Verdict::accepted);
  REQUIRE(b.generation == 2);
  REQUIRE(books.is_armed(b));
  REQUIRE(books.can_land(b, 5) == Verdict::accepted);

  Position const wanted[] = {20, 24, 7};
  rollback::Landing landing;
  REQUIRE(books.nearest_over(wanted, 3, landing) == b);
  REQUIRE(landing.position == 24);
  Position const alike[] = {24, 24};
  REQUIRE(books.nearest_over(alike, 2, landing) == a);  // of equals the first
  REQUIRE(books.unpin(a, 5) == Verdict::accepted);
  Position const believed[] = {5, 16, 24, 29};
  Position lost[4];
  REQUIRE(books.lost(a, believed, 4, lost) == 1);
  REQUIRE(lost[0] == 5);
  REQUIRE(books.can_land(b, 5) == Verdict::accepted);
}

TEST_CASE("a pin of a passed position is not copied while an older batch may give its state up") {
  BooksOptions o = options(4, 4, 1, false);
  o.components = {o.components[1]};
  o.pins = 1;
  Books books(o);
  Slot const slot = books.slot(0);
  auto const done = [&](Ticket const& t, Position accepted) {
    REQUIRE(books.settle(t, 0) == Verdict::accepted);
    REQUIRE(books.commit(t, slot, accepted) == Verdict::accepted);
  };
  REQUIRE(books.pin(slot, 3) == Verdict::accepted);
  done(opened(books, slot, 11), 11);
  rollback::Hold hold;
  REQUIRE(books.hold(slot, 3, hold) == Verdict::accepted);
  REQUIRE(books.unpin(slot, 3) == Verdict::accepted);
  REQUIRE(books.pin(slot, 8) == Verdict::accepted);
  Ticket const older = opened(books, slot, 2, 2);  // the pin waits for its place; 12 takes a spare
  books.release(hold);
  Ticket const younger = opened(books, slot, 2, 2);
  done(older, 13);  // 12 takes the place of 8
  REQUIRE(books.can_land(slot, 12) == Verdict::in_flight);
  done(younger, 15);
  REQUIRE_FALSE(books.is_pinned(slot, 8));
  REQUIRE(books.nearest(slot, 8).position == 0);
}
