// Refused landings and slots: what provokes each refusal, and that nothing has changed after it.
#include "books_refusal.hpp"
#include "catch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using rollback::ComponentShape;
using rollback::Lists;
using namespace refusal;

TEST_CASE("the question and the act agree on every position of every state") {
  BooksOptions o = options();
  o.max_context = 0;
  o.entry_copy = GENERATE(false, true);
  Books books(o);
  Feed feed(books, max_rows, chunk_rows);
  std::mt19937 random(3);
  Ticket ticket;
  auto const check = [&] {
    Books refused = books;
    for (std::int32_t s = 0; s < 3; ++s) {
      Slot const slot = books.slot(s);
      Position const tip = books.tip(slot);
      Position newest = 0;
      for (Position p = -2; p <= tip + 3; ++p) {
        Landing const landing = books.nearest(slot, p);
        Verdict const verdict = books.can_land(slot, p);
        Books copy = books;
        bool const agree = landing.why == verdict && copy.roll_back(slot, p) == verdict;
        if (verdict == Verdict::accepted) newest = p;
        bool const landed = copy.tip(slot) == p && copy.is_armed(slot) == (p == tip ? books.is_armed(slot) : p > 0);
        bool const right = verdict == Verdict::accepted ? landed : refused.roll_back(slot, p) == verdict;
        bool const in_flight = books.head(slot) != tip;
        bool const near = in_flight ? landing.position == -1 && verdict == Verdict::in_flight
                                    : landing.position == newest && landing.replay == std::max(p, Position{0}) - newest;
        bool const named = (landing.limited_by >= 0) == (verdict >= Verdict::not_a_boundary);
        CAPTURE(s, p, tip, text(verdict), agree, right, near, named);
        bool const all = agree && right && near && named;
        REQUIRE(all);
      }
    }
    bool const untouched = everything(refused, ticket) == everything(books, ticket);
    REQUIRE(untouched);
  };
  for (int round = 0; round < 150; ++round) {
    Slot slot = books.slot(static_cast<std::int32_t>(random() % 3));
    auto const any = static_cast<Position>(random() % 20);
    if (books.tip(slot) > 60) REQUIRE(books.clear(slot) == Verdict::accepted);
    Position const p = books.nearest(slot, std::max(books.tip(slot) - any, Position{0})).position;
    if (random() % 3 == 0) REQUIRE(books.roll_back(slot, p) == Verdict::accepted);
    auto const step = [&](FeedChunk const& chunk) {
      ticket = chunk.ticket;
      if (chunk.index == 0) check();
      return random() % 12 != 0;
    };
    auto const unverified = static_cast<std::int32_t>(random() % 4);
    auto const accept = [&] { return books.head(slot) - unverified / 2; };
    Verdict const verdict =
        feed.verify(slot, unverified + 1 + static_cast<std::int32_t>(any), unverified, step, accept);
    bool const fed = verdict == Verdict::accepted || verdict == Verdict::chunk_failed;
    REQUIRE(fed);
    check();
  }
}

TEST_CASE("a refused rollback names the reason, the component that limits and the nearest landing") {
  struct Case {
    Position p;
    Verdict why;
    std::string by;
    Position nearest;
  };
  Books books(options());
  Slot const slot = books.slot(0);
  REQUIRE(feed(books, slot, 30) == Verdict::accepted);
  for (Case const& c : std::vector<Case>{
           {-1, Verdict::negative_position, "", 0},
           {INT64_MIN, Verdict::negative_position, "", 0},
           {31, Verdict::ahead_of_tip, "", 30},
           {INT64_MAX, Verdict::ahead_of_tip, "", 30},
           {26, Verdict::not_a_boundary, "FOLD", 24},
           {20, Verdict::not_a_boundary, "RING8", 0},  // below 24 the window has lost its rows
           {16, Verdict::window_not_covered, "raw", 0},
           {8, Verdict::beyond_reach, "RING8", 0},
           {4, Verdict::beyond_reach, "FOLD", 0},
       }) {
    CAPTURE(c.p);
    Landing const landing = books.nearest(slot, c.p);
    REQUIRE(landing.why == c.why);
    REQUIRE(books.name(landing.limited_by) == c.by);
    REQUIRE(landing.position == c.nearest);
    refuses(books, {}, c.why, [&] { return books.roll_back(slot, c.p); });
  }
  REQUIRE(books.roll_back(slot, 28) == Verdict::accepted);  // the states at 25 and 26 had given way to 28 and 29
  for (Position p : {23, 25, 26}) {
    Verdict const why = p < 28 - 3 ? Verdict::not_a_boundary : Verdict::beyond_reach;
    refuses(books, {}, why, [&] { return books.roll_back(slot, p); });
  }
  REQUIRE(books.roll_back(slot, 24) == Verdict::accepted);
}

TEST_CASE("where no component keeps a lattice a position below the tip is beyond reach") {
  Books books(options({with(fold(), 2), fold()}));
  Slot const slot = books.slot(0);
  REQUIRE(feed(books, slot, 12) == Verdict::accepted);
  for (Position p = 1; p < 12; ++p) {
    refuses(books, {}, Verdict::beyond_reach, [&] { return books.roll_back(slot, p); });
    REQUIRE(books.nearest(slot, p).limited_by == (p < 10 ? 0 : 1));
  }
  REQUIRE(books.roll_back(slot, 0) == Verdict::accepted);
}

TEST_CASE("slots that are unknown or stale are refused everywhere") {
  Desk desk(true);
  desk.settle(4);
  Books& books = desk.books;
  for (std::int32_t index : {-1, 3, INT32_MAX, INT32_MIN}) REQUIRE(books.slot(index) == Slot{});
  std::uint32_t const generation = books.slot(2).generation;
  for (Slot slot : std::vector<Slot>{{-1, 0},
                                     {-1, 1},
                                     {3, 1},
                                     {INT32_MAX, 1},
                                     {INT32_MIN, 1},
                                     {0, 0},
                                     {0, 2},
                                     {1, UINT32_MAX},
                                     {2, generation - 1},
                                     {2, generation + 1}}) {
    Verdict const why = slot.index < 0 || slot.index > 2 ? Verdict::unknown_slot : Verdict::stale_slot;
    Slot handle = slot;
    desk.refuses(why, [&] { return books.roll_back(slot, 0); });
    desk.refuses(why, [&] { return books.clear(handle); });
    desk.refuses(why, [&] { return books.commit(desk.ticket, slot, 34); });
    REQUIRE(handle == slot);
    Landing const nearest = books.nearest(slot, 0);
    REQUIRE(nearest.why == why);
    REQUIRE(nearest.position == -1);
    REQUIRE(nearest.tier == rollback::Tier::none);
    REQUIRE(books.can_land(slot, 0) == why);
    REQUIRE(Seen{books.tip(slot), books.head(slot), books.live_place(slot), books.reach(slot)} == Seen{-1, -1, -1, -1});
    REQUIRE_FALSE(books.is_armed(slot));
    REQUIRE(books.landings(slot, nullptr, 0) == 0);
    REQUIRE(books.next_cut(slot, 0, 30) == 30);
  }
  REQUIRE(books.commit(desk.ticket, books.slot(0), 34) == Verdict::accepted);
  REQUIRE(books.commit(desk.ticket, books.slot(1), 15) == Verdict::accepted);
}

TEST_CASE("a cut of positions that cannot be is the end that was given") {
  Books const books(options());
  Slot const slot = books.slot(0);
  for (Position end : {INT64_MIN, INT64_MIN + 1, Position{-1}, Position{0}, Position{7}, INT64_MAX}) {
    REQUIRE(books.next_cut(slot, -1, end) == end);
    REQUIRE(books.next_cut(slot, INT64_MIN, end) == end);
    REQUIRE(books.next_cut(slot, INT64_MAX, end) == end);
    REQUIRE(books.next_cut(slot, end, end) == end);
  }
  REQUIRE(books.next_cut(slot, INT64_MAX - 1, INT64_MAX) == INT64_MAX);
  REQUIRE(books.next_cut(slot, 6, INT64_MAX) == 8);
}

TEST_CASE("the oldest landing is found without a walk over all of them") {
  // Nothing limits, so every position is a landing: a walk down from 2^20 would take thousands of times as long.
  BooksOptions free;
  free.max_rows = 1 << 20;
  Books far(free);
  Books near(free);
  Feed feeder(far, 1 << 20, 1 << 20);
  REQUIRE(feeder.run(far.slot(0), 1 << 20, [](FeedChunk const&) { return true; }) == Verdict::accepted);
  REQUIRE(Feed(near, 16, 16).run(near.slot(0), 16, [](FeedChunk const&) { return true; }) == Verdict::accepted);
  auto const quickest = [](Books const& books) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 20; ++i) {
      auto const start = std::chrono::steady_clock::now();
      for (int call = 0; call < 50; ++call) REQUIRE(books.reach(books.slot(0)) == 1);
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    return best;
  };
  REQUIRE(quickest(far) < 20 * quickest(near));

  // Empty at multiples of 6 and 4: each multiple of 12 is a landing, and the states of the last 2 tokens.
  BooksOptions o = options({with(ring8(), 2, 0, 0, 6), with(fold(), 2, 0, 0, 4)});
  o.max_context = 0;
  for (bool window : {false, true}) {
    if (!window) o.windows.clear();
    if (window) o.windows = {{"raw", 8, 18}};
    Books books(o);
    Slot const slot = books.slot(0);
    for (Position tip = 1; tip <= 100; ++tip) {
      REQUIRE(feed(books, slot, 1) == Verdict::accepted);
      Position oldest = tip;
      for (Position p = tip; p > 0; --p) {
        if (books.can_land(slot, p) == Verdict::accepted) oldest = p;
      }
      CAPTURE(window, tip);
      REQUIRE(books.reach(slot) == oldest);
    }
  }
}
