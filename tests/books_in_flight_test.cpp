// Several batches open at once, landings that the engine placed, and landings that slots share: a seeded walk on a
// plane that is overwritten in place and on a ring, against a record of every state there ever was.
#include "books_refusal.hpp"
#include "catch.hpp"
#include "toy_plan.hpp"
#include "toy_planes.hpp"
#include "toy_storage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

using rollback::BadChunk;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Position;
using rollback::RowMap;
using rollback::Shape;
using rollback::Slot;
using rollback::Ticket;
using rollback::Unverified;
using rollback::Verdict;
using toy::History;
using toy::Row;

namespace {

BooksOptions options(std::int32_t per_token, Position quantum, std::int32_t aligned, bool entry_copy) {
  BooksOptions o;
  o.slots = 3;
  o.max_rows = o.max_chunks = 24;
  o.max_chunk_rows = 12;
  o.steps_in_flight = 3;
  o.pins = 2;
  o.entry_copy = entry_copy;
  o.components = {toy::with(toy::fold(), per_token, quantum, aligned),
                  toy::with(toy::ring8(), per_token, quantum, aligned)};
  return o;
}

/// An engine whose batches each hold rows of one slot, cut where they must be; up to three are open at once.
struct Pipeline {
  Books books;
  BooksOptions made_for;
  std::mt19937 random;
  std::vector<std::vector<Row>> planes;
  std::vector<RowMap> maps;
  std::vector<Slot> slots;
  std::vector<History> history;  // with the rows in flight
  struct Open {
    Ticket ticket;
    std::size_t slot;
    Position begin, end;
    std::int32_t unverified;
    std::vector<Position> chunk_ends;
    std::int32_t ran = 0;
    std::int32_t settled = 0;
  };
  std::deque<Open> open;
  int commits = 0, partial = 0, failures = 0, landings = 0, pinned = 0, forks = 0;

  Pipeline(BooksOptions const& o, std::uint32_t seed) : books(o), made_for(o), random(seed) {
    for (std::int32_t s = 0; s < o.slots; ++s) {
      slots.push_back(books.slot(s));
      history.emplace_back(o.components);
    }
    for (std::int32_t c = 0; c < books.components(); ++c) {
      maps.push_back(RowMap::packed(books.component(c).geometry, books.places(c), o.slots, 4096));
      planes.push_back(toy::storage_rows(maps.back().fresh + o.max_chunk_rows));
    }
  }

  std::int32_t pick(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(low +
                                     static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)));
  }
  bool in_flight(std::size_t s) const {
    return std::any_of(open.begin(), open.end(), [s](Open const& o) { return o.slot == s; });
  }

  void begin() {
    auto const s = static_cast<std::size_t>(pick(0, made_for.slots - 1));
    Position const head = books.head(slots[s]);
    REQUIRE(head == history[s].size());
    std::int32_t const rows = pick(1, pick(0, 3) == 0 ? 20 : 4);
    std::vector<Slot> const row_slots(static_cast<std::size_t>(rows), slots[s]);
    std::vector<Position> positions;
    for (std::int32_t i = 0; i < rows; ++i) positions.push_back(head + i);
    Open o{{}, s, head, head + rows, pick(0, std::min(rows, 2)), {}, 0, 0};
    std::vector<std::int32_t> ends;
    for (Position at = head; at < o.end;) {
      at = std::min(books.next_cut(slots[s], at, o.end), at + pick(1, 12));
      o.chunk_ends.push_back(at);
      ends.push_back(static_cast<std::int32_t>(at - head));
    }
    Unverified const u{slots[s], o.unverified};
    Verdict const verdict = books.begin(
        {row_slots.data(), positions.data(), rows, ends.data(), static_cast<std::int32_t>(ends.size()), &u, 1},
        o.ticket);
    if (open.size() == 3) {
      REQUIRE(verdict == Verdict::too_many_in_flight);
    } else if (verdict != Verdict::accepted) {
      REQUIRE(verdict == Verdict::too_many_unverified);
    } else {
      for (std::int32_t i = 0; i < rows; ++i) history[s].append(static_cast<toy::Token>(random()));
      open.push_back(o);
    }
  }

  void run(Open& o) {
    std::int32_t const k = o.ran++;
    Position const begin = k == 0 ? o.begin : o.chunk_ends[static_cast<std::size_t>(k - 1)];
    Position const end = o.chunk_ends[static_cast<std::size_t>(k)];
    Shape shape = books.worst_shape(static_cast<std::int32_t>(end - begin), 1);
    if (k % 2 == 0) REQUIRE(books.shape(o.ticket, k, shape) == Verdict::accepted);
    for (std::int32_t c = 0; c < books.components(); ++c) {
      auto const i = static_cast<std::size_t>(c);
      RowMap const& m = maps[i];
      std::vector<Row>& rows = planes[i];
      std::int32_t const n = books.component(c).geometry.rows;
      bool const ring = books.component(c).states_inside_chunk;
      toy::Planned const p = toy::plan(books, o.ticket, k, c, shape, m);
      REQUIRE(p.verdict == Verdict::accepted);
      std::vector<Row> const before = rows;  // no entry reads what another one writes
      for (std::int32_t e = 0; e < p.lists.restores; ++e) {
        std::int32_t const to = p.restore_destination[static_cast<std::size_t>(e)];
        std::int32_t const from = p.restore_source[static_cast<std::size_t>(e)];
        for (std::int32_t r = 0; r < n; ++r) {
          rows[static_cast<std::size_t>(to + r)] = from < 0 ? Row{} : before[static_cast<std::size_t>(from + r)];
        }
      }
      std::int32_t live = -1;  // of this batch: where its restores or persists go
      for (Position q = begin; q < end; ++q) {
        if (ring) {
          rows[static_cast<std::size_t>(m.fresh + (q - begin))] = history[o.slot].ring_row(i, q);
        } else {
          live = m.live + slots[o.slot].index * m.live_slot_stride + live_place(o) * m.live_place_stride;
          toy::advance(books.component(c), History::salt(i), history[o.slot].token(q), q, rows.data() + live);
        }
      }
      for (std::int32_t e = 0; e < p.lists.snapshots * n; ++e) {
        std::int32_t const to = p.snapshot_destination[static_cast<std::size_t>(e)];
        if (to >= 0)
          rows[static_cast<std::size_t>(to)] =
              rows[static_cast<std::size_t>(p.snapshot_source[static_cast<std::size_t>(e)])];
      }
      for (std::size_t e = 0; e < p.persist_destination.size(); ++e) {
        std::int32_t const to = p.persist_destination[e];
        if (to >= 0) rows[static_cast<std::size_t>(to)] = rows[static_cast<std::size_t>(m.fresh + p.persist_source[e])];
      }
    }
  }

  // Batches run in order here, so the live place of one is that of the newest when it was begun.
  std::int32_t live_place(Open const& o) const {
    auto const youngest = std::find_if(open.rbegin(), open.rend(), [&](Open const& x) { return x.slot == o.slot; });
    std::int32_t place = books.live_place(slots[o.slot]);
    for (auto it = youngest; it != open.rend() && it->begin > o.begin; ++it) {
      if (it->slot == o.slot && made_for.entry_copy)
        place = (place + made_for.steps_in_flight) % (1 + made_for.steps_in_flight);
    }
    return place;
  }

  void run_some() {
    for (Open& o : open) {
      auto const chunks = static_cast<std::int32_t>(o.chunk_ends.size());
      while (o.ran < chunks) {
        if (pick(0, 3) == 0) return;
        run(o);
      }
      while (o.settled < chunks) {
        REQUIRE(books.settle(o.ticket, o.settled) == Verdict::accepted);
        ++o.settled;
      }
    }
  }

  void commit() {
    if (open.empty()) return;
    Open& o = open.front();
    auto const chunks = static_cast<std::int32_t>(o.chunk_ends.size());
    while (o.ran < chunks) run(o);
    while (o.settled < chunks) REQUIRE(books.settle(o.ticket, o.settled++) == Verdict::accepted);
    for (std::size_t i = 1; i < open.size(); ++i) {
      if (open[i].slot != o.slot || open[i].settled < static_cast<std::int32_t>(open[i].chunk_ends.size())) continue;
      REQUIRE(books.commit(open[i].ticket, slots[o.slot], open[i].end) == Verdict::out_of_order);
    }
    std::int32_t const reject = pick(0, o.unverified);
    Position const accepted = o.end - reject;
    REQUIRE(books.commit(o.ticket, slots[o.slot], accepted) == Verdict::accepted);
    std::size_t const s = o.slot;
    open.pop_front();
    ++commits;
    if (reject == 0) return;
    ++partial;
    history[s].truncate(accepted);
    open.erase(std::remove_if(open.begin(), open.end(), [s](Open const& x) { return x.slot == s; }), open.end());
  }

  void fail() {
    if (open.empty()) return;
    Open const& o = open.front();
    Outcome data[3];
    Outcomes outcomes{data, 3, 0};
    BadChunk const state = pick(0, 1) == 0 ? BadChunk::may_have_run : BadChunk::never_started;
    std::int32_t const first_bad = std::max(o.ran, o.settled);
    bool const others_ran = std::any_of(open.begin() + 1, open.end(), [](Open const& x) { return x.ran > x.settled; });
    if (state == BadChunk::never_started && others_ran) return;
    if (state == BadChunk::may_have_run && pick(0, 1) == 0) {
      for (Open& bad : open) {
        while (bad.ran < static_cast<std::int32_t>(bad.chunk_ends.size())) run(bad);
      }
    }
    REQUIRE(books.fail(o.ticket, first_bad, state, outcomes) == Verdict::accepted);
    open.clear();
    for (std::int32_t i = 0; i < outcomes.count; ++i) {
      auto const s = static_cast<std::size_t>(data[i].slot.index);
      REQUIRE(data[i].tip <= history[s].size());
      REQUIRE(data[i].tip == books.tip(slots[s]));
      history[s].truncate(data[i].tip);
    }
    ++failures;
  }

  void roll_back() {
    auto const s = static_cast<std::size_t>(pick(0, made_for.slots - 1));
    Position const wanted = pick(0, history[s].size());
    if (in_flight(s)) {
      REQUIRE(books.roll_back(slots[s], wanted) == Verdict::in_flight);
      return;
    }
    Position const p = books.nearest(slots[s], wanted).position;
    REQUIRE(books.roll_back(slots[s], p) == Verdict::accepted);
    history[s].truncate(p);
  }

  void pin() {
    auto const s = static_cast<std::size_t>(pick(0, made_for.slots - 1));
    Position const p = books.head(slots[s]) + pick(-6, 6);
    Verdict const verdict = p >= 0 && pick(0, 2) == 0 ? books.unpin(slots[s], p) : books.pin(slots[s], p);
    pinned += verdict == Verdict::accepted ? 1 : 0;
  }

  void fork() {
    auto const from = static_cast<std::size_t>(pick(0, made_for.slots - 1));
    auto const to = static_cast<std::size_t>(pick(0, made_for.slots - 1));
    if (in_flight(to)) return;
    Position const p = books.nearest(slots[from], pick(0, history[from].size())).position;
    Slot const before = slots[to];
    Verdict const verdict = books.fork(slots[from], p, slots[to]);
    if (verdict != Verdict::accepted) {
      REQUIRE(slots[to] == before);
      return;
    }
    REQUIRE(slots[to].generation != before.generation);
    history[to] = history[from];
    history[to].truncate(p);
    ++forks;
  }

  // Every landing of a slot without an open batch restores the state there was.
  void check(std::size_t s) {
    if (in_flight(s)) return;
    Slot const slot = slots[s];
    REQUIRE(books.tip(slot) == history[s].size());
    for (Position p = 1; p <= history[s].size(); ++p) {
      if (books.can_land(slot, p) != Verdict::accepted) continue;
      ++landings;
      Books probe = books;
      REQUIRE(probe.roll_back(slot, p) == Verdict::accepted);
      Outcome data[3];
      Outcomes outcomes{data, 3, 0};
      if (!open.empty())
        static_cast<void>(probe.fail(open.front().ticket, static_cast<std::int32_t>(open.front().chunk_ends.size()),
                                     BadChunk::may_have_run, outcomes));
      std::int32_t const one = 1;
      Ticket t;
      REQUIRE(probe.begin({&slot, &p, 1, &one, 1, nullptr, 0}, t) == Verdict::accepted);
      for (std::int32_t c = 0; c < books.components(); ++c) {
        auto const i = static_cast<std::size_t>(c);
        Shape shape;
        REQUIRE(probe.shape(t, 0, shape) == Verdict::accepted);
        toy::Planned const planned = toy::plan(probe, t, 0, c, shape, maps[i]);
        std::int32_t const live =
            maps[i].live + slot.index * maps[i].live_slot_stride + probe.live_place(slot) * maps[i].live_place_stride;
        std::int32_t from = live;
        for (std::int32_t k = 0; k < planned.lists.restores; ++k) {
          if (planned.restore_destination[static_cast<std::size_t>(k)] == live)
            from = planned.restore_source[static_cast<std::size_t>(k)];
        }
        REQUIRE(from >= 0);
        Row const* const plane = planes[i].data() + from;
        std::int32_t const n = books.component(c).geometry.rows;
        if (!books.component(c).states_inside_chunk) {
          INFO("slot " << s << " at " << p << " tip " << history[s].size());
          REQUIRE(std::equal(plane, plane + n, history[s].plane(i, p)));
          continue;
        }
        for (Position q = std::max<Position>(0, p - n); q < p; ++q) {
          Row const wanted = history[s].ring_row(i, q);
          auto const words = static_cast<std::ptrdiff_t>(history[s].readable_words(i, q, p));
          INFO("slot " << s << " at " << p << " row of " << q);
          REQUIRE(std::equal(wanted.begin(), wanted.begin() + words, plane[q % n].begin()));
        }
      }
    }
  }

  void step() {
    std::int32_t const what = pick(0, 99);
    if (what < 35)
      begin();
    else if (what < 55)
      run_some();
    else if (what < 78)
      commit();
    else if (what < 82)
      fail();
    else if (what < 90)
      roll_back();
    else if (what < 94)
      pin();
    else
      fork();
    for (std::size_t s = 0; s < slots.size(); ++s) check(s);
  }
};

}  // namespace

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

std::vector<Position> listed(Books const& books, Slot slot) {
  std::vector<rollback::Landing> landings(static_cast<std::size_t>(books.landings(slot, nullptr, 0)));
  static_cast<void>(books.landings(slot, landings.data(), static_cast<std::int32_t>(landings.size())));
  std::vector<Position> positions;
  for (rollback::Landing const& landing : landings) positions.push_back(landing.position);
  return positions;
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
  REQUIRE(books.unpin(a, 5) == Verdict::accepted);
  Position const believed[] = {5, 16, 24, 29};
  Position lost[4];
  REQUIRE(books.lost(a, believed, 4, lost) == 1);
  REQUIRE(lost[0] == 5);
  REQUIRE(books.can_land(b, 5) == Verdict::accepted);
}
