// An engine with several batches open at once, landings that it placed and landings that its slots share; carried out
// on a plane that is overwritten in place and on a ring, and compared with a record of every state there ever was.
#pragma once

#include "catch.hpp"
#include "toy_plan.hpp"
#include "toy_planes.hpp"
#include "toy_storage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace pipeline {
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

inline BooksOptions options(std::int32_t per_token, Position quantum, std::int32_t aligned, bool entry_copy) {
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
      maps.push_back(RowMap::packed(books.component(c).geometry, books.places(c), o.slots, 4096, books.pages(c)));
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
          live = m.live + slots[o.slot].index * m.live_slot_stride +
                 books.live_place(o.ticket, slots[o.slot]) * m.live_place_stride;
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

}  // namespace pipeline
