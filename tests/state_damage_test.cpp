// 100,000 damaged states: each is refused, or is the state that was saved; nothing of a refused one is ever seen.
#include "catch.hpp"
#include "toy_pinned.hpp"
#include "toy_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

using namespace toy;
using rollback::LoadAs;

namespace {

EngineOptions made_for(bool context) {
  EngineOptions o = engine_options({with(fold(), 2, 8, 2), with(ring8(), 2, 8, 2)}, 2, 24, 24, {{"raw", 5, 80}});
  o.context = 128;
  o.books.max_context = context ? 128 : 0;
  return o;
}

/// One change: cut off, bits turned, two stretches swapped, or a number put somewhere.
Blob damaged(Blob blob, std::mt19937& random) {
  auto const pick = [&random](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::size_t const n = blob.size();
  switch (pick(5)) {
    case 0:
      blob.resize(pick(n));
      break;
    case 1:
      for (std::size_t i = 1 + pick(8); i > 0; --i) { blob[pick(n)] ^= static_cast<unsigned char>(1u << pick(8)); }
      break;
    case 2: {
      std::size_t const length = 1 + pick(n / 2);
      std::size_t const a = pick(n - length + 1);
      std::size_t const b = pick(n - length + 1);
      if (std::max(a, b) - std::min(a, b) < length) break;  // they overlap
      std::swap_ranges(blob.begin() + static_cast<std::ptrdiff_t>(a),
                       blob.begin() + static_cast<std::ptrdiff_t>(a + length),
                       blob.begin() + static_cast<std::ptrdiff_t>(b));
      break;
    }
    case 3: {  // a size, a count or a position
      static constexpr std::uint64_t numbers[] = {
          0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0x7fffffffffffffff, 0xffffffffffffffff, std::uint64_t{1} << 40};
      std::uint64_t const number = numbers[pick(std::size(numbers))];
      std::size_t const at = pick(std::min<std::size_t>(n, 400));
      for (std::size_t i = 0; i < 8 && at + i < n; ++i) blob[at + i] = static_cast<unsigned char>(number >> (8 * i));
      break;
    }
    default:
      blob.insert(blob.begin() + static_cast<std::ptrdiff_t>(pick(n)), 1 + pick(16), static_cast<unsigned char>(7));
  }
  return blob;
}

}  // namespace

TEST_CASE("100,000 damaged states are refused or loaded as they were") {
  std::mt19937 random(5);
  int refused = 0;
  int loaded = 0;
  int emptied = 0;
  for (int round = 0; round < 100; ++round) {
    EngineOptions const o = made_for(round % 2 == 0);
    Engine source(o, static_cast<std::uint32_t>(round));
    while (source.tip(0) < 10 + round / 2) source.feed(0, source.pick(1, 12), 5);
    Position const p = source.books.nearest(source.slots[0], source.pick(1, source.tip(0))).position;
    Blob blob;
    REQUIRE(save(source, 0, p, blob) == Verdict::accepted);
    std::vector<Position> const landings = saved_landings(source, 0, p);
    Engine engine(o, 9);
    engine.feed(1, 20, 6);
    for (int i = 0; i < 1000; ++i) {
      CAPTURE(round, i);
      if (i % 50 == 0) {  // something that a refusal may cost
        engine.clear(0);
        engine.feed(0, 20, 6);
      }
      Blob const bad = damaged(blob, random);
      LoadAs const as = i % 2 == 0 ? LoadAs::state : LoadAs::landing;
      Position const before = engine.books.tip(engine.slots[0]);
      Slot const slot = engine.slots[0];
      Verdict const verdict = load(engine, 0, bad, source.history[0], p, landings, as);
      if (verdict == Verdict::accepted) {
        ++loaded;
        bool const same = bad == blob || std::equal(blob.begin(), blob.end(), bad.begin());  // bytes may follow it
        REQUIRE(same);
        REQUIRE(engine.check(0) == "");
        continue;
      }
      ++refused;
      if (engine.slots[0] == slot) {
        REQUIRE(engine.books.tip(slot) == before);
      } else {
        ++emptied;
        REQUIRE(engine.books.tip(engine.slots[0]) == 0);
        REQUIRE(engine.books.landings(engine.slots[0], nullptr, 0) == 0);
        engine.history[0].truncate(0);
        engine.expected[0].clear();
        if (i % 10 == 0) engine.feed(0, 20, 6);  // no trace of it in what follows
      }
      if (i % 25 == 0) REQUIRE(engine.check(0) == "");
    }
    REQUIRE(engine.check(1) == "");
  }
  CHECK(refused > 80000);
  CHECK(loaded > 100);
  CHECK(emptied > 10000);
}

TEST_CASE("damaged states of pins with window rows are refused or loaded as they were") {
  std::mt19937 random(6);
  EngineOptions o = engine_options({with(fold(), 2)}, 2, 12, 6, {{"raw", 5, 4 + 6 + 2}, {"other", 3, 2 + 6 + 2}});
  o.books.pins = 3;
  o.books.pin_windows = true;
  Pinned source(o);
  for (Position p : {3, 17}) REQUIRE(source.books.pin(source.slots[0], p) == Verdict::accepted);
  while (source.tip(0) < 60) REQUIRE(source.go_on(0, 12, 6) == "");
  Blob blob;
  REQUIRE(save(source, 0, 60, blob) == Verdict::accepted);
  Pinned engine(o, 9);
  REQUIRE(engine.go_on(1, 12, 6) == "");
  ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
  int refused = 0;
  int loaded = 0;
  for (int i = 0; i < 20000; ++i) {
    CAPTURE(i);
    Blob const bad = i % 100 == 0 ? blob : damaged(blob, random);
    StateSource reader{engine.storage, bad};
    Slot const slot = engine.slots[0];
    Verdict const verdict = rollback::load(engine.books, engine.slots[0], toy.layout, LoadAs::state, reader);
    if (verdict == Verdict::accepted) {
      ++loaded;
      bool const same = std::equal(blob.begin(), blob.end(), bad.begin());  // bytes may follow it
      REQUIRE(same);
      engine.history[0] = source.history[0];
      REQUIRE(engine.differs(0) == "");
      for (Position p : {3, 17}) REQUIRE(engine.lands(0, p, 6) == "");
      continue;
    }
    ++refused;
    if (engine.slots[0] == slot) continue;
    REQUIRE(engine.books.tip(engine.slots[0]) == 0);
    REQUIRE(engine.books.landings(engine.slots[0], nullptr, 0) == 0);
  }
  REQUIRE(engine.differs(1) == "");
  CHECK(refused > 15000);
  CHECK(loaded >= 200);
}

TEST_CASE("a header whose checksum is right and whose numbers contradict each other is refused") {
  EngineOptions o = engine_options({with(fold(), 2)}, 1, 12, 6, {{"raw", 5, 4 + 6 + 2}});
  o.books.pins = 1;
  o.books.pin_windows = true;
  Pinned source(o);
  REQUIRE(source.books.pin(source.slots[0], 3) == Verdict::accepted);
  while (source.tip(0) < 36) REQUIRE(source.go_on(0, 12, 6) == "");
  Blob blob;
  REQUIRE(save(source, 0, 36, blob) == Verdict::accepted);
  // The landings end the header: 35, 34 and 3, of 12 bytes each, then its checksum; their count precedes them.
  std::size_t header = 0;
  for (std::size_t at = 0; at + 12 <= blob.size() && header == 0; ++at) {
    if (blob[at] == 3 && blob[at + 8] == 3 && blob[at - 12] == 34) header = at + 12;
  }
  REQUIRE(header > 0);
  auto const verdict_of = [&](Blob changed) {
    rollback::Checksum sum;
    sum.reset(0);
    sum.update(changed.data(), header);
    for (std::size_t i = 0; i < 8; ++i) changed[header + i] = static_cast<unsigned char>(sum.digest() >> (8 * i));
    Pinned engine(o);
    ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
    StateSource reader{engine.storage, changed};
    return rollback::check(engine.books, toy.layout, LoadAs::state, reader);
  };
  auto const verdict_with = [&](std::size_t at, int value) {
    Blob changed = blob;
    changed[at] = static_cast<unsigned char>(value);
    return verdict_of(changed);
  };
  REQUIRE(verdict_with(header - 4, 3) == Verdict::accepted);
  for (int flags : {0, 1, 2, 4, 5, 7}) REQUIRE(verdict_with(header - 4, flags) == Verdict::damaged);
  for (int flags : {2, 3, 4}) REQUIRE(verdict_with(header - 16, flags) == Verdict::damaged);
  std::size_t const oldest = header - 3 * 12 - 8 - 8;
  REQUIRE(blob[oldest] == 30);
  for (int row : {0, 29, 31, 32, 36, 200}) REQUIRE(verdict_with(oldest, row) == Verdict::damaged);
  std::size_t const total = oldest - 8 - 8;
  REQUIRE(blob[total] + 256 * blob[total + 1] + 65536 * blob[total + 2] == static_cast<int>(blob.size()));
  for (int change : {-1, 1}) REQUIRE(verdict_with(total, blob[total] + change) == Verdict::damaged);
  std::size_t const flags_at = sizeof rollback::detail::state_magic + 4;
  REQUIRE(blob[flags_at] == 1);
  for (int flags : {2, 3, 128}) REQUIRE(verdict_with(flags_at, flags) == Verdict::damaged);
  // A tip below the first landing, whatever the size that goes with it; no sums, so that the header alone tells.
  std::size_t const tip = oldest - 8;
  REQUIRE(blob[tip] == 36);
  for (std::size_t bytes = header; bytes <= blob.size(); ++bytes) {
    Blob changed = blob;
    changed[flags_at] = 0;
    changed[tip] = 33;
    for (std::size_t i = 0; i < 3; ++i) changed[total + i] = static_cast<unsigned char>(bytes >> (8 * i));
    CAPTURE(bytes);
    REQUIRE(verdict_of(changed) == Verdict::damaged);
    changed[tip] = 36;
    changed[header - 4] = 2;  // and a pin far below the rings that has no rows
    REQUIRE(verdict_of(changed) == Verdict::damaged);
  }
}
