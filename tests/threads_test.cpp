// Threads: any number of readers at once while nobody writes, and books of their own in every thread; each thread must
// see what a single one sees. Meant for ThreadSanitizer (`scripts/test tsan`), and right without it.
#include <rollback/feed.hpp>

#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using rollback::BadChunk;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Feed;
using rollback::FeedChunk;
using rollback::Landing;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Position;
using rollback::RowMap;
using rollback::Shape;
using rollback::Slot;
using rollback::Ticket;
using rollback::Unverified;
using rollback::Verdict;
using toy::fold;
using toy::Planned;
using toy::ring8;
using toy::with;

namespace {

using Seen = std::vector<std::int64_t>;

constexpr std::int32_t max_rows = 24;
constexpr std::int32_t chunk_rows = 8;
constexpr std::size_t threads = 8;

BooksOptions options(bool entry_copy = false) {
  BooksOptions o;
  o.slots = 3;
  o.max_rows = max_rows;
  o.max_chunks = max_rows;
  o.max_chunk_rows = chunk_rows;
  o.entry_copy = entry_copy;
  o.components = {with(fold(), 3, 4, 6), with(ring8(), 4, 8, 2)};
  o.windows = {{"raw", 8, 24}};
  return o;
}

/// A batch in memory of its own: rows of the slots in turn, in chunks that end where the books want them to.
struct Rows {
  std::vector<Slot> slots;
  std::vector<Position> positions;
  std::vector<std::int32_t> ends;
  std::vector<Unverified> unverified;

  Rows(Books const& books, std::vector<std::int32_t> const& rows_of_slot, std::int32_t rejectable) {
    for (std::size_t s = 0; s < rows_of_slot.size(); ++s) {
      Slot const slot = books.slot(static_cast<std::int32_t>(s));
      Position const tip = books.tip(slot);
      Position const end = tip + rows_of_slot[s];
      for (Position from = tip; from < end;) {
        Position const to = std::min(books.next_cut(slot, from, end), from + chunk_rows);
        for (; from < to; ++from) {
          slots.push_back(slot);
          positions.push_back(from);
        }
        ends.push_back(static_cast<std::int32_t>(slots.size()));
      }
      if (end > tip) unverified.push_back({slot, std::min(rejectable, rows_of_slot[s])});
    }
  }
  [[nodiscard]] rollback::Batch batch() const {
    return {slots.data(),
            positions.data(),
            static_cast<std::int32_t>(slots.size()),
            ends.data(),
            static_cast<std::int32_t>(ends.size()),
            unverified.data(),
            static_cast<std::int32_t>(unverified.size())};
  }
};

void note(Seen& seen, Landing const& l) {
  for (std::int64_t value :
       {l.position, static_cast<std::int64_t>(l.replay), static_cast<std::int64_t>(l.warm_up),
        static_cast<std::int64_t>(l.tier), static_cast<std::int64_t>(l.why), static_cast<std::int64_t>(l.limited_by)}) {
    seen.push_back(value);
  }
}

/// What every const member answers, plans into memory of the caller's own.
Seen everything(Books const& books, Ticket const& ticket) {
  Seen seen{books.slots(), books.components(), books.alignment(), books.per_token()};
  for (std::int32_t i = -1; i < 4; ++i) {
    for (char const letter : std::string(books.name(i))) seen.push_back(letter);
  }
  Shape const worst = books.worst_shape(max_rows, books.slots());
  for (std::int32_t c = 0; c < books.components(); ++c) {
    rollback::Lengths const n = books.lengths(c, worst);
    for (std::int32_t value : {books.component(c).geometry.rows, books.places(c).total(), n.restores, n.snapshots,
                               n.rows, n.blocks, n.block_reads}) {
      seen.push_back(value);
    }
  }
  for (std::int32_t s = 0; s < books.slots(); ++s) {
    Slot const slot = books.slot(s);
    Position const tip = books.tip(slot);
    for (std::int64_t value : {std::int64_t{slot.generation}, tip, books.head(slot), std::int64_t{books.is_armed(slot)},
                               std::int64_t{books.live_place(slot)}, books.reach(slot)}) {
      seen.push_back(value);
    }
    std::vector<Landing> landings(static_cast<std::size_t>(books.landings(slot, nullptr, 0)));
    static_cast<void>(books.landings(slot, landings.data(), static_cast<std::int32_t>(landings.size())));
    for (Landing const& landing : landings) note(seen, landing);
    for (Position p = -1; p <= tip + 1; ++p) {
      note(seen, books.nearest(slot, p));
      seen.push_back(static_cast<std::int64_t>(books.can_land(slot, p)));
      seen.push_back(books.next_cut(slot, p, tip + 9));
      seen.push_back(books.is_pinned(slot, p));
      Position lost = 0;
      seen.push_back(books.lost(slot, &p, 1, &lost) + lost);
      Landing over;
      std::vector<Position> const wanted(static_cast<std::size_t>(books.slots()), p);
      seen.push_back(books.nearest_over(wanted.data(), books.slots(), over).index);
      note(seen, over);
    }
  }
  Shape shape;
  for (std::int32_t k = 0; books.shape(ticket, k, shape) == Verdict::accepted; ++k) {
    seen.push_back(shape.rows);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      RowMap const map = RowMap::packed(books.component(c).geometry, books.places(c), books.slots(), 64);
      Planned p = toy::plan(books, ticket, k, c, shape, map);
      seen.push_back(static_cast<std::int64_t>(p.verdict));
      p.for_each_list(books.component(c).geometry.overlap,
                      [&seen](auto& list, auto*&, std::int32_t) { seen.insert(seen.end(), list.begin(), list.end()); });
    }
  }
  return seen;
}

/// Runs `work(thread)` in all threads at once: none starts before all are there. Returns what each of them saw.
template <class Work>
std::vector<Seen> in_threads(Work const& work) {
  std::vector<Seen> seen(threads);
  std::atomic<std::size_t> there{0};
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      ++there;
      while (there < threads) std::this_thread::yield();
      seen[t] = work(t);
    });
  }
  for (std::thread& thread : running) thread.join();
  return seen;
}

/// A sequence's life in books: fed, verified in part, rolled back, failed, cleared. `look` is called after every step,
/// with the ticket of the batch that is open or was last; nobody writes while it runs.
template <class Look>
void live(Books& books, std::int32_t seed, Look look) {
  Ticket ticket{0, 0};
  Feed feed(books, max_rows, chunk_rows);
  for (std::int32_t turn = 0; turn < 6; ++turn) {
    std::int32_t const n = (seed * 5 + turn * 3) % 7;
    Verdict fed = Verdict::accepted;
    for (std::int32_t s = 0; s < books.slots() && fed == Verdict::accepted; ++s) {
      fed = feed.run(books.slot(s), 5 + n + s, [](FeedChunk const&) { return true; });
    }
    look(ticket, fed);

    Rows const rows(books, {n + 3, 0, 9 - n}, 2);
    look(ticket, books.begin(rows.batch(), ticket));
    auto const chunks = static_cast<std::int32_t>(rows.ends.size());
    if (turn % 3 == 2) {
      std::array<Outcome, 3> data;
      Outcomes outcomes{data.data(), 3, 0};
      Verdict const failed = books.fail(ticket, n % chunks, BadChunk::may_have_run, outcomes);
      look(ticket, failed);
    } else {
      for (std::int32_t k = 0; k < chunks; ++k) look(ticket, books.settle(ticket, k));
      look(ticket, books.commit(ticket, books.slot(0), books.head(books.slot(0)) - turn % 3));
      look(ticket, books.commit(ticket, books.slot(2), books.head(books.slot(2)) - n % 3));
    }
    for (std::int32_t s = 0; s < books.slots(); ++s) {
      Slot const slot = books.slot(s);
      Position const p = books.nearest(slot, std::max<Position>(books.tip(slot) - n - 1, 0)).position;
      look(ticket, books.roll_back(slot, p));
    }
    Slot slot = books.slot(turn % 3);
    if (turn % 2 == 1) look(ticket, books.clear(slot));
  }
}

/// All that one thread alone sees of such a life.
Seen alone(BooksOptions const& o, std::int32_t seed) {
  Seen seen;
  Books books(o);
  live(books, seed, [&](Ticket const& ticket, Verdict verdict) {
    seen.push_back(static_cast<std::int64_t>(verdict));
    Seen const now = everything(books, ticket);
    seen.insert(seen.end(), now.begin(), now.end());
  });
  return seen;
}

}  // namespace

TEST_CASE("any number of threads read books while nobody writes") {
  bool const entry_copy = GENERATE(false, true);
  CAPTURE(entry_copy);
  Books books(options(entry_copy));
  Books watched(options(entry_copy));  // lives the same life, and is read by this thread alone
  std::vector<Seen> expected;
  live(watched, 1, [&](Ticket const& ticket, Verdict verdict) {
    REQUIRE(verdict == Verdict::accepted);
    expected.push_back(everything(watched, ticket));
  });
  std::size_t step = 0;
  live(books, 1, [&](Ticket const& ticket, Verdict verdict) {
    REQUIRE(verdict == Verdict::accepted);
    std::vector<Seen> const seen = in_threads([&](std::size_t) { return everything(books, ticket); });
    CAPTURE(step);
    REQUIRE(step < expected.size());
    bool const same = std::all_of(seen.begin(), seen.end(), [&](Seen const& s) { return s == expected[step]; });
    CHECK(same);
    ++step;
  });
  CHECK(step == expected.size());
  CHECK(step > 50);
}

TEST_CASE("readers plan different chunks of one open batch at once") {
  Books books(options());
  Ticket ticket;
  Rows const rows(books, {9, 8, 7}, 2);
  REQUIRE(books.begin(rows.batch(), ticket) == Verdict::accepted);
  auto const chunks = rows.ends.size();
  REQUIRE(chunks > 3);
  auto const plan_of = [&](std::size_t work) {
    auto const chunk = static_cast<std::int32_t>(work % chunks);
    auto const component = static_cast<std::int32_t>(work / chunks) % books.components();
    Shape const shape = books.worst_shape(chunk_rows, books.slots());
    RowMap const map = RowMap::packed(books.component(component).geometry, books.places(component), books.slots(), 64);
    Planned p = toy::plan(books, ticket, chunk, component, shape, map);
    Seen seen{static_cast<std::int64_t>(p.verdict)};
    p.for_each_list(books.component(component).geometry.overlap,
                    [&seen](auto& list, auto*&, std::int32_t) { seen.insert(seen.end(), list.begin(), list.end()); });
    return seen;
  };
  for (std::size_t round = 0; round < 2 * chunks; ++round) {
    std::vector<Seen> const seen = in_threads([&](std::size_t t) { return plan_of(round + t); });
    for (std::size_t t = 0; t < threads; ++t) {
      CAPTURE(round, t);
      bool const same = seen[t] == plan_of(round + t);
      CHECK(same);
    }
  }
}

TEST_CASE("distinct books are used from different threads at once") {
  std::vector<Seen> const seen =
      in_threads([](std::size_t t) { return alone(options(t % 2 == 1), static_cast<std::int32_t>(t)); });
  for (std::size_t t = 0; t < threads; ++t) {
    CAPTURE(t);
    bool const same = seen[t] == alone(options(t % 2 == 1), static_cast<std::int32_t>(t));
    CHECK(same);
  }
}

TEST_CASE("books pass from one writer to the next") {
  Books books(options());
  Books one_thread(options());
  for (std::int32_t turn = 0; turn < 12; ++turn) {
    auto const write = [turn](Books& b) {
      Slot const slot = b.slot(turn % 3);
      Verdict fed = Feed(b, max_rows, chunk_rows).run(slot, 4 + turn, [](FeedChunk const&) { return true; });
      if (fed == Verdict::accepted) fed = b.roll_back(slot, b.nearest(slot, b.tip(slot) - 2).position);
      return fed;
    };
    Verdict verdict = Verdict::unknown_slot;
    std::thread([&] { verdict = write(books); }).join();
    REQUIRE(verdict == Verdict::accepted);
    REQUIRE(write(one_thread) == Verdict::accepted);
    bool const same = everything(books, {}) == everything(one_thread, {});
    CHECK(same);
  }
}
