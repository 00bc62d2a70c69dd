// Pages that the engine hands out, rule by rule.
#include "books_refusal.hpp"
#include "catch.hpp"
#include "refusal.hpp"
#include "toy_engine.hpp"
#include "toy_fork.hpp"
#include "toy_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace toy;
using rollback::Adopt;
using rollback::Hold;
using rollback::LoadAs;
using rollback::StatePlaces;

namespace {

EngineOptions paged(std::int32_t pages, std::int32_t given, std::int32_t per_token = 3, std::int32_t aligned = 4,
                    std::int32_t slots = 3) {
  EngineOptions o =
      engine_options({with(fold(), per_token, 4, aligned), with(ring8(), per_token, 4, aligned)}, slots, 40, 40);
  o.books.pages = pages;
  o.given = given;
  o.holes = true;
  return o;
}

/// The boundaries that a slot can go back to.
std::vector<Position> boundaries(Engine const& engine, std::size_t s) {
  REQUIRE(engine.check(s) == "");
  std::vector<rollback::Landing> landings(static_cast<std::size_t>(engine.books.landings(engine.slot(s), nullptr, 0)));
  static_cast<void>(engine.books.landings(engine.slot(s), landings.data(), static_cast<std::int32_t>(landings.size())));
  std::vector<Position> out;
  for (rollback::Landing const& landing : landings) {
    if (landing.position % engine.books.component(0).quantum == 0) out.push_back(landing.position);
  }
  return out;
}

std::int32_t free_pages(Engine const& engine) { return engine.books.free_pages(0); }

using Boundaries = std::vector<Position>;

}  // namespace

TEST_CASE("no place of a slot is the aligned tier's where the engine hands pages out") {
  Engine const engine(paged(7, 0));
  for (std::int32_t c = 0; c < 2; ++c) {
    Places const p = engine.books.places(c);
    REQUIRE(p.aligned == 0);
    REQUIRE(p.aligned_spares == 0);
    REQUIRE(p.per_token == 3);
    REQUIRE(engine.books.pages(c) == 7);
  }
  BooksOptions o = paged(7, 0).books;
  o.components.push_back(with(fold(), 3));
  REQUIRE(Books(o).pages(2) == 0);
}

TEST_CASE("a packed row map has its pages behind the places of all slots") {
  Engine engine(paged(5, 5, 0));
  for (std::size_t c = 0; c < 2; ++c) {
    auto const component = static_cast<std::int32_t>(c);
    std::int32_t const rows = engine.books.component(component).geometry.rows;
    RowMap const& m = engine.maps[c];
    REQUIRE(m.page == 3 * engine.books.places(component).total() * rows);
    REQUIRE(m.page_stride == rows);
    REQUIRE(m.fresh == m.page + 5 * rows);
  }
  engine.feed(0, 9, 40);
  RowMap moved = engine.maps[1];
  moved.page = 1000;
  moved.page_stride = 70;
  for (Position p : {4, 8}) {
    StatePlaces places;
    REQUIRE(engine.books.state_at(engine.slot(0), p, 1, moved, places) == Verdict::accepted);
    REQUIRE(places.count == 1);
    REQUIRE((places.rows[0] - 1000) % 70 == 0);
    REQUIRE((places.rows[0] - 1000) / 70 < 5);
    REQUIRE(places.rows[0] >= 1000);
  }
}

TEST_CASE("a boundary that finds no page is a hole, and takes what it would have overwritten with it") {
  Engine engine(paged(8, 2, 0));
  engine.feed(0, 13, 40);
  REQUIRE(boundaries(engine, 0) == Boundaries{4, 8});
  REQUIRE(free_pages(engine) == 0);
  engine.feed(0, 8, 40);  // 16 finds none, 20 takes the place of 4
  REQUIRE(boundaries(engine, 0) == Boundaries{8, 20});
  engine.feed(1, 4, 40);
  REQUIRE(boundaries(engine, 1).empty());
  REQUIRE(engine.books.give_page(0, 5) == Verdict::accepted);
  engine.feed(1, 4, 40);
  REQUIRE(boundaries(engine, 1) == Boundaries{8});
}

TEST_CASE("without a single page only the per-token tier keeps landings") {
  Engine engine(paged(4, 0));
  engine.feed(0, 30, 7);
  REQUIRE(engine.check(0) == "");
  REQUIRE(engine.books.reach(engine.slot(0)) == 27);
  REQUIRE(engine.books.take_page(0) == -1);
}

TEST_CASE("what an evicted boundary had is free, and the next boundary has it") {
  Engine engine(paged(2, 2, 0));
  engine.feed(0, 9, 40);
  REQUIRE(engine.books.evict(engine.slot(0), 4) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 1);
  REQUIRE(boundaries(engine, 0) == Boundaries{8});
  engine.feed(1, 5, 40);
  REQUIRE(boundaries(engine, 1) == Boundaries{4});
  REQUIRE(boundaries(engine, 0) == Boundaries{8});
  REQUIRE(engine.books.evict(engine.slot(1), 4) == Verdict::accepted);
  REQUIRE(engine.books.evict(engine.slot(0), 8) == Verdict::accepted);
  REQUIRE(engine.books.take_page(1) >= 0);  // of the other component, which has the same pages
  REQUIRE(engine.books.take_page(0) >= 0);
  REQUIRE(engine.books.take_page(0) == -1);
}

TEST_CASE("eviction works on places of a slot's own as well") {
  Engine engine(paged(0, 0, 0));
  engine.feed(0, 13, 40);
  REQUIRE(engine.books.evict(engine.slot(0), 8) == Verdict::accepted);
  REQUIRE(boundaries(engine, 0) == Boundaries{4, 12});
  REQUIRE(engine.books.evict(engine.slot(0), 8) == Verdict::beyond_reach);
}

TEST_CASE("a certain boundary overwrites its own page, an unverified one waits on another") {
  Engine engine(paged(8, 2, 3, 1));
  engine.feed(0, 6, 40);
  REQUIRE(free_pages(engine) == 1);
  engine.feed(0, 3, 40);  // 8, in place of 4
  REQUIRE(boundaries(engine, 0) == Boundaries{8});
  REQUIRE(free_pages(engine) == 1);
  engine.feed(0, 4, 40, 2, 0);  // 12 is rejected
  REQUIRE(boundaries(engine, 0) == Boundaries{8});
  REQUIRE(free_pages(engine) == 1);
  engine.feed(0, 3, 40, 3, 3);  // 12 is accepted
  REQUIRE(boundaries(engine, 0) == Boundaries{12});
  REQUIRE(free_pages(engine) == 1);
  REQUIRE(engine.books.take_page(0) >= 0);
  engine.feed(0, 3, 40, 3, 1);  // 16 finds none and is rejected
  REQUIRE(boundaries(engine, 0) == Boundaries{12});
  REQUIRE(free_pages(engine) == 0);
  engine.feed(0, 3, 40, 3, 3);  // it finds none and is accepted: 12 goes, 16 is kept by the per-token tier alone
  REQUIRE(boundaries(engine, 0) == Boundaries{16});
  REQUIRE(free_pages(engine) == 1);
  engine.feed(0, 5, 40);
  REQUIRE(boundaries(engine, 0) == Boundaries{20});
  REQUIRE(free_pages(engine) == 0);
}

TEST_CASE("what is rejected, taken back, failed or cleared frees its pages at once") {
  Engine engine(paged(9, 9));
  engine.feed(0, 17, 40);
  REQUIRE(free_pages(engine) == 5);
  REQUIRE(engine.roll_back(0, 8) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 7);
  REQUIRE(boundaries(engine, 0) == Boundaries{4, 8});
  engine.feed(0, 1, 40);
  engine.feed(0, 3, 40, 3, 0);
  REQUIRE(free_pages(engine) == 7);
  for (BadChunk state : {BadChunk::never_started, BadChunk::ran_last, BadChunk::may_have_run}) {
    Engine failing = engine;
    REQUIRE(failing.begin({0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 4) == Verdict::accepted);
    REQUIRE(failing.books.free_pages(0) == 5);
    REQUIRE(failing.books.take_page(0) >= 0);  // while it is open
    static_cast<void>(failing.fail(0, state));
    REQUIRE(failing.books.free_pages(0) == 6);
    REQUIRE(boundaries(failing, 0) == Boundaries{4, 8});
  }
  REQUIRE(engine.begin({0, 0, 0, 1, 1, 1, 1, 0, 0}, 4) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 5);
  engine.clear(0);
  REQUIRE(free_pages(engine) == 8);
  engine.clear(1);
  REQUIRE(free_pages(engine) == 9);
}

TEST_CASE("a page that is given while a batch is open serves the next batch") {
  Engine engine(paged(3, 0, 0));
  REQUIRE(engine.begin({0, 0, 0, 0, 0}, 40) == Verdict::accepted);
  for (std::int32_t page : {2, 0}) REQUIRE(engine.books.give_page(1, page) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 2);
  for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.run(k), engine.settle(k);
  engine.commit(0, 5);
  REQUIRE(boundaries(engine, 0).empty());
  engine.feed(0, 4, 40);
  REQUIRE(boundaries(engine, 0) == Boundaries{8});
}

TEST_CASE("slots that were forked share pages until the last of them gives one up") {
  Engine engine(paged(6, 6, 0));
  engine.feed(0, 13, 40);
  REQUIRE(fork(engine, 0, 12, 1) == Verdict::accepted);
  REQUIRE(fork(engine, 1, 8, 2) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 3);
  engine.clear(0);
  REQUIRE(free_pages(engine) == 3);
  engine.feed(1, 9, 40);  // 16 and 20; 4 is shared, and left alone
  REQUIRE(free_pages(engine) == 1);
  REQUIRE(boundaries(engine, 1) == Boundaries{8, 12, 16, 20});
  REQUIRE(boundaries(engine, 2) == Boundaries{4, 8});
  REQUIRE(engine.books.evict(engine.slot(1), 8) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 1);
  engine.clear(1);
  REQUIRE(free_pages(engine) == 4);
  engine.clear(2);
  REQUIRE(free_pages(engine) == 6);
}

TEST_CASE("the failure of a batch leaves a slot what it shares") {
  Engine engine(paged(8, 8, 0, 1));
  engine.feed(0, 5, 40);
  REQUIRE(fork(engine, 0, 4, 1) == Verdict::accepted);
  engine.feed(1, 1, 40);
  REQUIRE(engine.begin({1, 1, 1, 1, 1, 1}, 40) == Verdict::accepted);
  engine.run(0);
  Outcome outcome;
  Outcomes outcomes{&outcome, 1, 0};
  REQUIRE(engine.books.fail(engine.ticket, 0, BadChunk::may_have_run, outcomes) == Verdict::accepted);
  REQUIRE(outcome.tip == 4);  // with places of a slot's own it would be 0
  REQUIRE(outcome.armed);
  REQUIRE(boundaries(engine, 0) == Boundaries{4});
  REQUIRE(free_pages(engine) == 7);
}

TEST_CASE("a page that is held is neither written nor taken back until it is released") {
  Engine engine(paged(3, 2, 0, 1));
  engine.feed(0, 5, 40);
  Hold hold;
  REQUIRE(engine.books.hold(engine.slot(0), 4, hold) == Verdict::accepted);
  StatePlaces read;
  REQUIRE(engine.books.state_at(engine.slot(0), 4, 0, engine.maps[0], read) == Verdict::accepted);
  engine.feed(0, 4, 40);
  StatePlaces next;
  REQUIRE(engine.books.state_at(engine.slot(0), 8, 0, engine.maps[0], next) == Verdict::accepted);
  REQUIRE(next.rows[0] != read.rows[0]);
  REQUIRE(free_pages(engine) == 0);  // one is kept, one is held
  engine.clear(0);
  REQUIRE(free_pages(engine) == 1);
  REQUIRE(engine.books.take_page(0) >= 0);
  REQUIRE(engine.books.take_page(0) == -1);
  engine.feed(1, 5, 40);
  REQUIRE(boundaries(engine, 1).empty());
  engine.books.release(hold);
  REQUIRE(free_pages(engine) == 1);
  engine.feed(1, 4, 40);
  REQUIRE(boundaries(engine, 1) == Boundaries{8});
}

TEST_CASE("the source of an armed restore is not evicted, nor overwritten by the batch that restores it") {
  Engine engine(paged(3, 2, 0, 1));
  engine.feed(0, 6, 40);
  REQUIRE(engine.roll_back(0, 4) == Verdict::accepted);
  refusal::refuses(engine.books, {}, Verdict::restore_armed, [&] { return engine.books.evict(engine.slot(0), 4); });
  REQUIRE(engine.begin({0, 0, 0, 0, 0}, 40) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 0);
  Engine failing = engine;
  static_cast<void>(failing.fail(0, BadChunk::may_have_run));
  REQUIRE(failing.books.is_armed(failing.slot(0)));
  REQUIRE(boundaries(failing, 0) == Boundaries{4});
  for (std::int32_t k = 0; k < engine.chunks(); ++k) engine.run(k), engine.settle(k);
  engine.commit(0, 9);
  REQUIRE(boundaries(engine, 0) == Boundaries{8});
  REQUIRE(free_pages(engine) == 1);
  REQUIRE(engine.books.evict(engine.slot(0), 8) == Verdict::accepted);
}

TEST_CASE("components of one quantum and depth have their pages together, others apart") {
  BooksOptions o = paged(4, 0, 3).books;
  o.components = {with(fold(), 3, 4, 2), with(ring8(), 9, 4, 2), with(ring8(), 3, 4, 3), with(fold(), 3, 8, 2)};
  Books books(o);
  REQUIRE(books.give_page(1, 3) == Verdict::accepted);
  REQUIRE(books.give_page(0, 3) == Verdict::page_given);
  REQUIRE(books.give_page(2, 3) == Verdict::accepted);
  REQUIRE(books.give_page(2, 1) == Verdict::accepted);
  std::vector<std::int32_t> const free{1, 1, 2, 0};
  for (std::int32_t c = 0; c < 4; ++c) REQUIRE(books.free_pages(c) == free[static_cast<std::size_t>(c)]);
  REQUIRE(books.take_page(0) == 3);
  REQUIRE(books.free_pages(1) == 0);
  REQUIRE(books.take_page(3) == -1);
  REQUIRE(books.give_page(1, 3) == Verdict::accepted);  // as often as it was taken back
}

TEST_CASE("pages that are not there are refused, and evictions where nothing is") {
  EngineOptions o = paged(4, 3);
  o.books.components.push_back(with(trail(), 3, 0, 0, 4));
  Engine engine(o);
  engine.feed(0, 10, 40);
  Books& books = engine.books;
  auto const refuses = [&](Verdict why, auto const& call) { refusal::refuses(books, engine.ticket, why, call); };
  for (std::int32_t c : {-1, 3, INT32_MIN, INT32_MAX}) {
    refuses(Verdict::unknown_component, [&] { return books.give_page(c, 3); });
    REQUIRE(books.take_page(c) == -1);
    REQUIRE(books.free_pages(c) == 0);
  }
  for (std::int32_t page : {-1, 4, INT32_MIN, INT32_MAX}) {
    refuses(Verdict::unknown_page, [&] { return books.give_page(0, page); });
  }
  refuses(Verdict::unknown_page, [&] { return books.give_page(2, 3); });  // no aligned tier
  for (std::int32_t page : {0, 1, 2}) refuses(Verdict::page_given, [&] { return books.give_page(1, page); });
  REQUIRE(books.give_page(0, 3) == Verdict::accepted);

  refuses(Verdict::unknown_slot, [&] { return books.evict(Slot{3, 1}, 4); });
  refuses(Verdict::stale_slot, [&] { return books.evict(Slot{0, 2}, 4); });
  refuses(Verdict::negative_position, [&] { return books.evict(engine.slot(0), -1); });
  refuses(Verdict::ahead_of_tip, [&] { return books.evict(engine.slot(0), 11); });
  for (Position p : {0, 1, 5, 9, 10}) refuses(Verdict::beyond_reach, [&] { return books.evict(engine.slot(0), p); });
  REQUIRE(engine.begin({0}, 1) == Verdict::accepted);
  refuses(Verdict::in_flight, [&] { return books.evict(engine.slot(0), 4); });

  Books own(paged(0, 0).books);
  REQUIRE(own.give_page(0, 0) == Verdict::unknown_page);
  REQUIRE(own.take_page(0) == -1);
  REQUIRE(own.free_pages(0) == 0);
}

TEST_CASE("more pages than lists can name are refused, and a negative number of them") {
  auto const refusal_of = [](std::int32_t pages) {
    return refusal_with<std::invalid_argument>([pages] { static_cast<void>(Books::bytes(paged(pages, 0).books)); });
  };
  REQUIRE(refusal_of(0).empty());
  REQUIRE(refusal_of(-1).find("pages") != std::string::npos);
  REQUIRE(refusal_of(-1).find("at least 1, or 0") != std::string::npos);
  // RING8: a live plane, three states and a spare a slot; chunks of 40 rows.
  std::int32_t const most = ((1 << 30) - 40) / 8 - 3 * 5;
  REQUIRE(refusal_of(most).empty());
  REQUIRE(refusal_of(most + 1).find("pages * geometry.rows") != std::string::npos);
  REQUIRE(refusal_of(INT32_MAX).find("2^30") != std::string::npos);
  BooksOptions o = paged(INT32_MAX, 0).books;
  for (Component& c : o.components) c.aligned = 0;  // nobody has pages
  REQUIRE(refusal_with<std::invalid_argument>([&o] { static_cast<void>(Books::bytes(o)); }).empty());
}

TEST_CASE("no chunk keeps more boundaries than there are pages, and the worst shape says so") {
  EngineOptions o = paged(3, 3, 0, 8);
  Engine const few(o);
  o.books.pages = 100;
  Engine const many(o);
  REQUIRE(few.books.worst_shape(40, 3).components[0].snapshots == 4);
  REQUIRE(many.books.worst_shape(40, 3).components[0].snapshots == 16);  // 40 / 4 + 3
  REQUIRE(many.books.worst_shape(40, 1).components[0].snapshots == 16);  // at most 8 + 1 are kept of a slot
}

TEST_CASE("a loaded sequence keeps the newest boundaries that there are pages for") {
  Engine source(paged(8, 8, 0));
  source.feed(0, 18, 40);
  Blob blob;
  REQUIRE(save(source, 0, 18, blob) == Verdict::accepted);
  std::vector<Position> const landings = saved_landings(source, 0, 18);
  for (std::int32_t given : {0, 1, 3, 8}) {
    Engine other(paged(8, given, 0));
    other.feed(1, 5, 40);
    REQUIRE(load(other, 0, blob, source.history[0], 18, landings) == Verdict::accepted);
    Boundaries const all{4, 8, 12, 16};
    auto const kept = static_cast<std::ptrdiff_t>(std::min(std::max(given - 1, 0), 4));
    REQUIRE(free_pages(other) == std::max(given - 5, 0));
    REQUIRE(boundaries(other, 0) == Boundaries(all.end() - kept, all.end()));
    other.clear(0);
    REQUIRE(free_pages(other) == std::max(given - 1, 0));
  }
}

TEST_CASE("a landing that is brought needs a page, and takes none that somebody reads") {
  Engine source(paged(8, 8, 0));
  source.feed(0, 8, 40);
  Blob blob;
  REQUIRE(save(source, 0, 8, blob) == Verdict::accepted);
  Engine other(paged(2, 1, 0));
  other.feed(1, 5, 40);
  REQUIRE(other.books.adopt(other.slot(0), 8, Adopt::tiers) == Verdict::no_free_page);
  Slot const before = other.slot(0);
  ToyLayout const toy(other.books, other.maps, other.window_maps);
  StateSource bytes{other.storage, blob};
  REQUIRE(rollback::load(other.books, other.slots[0], toy.layout, LoadAs::landing, bytes) == Verdict::no_free_page);
  REQUIRE(other.slot(0) != before);
  REQUIRE(other.books.tip(other.slot(0)) == 0);
  REQUIRE(other.books.give_page(0, 1) == Verdict::accepted);
  REQUIRE(load(other, 0, blob, source.history[0], 8, {}, LoadAs::landing) == Verdict::accepted);
  REQUIRE(free_pages(other) == 0);
  REQUIRE(boundaries(other, 0) == Boundaries{8});
  // Again, where it is: not while it is held.
  REQUIRE(other.books.adopt(other.slot(0), 8, Adopt::tiers) == Verdict::accepted);
  Hold hold;
  REQUIRE(other.books.hold(other.slot(0), 8, hold) == Verdict::accepted);
  REQUIRE(other.books.adopt(other.slot(0), 8, Adopt::tiers) == Verdict::no_free_page);
  REQUIRE(other.books.adopt(other.slot(0), 24, Adopt::tiers) == Verdict::no_free_page);
  other.books.release(hold);
  REQUIRE(other.books.adopt(other.slot(0), 24, Adopt::tiers) == Verdict::accepted);  // in place of 8
  REQUIRE(free_pages(other) == 0);
}

TEST_CASE("an evicted boundary that the per-token tier has too stays a landing") {
  Engine engine(paged(4, 4));
  engine.feed(0, 9, 40);
  REQUIRE(engine.books.evict(engine.slot(0), 8) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 3);
  REQUIRE(boundaries(engine, 0) == Boundaries{4, 8});
}

TEST_CASE("a landing that is brought leaves alone what others share or read") {
  Engine engine(paged(3, 3, 0, 1));
  engine.feed(0, 5, 40);
  REQUIRE(engine.roll_back(0, 4) == Verdict::accepted);
  REQUIRE(fork(engine, 0, 4, 1) == Verdict::accepted);
  engine.feed(1, 2, 40);
  REQUIRE(free_pages(engine) == 2);
  auto const row_of = [&engine](std::size_t s, Position p) {
    StatePlaces places;
    REQUIRE(engine.books.state_at(engine.slot(s), p, 0, engine.maps[0], places) == Verdict::accepted);
    REQUIRE(places.count == 1);
    return places.rows[0];
  };
  std::int64_t const shared = row_of(0, 4);
  REQUIRE(row_of(1, 4) == shared);
  REQUIRE(engine.books.adopt(engine.slot(1), 8, Adopt::tiers) == Verdict::accepted);
  REQUIRE(row_of(1, 8) != shared);
  REQUIRE(row_of(0, 4) == shared);
  Hold hold;
  REQUIRE(engine.books.hold(engine.slot(1), 8, hold) == Verdict::accepted);
  std::int64_t const read = row_of(1, 8);
  REQUIRE(engine.books.adopt(engine.slot(1), 12, Adopt::tiers) == Verdict::accepted);
  REQUIRE(row_of(1, 12) != read);
  REQUIRE(free_pages(engine) == 0);
  engine.books.release(hold);
  REQUIRE(free_pages(engine) == 1);
}

TEST_CASE("a slot that goes on from a state far ahead gives up what is too old there") {
  Engine engine(paged(6, 4, 0));
  engine.feed(0, 17, 40);
  REQUIRE(free_pages(engine) == 0);
  REQUIRE(engine.books.adopt(engine.slot(0), 26, Adopt::live) == Verdict::accepted);  // keeps 12 .. 24
  REQUIRE(free_pages(engine) == 2);
  REQUIRE(engine.books.adopt(engine.slot(0), 900, Adopt::live) == Verdict::accepted);
  REQUIRE(free_pages(engine) == 4);
}
