// Making books: what options are refused and in which words, what is at the edge and accepted, and what books then say
// of themselves.
#include "catch.hpp"
#include "refusal.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::ComponentShape;
using rollback::Lists;
using rollback::RowGeometry;
using namespace toy;

namespace {

/// Options of which every part is in use.
BooksOptions good() {
  BooksOptions o;
  o.slots = 3;
  o.max_rows = 20;
  o.max_chunks = 10;
  o.max_chunk_rows = 8;
  o.max_context = 100;
  o.components = {with(fold(), 3, 4, 6), with(ring8(), 4, 8, 2, 8)};
  o.windows = {{"raw", 8, 7 + 8 + 3}};
  return o;
}

template <class Change>
BooksOptions but(Change change) {
  BooksOptions o = good();
  change(o);
  return o;
}

/// Why a set-up was refused; empty where it was not.
template <class Call>
std::string refusal(Call call) {
  return refusal_with<std::invalid_argument>(call);
}

/// The words that a message needs: the option and its range.
struct Words {
  std::string option;
  std::string range;
};

void refuses(Words const& words, BooksOptions const& o) {
  std::string const made = refusal([&o] { Books const books(o); });
  REQUIRE_THAT(made, ContainsSubstring(words.option));
  REQUIRE_THAT(made, ContainsSubstring(words.range));
}

/// Whether the constructor and `bytes` say the same.
void both_refuse(Words const& words, BooksOptions const& o) {
  refuses(words, o);
  REQUIRE(refusal([&o] { static_cast<void>(Books::bytes(o)); }) == refusal([&o] { Books const books(o); }));
}

void accepts(BooksOptions const& o) {
  REQUIRE(refusal([&o] { Books const books(o); }).empty());
  REQUIRE(refusal([&o] { static_cast<void>(Books::bytes(o)); }).empty());
}

/// Books of components that differ in what they keep only.
Books keeping(std::vector<Component> const& components) {
  return Books(but([&components](BooksOptions& o) {
    o.components = components;
    o.windows.clear();
  }));
}

}  // namespace

TEST_CASE("sizes of books out of range are refused by name") {
  for (std::int32_t n : {0, -1, INT32_MIN}) {
    both_refuse({"slots", "at least 1"}, but([n](BooksOptions& o) { o.slots = n; }));
    both_refuse({"max_rows", "at least 1"}, but([n](BooksOptions& o) { o.max_rows = n; }));
    both_refuse({"max_chunks", "at least 1"}, but([n](BooksOptions& o) { o.max_chunks = n; }));
  }
  for (std::int32_t n : {-1, INT32_MIN, 21, INT32_MAX}) {
    both_refuse({"max_chunk_rows", "[1, max_rows], or 0"}, but([n](BooksOptions& o) { o.max_chunk_rows = n; }));
  }
  for (Position n : {Position{-1}, INT64_MIN}) {
    both_refuse({"max_context", "at least 1, or 0"}, but([n](BooksOptions& o) { o.max_context = n; }));
  }
  both_refuse({"components", "at most 8"}, but([](BooksOptions& o) { o.components.resize(9); }));
  both_refuse({"windows", "at most 4"}, but([](BooksOptions& o) { o.windows.resize(5, o.windows[0]); }));
}

TEST_CASE("components that cannot be are refused by name wherever they stand") {
  auto const refused = [](Words const& words, auto change) {
    for (std::size_t at : {0u, 1u}) {
      both_refuse(words, but([&](BooksOptions& o) {
                    o.components[1 - at] = with(trail(), 3);
                    o.components[at] = with(ring8(), 4, 8, 2, 8);
                    change(o.components[at]);
                  }));
    }
  };
  refused({"name", "not be null"}, [](Component& c) { c.name = nullptr; });
  for (std::int32_t n : {0, -1, INT32_MIN}) {
    refused({"geometry.rows", "at least 1"}, [n](Component& c) { c.geometry = {n, 0, false}; });
  }
  for (std::int32_t n : {-1, INT32_MIN}) {
    refused({"geometry.block", "at least 1, or 0"}, [n](Component& c) { c.geometry.block = n; });
    refused({"per_token", "at least 1, or 0"}, [n](Component& c) { c.per_token = n; });
    refused({"aligned", "at least 1, or 0"}, [n](Component& c) { c.aligned = n; });
    refused({"quantum", "at least 2"}, [n](Component& c) { c.quantum = n; });
    refused({"quantum", "not be negative"}, [n](Component& c) { c.quantum = n, c.aligned = 0; });
    refused({"empty_at", "at least 1, or 0"}, [n](Component& c) { c.empty_at = n; });
  }
  for (Position n : {0, 1}) refused({"quantum", "at least 2"}, [n](Component& c) { c.quantum = n; });
  for (Position n : {Position{1} << 31, INT64_MAX}) {
    refused({"quantum", "below 2^31"}, [n](Component& c) { c.quantum = n; });
  }
  refused({"blocks", "states_inside_chunk"}, [](Component& c) { c.states_inside_chunk = false; });
  refused({"geometry.rows", "at least block"}, [](Component& c) { c.geometry = {7, 8, false}; });
  refused({"geometry.rows", "2 * block"}, [](Component& c) { c.geometry = {15, 8, true}; });
  refused({"geometry.rows", "2 * block"}, [](Component& c) { c.geometry = {INT32_MAX, INT32_MAX, true}; });
}

TEST_CASE("windows that cannot be are refused by name wherever they stand") {
  for (std::size_t at : {0u, 1u}) {
    auto const with_window = [at](char const* name, Position window, Position rows) {
      return but([&](BooksOptions& o) {
        o.windows.resize(2, o.windows[0]);
        o.windows[at] = {name, window, rows};
      });
    };
    both_refuse({"window's name", "not be null"}, with_window(nullptr, 8, 18));
    for (Position n : {Position{0}, Position{-1}, INT64_MIN})
      both_refuse({"window", "at least 1"}, with_window("w", n, 18));
    both_refuse({"rows", "at least window - 1 + rows of a chunk + unverified"}, with_window("w", INT64_MAX, 1));
    for (Position n : {Position{17}, Position{0}, INT64_MIN}) {
      both_refuse({"rows", "at least window - 1 + rows of a chunk + unverified"}, with_window("w", 8, n));
    }
    accepts(with_window("w", 8, 18));
    accepts(with_window("w", 1, INT64_MAX));
  }
}

TEST_CASE("a window needs room for the rows that can be unverified and no more") {
  auto const with_rows = [](std::int32_t per_token, std::int32_t most, Position rows) {
    return but([&](BooksOptions& o) {
      o.max_rows = o.max_chunk_rows = most;
      o.components = {with(fold(), 9), with(ring8(), per_token)};
      o.windows = {{"raw", 8, rows}};
    });
  };
  accepts(with_rows(5, 8, 7 + 8 + 5));
  refuses({"rows", "unverified"}, with_rows(5, 8, 7 + 8 + 5 - 1));
  accepts(with_rows(5, 3, 7 + 3 + 3));  // no more rows than a batch has
  refuses({"rows", "unverified"}, with_rows(5, 3, 7 + 3 + 3 - 1));
  accepts(with_rows(0, 8, 7 + 8));
  refuses({"rows", "unverified"}, with_rows(0, 8, 7 + 8 - 1));
}

TEST_CASE("more rows than lists can name are refused and the most that they can have lists that fit") {
  auto const sized = [](std::int32_t slots, std::int32_t per_token, std::int32_t aligned, RowGeometry geometry) {
    return but([&](BooksOptions& o) {
      o.slots = slots;
      o.windows.clear();
      o.components = {with(ring8(), per_token, 2, aligned)};
      o.components[0].geometry = geometry;
    });
  };
  Words const words{"slots * places * geometry.rows", "at most 2^30"};
  constexpr std::int32_t most = INT32_MAX;
  both_refuse(words, sized(most, 1, 1, {1, 0, false}));
  both_refuse(words, sized(1, most, 0, {1, 0, false}));
  both_refuse(words, sized(1, most, most, {1, 0, false}));
  both_refuse(words, sized(1, 0, most, {1, 0, false}));
  both_refuse(words, sized(most, most, most, {most, 8, true}));
  both_refuse(words, sized(1, 0, 4096, {1 << 20, 8, true}));
  both_refuse(words, sized(1, 1, 0, {(1 << 30) / 3, 8, true}));  // a live plane, a state, a spare, and a chunk
  both_refuse(words, sized(1, 0, 1, {(1 << 30) / 3, 8, true}));
  both_refuse(words, but([](BooksOptions& o) { o.windows.clear(), o.max_rows = o.max_chunk_rows = most; }));

  // 2^15 slots of 1 + 254 + 1 planes of 127 rows: lists of the worst shape are longer, but 32 bits count them.
  BooksOptions const large = sized(1 << 15, 254, 0, {127, 64, false});
  Books const books(large);
  rollback::Lengths const n = books.lengths(0, books.worst_shape(8, most));
  REQUIRE(n.snapshots >= 16 * 127);
  REQUIRE(n.block_reads >= 8 * 64);
  RowMap const map = RowMap::packed(large.components[0].geometry, books.places(0), large.slots);
  REQUIRE(map.fresh == (1 << 15) * 256 * 127);
  // A shape that is not of these books is cut off where 32 bits end.
  Shape hostile;
  hostile.components[0] = {most, most, most};
  REQUIRE(books.lengths(0, hostile).snapshots == most);
  REQUIRE(books.lengths(0, hostile).block_reads == most);
}

TEST_CASE("a worst shape counts no more rows than a chunk can have") {
  Books const books(good());
  REQUIRE(books.worst_shape(INT32_MAX, 1) == books.worst_shape(8, 1));
  REQUIRE(books.worst_shape(7, 1) != books.worst_shape(8, 1));
}

TEST_CASE("options at the edge of their ranges are accepted") {
  accepts(BooksOptions{});
  accepts(good());
  accepts(but([](BooksOptions& o) {
    o.slots = o.max_rows = o.max_chunks = o.max_chunk_rows = 1;
    o.max_context = 1;
    o.windows[0].rows = 7 + 1 + 1;
  }));
  accepts(but([](BooksOptions& o) { o.max_chunk_rows = 0, o.windows.clear(); }));
  accepts(but([](BooksOptions& o) { o.max_chunk_rows = 20, o.windows.clear(); }));
  accepts(but([](BooksOptions& o) { o.max_context = INT64_MAX; }));
  accepts(but([](BooksOptions& o) { o.components.resize(8, o.components[0]), o.windows.resize(4, o.windows[0]); }));
  auto const component = [](RowGeometry geometry, std::int32_t per_token, Position quantum, std::int32_t aligned,
                            Position empty_at) {
    Component c = with(ring8(), per_token, quantum, aligned, empty_at);
    c.geometry = geometry;
    accepts(but([&c](BooksOptions& o) { o.components = {c}; }));
  };
  component({1, 0, false}, 0, 0, 0, 0);
  component({1, 0, true}, 1, 2, 1, 1);
  component({8, 8, false}, 3, 0, 0, INT64_MAX);
  component({16, 8, true}, 0, INT32_MAX, 1, 0);
  component({1 << 28, 1 << 27, false}, 0, 0, 0, 0);
}

TEST_CASE("a limit that is 0 is none, or that of the batch") {
  BooksOptions o = but([](BooksOptions& options) {
    options.components = {ring8()};
    options.windows.clear();
    options.max_chunk_rows = 0;
    options.max_context = 0;
  });
  std::vector<Slot> slots(20);
  std::vector<Position> positions(20);
  auto const feeds = [&](Books books) {  // twice the largest batch, in one chunk each
    Slot const slot = books.slot(0);
    Ticket ticket;
    std::int32_t const rows = 20;
    for (Position tip : {Position{0}, Position{20}}) {
      for (std::size_t i = 0; i < 20; ++i) slots[i] = slot, positions[i] = tip + static_cast<Position>(i);
      Verdict const verdict = books.begin({slots.data(), positions.data(), rows, &rows, 1, nullptr, 0}, ticket);
      if (verdict != Verdict::accepted) return verdict;
      REQUIRE(books.settle(ticket, 0) == Verdict::accepted);
      REQUIRE(books.commit(ticket, slot, tip + 20) == Verdict::accepted);
    }
    return Verdict::accepted;
  };
  REQUIRE(feeds(Books(o)) == Verdict::accepted);
  o.max_context = 40;
  REQUIRE(feeds(Books(o)) == Verdict::accepted);
  o.max_context = 39;
  REQUIRE(feeds(Books(o)) == Verdict::beyond_context);
  o.max_context = 0;
  o.max_chunk_rows = 19;
  REQUIRE(feeds(Books(o)) == Verdict::batch_too_large);
}

TEST_CASE("the alignment is the least common multiple of what every component keeps") {
  struct Case {
    std::vector<Position> quanta;
    Position alignment;
  };
  for (Case const& c : std::vector<Case>{{{}, 1},
                                         {{2}, 2},
                                         {{4, 8, 128}, 128},
                                         {{6, 4}, 12},
                                         {{96, 128}, 384},
                                         {{3, 5, 7, 11}, 1155},
                                         {{4, 0, 8}, 0},
                                         {{INT64_MAX, INT64_MAX}, INT64_MAX},
                                         {{INT64_MAX, 7}, INT64_MAX},  // 2^63 - 1 is a multiple of 7
                                         {{INT64_MAX, 2}, 0},          // does not fit
                                         {{INT64_MAX, 2, 3}, 0},
                                         {{Position{1} << 62, 3}, 0}}) {
    for (std::size_t empties = 0; empties <= c.quanta.size(); ++empties) {  // the first so many keep nothing there
      auto const too_large = [](Position q) { return q > INT32_MAX; };      // for an aligned tier
      if (std::any_of(c.quanta.begin() + static_cast<std::ptrdiff_t>(empties), c.quanta.end(), too_large)) continue;
      std::vector<Component> components;
      for (std::size_t i = 0; i < c.quanta.size(); ++i) {
        Position const q = c.quanta[i];
        components.push_back(i < empties ? with(ring8(), 0, 0, 0, q) : with(ring8(), 0, q, q > 0 ? 1 : 0));
      }
      CAPTURE(c.quanta, empties);
      REQUIRE(keeping(components).alignment() == c.alignment);
    }
  }
  REQUIRE(keeping({with(fold(), 5)}).alignment() == 0);
  REQUIRE(keeping({fold()}).alignment() == 0);
}

TEST_CASE("books say what they were made for") {
  bool const entry_copy = GENERATE(false, true);
  Books const books(but([entry_copy](BooksOptions& o) {
    o.entry_copy = entry_copy;
    o.windows.push_back({"second", 1, 12});
  }));
  REQUIRE(books.slots() == 3);
  REQUIRE(books.components() == 2);
  REQUIRE(books.per_token() == 3);
  std::vector<std::string> const names{"FOLD", "RING8", "raw", "second", ""};
  for (std::size_t i = 0; i < names.size(); ++i) REQUIRE(books.name(static_cast<std::int32_t>(i)) == names[i]);
  for (std::int32_t beyond : {-1, INT32_MIN, 5, INT32_MAX}) REQUIRE(std::string(books.name(beyond)).empty());
  for (std::int32_t c = 0; c < 2; ++c) {
    Component const given = good().components[static_cast<std::size_t>(c)];
    REQUIRE(books.component(c).per_token == given.per_token);
    REQUIRE(books.component(c).quantum == given.quantum);
    REQUIRE(books.component(c).geometry.rows == given.geometry.rows);
    Places const p = books.places(c);
    REQUIRE(p.live == (entry_copy ? 2 : 1));
    REQUIRE(p.per_token == given.per_token);
    REQUIRE(p.per_token_spares == 1);
    REQUIRE(p.aligned == given.aligned);
    REQUIRE(p.aligned_spares == 1);
  }
  REQUIRE(keeping({}).per_token() == 20);  // a batch has no more
  REQUIRE(keeping({with(fold(), 4), fold()}).per_token() == 0);
  REQUIRE(keeping({with(fold(), 7, 2, 3)}).places(0).aligned_spares == 4);
}

TEST_CASE("fresh books have empty slots at position 0") {
  Books const books(good());
  for (std::int32_t s = 0; s < 3; ++s) {
    Slot const slot = books.slot(s);
    REQUIRE(slot == Slot{s, 1});
    REQUIRE(books.tip(slot) == 0);
    REQUIRE(books.head(slot) == 0);
    REQUIRE_FALSE(books.is_armed(slot));
    REQUIRE(books.live_place(slot) == 0);
    REQUIRE(books.reach(slot) == 0);
    REQUIRE(books.landings(slot, nullptr, 0) == 0);
    REQUIRE(books.nearest(slot, 0).tier == rollback::Tier::start);
  }
}

TEST_CASE("the worst shape fits every chunk of so many rows and sequences") {
  Component wide = with(fold(), 2, 6, 3);
  wide.geometry.rows = 3;
  std::vector<std::vector<Component>> const sets{{with(fold(), 3, 4, 2), with(ring8(), 3, 4, 2)},
                                                 {with(trail(), 5, 2, 1), with(ring128(), 9, 8, 2, 128)},
                                                 {wide, with(ring8(), 0, 2, 4)},
                                                 {with(trail(), 9), with(fold(), 9)},
                                                 {with(ring8(), 1), fold()}};
  for (std::vector<Component> const& components : sets) {
    for (bool entry_copy : {false, true}) {
      EngineOptions o = engine_options(components, 4, 40, 40);
      o.books.entry_copy = entry_copy;
      Engine engine(o, 5);
      Books const& books = engine.books;
      for (int round = 0; round < 60; ++round) {
        std::vector<std::int32_t> rows;
        std::int32_t const last = engine.pick(0, 3);
        for (std::int32_t n = engine.pick(0, 39); n >= 0; --n) rows.push_back(engine.pick(-1, last));
        rows[0] = 0;
        auto const has = static_cast<std::int32_t>(std::count(rows.begin(), rows.end(), 0));
        std::vector<Unverified> const unverified{{engine.slot(0), std::min(has, books.per_token())}};
        REQUIRE(engine.begin(rows, engine.pick(1, 40), unverified) == Verdict::accepted);
        for (std::int32_t k = 0; k < engine.chunks(); ++k) {
          Shape exact;
          REQUIRE(books.shape(engine.ticket, k, exact) == Verdict::accepted);
          for (std::int32_t more : {0, 1, 7}) {
            Shape const worst = books.worst_shape(exact.rows + more, exact.sequences + more);
            REQUIRE(worst.rows == std::min(exact.rows + more, 40));
            for (std::int32_t c = 0; c < books.components(); ++c) {
              ComponentShape const w = worst.components[c];
              ComponentShape const e = exact.components[c];
              bool const fits = w.restores >= e.restores && w.snapshots >= e.snapshots && w.blocks >= e.blocks;
              REQUIRE(fits);
              Lists none;
              auto const& map = engine.maps[static_cast<std::size_t>(c)];
              REQUIRE(books.plan(engine.ticket, k, c, worst, map, none) == Verdict::accepted);
            }
          }
          engine.settle(k);
        }
        for (std::size_t s = 0; s < 4; ++s) {
          if (!engine.is_open(s)) continue;
          engine.commit(s, engine.tip(s));
          Position const back = books.nearest(engine.slot(s), engine.tip(s) - engine.pick(0, 3)).position;
          REQUIRE(engine.roll_back(s, back) == Verdict::accepted);
        }
        REQUIRE(engine.error.empty());
      }
    }
  }
}

TEST_CASE("a worst shape has no more sequences than rows and nothing where there are none") {
  Books const books(good());
  REQUIRE(books.worst_shape(4, 9).sequences == 4);
  REQUIRE(books.worst_shape(9, 4).sequences == 4);
  for (std::int32_t n : {0, -1, INT32_MIN}) {
    REQUIRE(books.worst_shape(n, 5) == Shape{});
    REQUIRE(books.worst_shape(5, n).sequences == 0);
    REQUIRE(books.worst_shape(5, n).components[0].restores == 0);
  }
}

TEST_CASE("a plane overwritten in place is copied twice before a chunk where a state a token is kept") {
  BooksOptions o;
  o.slots = 4;
  o.max_rows = 8;
  o.components = {with(fold(), 3), with(fold(), 0, 4, 2), with(ring8(), 3)};
  for (std::int32_t pins : {0, 2}) {  // and once for each pin
    o.pins = pins;
    Books const books(o);
    Shape const worst = books.worst_shape(8, 4);
    CHECK(worst.components[0].restores == (pins == 0 ? 8 : 16));
    CHECK(worst.components[1].restores == (pins == 0 ? 4 : 16));
    CHECK(worst.components[2].restores == (pins == 0 ? 4 : 16));
    CHECK(books.worst_shape(8, 1).components[2].blocks == 4);  // 8 / 4, and one that was begun
  }
}

TEST_CASE("impossible numbers of batches in flight and of pins are refused") {
  BooksOptions o;
  o.components = {with(fold(), 3)};
  for (std::int32_t steps : {-1, 0, 65, INT32_MAX}) {
    BooksOptions bad = o;
    bad.steps_in_flight = steps;
    CHECK(refusal([&] { Books books(bad); }).find("steps_in_flight") != std::string::npos);
  }
  for (std::int32_t pins : {-1, 4097, INT32_MAX}) {
    BooksOptions bad = o;
    bad.pins = pins;
    CHECK(refusal([&] { Books books(bad); }).find("pins") != std::string::npos);
  }
  o.steps_in_flight = 64;
  o.pins = 4096;
  CHECK(Books(o).pins() == 4096);
}
