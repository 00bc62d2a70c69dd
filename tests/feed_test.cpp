// The feed: how it cuts, what it commits, and that it never leaves a batch open, whatever its callback does.
#include <rollback/feed.hpp>

#include "catch.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::Batch;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Component;
using rollback::Feed;
using rollback::FeedChunk;
using rollback::Position;
using rollback::Slot;
using rollback::Ticket;
using rollback::Verdict;

namespace {

constexpr std::int32_t max_rows = 32;

// A plane overwritten in place: chunks must end where its states are kept.
BooksOptions in_place(std::int32_t per_token, Position quantum, std::int32_t aligned) {
  BooksOptions options;
  options.slots = 2;
  options.max_rows = max_rows;
  options.max_chunks = max_rows;
  Component component;
  component.per_token = per_token;
  component.quantum = quantum;
  component.aligned = aligned;
  options.components = {component};
  return options;
}

// Runs every chunk and remembers where it ended.
struct Recorder {
  std::vector<Position> begins;
  std::vector<Position> ends;
  bool operator()(FeedChunk const& chunk) {
    begins.push_back(chunk.begin);
    ends.push_back(chunk.end);
    return true;
  }
};

bool runs(FeedChunk const&) { return true; }

}  // namespace

TEST_CASE("a feed cuts where the books ask and where its own limit is") {
  Books books(in_place(2, 8, 2));
  Feed feed(books, max_rows, 5);
  Slot const slot = books.slot(0);
  Recorder chunks;
  REQUIRE(feed.run(slot, 20, chunks) == Verdict::accepted);
  // boundaries 8 and 16; the states at 18 and 19 are kept too; five rows at most
  REQUIRE(chunks.ends == std::vector<Position>{5, 8, 13, 16, 18, 19, 20});
  REQUIRE(chunks.begins == std::vector<Position>{0, 5, 8, 13, 16, 18, 19});
  REQUIRE(books.tip(slot) == 20);
}

TEST_CASE("a feed whose plane needs no cut runs in chunks of its own limit") {
  BooksOptions options = in_place(2, 8, 2);
  options.components[0].states_inside_chunk = true;
  Books books(options);
  Feed feed(books, max_rows, 7);
  Recorder chunks;
  REQUIRE(feed.run(books.slot(1), 20, chunks) == Verdict::accepted);
  REQUIRE(chunks.ends == std::vector<Position>{7, 14, 20});
}

TEST_CASE("the chunks of any feed join up and none crosses a cut") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    auto const per_token = static_cast<std::int32_t>(random() % 4);
    auto const quantum = static_cast<Position>(2 + random() % 6);
    auto const limit = static_cast<std::int32_t>(1 + random() % 9);
    Books books(in_place(per_token, quantum, 2));
    Feed feed(books, max_rows, limit);
    Slot const slot = books.slot(0);
    for (int i = 0; i < 4; ++i) {
      Position const tip = books.tip(slot);
      auto const rows = static_cast<std::int32_t>(1 + random() % max_rows);
      Position at = tip;
      std::int32_t index = 0;
      auto const step = [&](FeedChunk const& chunk) {
        REQUIRE(chunk.slot == slot);
        REQUIRE(chunk.index == index++);
        REQUIRE(chunk.begin == at);
        REQUIRE(chunk.end > chunk.begin);
        REQUIRE(chunk.end - chunk.begin <= limit);
        REQUIRE(chunk.end <= books.next_cut(slot, chunk.begin, tip + rows));
        REQUIRE(books.head(slot) == tip + rows);
        REQUIRE(chunk.batch->rows == rows);
        REQUIRE(chunk.batch->positions[chunk.begin - tip] == chunk.begin);
        rollback::Shape shape;
        REQUIRE(books.shape(chunk.ticket, chunk.index, shape) == Verdict::accepted);
        REQUIRE(shape.rows == chunk.end - chunk.begin);
        at = chunk.end;
        return true;
      };
      REQUIRE(feed.run(slot, rows, step) == Verdict::accepted);
      REQUIRE(at == tip + rows);
      REQUIRE(books.tip(slot) == at);
    }
  }
}

TEST_CASE("a chunk that did not run fails the batch and leaves the books closed") {
  Books books(in_place(0, 4, 2));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 5, runs) == Verdict::accepted);
  int calls = 0;
  REQUIRE(feed.run(slot, 10, [&](FeedChunk const&) { return ++calls < 3; }) == Verdict::chunk_failed);
  // chunks end at 8, 12 and 15; the third may have run, and 12 is the newest state that is kept
  REQUIRE(calls == 3);
  REQUIRE(feed.outcome().slot == slot);
  REQUIRE(feed.outcome().tip == 12);
  REQUIRE(feed.outcome().armed);
  REQUIRE(feed.outcome().reach == 8);
  REQUIRE(books.tip(slot) == 12);
  REQUIRE(books.head(slot) == 12);
  REQUIRE(books.is_armed(slot));
  REQUIRE(feed.run(slot, 3, runs) == Verdict::accepted);
  REQUIRE(books.tip(slot) == 15);
  REQUIRE_FALSE(books.is_armed(slot));
}

TEST_CASE("with an entry copy a failed feed leaves the slot where it was") {
  BooksOptions options = in_place(0, 4, 2);
  options.entry_copy = true;
  Books books(options);
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 5, runs) == Verdict::accepted);
  int calls = 0;
  REQUIRE(feed.run(slot, 10, [&](FeedChunk const&) { return ++calls < 3; }) == Verdict::chunk_failed);
  REQUIRE(feed.outcome().tip == 5);
  REQUIRE_FALSE(feed.outcome().armed);
  REQUIRE(books.tip(slot) == 5);
}

TEST_CASE("a failed feed gives up no landing that only later chunks would have written over") {
  BooksOptions options = in_place(4, 4, 2);
  options.entry_copy = true;
  Books books(options);
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 10, runs) == Verdict::accepted);
  // 4 and 6 to 9 are kept; of 10 more tokens the first chunk ends at 12 and the states at 16 to 19 are kept in later
  // ones
  REQUIRE(feed.run(slot, 10, [](FeedChunk const&) { return false; }) == Verdict::chunk_failed);
  REQUIRE(feed.outcome().tip == 10);
  for (Position p : {4, 6, 7, 8, 9}) REQUIRE(books.can_land(slot, p) == Verdict::accepted);
}

TEST_CASE("an exception of the callback is passed on and leaves the books closed") {
  Books books(in_place(0, 4, 2));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 5, runs) == Verdict::accepted);
  int calls = 0;
  auto const throws = [&](FeedChunk const&) -> bool {
    if (++calls == 2) throw std::runtime_error("device lost");
    return true;
  };
  REQUIRE_THROWS_WITH(feed.verify(slot, 10, 0, throws, [] { return Position{15}; }), ContainsSubstring("device lost"));
  REQUIRE(feed.outcome().tip == 8);
  REQUIRE(feed.outcome().armed);
  REQUIRE(books.tip(slot) == 8);
  REQUIRE(books.head(slot) == 8);
  REQUIRE(feed.run(slot, 1, runs) == Verdict::accepted);
}

TEST_CASE("an exception of the accepting call leaves the books closed") {
  Books books(in_place(2, 0, 0));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 5, runs) == Verdict::accepted);
  auto const accept = []() -> Position { throw std::runtime_error("no sampler"); };
  REQUIRE_THROWS_WITH(feed.verify(slot, 4, 2, runs, accept), ContainsSubstring("no sampler"));
  REQUIRE(books.head(slot) == books.tip(slot));
  REQUIRE(feed.outcome().tip == books.tip(slot));
  REQUIRE(books.tip(slot) == 7);  // the verified rows ran, and the state after them is kept
  REQUIRE(feed.run(slot, 1, runs) == Verdict::accepted);
}

TEST_CASE("verified rows stand and rejected ones are taken back") {
  Position const accepted = GENERATE(Position{5}, Position{6}, Position{7}, Position{8});
  Books books(in_place(3, 0, 0));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 4, runs) == Verdict::accepted);
  bool ran = false;
  auto const step = [&](FeedChunk const& chunk) {
    ran = ran || chunk.end == 8;
    return true;
  };
  REQUIRE(feed.verify(slot, 4, 3, step, [&] {
    REQUIRE(ran);  // asked once everything ran
    return accepted;
  }) == Verdict::accepted);
  REQUIRE(books.tip(slot) == accepted);
  REQUIRE(books.is_armed(slot) == (accepted < 8));
}

TEST_CASE("an acceptance outside the unverified rows fails the batch") {
  Position const accepted = GENERATE(Position{4}, Position{9}, Position{-1});
  Books books(in_place(3, 0, 0));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 4, runs) == Verdict::accepted);
  REQUIRE(feed.verify(slot, 4, 3, runs, [&] { return accepted; }) == Verdict::outside_batch);
  REQUIRE(books.head(slot) == books.tip(slot));
  REQUIRE(feed.outcome().tip == books.tip(slot));
  REQUIRE(books.tip(slot) == 5);
}

TEST_CASE("a refused feed runs nothing and changes nothing") {
  Books books(in_place(2, 0, 0));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  REQUIRE(feed.run(slot, 4, runs) == Verdict::accepted);
  auto const must_not_run = [](FeedChunk const&) -> bool { throw std::logic_error("ran"); };
  REQUIRE(feed.run(slot, 0, must_not_run) == Verdict::no_rows);
  REQUIRE(feed.run(slot, -3, must_not_run) == Verdict::no_rows);
  REQUIRE(feed.run(slot, max_rows + 1, must_not_run) == Verdict::batch_too_large);
  REQUIRE(feed.verify(slot, 4, 3, must_not_run, [] { return Position{8}; }) == Verdict::too_many_unverified);
  REQUIRE(feed.verify(slot, 1, 2, must_not_run, [] { return Position{5}; }) == Verdict::bad_unverified);
  REQUIRE(feed.run(Slot{2, 1}, 1, must_not_run) == Verdict::unknown_slot);
  REQUIRE(feed.run(Slot{}, 1, must_not_run) == Verdict::unknown_slot);
  REQUIRE(feed.run(Slot{slot.index, slot.generation + 1}, 1, must_not_run) == Verdict::stale_slot);
  REQUIRE(books.tip(slot) == 4);
  REQUIRE(books.can_land(slot, 3) == Verdict::accepted);
}

TEST_CASE("a feed from inside a callback is refused and the outer one goes on") {
  Books books(in_place(0, 4, 2));
  Feed feed(books, max_rows, max_rows);
  Slot const slot = books.slot(0);
  std::vector<Position> ends;
  auto const step = [&](FeedChunk const& chunk) {
    ends.push_back(chunk.end);
    REQUIRE(feed.run(books.slot(1), 1, runs) == Verdict::too_many_in_flight);
    REQUIRE(feed.run(slot, 1, runs) == Verdict::too_many_in_flight);
    return true;
  };
  REQUIRE(feed.run(slot, 10, step) == Verdict::accepted);
  REQUIRE(ends == std::vector<Position>{4, 8, 10});
  REQUIRE(books.tip(slot) == 10);
  REQUIRE(books.tip(books.slot(1)) == 0);
}

TEST_CASE("a slot cleared from inside a callback ends the feed and its outcome names no slot") {
  Books books(in_place(0, 4, 2));
  Feed feed(books, max_rows, max_rows);
  Slot slot = books.slot(0);
  REQUIRE(feed.run(slot, 6, [](FeedChunk const& chunk) { return chunk.end < 6; }) == Verdict::chunk_failed);
  REQUIRE(feed.outcome().tip == 4);
  REQUIRE(feed.run(slot, 3, [&](FeedChunk const&) { return books.clear(slot) == Verdict::accepted; }) ==
          Verdict::unknown_ticket);
  REQUIRE(books.tip(slot) == 0);
  REQUIRE(feed.outcome().slot == Slot{});
  REQUIRE(feed.run(slot, 3, runs) == Verdict::accepted);
}

TEST_CASE("feeds of impossible sizes are refused by name") {
  Books books(in_place(2, 0, 0));
  REQUIRE_THROWS_WITH(Feed(books, 0, 1), ContainsSubstring("max_rows"));
  REQUIRE_THROWS_WITH(Feed(books, 1, 0), ContainsSubstring("max_chunk_rows"));
}
