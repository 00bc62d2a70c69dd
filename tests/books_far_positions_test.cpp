// Far beyond 2^32 everything is as it is near 0: the same steps on two books, one of them shifted by a multiple of
// every quantum, block and ring, plan the same rows, and positions that differ by the shift alone.
#include "catch.hpp"
#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace toy;
using rollback::Landing;
using rollback::Unverified;

namespace {

constexpr Position start = 12 * 128 * 64;
constexpr Position shift = start << 24;  // about 2^40

struct Far {
  Books books;
  Slot slot;
  Ticket ticket;
  Position by;

  Far(BooksOptions const& o, Position shifted_by) : books(o), slot(books.slot(0)), by(shifted_by) {
    REQUIRE(books.adopt(slot, start + by, rollback::Adopt::live) == Verdict::accepted);
  }
  [[nodiscard]] Position tip() const { return books.tip(slot) - by; }

  Verdict begin(std::int32_t rows, std::vector<Position> const& cuts, std::int32_t unverified) {
    std::vector<Slot> const slots(static_cast<std::size_t>(rows), slot);
    std::vector<Position> positions;
    for (std::int32_t i = 0; i < rows; ++i) positions.push_back(books.head(slot) + i);
    std::vector<std::int32_t> ends;
    for (Position cut : cuts) ends.push_back(static_cast<std::int32_t>(cut - tip()));
    Unverified const u{slot, unverified};
    return books.begin(
        {slots.data(), positions.data(), rows, ends.data(), static_cast<std::int32_t>(ends.size()), &u, 1}, ticket);
  }
};

void require_shifted(std::vector<std::int64_t> const& near, std::vector<std::int64_t> const& far, std::size_t count,
                     Position by) {
  for (std::size_t i = 0; i < count; ++i) REQUIRE(near[i] + by == far[i]);
}

void require_same_plans(Far const& near, Far const& far, std::int32_t chunk) {
  Shape shape, shifted;
  REQUIRE(near.books.shape(near.ticket, chunk, shape) == Verdict::accepted);
  REQUIRE(far.books.shape(far.ticket, chunk, shifted) == Verdict::accepted);
  REQUIRE(shape == shifted);
  for (std::int32_t c = 0; c < near.books.components(); ++c) {
    CAPTURE(c);
    RowMap const map = RowMap::packed(near.books.component(c).geometry, near.books.places(c), 1);
    Planned const a = plan(near.books, near.ticket, chunk, c, shape, map);
    Planned const b = plan(far.books, far.ticket, chunk, c, shape, map);
    REQUIRE(a.verdict == Verdict::accepted);
    REQUIRE(b.verdict == Verdict::accepted);
    REQUIRE(a.restore_source == b.restore_source);
    REQUIRE(a.restore_destination == b.restore_destination);
    REQUIRE(a.snapshot_source == b.snapshot_source);
    REQUIRE(a.snapshot_destination == b.snapshot_destination);
    REQUIRE(a.persist_source == b.persist_source);
    REQUIRE(a.persist_destination == b.persist_destination);
    REQUIRE(a.block_previous == b.block_previous);
    REQUIRE(a.block_current == b.block_current);
    Position const block = near.books.component(c).geometry.block;
    if (block == 0) continue;
    auto const blocks = static_cast<std::size_t>(a.lists.blocks);
    REQUIRE(b.lists.blocks == a.lists.blocks);
    require_shifted(a.block_position, b.block_position, blocks, shift);
    require_shifted(a.block_row, b.block_row, blocks, shift / block);
    require_shifted(a.visible, b.visible, static_cast<std::size_t>(shape.rows), shift / block);
  }
  RowMap const map = RowMap::packed_window(near.books.window(0), 1, near.books.pins());
  Planned const a = plan_window(near.books, near.ticket, chunk, 0, shape, map);
  Planned const b = plan_window(far.books, far.ticket, chunk, 0, shape, map);
  REQUIRE(a.restore_source == b.restore_source);
  REQUIRE(a.snapshot_source == b.snapshot_source);
  REQUIRE(a.snapshot_destination == b.snapshot_destination);
}

}  // namespace

TEST_CASE("positions beyond 2^32 are planned and landed on like small ones") {
  EngineOptions o = engine_options({with(fold(), 3, 4, 3), with(ring8(), 3, 4, 3), with(ring128(), 3, 0, 0, 128)}, 1,
                                   40, 20, {{"raw", 9, 64}});
  o.books.pins = 1;
  o.books.pin_windows = true;
  Far near(o.books, 0);
  Far far(o.books, shift);
  std::mt19937 random(1);
  auto const pick = [&](Position n) { return static_cast<Position>(random() % static_cast<std::uint32_t>(n)); };
  std::int32_t back = 0;
  std::int32_t pinned = 0;
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i, near.tip());
    REQUIRE(far.tip() == near.tip());
    if (pick(5) == 0) {
      Position const p = near.tip() - pick(8);
      Verdict const verdict = near.books.pin(near.slot, p);
      REQUIRE(far.books.pin(far.slot, p + shift) == verdict);
      pinned += verdict == Verdict::accepted ? 1 : 0;
    }
    for (Position p : listed(near.books, near.slot)) {
      if (pick(4) != 0 || !near.books.is_pinned(near.slot, p)) continue;
      REQUIRE(near.books.unpin(near.slot, p) == Verdict::accepted);
      REQUIRE(far.books.unpin(far.slot, p + shift) == Verdict::accepted);
    }
    if (pick(3) == 0) {
      Position const wanted = near.tip() - pick(14);
      Landing const a = near.books.nearest(near.slot, wanted);
      Landing const b = far.books.nearest(far.slot, wanted + shift);
      if (a.position > 0) {
        REQUIRE(a.position + shift == b.position);
        REQUIRE(a.why == b.why);
        REQUIRE(a.tier == b.tier);
        REQUIRE(a.limited_by == b.limited_by);
        REQUIRE(near.books.roll_back(near.slot, a.position) == Verdict::accepted);
        REQUIRE(far.books.roll_back(far.slot, b.position) == Verdict::accepted);
        ++back;
      }
    }
    auto const rows = static_cast<std::int32_t>(1 + pick(20));
    Position const end = near.tip() + rows;
    std::vector<Position> cuts;
    for (Position at = near.tip(); at < end;) {
      Position const cut = near.books.next_cut(near.slot, at, end);
      REQUIRE(far.books.next_cut(far.slot, at + shift, end + shift) == cut + shift);
      cuts.push_back(at = cut);
    }
    auto const unverified = static_cast<std::int32_t>(pick(std::min(rows, 3) + 1));
    REQUIRE(near.begin(rows, cuts, unverified) == Verdict::accepted);
    REQUIRE(far.begin(rows, cuts, unverified) == Verdict::accepted);
    for (std::size_t k = 0; k < cuts.size(); ++k) {
      auto const chunk = static_cast<std::int32_t>(k);
      require_same_plans(near, far, chunk);
      REQUIRE(near.books.settle(near.ticket, chunk) == Verdict::accepted);
      REQUIRE(far.books.settle(far.ticket, chunk) == Verdict::accepted);
    }
    Position const accepted = end - pick(unverified + 1);
    REQUIRE(near.books.commit(near.ticket, near.slot, accepted) == Verdict::accepted);
    REQUIRE(far.books.commit(far.ticket, far.slot, accepted + shift) == Verdict::accepted);
    std::vector<Position> const a = listed(near.books, near.slot);
    std::vector<Position> const b = listed(far.books, far.slot);
    REQUIRE(a.size() == b.size());
    require_shifted(a, b, a.size(), shift);
  }
  CHECK(back > 100);
  CHECK(pinned > 20);
}
