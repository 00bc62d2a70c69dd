// Fewer pages than boundaries, handed out and taken back at random: what is listed has the bytes of a fresh run, what
// is not in use is free, and nothing leaks.
#include "catch.hpp"
#include "toy_engine.hpp"
#include "toy_fork.hpp"
#include "toy_pipeline.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using rollback::BadChunk;
using rollback::Books;
using rollback::BooksOptions;
using rollback::Component;
using rollback::Hold;
using rollback::Outcomes;
using rollback::Position;
using rollback::RowMap;
using rollback::Slot;
using rollback::StatePlaces;
using rollback::Unverified;
using rollback::Verdict;
using toy::engine_options;
using toy::EngineOptions;
using toy::fold;
using toy::ring8;
using toy::Row;
using toy::trail;
using toy::with;

namespace {

using Pages = std::set<std::int32_t>;

/// The pages of one tier, as an engine that hands them out knows them.
struct Owner {
  std::int32_t component;                // one that the tier belongs to
  std::vector<std::int32_t> components;  // all of them
  Pages given;
};

/// Owners of the tiers of some components; `sharing` says which component's pages each one has.
std::vector<Owner> owners_of(std::vector<std::int32_t> const& sharing) {
  std::map<std::int32_t, Owner> owners;
  for (std::size_t c = 0; c < sharing.size(); ++c) {
    Owner& owner = owners[sharing[c]];
    owner.component = sharing[c];
    owner.components.push_back(static_cast<std::int32_t>(c));
  }
  std::vector<Owner> all;
  for (auto& [component, owner] : owners) all.push_back(std::move(owner));
  return all;
}

/// Adds the page at `row`, if it is in one.
void add_page(Pages& pages, RowMap const& map, std::int64_t row, std::int32_t count) {
  std::int64_t const page = (row - map.page) / map.page_stride;
  if (row >= map.page && page < count) pages.insert(static_cast<std::int32_t>(page));
}

/// The pages of a component in which landings of a slot are kept, as far as books tell.
Pages pages_of_landings(Books const& books, Slot slot, std::int32_t component, RowMap const& map) {
  Pages pages;
  for (Position p = 1; p <= books.tip(slot); ++p) {
    StatePlaces places;
    if (books.state_at(slot, p, component, map, places) != Verdict::accepted) continue;
    for (std::int32_t i = 0; i < places.count; ++i) add_page(pages, map, places.rows[i], books.pages(component));
  }
  return pages;
}

/// Overwrites a page as its next user would.
void spoil(std::vector<Row>& rows, RowMap const& map, std::int32_t page) {
  auto const first = rows.begin() + map.page + std::int64_t{page} * map.page_stride;
  std::fill(first, first + map.page_stride, Row{0x7a7a7a7a, 0x7a7a7a7a, 0x7a7a7a7a, 0x7a7a7a7a});
}

/// Hands a page out or takes one back.
template <class Pick>
void trade(Books& books, Owner& owner, std::vector<std::vector<Row>>& planes, std::vector<RowMap> const& maps,
           Pick pick) {
  if (pick(0, 4) < 3) {
    std::int32_t const page = pick(0, books.pages(owner.component) - 1);
    bool const fresh = owner.given.insert(page).second;
    REQUIRE(books.give_page(owner.component, page) == (fresh ? Verdict::accepted : Verdict::page_given));
    return;
  }
  std::int32_t const free = books.free_pages(owner.component);
  std::int32_t const page = books.take_page(owner.component);
  REQUIRE((page >= 0) == (free > 0));
  if (page < 0) return;
  REQUIRE(owner.given.erase(page) == 1);
  for (std::int32_t c : owner.components) {
    spoil(planes[static_cast<std::size_t>(c)], maps[static_cast<std::size_t>(c)], page);
  }
}

/// All slots are empty and nothing is held: every page that was handed out can be taken back, once.
void take_all(Books& books, Owner const& owner) {
  REQUIRE(books.free_pages(owner.component) == static_cast<std::int32_t>(owner.given.size()));
  Pages taken;
  for (std::int32_t page = books.take_page(owner.component); page >= 0; page = books.take_page(owner.component)) {
    REQUIRE(taken.insert(page).second);
  }
  REQUIRE(taken == owner.given);
}

/// An engine whose batches have rows of all slots; nothing fails, so that the oracle knows what may be listed at most.
struct Walk {
  toy::Engine engine;
  std::vector<Owner> owners;
  int holes = 0, evictions = 0, forks = 0, partial = 0;

  Walk(EngineOptions const& o, std::vector<std::int32_t> const& sharing, std::uint32_t seed)
      : engine(o, seed), owners(owners_of(sharing)) {
    for (Owner& owner : owners) {
      for (std::int32_t page = 0; page < o.given; ++page) owner.given.insert(page);
    }
  }

  std::int32_t pick(std::int64_t low, std::int64_t high) { return engine.pick(low, high); }
  std::size_t any_slot() { return static_cast<std::size_t>(pick(0, engine.books.slots() - 1)); }
  void trade_one() {
    trade(engine.books, owners[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(owners.size()) - 1))],
          engine.storage.planes, engine.maps, [this](std::int64_t low, std::int64_t high) { return pick(low, high); });
  }

  void batch() {
    std::vector<std::int32_t> rows;
    std::int32_t const n = pick(1, pick(0, 3) == 0 ? 40 : 9);
    for (std::int32_t i = 0; i < n; ++i) rows.push_back(pick(0, engine.books.slots() - 1));
    std::vector<Unverified> unverified;
    for (std::int32_t s = 0; s < engine.books.slots(); ++s) {
      std::int64_t const has = std::count(rows.begin(), rows.end(), s);
      std::int64_t const most = std::min<std::int64_t>(has, engine.books.per_token());
      if (has > 0) unverified.push_back({engine.slot(static_cast<std::size_t>(s)), pick(0, most)});
    }
    REQUIRE(engine.begin(rows, pick(1, 12), unverified) == Verdict::accepted);
    for (std::int32_t k = 0; k < engine.chunks(); ++k) {
      if (pick(0, 3) == 0) trade_one();
      engine.run(k);
      engine.settle(k);
    }
    if (pick(0, 9) == 0) engine.clear(any_slot());
    for (std::size_t s = 0; s < engine.slots.size(); ++s) {
      if (!engine.is_open(s)) continue;
      toy::Rows const r = engine.rows_of(s);
      Position const accepted = r.verified + pick(0, r.end - r.verified);
      partial += accepted < r.end ? 1 : 0;
      engine.commit(s, accepted);
    }
  }

  void evict() {
    std::size_t const s = any_slot();
    Position const quantum = pick(0, 3) == 0 ? 1 : engine.books.component(0).quantum;
    Position const p = pick(0, engine.tip(s) / quantum) * quantum;
    Verdict const verdict = engine.books.evict(engine.slot(s), p);
    bool const is_source = engine.books.is_armed(engine.slot(s)) && p == engine.tip(s);
    REQUIRE((verdict == Verdict::accepted || verdict == Verdict::beyond_reach ||
             (is_source && verdict == Verdict::restore_armed)));
    evictions += verdict == Verdict::accepted ? 1 : 0;
  }

  void step() {
    std::int32_t const what = pick(0, 99);
    std::size_t const s = any_slot();
    if (what < 45) {
      batch();
    } else if (what < 60) {
      Position const p = engine.books.nearest(engine.slot(s), pick(0, engine.tip(s))).position;
      REQUIRE(engine.roll_back(s, p) == Verdict::accepted);
    } else if (what < 70) {
      std::size_t const from = any_slot();
      Position const p = engine.books.nearest(engine.slot(from), pick(0, engine.tip(from))).position;
      forks += fork(engine, from, p, s) == Verdict::accepted ? 1 : 0;
    } else if (what < 85) {
      trade_one();
    } else if (what < 95) {
      evict();
    } else {
      engine.clear(s);
    }
    check();
  }

  void check() {
    for (std::size_t s = 0; s < engine.slots.size(); ++s) {
      if (engine.tip(s) > 300) engine.clear(s);
      if (std::string const wrong = engine.check(s); !wrong.empty()) FAIL(wrong);
      for (Position p = 1; p < engine.tip(s); ++p) {
        holes += engine.expected[s].lands(p) && engine.books.can_land(engine.slot(s), p) != Verdict::accepted ? 1 : 0;
      }
    }
    for (Owner const& owner : owners) {
      Pages used;
      for (Slot slot : engine.slots) {
        for (std::int32_t c : owner.components) {
          used.merge(pages_of_landings(engine.books, slot, c, engine.maps[static_cast<std::size_t>(c)]));
        }
      }
      REQUIRE(std::includes(owner.given.begin(), owner.given.end(), used.begin(), used.end()));
      auto const free = static_cast<std::size_t>(engine.books.free_pages(owner.component));
      if (owners.size() == 1) REQUIRE(free + used.size() == owner.given.size());
      REQUIRE(free + used.size() <= owner.given.size());
    }
  }
};

void walk(std::vector<Component> components, std::vector<std::int32_t> const& sharing, std::int32_t pages,
          std::uint32_t seed) {
  for (std::uint32_t v = 0; v < 4; ++v) {
    EngineOptions o = engine_options(components, 4, 40, 12);
    o.books.entry_copy = (v & 1) != 0;
    o.sinks = (v & 2) != 0;
    o.worst_shapes = v == 1 || v == 2;
    o.books.pages = pages;
    o.given = pages / 2;
    o.holes = true;
    Walk w(o, sharing, seed + v);
    for (int i = 0; i < 1000; ++i) {
      CAPTURE(v, i);
      w.step();
    }
    CHECK(w.holes > 2);
    CHECK(w.evictions > 2);
    CHECK(w.forks > 20);
    if (components[0].per_token > 0) CHECK(w.partial > 100);
    for (std::size_t s = 0; s < w.engine.slots.size(); ++s) w.engine.clear(s);
    for (Owner const& owner : w.owners) take_all(w.engine.books, owner);
  }
}

/// A `Pipeline`, three batches of which may be open, whose pages come and go.
struct PagedPipeline {
  pipeline::Pipeline p;
  std::vector<Owner> owners;
  Hold hold;
  Pages held;  // of component 0, which all others share pages with
  int holds = 0, evictions = 0, cleared_in_flight = 0, dry = 0;

  PagedPipeline(BooksOptions const& o, std::uint32_t seed)
      : p(o, seed), owners(owners_of(std::vector<std::int32_t>(o.components.size(), 0))) {}

  std::int32_t pick(std::int64_t low, std::int64_t high) { return p.pick(low, high); }

  void take_or_give() {
    trade(p.books, owners[0], p.planes, p.maps,
          [this](std::int64_t low, std::int64_t high) { return pick(low, high); });
  }

  void clear(std::size_t s) {
    cleared_in_flight += p.in_flight(s) ? 1 : 0;
    REQUIRE(p.books.clear(p.slots[s]) == Verdict::accepted);
    p.history[s].truncate(0);
    p.open.erase(std::remove_if(p.open.begin(), p.open.end(), [s](auto const& x) { return x.slot == s; }),
                 p.open.end());
  }

  Position some_boundary(std::size_t s) {
    Position const quantum = p.books.component(0).quantum;
    return pick(0, p.books.tip(p.slots[s]) / quantum) * quantum;
  }

  void release() {
    p.books.release(hold);
    held.clear();
  }

  void hold_one(std::size_t s) {
    release();
    Position const at = p.books.nearest(p.slots[s], some_boundary(s)).position;
    if (at < 1 || p.books.hold(p.slots[s], at, hold) != Verdict::accepted) return;
    if (hold.pin >= 0) return release();  // a pin's place: nothing to see here
    StatePlaces places;
    REQUIRE(p.books.state_at(p.slots[s], at, 0, p.maps[0], places) == Verdict::accepted);
    for (std::int32_t i = 0; i < places.count; ++i) add_page(held, p.maps[0], places.rows[i], p.books.pages(0));
    holds += held.empty() ? 0 : 1;
  }

  void step() {
    std::int32_t const what = pick(0, 99);
    auto const s = static_cast<std::size_t>(pick(0, p.made_for.slots - 1));
    if (p.history[s].size() > 200) clear(s);
    if (what < 70) {
      p.step();
    } else if (what < 85) {
      take_or_give();
    } else if (what < 92) {
      Verdict const verdict = p.books.evict(p.slots[s], some_boundary(s));
      evictions += verdict == Verdict::accepted ? 1 : 0;
      REQUIRE((verdict != Verdict::accepted || !p.in_flight(s)));
    } else if (what < 97) {
      hold_one(s);
    } else if (what < 98) {
      release();
    } else {
      clear(s);
    }
    for (std::size_t i = 0; i < p.slots.size(); ++i) p.check(i);
    dry += p.books.free_pages(0) == 0 ? 1 : 0;
    count_pages();
  }

  // Whatever is kept, held or about to be written is not free; with no batch open all the rest is.
  void count_pages() {
    Pages used = held;
    for (Slot slot : p.slots) used.merge(pages_of_landings(p.books, slot, 0, p.maps[0]));
    for (auto const& open : p.open) {
      for (std::int32_t k = 0; k < static_cast<std::int32_t>(open.chunk_ends.size()); ++k) {
        rollback::Shape const shape = p.books.worst_shape(p.made_for.max_chunk_rows, 1);
        toy::Planned const plan = toy::plan(p.books, open.ticket, k, 0, shape, p.maps[0]);
        REQUIRE(plan.verdict == Verdict::accepted);
        for (std::int32_t row : plan.snapshot_destination) add_page(used, p.maps[0], row, p.books.pages(0));
      }
    }
    Pages const& given = owners[0].given;
    REQUIRE(std::includes(given.begin(), given.end(), used.begin(), used.end()));
    auto const free = static_cast<std::size_t>(p.books.free_pages(0));
    REQUIRE(free + used.size() <= given.size());
    if (p.open.empty()) REQUIRE(free + used.size() == given.size());
  }
};

}  // namespace

TEST_CASE("a walk of four slots that share a page for every second boundary") {
  walk({with(fold(), 3, 4, 4), with(ring8(), 3, 4, 4)}, {0, 0}, 16, 1);
}

TEST_CASE("a walk over two sets of pages and a component without") {
  walk({with(fold(), 5, 4, 3), with(ring8(), 4, 6, 4), with(trail(), 4, 4, 3)}, {0, 1, 0}, 14, 21);
}

TEST_CASE("a walk over pages without a per-token tier") { walk({with(ring8(), 0, 4, 6)}, {0}, 18, 41); }

TEST_CASE("a walk over pages at depth 1") { walk({with(fold(), 6, 4, 1), with(ring8(), 6, 4, 1)}, {0, 0}, 4, 61); }

TEST_CASE("a walk over pages with batches in flight, pins, forks, holds and failures") {
  for (std::uint32_t v = 0; v < 8; ++v) {
    BooksOptions o = pipeline::options(7, (v & 1) != 0 ? 4 : 6, (v & 4) != 0 ? 1 : 4, (v & 2) != 0);
    o.pages = 10;
    o.pins = 1;
    PagedPipeline walk(o, 300 + v);
    for (int i = 0; i < 1500; ++i) {
      CAPTURE(v, i);
      walk.step();
    }
    CHECK(walk.p.failures > 10);
    CHECK(walk.p.partial > 20);
    CHECK(walk.p.forks > 3);
    CHECK(walk.holds > 2);
    CHECK(walk.evictions > 3);
    CHECK(walk.cleared_in_flight > 2);
    CHECK(walk.dry > 50);
    walk.release();
    for (std::size_t s = 0; s < walk.p.slots.size(); ++s) walk.clear(s);
    take_all(walk.p.books, walk.owners[0]);
  }
}
