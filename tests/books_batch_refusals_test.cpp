// Refused batches, plans, settles, commits and failures: what provokes each, and that nothing has changed after it.
#include "books_refusal.hpp"
#include "catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

using rollback::ComponentShape;
using rollback::Lists;
using namespace refusal;

TEST_CASE("an open batch refuses its slots and every other batch") {
  Desk desk(true);
  Books& books = desk.books;
  Ticket other{9, 9};
  std::int32_t bad_row = 77;
  for (std::int32_t settled = 0; settled < 4; ++settled) {
    for (Slot slot : {books.slot(0), books.slot(1)}) {
      for (Position p : {Position{-1}, Position{0}, books.tip(slot), books.head(slot), INT64_MAX}) {
        desk.refuses(Verdict::in_flight, [&] { return books.roll_back(slot, p); });
      }
    }
    BatchRows const rows(books);
    desk.refuses(Verdict::too_many_in_flight, [&] { return books.begin(rows.batch(), other, &bad_row); });
    REQUIRE(books.settle(desk.ticket, settled) == Verdict::accepted);
  }
  REQUIRE(bad_row == -1);
  REQUIRE(other.serial == 9);
  REQUIRE(books.roll_back(books.slot(2), 0) == Verdict::accepted);  // has no rows in it
  REQUIRE(books.commit(desk.ticket, books.slot(0), 32) == Verdict::accepted);
  REQUIRE(books.roll_back(books.slot(0), 31) == Verdict::accepted);  // has no open rows in it any more
  desk.refuses(Verdict::in_flight, [&] { return books.roll_back(books.slot(1), 11); });
  REQUIRE(books.begin(BatchRows(books).batch(), other) == Verdict::too_many_in_flight);
  REQUIRE(books.commit(desk.ticket, books.slot(1), 15) == Verdict::accepted);
  REQUIRE(books.roll_back(books.slot(1), 14) == Verdict::accepted);
}

TEST_CASE("a slot that is cleared while its batch is open leaves padding in it") {
  for (std::int32_t settled = 0; settled <= 4; ++settled) {
    Desk desk(true);
    Books& books = desk.books;
    Slot const old = books.slot(0);
    Slot slot = old;
    desk.settle(settled);
    REQUIRE(books.clear(slot) == Verdict::accepted);
    REQUIRE(slot == Slot{0, old.generation + 1});

    Desk padded(false);  // cleared before, with padding where the rows were
    BatchRows rows(padded.books);
    for (Slot& s : rows.slots) s = s == old ? Slot{} : s;
    rows.unverified[0] = {rows.slots[6], 0};
    rows.unverified_count = 1;
    Slot same = old;
    REQUIRE(padded.books.clear(same) == Verdict::accepted);
    REQUIRE(padded.books.begin(rows.batch(), padded.ticket) == Verdict::accepted);
    padded.settle(settled);
    bool const is_padding = everything(books, desk.ticket) == everything(padded.books, padded.ticket) &&
                            future(books, desk.ticket, false) == future(padded.books, padded.ticket, false) &&
                            future(books, desk.ticket, true) == future(padded.books, padded.ticket, true);
    REQUIRE(is_padding);

    for (std::int32_t k = settled; k < 4; ++k) REQUIRE(books.settle(desk.ticket, k) == Verdict::accepted);
    desk.refuses(Verdict::stale_slot, [&] { return books.commit(desk.ticket, old, 34); });
    desk.refuses(Verdict::slot_not_open, [&] { return books.commit(desk.ticket, slot, 0); });
    Slot last = books.slot(1);
    Slot const stale = last;
    REQUIRE(books.clear(last) == Verdict::accepted);  // nothing is open any more
    desk.refuses(Verdict::unknown_ticket, [&] { return books.commit(desk.ticket, stale, 15); });
    REQUIRE(feed(books, slot, 5) == Verdict::accepted);
  }
}

TEST_CASE("a batch is refused with the first row that is wrong") {
  Desk desk(false);
  Books& books = desk.books;
  BatchRows const good(books);
  auto const refused = [&](Verdict why, std::int32_t row, std::function<void(BatchRows&)> const& spoil) {
    BatchRows bad = good;
    spoil(bad);
    Ticket ticket{5, 123};
    std::int32_t bad_row = 77;
    CAPTURE(row);
    desk.refuses(why, [&] { return books.begin(bad.batch(), ticket, &bad_row); });
    REQUIRE(bad_row == row);
    desk.refuses(why, [&] { return books.begin(bad.batch(), ticket); });
    REQUIRE(ticket.index == 5);
    REQUIRE(ticket.serial == 123);
  };
  refused(Verdict::unknown_slot, 4, [](BatchRows& r) { r.slots[4].index = 3; });
  refused(Verdict::unknown_slot, 0, [](BatchRows& r) { r.slots[0].index = INT32_MAX; });
  refused(Verdict::stale_slot, 9, [](BatchRows& r) { r.slots[9].generation = 0; });
  refused(Verdict::stale_slot, 10, [](BatchRows& r) { ++r.slots[10].generation; });
  refused(Verdict::negative_position, 0, [](BatchRows& r) { r.positions[0] = -1; });
  refused(Verdict::negative_position, 5, [](BatchRows& r) { r.positions[5] = INT64_MIN; });
  refused(Verdict::position_repeated, 0, [](BatchRows& r) { r.positions[0] = 27; });
  refused(Verdict::position_repeated, 11, [](BatchRows& r) { r.positions[11] = 13; });
  refused(Verdict::position_gap, 0, [](BatchRows& r) { r.positions[0] = 29; });
  refused(Verdict::position_gap, 11, [](BatchRows& r) { r.positions[11] = INT64_MAX; });
  refused(Verdict::position_gap, 6, [](BatchRows& r) { r.slots[4].index = INT32_MIN; });  // row 4 is padding now
  refused(Verdict::beyond_context, 11, [](BatchRows& r) { r.slots[11] = r.slots[0], r.positions[11] = 34; });
  refused(Verdict::no_rows, -1, [](BatchRows& r) { r.slots.fill(Slot{-5, 1}); });
  for (std::int32_t n : {0, -1, INT32_MIN}) {
    refused(Verdict::no_rows, -1, [n](BatchRows& r) { r.rows = n; });
    refused(Verdict::bad_chunk_ends, -1, [n](BatchRows& r) { r.chunks = n; });
  }
  for (std::int32_t n : {max_rows + 1, INT32_MAX}) {
    refused(Verdict::batch_too_large, -1, [n](BatchRows& r) { r.rows = n; });
    refused(Verdict::batch_too_large, -1, [n](BatchRows& r) { r.chunks = n; });
  }
  using Ends = std::array<std::int32_t, 4>;
  refused(Verdict::batch_too_large, -1, [](BatchRows& r) { r.ends = Ends{chunk_rows + 1, 10, 11, 12}; });
  for (Ends ends : {Ends{5, 7, 10, 11}, Ends{5, 7, 10, 13}, Ends{0, 7, 10, 12}, Ends{-1, 7, 10, 12}, Ends{5, 5, 10, 12},
                    Ends{7, 5, 10, 12}, Ends{5, 7, 13, 12}, Ends{5, 7, INT32_MAX, 12}, Ends{5, INT32_MIN, 10, 12}}) {
    refused(Verdict::bad_chunk_ends, -1, [ends](BatchRows& r) { r.ends = ends; });
  }
  for (Ends ends : {Ends{7, 10, 12}, Ends{5, 7, 12}}) {
    refused(Verdict::cut_needed, -1, [ends](BatchRows& r) { r.chunks = 3, r.ends = ends; });
  }
  for (std::int32_t n : {-1, INT32_MIN, 5, INT32_MAX}) {  // it has 4
    refused(Verdict::bad_unverified, -1, [n](BatchRows& r) { r.unverified[1].rows = n; });
  }
  for (std::int32_t n : {-1, INT32_MIN}) {
    refused(Verdict::bad_unverified, -1, [n](BatchRows& r) { r.unverified_count = n; });
  }
  refused(Verdict::bad_unverified, -1, [](BatchRows& r) { r.unverified[1].slot = r.slots[0]; });  // twice
  refused(Verdict::bad_unverified, -1, [&](BatchRows& r) { r.unverified[1].slot = books.slot(2); });
  refused(Verdict::too_many_unverified, -1, [](BatchRows& r) { r.unverified[0].rows = 4; });
  refused(Verdict::unknown_slot, -1, [](BatchRows& r) { r.unverified[1].slot.index = -1; });
  refused(Verdict::unknown_slot, -1, [](BatchRows& r) { r.unverified[1].slot.index = INT32_MAX; });
  refused(Verdict::stale_slot, -1, [](BatchRows& r) { r.unverified[1].slot.generation = 0; });

  BatchRows most = good;
  most.unverified = {Unverified{good.slots[0], 3}, Unverified{good.slots[4], 3}};
  std::int32_t bad_row = 77;
  REQUIRE(books.begin(most.batch(), desk.ticket, &bad_row) == Verdict::accepted);
  REQUIRE(bad_row == -1);
}

TEST_CASE("tickets that are not open are refused everywhere") {
  Desk desk(true);
  Books& books = desk.books;
  Shape shape;
  Lists lists;
  Outcomes outcomes;
  shape.rows = lists.restores = outcomes.count = 77;
  auto const refused = [&](Ticket ticket) {
    Verdict const why = Verdict::unknown_ticket;
    CAPTURE(ticket.index, ticket.serial);
    desk.refuses(why, [&] { return books.shape(ticket, 0, shape); });
    desk.refuses(why, [&] { return books.plan(ticket, 0, 0, shape, row_map(books, 0), lists); });
    desk.refuses(why, [&] { return books.settle(ticket, 0); });
    desk.refuses(why, [&] { return books.commit(ticket, books.slot(0), books.head(books.slot(0))); });
    desk.refuses(why, [&] { return books.fail(ticket, 0, BadChunk::may_have_run, outcomes); });
    REQUIRE(Seen{shape.rows, lists.restores, outcomes.count} == Seen{77, 77, 77});
  };
  Ticket const open = desk.ticket;
  refused({});
  for (std::int32_t index : {-1, 1, INT32_MAX, INT32_MIN}) refused({index, open.serial});
  for (std::uint32_t serial : {0u, open.serial - 1, open.serial + 1, UINT32_MAX}) refused({0, serial});
  desk.settle(4);
  REQUIRE(books.commit(open, books.slot(0), 32) == Verdict::accepted);
  REQUIRE(books.commit(open, books.slot(1), 15) == Verdict::accepted);
  refused(open);
  BatchRows next(books);
  next.rows = next.ends[0] = next.chunks = 1;
  next.unverified_count = 0;
  REQUIRE(books.begin(next.batch(), desk.ticket) == Verdict::accepted);
  refused(open);
  desk.settle(1);
  REQUIRE(books.commit(desk.ticket, books.slot(0), 33) == Verdict::accepted);
}

TEST_CASE("a plan is refused for a chunk or component that is not there and for a shape too small by one") {
  Desk desk(true);
  Books const& books = desk.books;
  std::array<std::int32_t, 64> memory;
  memory.fill(77);
  auto const refused = [&](Verdict why, std::int32_t chunk, std::int32_t component, Shape const& shape) {
    Lists lists;
    lists.restore_source = lists.snapshot_source = lists.persist_source = memory.data();
    lists.restores = lists.snapshots = lists.persists = lists.blocks = 77;
    CAPTURE(chunk, component);
    desk.refuses(why, [&] { return books.plan(desk.ticket, chunk, component, shape, row_map(books, 0), lists); });
    REQUIRE(Seen{lists.restores, lists.snapshots, lists.persists, lists.blocks} == Seen{77, 77, 77, 77});
    REQUIRE(std::count(memory.begin(), memory.end(), 77) == 64);
  };
  Shape const worst = books.worst_shape(chunk_rows, 3);
  for (std::int32_t beyond : {-1, 4, INT32_MIN, INT32_MAX}) {
    Shape shape = worst;
    desk.refuses(Verdict::unknown_chunk, [&] { return books.shape(desk.ticket, beyond, shape); });
    REQUIRE(shape == worst);
    refused(Verdict::unknown_chunk, beyond, 0, worst);
    refused(Verdict::unknown_component, 0, beyond == 4 ? 2 : beyond, worst);
    REQUIRE(books.lengths(beyond, worst).restores == 0);
  }
  std::array<int, 4> provoked{};
  for (std::int32_t i = 0; i < 8; ++i) {
    std::int32_t const chunk = i / 2;
    std::int32_t const c = i % 2;
    Lists used;
    Shape exact;
    REQUIRE(books.shape(desk.ticket, chunk, exact) == Verdict::accepted);
    REQUIRE(books.plan(desk.ticket, chunk, c, exact, row_map(books, c), used) == Verdict::accepted);
    exact.components[c] = {used.restores, used.snapshots, used.blocks};
    REQUIRE(books.plan(desk.ticket, chunk, c, exact, row_map(books, c), used) == Verdict::accepted);
    for (std::size_t what = 0; what < provoked.size(); ++what) {
      Shape small = exact;
      ComponentShape& room = small.components[c];
      std::array<std::int32_t*, 4> const counts{&small.rows, &room.restores, &room.snapshots, &room.blocks};
      if (--*counts[what] < 0) continue;
      ++provoked[what];
      refused(Verdict::shape_too_small, chunk, c, small);
    }
  }
  for (int times : provoked) REQUIRE(times > 0);
}

TEST_CASE("chunks settle in order and once, and cannot be the first bad one afterwards") {
  Desk desk(true);
  Books& books = desk.books;
  std::array<Outcome, 3> data;
  data.fill({Slot{}, 77, false, 77});
  Outcomes outcomes{data.data(), 3, 77};
  for (std::int32_t settled = 0; settled <= 4; ++settled) {
    BadChunk const state = settled % 2 == 0 ? BadChunk::may_have_run : BadChunk::never_started;
    for (std::int32_t chunk : {-1, 5, INT32_MIN, INT32_MAX, 4}) {
      desk.refuses(Verdict::unknown_chunk, [&] { return books.settle(desk.ticket, chunk); });
      if (chunk == 4) break;  // the number of chunks: all ran, but the engine will not commit
      desk.refuses(Verdict::unknown_chunk, [&] { return books.fail(desk.ticket, chunk, state, outcomes); });
    }
    for (std::int32_t chunk = 0; chunk < 4; ++chunk) {
      if (chunk != settled) desk.refuses(Verdict::out_of_order, [&] { return books.settle(desk.ticket, chunk); });
    }
    for (std::int32_t chunk = 0; chunk < settled; ++chunk) {
      desk.refuses(Verdict::below_settled, [&] { return books.fail(desk.ticket, chunk, state, outcomes); });
    }
    for (std::int32_t chunk = settled; chunk <= 4; ++chunk) {
      Books copy = books;
      Outcomes none;
      REQUIRE(copy.fail(desk.ticket, chunk, state, none) == Verdict::accepted);
      refuses(copy, desk.ticket, Verdict::unknown_ticket, [&] { return copy.settle(desk.ticket, settled); });
    }
    if (settled < 4) REQUIRE(books.settle(desk.ticket, settled) == Verdict::accepted);
  }
  REQUIRE(Seen{outcomes.count, data[0].tip} == Seen{77, 77});
}

TEST_CASE("a slot commits within its rows, once, after all chunks with rows of it") {
  Desk desk(true);
  Books& books = desk.books;
  Slot const slot = books.slot(0);
  for (std::int32_t settled = 0; settled < 4; ++settled) {
    for (Position p : {28, 32, 34, 35}) {
      desk.refuses(Verdict::not_settled, [&] { return books.commit(desk.ticket, slot, p); });
    }
    REQUIRE(books.settle(desk.ticket, settled) == Verdict::accepted);
  }
  for (Position p : {Position{28}, Position{31}, Position{35}, Position{-1}, INT64_MIN, INT64_MAX}) {
    desk.refuses(Verdict::outside_batch, [&] { return books.commit(desk.ticket, slot, p); });
  }
  desk.refuses(Verdict::slot_not_open, [&] { return books.commit(desk.ticket, books.slot(2), 0); });
  for (Position p : {32, 33, 34}) {
    Books copy = books;
    REQUIRE(copy.commit(desk.ticket, slot, p) == Verdict::accepted);
    REQUIRE(copy.tip(slot) == p);
    refuses(copy, desk.ticket, Verdict::slot_not_open, [&] { return copy.commit(desk.ticket, slot, p); });
    REQUIRE(copy.commit(desk.ticket, copy.slot(1), 15) == Verdict::accepted);
    refuses(copy, desk.ticket, Verdict::unknown_ticket, [&] { return copy.commit(desk.ticket, copy.slot(1), 15); });
  }

  Desk apart(false);  // slot 0 in the first chunk, slot 1 in the second
  BatchRows two(apart.books);
  two.rows = two.chunks = 2;
  two.slots[1] = two.slots[4];
  two.positions[1] = two.positions[4];
  two.ends = {1, 2};
  two.unverified_count = 0;
  REQUIRE(apart.books.begin(two.batch(), apart.ticket) == Verdict::accepted);
  apart.refuses(Verdict::not_settled, [&] { return apart.books.commit(apart.ticket, two.slots[0], 29); });
  apart.settle(1);
  apart.refuses(Verdict::not_settled, [&] { return apart.books.commit(apart.ticket, two.slots[1], 12); });
  REQUIRE(apart.books.commit(apart.ticket, two.slots[0], 29) == Verdict::accepted);
}

TEST_CASE("outcomes are all counted, and as many written as there is room for") {
  Desk desk(true);
  for (std::int32_t capacity : {INT32_MIN, -1, 0, 1, 2, 3}) {
    Books books = desk.books;
    std::array<Outcome, 3> data;
    data.fill({Slot{}, 77, false, 77});
    Outcomes outcomes{data.data(), capacity, 77};
    REQUIRE(books.fail(desk.ticket, 0, BadChunk::may_have_run, outcomes) == Verdict::accepted);
    REQUIRE(outcomes.count == 2);
    for (std::int32_t i = 0; i < 3; ++i) {
      bool const written = i < std::min(capacity, 2);
      Outcome const& o = data[static_cast<std::size_t>(i)];
      Slot const slot = books.slot(i);
      REQUIRE(o.slot == (written ? slot : Slot{}));
      REQUIRE(Seen{o.tip, o.reach} == (written ? Seen{books.tip(slot), books.reach(slot)} : Seen{77, 77}));
      REQUIRE(o.armed == (written && books.is_armed(slot)));
    }
  }
}
