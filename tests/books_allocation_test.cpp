// The host memory of books is what `Books::bytes` says, and all of it is taken by the constructor: this program counts
// what is allocated.
#include "catch.hpp"
#include "counted_new.hpp"
#include "toy_planes.hpp"

#include <rollback/planes/whole.hpp>
#include <rollback/ring.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

using counted_new::allocated_bytes;
using counted_new::allocations;
using rollback::BadChunk;
using rollback::Batch;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Component;
using rollback::Feed;
using rollback::FeedChunk;
using rollback::Landing;
using rollback::Lists;
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
using toy::ring128;
using toy::ring8;
using toy::with;

namespace {

/// How often a call allocates, and how many bytes.
struct Counted {
  std::size_t times;
  std::size_t bytes;
};

template <class Call>
Counted counted(Call call) {
  std::size_t const times = allocations;
  std::size_t const bytes = allocated_bytes;
  call();
  return {allocations - times, allocated_bytes - bytes};
}

BooksOptions options(std::vector<Component> components, std::vector<rollback::Window> windows = {}) {
  BooksOptions o;
  o.slots = 3;
  o.max_rows = 24;
  o.max_chunks = 12;
  o.max_chunk_rows = 8;
  o.components = std::move(components);
  o.windows = std::move(windows);
  return o;
}

BooksOptions in_flight(BooksOptions o) {
  o.steps_in_flight = 3;
  o.pins = 4;
  return o;
}

BooksOptions paged(BooksOptions o) {
  o.pages = 9;
  return o;
}

BooksOptions with_rows(BooksOptions o) {
  o.pin_windows = true;
  return o;
}

/// Sets of components with tiers that are shared, that differ in one number only, or that are off; and windows.
std::vector<BooksOptions> option_sets() {
  return {
      options({}),
      options({fold()}),
      options({with(fold(), 5)}),
      options({with(fold(), 0, 8, 4)}),
      options({with(fold(), 5, 8, 4), with(ring8(), 5, 8, 4)}),
      in_flight(options({with(fold(), 5, 8, 4), with(ring8(), 5, 8, 4), with(ring8(), 4, 8, 4)}, {{"raw", 8, 64}})),
      with_rows(in_flight(options({with(ring8(), 5, 8, 4)}, {{"raw", 8, 64}, {"second", 4, 64}}))),
      options({with(ring8(), 5, 8, 4), with(ring8(), 4, 8, 4), with(ring8(), 5, 4, 4), with(ring8(), 5, 8, 3)}),
      options({with(ring8(), 1, 4, 4), with(ring8(), 1, 8, 4), with(ring8(), 1, 8, 4)}),
      paged(options({with(fold(), 5, 8, 4), with(ring8(), 5, 8, 4), with(ring8(), 9, 8, 4), with(fold(), 5, 4, 4)})),
      paged(in_flight(options({with(fold(), 5, 8, 4), with(ring8(), 5), with(ring8(), 5, 8, 3)}))),
      with_rows(paged(in_flight(options({with(fold(), 5, 8, 4), with(ring8(), 5, 8, 4)}, {{"raw", 8, 64}})))),
      options({with(ring8(), 9, 4, 2), with(ring8(), 2, 4, 2), with(ring8(), 9, 4, 2), with(ring8(), 2, 4, 2)}),
      options({with(ring128(), 3, 0, 0, 128)}, {{"raw", 8, 64}, {"second", 4, 64}}),
      options(std::vector<Component>(8, with(fold(), 2, 4, 3)), std::vector<rollback::Window>(4, {"raw", 8, 64}))};
}

// What runs while tokens are made does not throw.
static_assert(std::is_nothrow_invocable_v<decltype(&Books::nearest), Books const&, Slot, Position>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::can_land), Books const&, Slot, Position>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::roll_back), Books&, Slot, Position>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::begin), Books&, Batch const&, Ticket&, std::int32_t*>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::shape), Books const&, Ticket const&, std::int32_t, Shape&>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::plan), Books const&, Ticket const&, std::int32_t,
                                          std::int32_t, Shape const&, RowMap const&, Lists&>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::plan_window), Books const&, Ticket const&, std::int32_t,
                                          std::int32_t, Shape const&, RowMap const&, Lists&>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::settle), Books&, Ticket const&, std::int32_t>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::commit), Books&, Ticket const&, Slot, Position>);
static_assert(std::is_nothrow_invocable_v<decltype(&Books::observe), Books&, Ticket const&, Slot, Position>);
static_assert(
    std::is_nothrow_invocable_v<decltype(&Books::fail), Books&, Ticket const&, std::int32_t, BadChunk, Outcomes&>);

}  // namespace

TEST_CASE("books take the bytes they were asked for, to the byte") {
  for (BooksOptions o : option_sets()) {
    for (int variant = 0; variant < 8; ++variant) {
      o.entry_copy = (variant & 1) != 0;
      o.slots = (variant & 2) != 0 ? 1 : 40;
      o.max_rows = (variant & 4) != 0 ? 24 : 30;
      o.max_chunks = 7 + variant;
      std::vector<Books> made;
      made.reserve(1);
      Counted const c = counted([&] { made.emplace_back(o); });
      CAPTURE(variant, o.components.size(), o.windows.size());
      REQUIRE(sizeof(Books) + c.bytes == Books::bytes(o));
    }
  }
}

TEST_CASE("asking for the bytes of books allocates nothing") {
  for (BooksOptions const& o : option_sets()) {
    REQUIRE(counted([&] { static_cast<void>(Books::bytes(o)); }).times == 0);
  }
}

TEST_CASE("more slots, rows, chunks and depth take more bytes") {
  BooksOptions const o = options({with(fold(), 5, 8, 4)}, {{"raw", 8, 64}});
  auto const grows = [&o](auto grow) {
    BooksOptions more = o;
    grow(more);
    return Books::bytes(more) > Books::bytes(o);
  };
  REQUIRE(grows([](BooksOptions& m) { ++m.slots; }));
  REQUIRE(grows([](BooksOptions& m) { ++m.max_rows; }));
  REQUIRE(grows([](BooksOptions& m) { ++m.max_chunks; }));
  REQUIRE(grows([](BooksOptions& m) { ++m.components[0].per_token; }));
  REQUIRE(grows([](BooksOptions& m) { ++m.components[0].aligned; }));
  REQUIRE(grows([](BooksOptions& m) { ++m.steps_in_flight; }));
  REQUIRE(grows([](BooksOptions& m) { ++m.pins; }));
  BooksOptions const with_pages = paged(o);
  REQUIRE(Books::bytes(with_pages) < Books::bytes(o));  // fewer than slots * places
  REQUIRE(grows([](BooksOptions& m) { m.pages = 100; }));
  REQUIRE(grows([](BooksOptions& m) { m.windows.push_back(m.windows[0]); }));
}

TEST_CASE("nothing that books or a feed do after they were made allocates") {
  bool const entry_copy = GENERATE(false, true);
  for (BooksOptions o : option_sets()) {
    o.entry_copy = entry_copy;
    Books books(o);
    Feed feed(books, o.max_rows, o.max_chunk_rows);
    std::vector<std::int32_t> rows(12 * 16384);
    std::vector<std::int64_t> positions(3 * 16384);
    std::array<Landing, 512> landings;
    std::array<Position, 2> wanted{};
    std::array<int, 48> answers{};
    std::int64_t sum = 0;  // of what is only asked, so that it is asked
    auto const tally = [&answers](Verdict verdict) {
      ++answers[static_cast<std::size_t>(verdict)];
      return verdict == Verdict::accepted;
    };
    auto const plan = [&](Ticket const& ticket, std::int32_t chunk) {
      Shape shape;
      tally(books.shape(ticket, chunk, shape));
      sum += books.worst_shape(shape.rows, shape.sequences).rows;
      for (std::int32_t c = 0; c < books.components(); ++c) {
        Lists lists;
        std::int32_t* next = rows.data();
        for (auto* list : {&lists.restore_source, &lists.restore_destination, &lists.snapshot_source,
                           &lists.snapshot_destination, &lists.persist_source, &lists.persist_destination,
                           &lists.block_previous, &lists.block_current, &lists.block_slot}) {
          *list = next;
          next += 16384;
        }
        lists.block_row = positions.data();
        lists.block_position = positions.data() + 16384;
        lists.visible = positions.data() + 2 * 16384;
        sum += books.lengths(c, shape).rows;
        RowMap const map =
            RowMap::packed(books.component(c).geometry, books.places(c), books.slots(), 4096, books.pages(c));
        tally(books.plan(ticket, chunk, c, shape, map, lists));
      }
      for (std::int32_t w = 0; w < books.windows(); ++w) {
        Lists lists;
        lists.restore_source = rows.data();
        lists.restore_destination = rows.data() + 16384;
        lists.snapshot_source = rows.data() + 2 * 16384;
        lists.snapshot_destination = rows.data() + 3 * 16384;
        RowMap const map = RowMap::packed_window(books.window(w), books.slots(), books.pins());
        sum += books.window_lengths(w, shape).restores;
        tally(books.plan_window(ticket, chunk, w, shape, map, lists));
      }
    };
    auto const trade = [&](std::int32_t round) {
      for (std::int32_t c = 0; c < books.components(); ++c) {
        if (round % 13 == 0) sum += books.take_page(c);
        tally(books.give_page(c, round % 9));
        sum += books.free_pages(c) + books.pages(c);
      }
    };
    auto const ask = [&](Slot slot) {
      sum += books.tip(slot) + books.head(slot) + books.reach(slot) + books.live_place(slot) + books.name(0)[0];
      sum += books.landings(slot, landings.data(), 512) + (books.is_armed(slot) ? 1 : 0) + books.alignment();
      tally(books.can_land(slot, books.tip(slot) - 1));
      rollback::WindowRows at;
      tally(books.window_at(slot, books.tip(slot), 0, RowMap{}, at));
      sum += at.ring;
    };
    Counted const c = counted([&] {
      for (std::int32_t round = 0; round < 300; ++round) {
        Slot a = books.slot(round % 3);
        Slot b = books.slot((round + 1) % 3);
        if (books.tip(a) > 300) tally(books.clear(a));
        trade(round);
        tally(books.evict(b, books.tip(b) / 8 * 8));
        auto const step = [&](FeedChunk const& chunk) {
          plan(chunk.ticket, chunk.index);
          ask(a);
          return round % 7 != 0;
        };
        std::int32_t const unverified = std::min(books.per_token(), round % 3);
        tally(feed.verify(a, 3 + round % 17, unverified, step, [&] { return books.head(a) - unverified / 2; }));
        tally(feed.run(b, 1 + round % 9, step));
        tally(books.roll_back(a, books.nearest(a, std::max(books.tip(a) - round % 11, Position{0})).position));
        tally(books.roll_back(b, books.tip(b) - 2));

        std::array<Slot, 2> const slots{a, b};
        std::array<Position, 2> const at{books.tip(a), books.tip(b)};
        std::array<std::int32_t, 2> const ends{1, 2};
        std::array<Outcome, 2> outcome;
        Outcomes outcomes{outcome.data(), 2, 0};
        Unverified const none{a, 0};
        Ticket ticket;
        tally(books.begin(Batch{slots.data(), at.data(), 2, ends.data(), 2, &none, 1}, ticket));
        for (std::int32_t more = 0; more < books.steps_in_flight(); ++more) {  // the last one is refused
          std::array<Position, 2> const next{books.head(a), books.head(b)};
          Ticket younger;
          tally(books.begin(Batch{slots.data(), next.data(), 2, ends.data(), 2, nullptr, 0}, younger));
        }
        plan(ticket, 1);
        tally(books.settle(ticket, 0));
        tally(books.commit(ticket, a, at[0] + 1));
        tally(books.commit(ticket, b, at[1] + 1));
        if (round % 5 == 0) tally(books.clear(b));
        tally(books.pin(a, books.head(a) + 2));
        tally(books.unpin(b, books.tip(b)));
        sum += books.lost(a, at.data(), 2, wanted.data()) + books.nearest_over(at.data(), 2, landings[0]).index;
        tally(books.fail(ticket, 1, BadChunk::may_have_run, outcomes));
        sum += outcomes.count + feed.outcome().tip + books.next_cut(a, at[0], at[0] + 9);
        ask(a);
        ask(b);
        tally(books.fork(a, books.nearest(a, books.tip(a) - 1).position, b));

        Position const below = books.landing_before(a, books.tip(a));
        rollback::Hold hold;
        rollback::StatePlaces places;
        tally(books.hold(a, below, hold));
        books.release(hold);
        tally(books.state_at(a, below, 0, RowMap{}, places));
        tally(books.adopt(b, books.tip(b) + 3, rollback::Adopt::live));
        sum += places.count + books.oldest_row(a, 0) + (books.has_pin(a, below) ? 1 : 0);
        sum += static_cast<std::int64_t>(books.tiers_keep(below, books.tip(a)));

        Slot next = books.slot((round + 2) % 3);  // told later
        if (round % 4 == 0) tally(books.clear(next));
        Position const first = 0;
        std::int32_t const one = 1;
        Batch ahead{&next, &first, 1, &one, 1, nullptr, 0};
        ahead.relative = true;
        Ticket older, younger;
        tally(books.begin(ahead, older));
        tally(books.begin(ahead, younger));
        tally(books.settle(older, 0));
        tally(books.observe(older, next, books.tip(next) + 1));
        tally(books.settle(younger, 0));
        tally(books.observe(younger, next, books.tip(next) + 1));
      }
    });
    CAPTURE(o.components.size(), sum);
    REQUIRE(c.times == 0);
    for (Verdict verdict : {Verdict::accepted, Verdict::chunk_failed, Verdict::in_flight, Verdict::too_many_in_flight,
                            Verdict::not_settled, Verdict::unknown_ticket}) {
      REQUIRE(answers[static_cast<std::size_t>(verdict)] > 10);
    }
  }
}

TEST_CASE("nothing that a ring does after it was made allocates") {
  using Ring = rollback::RollbackRing<rollback::WholePlane, 4, 3>;
  rollback::RingOptions o;
  o.slots = 2;
  o.per_token = 2;
  o.max_rows = 16;
  o.entry_copy = GENERATE(false, true);
  std::vector<std::byte> memory(static_cast<std::size_t>(Ring::states(o)) * 32);
  rollback::PlaneTensor const tensor{memory.data(), 32};
  Ring ring(rollback::WholePlane(&tensor, 1, Ring::states(o)), o);
  std::array<Landing, 8> landings;
  int fed = 0;
  int failed = 0;
  int back = 0;
  Counted const c = counted([&] {
    for (std::int32_t round = 0; round < 200; ++round) {
      Slot slot = ring.slot(round % 2);
      auto const step = [&](std::int32_t state, Position, Position) {
        memory[static_cast<std::size_t>(state) * 32] = std::byte{1};
        return round % 5 != 0;
      };
      Verdict const verdict = ring.feed(slot, 1 + round % 16, step);
      fed += verdict == Verdict::accepted ? 1 : 0;
      failed += verdict == Verdict::chunk_failed ? 1 : 0;
      auto const accept = [&] { return ring.tip(slot) + 1; };
      fed += ring.verify(slot, 3, 2, step, accept) == Verdict::accepted ? 1 : 0;
      Position const wanted = std::max(ring.tip(slot) - round % 9, Position{0});
      back += ring.roll_back(slot, ring.nearest(slot, wanted).position) == Verdict::accepted ? 1 : 0;
      back += ring.landings(slot, landings.data(), 8) > 0 ? 1 : 0;
      if (round % 50 == 0) back += ring.clear(slot) == Verdict::accepted ? 1 : 0;
    }
  });
  REQUIRE(c.times == 0);
  REQUIRE(fed > 200);
  REQUIRE(failed > 20);
  REQUIRE(back > 200);
}

TEST_CASE("the counting of allocations counts") {
  std::vector<std::vector<int>> made(1);
  Counted const c = counted([&] { made[0].resize(1000); });
  REQUIRE(c.times == 1);
  REQUIRE(c.bytes == 1000 * sizeof(int));
}
