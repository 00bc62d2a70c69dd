// Relative batches: the device knows first. Books that plan one batch after another stand for the device; those of the
// host open batches ahead, are told later what was accepted, and must come to the same plans and the same landings.
#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

using namespace toy;

namespace {

BooksOptions options(bool in_place, std::int32_t slots, std::int32_t steps, std::int32_t per_token, bool entry_copy) {
  BooksOptions o;
  o.slots = slots;
  o.max_rows = 8 * slots;
  o.max_chunks = 8;
  o.steps_in_flight = steps;
  o.entry_copy = entry_copy;
  o.pins = 2;
  for (Component c : {ring8(), in_place ? fold() : ring128()}) {
    c.per_token = per_token;
    c.quantum = 8;
    c.aligned = 3;
    o.components.push_back(c);
  }
  o.windows = {{"raw", 9, 8 + (steps + 1) * 8 * slots}};
  return o;
}

bool same(Planned const& a, Planned const& b) {
  return a.restore_source == b.restore_source && a.restore_destination == b.restore_destination &&
         a.snapshot_source == b.snapshot_source && a.snapshot_destination == b.snapshot_destination &&
         a.persist_source == b.persist_source && a.persist_destination == b.persist_destination &&
         a.block_previous == b.block_previous && a.block_current == b.block_current && a.block_slot == b.block_slot &&
         a.block_row == b.block_row && a.block_position == b.block_position && a.visible == b.visible;
}

/// A batch as the device ran it, of which the host has yet to be told.
struct Step {
  Ticket ticket;
  std::vector<Slot> slots;
  std::vector<Position> accepted;
  std::int32_t chunks = 0;
  std::vector<Shape> shapes;                  // of every chunk
  std::vector<std::vector<Planned>> planned;  // of every chunk and component
  bool cleared = false;                       // a slot of it was cleared since
};

/// Both books, and the steps between them.
struct Pair {
  Books host, device;
  std::mt19937 random;
  bool in_place;
  std::vector<RowMap> maps;
  std::deque<Step> steps;
  std::int64_t compared = 0, waited = 0, partial = 0;

  Pair(BooksOptions const& o, bool with_fold, std::uint32_t seed)
      : host(o), device(o), random(seed), in_place(with_fold) {
    for (std::int32_t c = 0; c < host.components(); ++c) {
      maps.push_back(RowMap::packed(host.component(c).geometry, host.places(c), host.slots(), 1 << 20));
    }
  }
  std::int32_t pick(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(high - low + 1));
  }
  /// Steps of which the host has yet to be told for the slot.
  [[nodiscard]] std::ptrdiff_t waiting(Slot slot) const {
    return std::count_if(steps.begin(), steps.end(), [slot](Step const& step) {
      return std::find(step.slots.begin(), step.slots.end(), slot) != step.slots.end();
    });
  }
  [[nodiscard]] bool waits(Slot slot) const { return waiting(slot) > 0; }

  /// The host opens a batch of rows that follow the device's tips, and the device runs it at once.
  void launch() {
    Step step;
    std::vector<Slot> row_slots;
    std::vector<Position> relative, positions;
    std::vector<std::int32_t> ends;
    std::vector<Unverified> unverified;
    std::vector<std::int32_t> rows(static_cast<std::size_t>(host.slots()));
    for (std::int32_t& n : rows) n = pick(0, 3) == 0 ? 0 : pick(1, 6);
    if (std::all_of(rows.begin(), rows.end(), [](std::int32_t n) { return n == 0; })) rows[0] = 3;
    for (std::int32_t i = 0; i < 6; ++i) {
      for (std::int32_t s = 0; s < host.slots(); ++s) {
        if (rows[static_cast<std::size_t>(s)] <= i) continue;
        Slot const slot = host.slot(s);
        row_slots.push_back(slot);
        relative.push_back(i);
        positions.push_back(device.tip(slot) + i);
      }
      auto const end = static_cast<std::int32_t>(row_slots.size());
      if (end > (ends.empty() ? 0 : ends.back()) && (in_place || i == 5 || pick(0, 2) == 0)) ends.push_back(end);
    }
    auto const count = static_cast<std::int32_t>(row_slots.size());
    if (ends.back() < count) ends.push_back(count);
    if (!in_place && pick(0, 3) == 0) {  // padding
      row_slots.push_back(Slot{});
      relative.push_back(-3);
      positions.push_back(-3);
      ++ends.back();
    }
    for (std::int32_t s = 0; s < host.slots(); ++s) {
      std::int32_t const n = rows[static_cast<std::size_t>(s)];
      if (n > 0) unverified.push_back({host.slot(s), pick(0, std::min(n, host.per_token()))});
    }
    Batch batch{row_slots.data(),
                relative.data(),
                static_cast<std::int32_t>(row_slots.size()),
                ends.data(),
                static_cast<std::int32_t>(ends.size()),
                unverified.data(),
                static_cast<std::int32_t>(unverified.size())};
    batch.relative = true;
    REQUIRE(host.begin(batch, step.ticket) == Verdict::accepted);
    batch.positions = positions.data();
    batch.relative = false;
    Ticket ticket;
    REQUIRE(device.begin(batch, ticket) == Verdict::accepted);
    step.chunks = batch.chunks;
    for (std::int32_t k = 0; k < batch.chunks; ++k) {
      step.shapes.emplace_back();
      REQUIRE(device.shape(ticket, k, step.shapes.back()) == Verdict::accepted);
      step.planned.emplace_back();
      for (std::int32_t c = 0; c < device.components(); ++c) {
        step.planned.back().push_back(
            plan(device, ticket, k, c, step.shapes.back(), maps[static_cast<std::size_t>(c)]));
      }
      REQUIRE(device.settle(ticket, k) == Verdict::accepted);
    }
    for (Unverified const& u : unverified) {
      Position const end = device.head(u.slot);
      Position const accepted = end - pick(0, u.rows);
      if (accepted < end) ++partial;
      REQUIRE(device.commit(ticket, u.slot, accepted) == Verdict::accepted);
      step.slots.push_back(u.slot);
      step.accepted.push_back(accepted);
    }
    steps.push_back(std::move(step));
  }

  /// What the host plans, if it can, is what the device did.
  void compare(Step const& step) {
    for (std::int32_t k = 0; k < step.chunks && !step.cleared; ++k) {
      for (std::int32_t c = 0; c < host.components(); ++c) {
        auto const i = static_cast<std::size_t>(k);
        Planned const p = plan(host, step.ticket, k, c, step.shapes[i], maps[static_cast<std::size_t>(c)]);
        Shape shape;
        REQUIRE(host.shape(step.ticket, k, shape) == p.verdict);
        if (p.verdict == Verdict::in_flight) {
          REQUIRE(&step != &steps.front());
          ++waited;
          continue;
        }
        REQUIRE(p.verdict == Verdict::accepted);
        REQUIRE(shape == step.shapes[i]);
        REQUIRE(same(p, step.planned[i][static_cast<std::size_t>(c)]));
        ++compared;
      }
    }
  }

  /// The host is told of the oldest step.
  void observe() {
    Step& step = steps.front();
    compare(step);
    for (std::int32_t k = 0; k < step.chunks; ++k) static_cast<void>(host.settle(step.ticket, k));
    for (std::size_t i = 0; i < step.slots.size(); ++i) {
      Slot const slot = step.slots[i];
      if (host.slot(slot.index) != slot) {
        REQUIRE(host.observe(step.ticket, slot, step.accepted[i]) != Verdict::accepted);
        continue;
      }
      bool const younger = std::any_of(steps.begin() + 1, steps.end(), [slot](Step const& other) {
        return std::find(other.slots.begin(), other.slots.end(), slot) != other.slots.end();
      });
      if (younger) REQUIRE(host.commit(step.ticket, slot, step.accepted[i]) == Verdict::in_flight);
      REQUIRE(host.observe(step.ticket, slot, step.accepted[i]) == Verdict::accepted);
      REQUIRE(host.tip(slot) == step.accepted[i]);
    }
    steps.pop_front();
  }

  /// What the host lists is there; where it was told all, it lists all.
  void check() {
    for (std::int32_t s = 0; s < host.slots(); ++s) {
      Slot const slot = host.slot(s);
      REQUIRE(device.slot(s) == slot);
      std::vector<Position> const all = listed(device, slot);
      if (waits(slot)) {
        REQUIRE(host.head(slot) >= device.tip(slot));
        REQUIRE(host.can_land(slot, 0) == Verdict::in_flight);
        for (Position p : listed(host, slot)) {
          CAPTURE(s, p, host.tip(slot), device.tip(slot));
          if (waiting(slot) == 1) break;  // planned by the host: what it lists while a batch is open is told elsewhere
          REQUIRE((p == device.tip(slot) || std::binary_search(all.begin(), all.end(), p)));
        }
      } else {
        REQUIRE(host.tip(slot) == device.tip(slot));
        REQUIRE(host.head(slot) == device.tip(slot));
        REQUIRE(host.is_armed(slot) == device.is_armed(slot));
        REQUIRE(host.live_place(slot) == device.live_place(slot));
        REQUIRE(host.oldest_row(slot, 0) == device.oldest_row(slot, 0));
        REQUIRE(listed(host, slot) == all);
      }
    }
  }

  void clear(std::int32_t s) {
    Slot slot = host.slot(s);
    for (Step& step : steps) {
      step.cleared = step.cleared || std::find(step.slots.begin(), step.slots.end(), slot) != step.slots.end();
    }
    Slot same_slot = slot;
    REQUIRE(host.clear(slot) == Verdict::accepted);
    REQUIRE(device.clear(same_slot) == Verdict::accepted);
  }
  void roll_back(std::int32_t s) {
    Slot const slot = host.slot(s);
    Position const p = device.nearest(slot, pick(0, static_cast<std::int32_t>(device.tip(slot)))).position;
    if (waits(slot)) {
      REQUIRE(host.roll_back(slot, p) == Verdict::in_flight);
    } else {
      REQUIRE(host.roll_back(slot, p) == Verdict::accepted);
      REQUIRE(device.roll_back(slot, p) == Verdict::accepted);
    }
  }
  void pin(std::int32_t s) {
    Slot const slot = host.slot(s);
    if (waits(slot)) return;
    Position const p = device.tip(slot) + pick(0, 9);
    REQUIRE(host.pin(slot, p) == device.pin(slot, p));
    if (pick(0, 1) == 0) REQUIRE(host.unpin(slot, p) == device.unpin(slot, p));
  }

  void walk(int turns) {
    for (int turn = 0; turn < turns; ++turn) {
      CAPTURE(turn);
      if (static_cast<std::int32_t>(steps.size()) < host.steps_in_flight() && pick(0, 2) > 0) launch();
      if (!steps.empty() && pick(0, 1) == 0) observe();
      if (!steps.empty())
        compare(steps[static_cast<std::size_t>(pick(0, static_cast<std::int32_t>(steps.size()) - 1))]);
      std::int32_t const s = pick(0, host.slots() - 1);
      if (pick(0, 29) == 0) clear(s);
      if (pick(0, 3) == 0) roll_back(s);
      if (pick(0, 3) == 0) pin(s);
      check();
    }
    while (!steps.empty()) observe();
    check();
  }
};

/// A relative batch of one chunk of one slot.
Verdict ahead(Books& books, Slot slot, std::int32_t rows, std::int32_t unverified, Ticket& ticket, Position first = 0,
              bool relative = true) {
  std::vector<Slot> const slots(static_cast<std::size_t>(rows), slot);
  std::vector<Position> positions;
  for (std::int32_t i = 0; i < rows; ++i) positions.push_back(first + i);
  Unverified const u{slot, unverified};
  Batch batch{slots.data(), positions.data(), rows, &rows, 1, &u, 1};
  batch.relative = relative;
  return books.begin(batch, ticket);
}

void fed(Books& books, Slot slot, std::int32_t rows) {
  for (std::int32_t i = 0; i < rows; i += 8) {
    Ticket t;
    REQUIRE(ahead(books, slot, std::min(rows - i, 8), 0, t) == Verdict::accepted);
    REQUIRE(books.settle(t, 0) == Verdict::accepted);
    REQUIRE(books.commit(t, slot, books.head(slot)) == Verdict::accepted);
  }
}

}  // namespace

TEST_CASE("told later, the books plan and list what the device planned and keeps") {
  for (std::uint32_t v = 0; v < 16; ++v) {
    bool const in_place = (v & 1) != 0;
    auto const steps = static_cast<std::int32_t>(1 + v / 2 % 4);
    std::int32_t const slots = v % 3 == 0 ? 1 : 3;
    CAPTURE(v, in_place, steps, slots);
    Pair pair(options(in_place, slots, steps, v % 5 == 0 ? 12 : 6, v % 3 == 1), in_place, v);
    pair.walk(1500);
    CHECK(pair.compared > 500);
    CHECK(pair.partial > 200);
    if (steps > 1) CHECK(pair.waited > 100);
  }
}

TEST_CASE("told later of 256 slots, one step is always ahead") {
  Pair pair(options(false, 256, 2, 6, false), false, 1);
  for (int step = 0; step < 60; ++step) {
    pair.launch();
    if (pair.steps.size() == 2) pair.observe();
    if (step % 7 == 3) pair.clear(pair.pick(0, 255));
    if (step % 10 == 9) pair.check();
  }
  while (!pair.steps.empty()) pair.observe();
  pair.check();
  CHECK(pair.partial > 1000);
}

TEST_CASE("where a relative batch starts is refused, told and asked for in order") {
  Books books(options(false, 2, 3, 6, false));
  Slot const slot = books.slot(0);
  fed(books, slot, 20);
  Ticket first, second, third, refused;
  REQUIRE(ahead(books, slot, 4, 3, first, 1) == Verdict::position_gap);
  REQUIRE(ahead(books, slot, 4, 3, first, -1) == Verdict::negative_position);
  REQUIRE(ahead(books, slot, 4, 3, first, INT64_MAX - 4) == Verdict::position_gap);
  REQUIRE(ahead(books, slot, 4, 3, first) == Verdict::accepted);  // known: nothing of the slot is open
  Shape shape;
  REQUIRE(books.shape(first, 0, shape) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 4, 7, second) == Verdict::bad_unverified);
  REQUIRE(ahead(books, slot, 8, 7, second) == Verdict::too_many_unverified);
  REQUIRE(ahead(books, slot, 6, 6, second) == Verdict::accepted);  // of its own rows alone
  REQUIRE(books.head(slot) == 30);
  REQUIRE(books.shape(second, 0, shape) == Verdict::in_flight);
  REQUIRE(ahead(books, slot, 2, 0, refused, 30, false) == Verdict::in_flight);  // nobody knows that it starts at 30
  REQUIRE(ahead(books, slot, 2, 0, third) == Verdict::accepted);
  REQUIRE(books.settle(first, 0) == Verdict::accepted);
  REQUIRE(books.settle(second, 0) == Verdict::accepted);  // it ran, wherever
  REQUIRE(books.observe(second, slot, 28) == Verdict::out_of_order);
  REQUIRE(books.commit(first, slot, 22) == Verdict::in_flight);
  REQUIRE(books.observe(first, slot, 20) == Verdict::outside_batch);
  REQUIRE(books.observe(first, slot, 22) == Verdict::accepted);
  REQUIRE(books.observe(first, slot, 22) == Verdict::unknown_ticket);
  REQUIRE(books.head(slot) == 30);  // 22 + 6 + 2
  REQUIRE(books.shape(second, 0, shape) == Verdict::accepted);
  REQUIRE(books.shape(third, 0, shape) == Verdict::in_flight);
  REQUIRE(books.observe(second, slot, 28) == Verdict::accepted);
  REQUIRE(books.observe(third, slot, 30) == Verdict::not_settled);
  REQUIRE(books.settle(third, 0) == Verdict::accepted);
  REQUIRE(books.commit(third, slot, 30) == Verdict::accepted);  // nothing waits for it
  REQUIRE(books.tip(slot) == 30);
}

TEST_CASE("a relative batch must not go on from one that was planned as if all were accepted") {
  Books books(options(false, 1, 3, 6, false));
  Slot const slot = books.slot(0);
  Ticket first, second, third;
  REQUIRE(ahead(books, slot, 4, 2, first, 0, false) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 0, second, 4, false) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 1, 0, third) == Verdict::in_flight);
}

TEST_CASE("a relative batch needs places of its slot's own") {
  Books books(options(false, 2, 2, 6, false));
  Slot slot = books.slot(0);
  Slot other = books.slot(1);
  fed(books, slot, 20);
  Ticket first, second;
  rollback::Hold hold;
  REQUIRE(books.hold(slot, 16, hold) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 1, first) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 1, second) == Verdict::shared_places);
  books.release(hold);
  REQUIRE(ahead(books, slot, 2, 1, second) == Verdict::accepted);
  REQUIRE(books.hold(slot, 16, hold) == Verdict::in_flight);
  rollback::StatePlaces places;
  REQUIRE(books.state_at(slot, 16, 0, RowMap{}, places) == Verdict::in_flight);
  REQUIRE(books.pin(slot, 23) == Verdict::in_flight);
  REQUIRE(books.pin(slot, 40) == Verdict::accepted);
  REQUIRE(books.unpin(slot, 40) == Verdict::in_flight);
  for (Ticket const& t : {first, second}) {
    REQUIRE(books.settle(t, 0) == Verdict::accepted);
    REQUIRE(books.observe(t, slot, books.tip(slot) + 1) == Verdict::accepted);
  }
  REQUIRE(books.fork(slot, 16, other) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 1, first) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 1, second) == Verdict::shared_places);

  REQUIRE(books.clear(slot) == Verdict::accepted);  // nor may a pin be held
  REQUIRE(books.pin(slot, 5) == Verdict::accepted);
  fed(books, slot, 40);
  REQUIRE(books.hold(slot, 5, hold) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 1, first) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 1, second) == Verdict::shared_places);
}

TEST_CASE("planes overwritten in place run one row at a time where positions are not known") {
  Books books(options(true, 1, 2, 6, false));
  Slot const slot = books.slot(0);
  Ticket first, second;
  REQUIRE(ahead(books, slot, 1, 1, first) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 2, 0, second) == Verdict::cut_needed);
  REQUIRE(ahead(books, slot, 1, 0, second) == Verdict::accepted);
}

TEST_CASE("the live place of each open batch is known once the batch is planned") {
  Books books(options(false, 2, 3, 6, true));
  Slot const slot = books.slot(0);
  fed(books, slot, 20);
  Ticket first, second, third;
  REQUIRE(ahead(books, slot, 1, 1, first) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 1, 1, second) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 1, 1, third) == Verdict::accepted);
  std::int32_t const place = books.live_place(first, slot);
  REQUIRE(place >= 0);
  REQUIRE(books.live_place(slot) == place);
  REQUIRE(books.live_place(second, slot) == -1);
  REQUIRE(books.live_place(third, slot) == -1);
  REQUIRE(books.live_place(first, books.slot(1)) == -1);
  REQUIRE(books.live_place(first, Slot{0, slot.generation + 1}) == -1);
  REQUIRE(books.settle(first, 0) == Verdict::accepted);
  REQUIRE(books.observe(first, slot, 21) == Verdict::accepted);
  REQUIRE(books.live_place(first, slot) == -1);
  REQUIRE(books.live_place(second, slot) == (place + 1) % 4);
  REQUIRE(books.live_place(slot) == (place + 1) % 4);
  REQUIRE(books.live_place(third, slot) == -1);
}

TEST_CASE("a failure takes relative batches along; where they may have run nobody knows what they overwrote") {
  for (BadChunk state : {BadChunk::never_started, BadChunk::ran_last, BadChunk::may_have_run}) {
    for (bool settled : {false, true}) {
      bool const entry_copy = GENERATE(false, true);
      CAPTURE(static_cast<int>(state), settled, entry_copy);
      Books books(options(false, 1, 2, 6, entry_copy));
      Slot const slot = books.slot(0);
      fed(books, slot, 20);
      Ticket first, second;
      REQUIRE(ahead(books, slot, 3, 3, first) == Verdict::accepted);
      REQUIRE(ahead(books, slot, 3, 3, second) == Verdict::accepted);
      if (settled) {
        REQUIRE(books.settle(first, 0) == Verdict::accepted);
        REQUIRE(books.settle(second, 0) == Verdict::accepted);
      }
      Outcome outcome;
      Outcomes outcomes{&outcome, 1, 0};
      REQUIRE(books.fail(first, settled ? 1 : 0, state, outcomes) == Verdict::accepted);
      REQUIRE(outcomes.count == 1);
      bool const nowhere = settled || state == BadChunk::may_have_run;
      bool const kept = entry_copy || state == BadChunk::never_started;
      REQUIRE(outcome.tip == (nowhere ? 0 : kept ? 20 : 19));
      REQUIRE(books.tip(slot) == outcome.tip);
      REQUIRE(outcome.reach == books.reach(slot));
      REQUIRE(outcome.armed == books.is_armed(slot));
      REQUIRE(books.head(slot) == outcome.tip);
      if (nowhere) REQUIRE(listed(books, slot).empty());
      fed(books, slot, 40);
      REQUIRE(books.head(slot) == outcome.tip + 40);
    }
  }
}

TEST_CASE("a cleared slot's relative batches are padding, and its next user starts at 0") {
  Books books(options(false, 1, 3, 6, false));
  Slot slot = books.slot(0);
  fed(books, slot, 20);
  Slot const old = slot;
  Ticket first, second, third;
  REQUIRE(ahead(books, slot, 3, 3, first) == Verdict::accepted);
  REQUIRE(ahead(books, slot, 3, 3, second) == Verdict::accepted);
  REQUIRE(books.clear(slot) == Verdict::accepted);
  REQUIRE(books.head(slot) == 0);
  REQUIRE(ahead(books, old, 3, 3, third) == Verdict::stale_slot);
  REQUIRE(ahead(books, slot, 3, 3, third) == Verdict::accepted);
  REQUIRE(books.settle(third, 0) == Verdict::accepted);
  REQUIRE(books.observe(first, old, 20) == Verdict::unknown_ticket);
  REQUIRE(books.observe(third, slot, 2) == Verdict::accepted);
  REQUIRE(books.tip(slot) == 2);
}
