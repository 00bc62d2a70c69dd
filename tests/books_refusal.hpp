// Books in which every call can be refused, and the proof that a refusal changed nothing: neither what can be asked now
// nor what will come of any later call.
#pragma once

#include <rollback/feed.hpp>

#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace refusal {

using rollback::Feed;
using rollback::FeedChunk;
using rollback::Landing;
using namespace toy;

inline constexpr std::int32_t max_rows = 30;
inline constexpr std::int32_t chunk_rows = 8;

inline BooksOptions options(std::vector<Component> components = {with(fold(), 3, 4, 6), with(ring8(), 4, 8, 2)}) {
  BooksOptions o;
  o.slots = 3;
  o.max_rows = max_rows;
  o.max_chunks = 12;
  o.max_chunk_rows = chunk_rows;
  o.max_context = 34;
  o.components = std::move(components);
  o.windows = {{"raw", 8, 18}};
  return o;
}

inline Verdict feed(Books& books, Slot slot, std::int32_t rows) {
  return Feed(books, max_rows, chunk_rows).run(slot, rows, [](FeedChunk const&) { return true; });
}

inline RowMap row_map(Books const& books, std::int32_t component) {
  return RowMap::packed(books.component(component).geometry, books.places(component), books.slots(), 64,
                        books.pages(component));
}

using Seen = std::vector<std::int64_t>;

/// All that can be asked of books, of all slots and of the open batch.
inline Seen everything(Books const& books, Ticket const& ticket) {
  Seen seen;
  auto const note = [&seen](auto... values) { (seen.push_back(static_cast<std::int64_t>(values)), ...); };
  auto const note_landing = [&note](Landing const& l) {
    note(l.position, l.replay, l.warm_up, l.tier, l.why, l.limited_by);
  };
  for (std::int32_t s = 0; s < books.slots(); ++s) {
    Slot const slot = books.slot(s);
    Position const tip = books.tip(slot);
    note(slot.generation, tip, books.head(slot), books.is_armed(slot), books.live_place(slot), books.reach(slot));
    std::vector<Landing> landings(static_cast<std::size_t>(books.landings(slot, nullptr, 0)));
    static_cast<void>(books.landings(slot, landings.data(), static_cast<std::int32_t>(landings.size())));
    for (Landing const& landing : landings) note_landing(landing);
    for (Position p = -2; p <= tip + 3; ++p) {
      note_landing(books.nearest(slot, p));
      note(books.can_land(slot, p), books.next_cut(slot, std::max(p, Position{0}), tip + 9), books.is_pinned(slot, p));
    }
  }
  for (std::int32_t c = 0; c < books.components(); ++c) note(books.free_pages(c));
  Shape shape;
  for (std::int32_t k = 0; books.shape(ticket, k, shape) == Verdict::accepted; ++k) {
    note(shape.rows, shape.sequences);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      Planned p = plan(books, ticket, k, c, shape, row_map(books, c));
      note(p.verdict, p.lists.restores, p.lists.snapshots, p.lists.persists, p.lists.blocks);
      p.for_each_list(books.component(c).geometry.overlap,
                      [&seen](auto& list, auto*&, std::int32_t) { seen.insert(seen.end(), list.begin(), list.end()); });
    }
  }
  return seen;
}

/// What will be seen once the open batch is committed, or failed from its first chunk that has not settled, and then
/// rollbacks and feeds follow: what is hidden now shows then.
inline Seen future(Books books, Ticket const& ticket, bool failing) {
  Seen seen;
  Outcomes outcomes;
  for (std::int32_t k = 0; k < 12; ++k) {
    seen.push_back(static_cast<std::int64_t>(failing ? books.fail(ticket, k, BadChunk::may_have_run, outcomes)
                                                     : books.settle(ticket, k)));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (std::int32_t s = 0; s < books.slots(); ++s) {
      Slot const slot = books.slot(s);
      if (turn == 0) {
        seen.push_back(static_cast<std::int64_t>(books.commit(ticket, slot, books.head(slot))));
      } else {
        Position const p = books.nearest(slot, std::max<Position>(books.tip(slot) - 3, 0)).position;
        seen.push_back(static_cast<std::int64_t>(books.roll_back(slot, p)));
        seen.push_back(static_cast<std::int64_t>(feed(books, slot, 2 + turn)));
      }
    }
    Seen const now = everything(books, ticket);
    seen.insert(seen.end(), now.begin(), now.end());
  }
  return seen;
}

/// Makes a call that must be refused and change nothing, neither what is seen nor what will be.
inline void refuses(Books const& books, Ticket const& ticket, Verdict why, std::function<Verdict()> const& call) {
  CAPTURE(text(why));
  Seen const before = everything(books, ticket);
  Seen const committed = future(books, ticket, false);
  Seen const failed = future(books, ticket, true);
  REQUIRE(std::string(text(call())) == text(why));
  bool const same = everything(books, ticket) == before && future(books, ticket, false) == committed &&
                    future(books, ticket, true) == failed;
  REQUIRE(same);
}

/// Memory of a batch: six rows of slot 0, four of slot 1 and two of padding, in four chunks.
struct BatchRows {
  std::array<Slot, max_rows> slots{};
  std::array<Position, max_rows> positions{};
  std::int32_t rows = 12;
  std::array<std::int32_t, 4> ends{5, 7, 10, 12};
  std::int32_t chunks = 4;
  std::array<Unverified, 2> unverified{};
  std::int32_t unverified_count = 2;

  explicit BatchRows(Books const& books) {
    std::array<std::int32_t, 12> const slot_of_row{0, 0, -1, 0, 1, 0, 1, 0, -1, 1, 0, 1};
    std::array<Position, 2> next{books.tip(books.slot(0)), books.tip(books.slot(1))};
    for (std::size_t i = 0; i < slot_of_row.size(); ++i) {
      slots[i] = books.slot(slot_of_row[i]);
      positions[i] = slot_of_row[i] < 0 ? -9 : next[static_cast<std::size_t>(slot_of_row[i])]++;
    }
    unverified = {Unverified{slots[0], 2}, Unverified{slots[4], 0}};
  }
  [[nodiscard]] Batch batch() const {
    return {slots.data(), positions.data(), rows, ends.data(), chunks, unverified.data(), unverified_count};
  }
};

/// Books with slot 0 armed at 28, slot 1 at 11 and slot 2 cleared; and, where `open`, the batch of these rows.
struct Desk {
  explicit Desk(bool open) {
    REQUIRE(feed(books, books.slot(0), 30) == Verdict::accepted);
    REQUIRE(books.roll_back(books.slot(0), 28) == Verdict::accepted);
    REQUIRE(feed(books, books.slot(1), 11) == Verdict::accepted);
    Slot slot = books.slot(2);
    REQUIRE(feed(books, slot, 9) == Verdict::accepted);
    REQUIRE(books.clear(slot) == Verdict::accepted);
    if (open) REQUIRE(books.begin(BatchRows(books).batch(), ticket) == Verdict::accepted);
  }
  void settle(std::int32_t chunks) {
    for (std::int32_t k = 0; k < chunks; ++k) REQUIRE(books.settle(ticket, k) == Verdict::accepted);
  }
  void refuses(Verdict why, std::function<Verdict()> const& call) const { refusal::refuses(books, ticket, why, call); }

  Books books{options()};
  Ticket ticket{0, 4};  // the next one, until it is open
};

}  // namespace refusal
