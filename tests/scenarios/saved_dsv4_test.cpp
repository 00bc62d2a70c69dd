// The recipes of saved_test.cpp on a `dsv4::Memory`, where HCA has no place at boundaries and every layer has a window.
#include "catch.hpp"
#include "dsv4_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

using namespace dsv4_engine;

namespace {

MemoryOptions options_of(std::int32_t per_token, Position quantum, std::int32_t aligned, std::int32_t slots = 1) {
  MemoryOptions o = small_options();
  o.slots = slots;
  o.per_token = per_token;
  o.quantum = quantum;
  o.aligned = aligned;
  o.max_rows = 700;
  return o;
}

void refuses(Engine& engine, std::size_t s, Position p, Verdict why) {
  Tokens const tokens = engine.tokens[s];
  REQUIRE(engine.roll_back(s, p) == why);
  REQUIRE(engine.tip(s) == static_cast<Position>(tokens.size()));
}

}  // namespace

TEST_CASE("BR-17 on a DSV4 memory: the first length after a boundary is saved like any other") {
  for (std::size_t n : {127U, 128U, 129U, 130U, 255U, 256U, 257U, 383U, 384U, 385U, 511U, 512U, 513U}) {
    CAPTURE(n);
    auto const p = static_cast<Position>(n);
    Engine source(options_of(3, 128, 4));
    source.feed(0, n, 1);
    for (std::size_t more : {0U, 20U}) {
      Engine other(options_of(3, 128, 4, 2));
      other.feed(1, 200, 2);
      REQUIRE(load(other, 1, saved(source, 0, p), source.tokens[0], p) == Verdict::accepted);
      equal_to_fresh_run(other, 1, more);
    }
  }
}

TEST_CASE("BR-46 on a DSV4 memory: a component without places of its own is saved, loaded and restored") {
  Engine source(options_of(0, 128, 4));
  REQUIRE(source.books().places(source.memory.component(Compressor::hca)).aligned == 0);
  source.feed(0, 400, 1);
  REQUIRE(source.roll_back(0, 256) == Verdict::accepted);
  Blob const blob = saved(source, 0, 256);
  for (LoadAs as : {LoadAs::state, LoadAs::landing}) {
    Engine other(options_of(0, 128, 4));
    REQUIRE(load(other, 0, blob, source.tokens[0], 256, as) == Verdict::accepted);
    REQUIRE(other.books().is_armed(other.slot(0)) == (as == LoadAs::landing));
    other.feed(0, 144, 2);
    equal_to_fresh_run(other, 0, 0);
    REQUIRE(other.roll_back(0, 128) == Verdict::accepted);
    equal_to_fresh_run(other, 0, 30);
  }
}

TEST_CASE("BR-47 on a DSV4 memory: what is saved while a restore is armed is the state that it restores") {
  Engine source(options_of(3, 128, 1));
  source.feed(0, 21, 1);
  REQUIRE(source.roll_back(0, 19) == Verdict::accepted);
  std::vector<float> const before = values_of_slot(source, 0);
  Blob const blob = saved(source, 0, 19);
  REQUIRE(values_of_slot(source, 0) == before);
  REQUIRE(source.books().is_armed(source.slot(0)));
  Engine other(options_of(3, 128, 1));
  REQUIRE(load(other, 0, blob, source.tokens[0], 19) == Verdict::accepted);
  REQUIRE_FALSE(other.books().is_armed(other.slot(0)));
  equal_to_fresh_run(other, 0, 0);
  equal_to_fresh_run(other, 0, 2);
  equal_to_fresh_run(source, 0, 2);
}

TEST_CASE("BR-49 on a DSV4 memory: boundaries of the sequence that a load replaced are not the loaded one's") {
  for (bool history : {false, true}) {
    CAPTURE(history);
    Engine engine(options_of(0, 128, 8, 2));
    engine.feed(0, 601, 1);
    engine.feed(1, 500, 2);  // branch Y
    Tokens const y = engine.tokens[1];
    auto const load_y = [&] {
      REQUIRE(load(engine, 0, saved(engine, 1, 500, {history, true}), y, 500) == Verdict::accepted);
    };
    load_y();
    if (history) {
      REQUIRE(engine.roll_back(0, 384) == Verdict::accepted);
      equal_to_fresh_run(engine, 0, 9);
      load_y();
    } else {
      refuses(engine, 0, 384, Verdict::beyond_reach);
    }
    engine.feed(0, 101, 3);
    REQUIRE(engine.roll_back(0, 512) == Verdict::accepted);
    equal_to_fresh_run(engine, 0, 20);
  }
}

TEST_CASE("BR-51 on a DSV4 memory: loading one sequence leaves the others alone") {
  Engine engine(options_of(3, 128, 2, 3));
  for (std::size_t s : {0U, 1U, 2U}) engine.feed(s, 100 * (s + 1), static_cast<std::uint32_t>(s));
  Blob const blob = saved(engine, 1, 200);
  Tokens const tokens = engine.tokens[1];
  engine.feed(1, 30, 5);
  std::vector<float> const first = values_of_slot(engine, 0);
  std::vector<float> const last = values_of_slot(engine, 2);
  REQUIRE(load(engine, 1, blob, tokens, 200) == Verdict::accepted);
  REQUIRE((values_of_slot(engine, 0) == first && values_of_slot(engine, 2) == last));
  REQUIRE(engine.roll_back(0, 98) == Verdict::accepted);
  REQUIRE(engine.roll_back(2, 256) == Verdict::accepted);
  for (std::size_t s : {0U, 1U, 2U}) equal_to_fresh_run(engine, s, 20);
}

TEST_CASE("BR-52 on a DSV4 memory: saving one sequence saves that one only") {
  Engine engine(options_of(3, 128, 2, 4));
  for (std::size_t s : {0U, 1U, 2U, 3U}) engine.feed(s, 150, static_cast<std::uint32_t>(s));
  Blob const blob = saved(engine, 2, 150);
  Tokens const tokens = engine.tokens[2];
  for (std::size_t s : {0U, 1U, 3U}) engine.feed(s, 20, 9);
  REQUIRE(load(engine, 2, blob, tokens, 150) == Verdict::accepted);
  for (std::size_t s : {0U, 1U, 3U}) REQUIRE(engine.tip(s) == 170);
  for (std::size_t s : {0U, 1U, 2U, 3U}) equal_to_fresh_run(engine, s, 0);

  Engine single(options_of(3, 128, 2));
  REQUIRE(load(single, 0, blob, tokens, 150) == Verdict::accepted);
  REQUIRE(saved(single, 0, 150) == blob);  // however many sequences there are
}

TEST_CASE("BR-54 on a DSV4 memory: a load brings the planes back, not only the position") {
  Engine engine(options_of(3, 128, 4));
  engine.feed(0, 300, 1);
  std::vector<float> const there = readable_state(engine.memory, 0);
  Tokens const tokens = engine.tokens[0];
  Blob const blob = saved(engine, 0, 300);
  engine.feed(0, 100, 2);
  REQUIRE(load(engine, 0, blob, tokens, 300) == Verdict::accepted);
  REQUIRE(same_bits(readable_state(engine.memory, 0), there));
  equal_to_fresh_run(engine, 0, 25);
}

TEST_CASE("BR-55 on a DSV4 memory: a state whose last landings are cut off is not loaded in part") {
  Engine source(options_of(0, 128, 4));
  source.feed(0, 600, 1);
  std::size_t const one = saved(source, 0, 600, {false, true}).size();
  Blob const whole = saved(source, 0, 600);
  std::size_t const half = (whole.size() - one) / 2;
  for (std::size_t missing : {half, half / 2, std::size_t{1}}) {
    CAPTURE(missing);
    Blob blob = whole;
    blob.resize(blob.size() - missing);
    Engine other(options_of(0, 128, 4));
    other.feed(0, 50, 2);
    MemoryLayout const layout(other.memory);
    std::vector<float> const before = values_of_slot(other, 0);
    REQUIRE(rollback::dsv4::check(other.memory, layout, LoadAs::state, Reader{blob}) == Verdict::io_failed);
    REQUIRE(values_of_slot(other, 0) == before);
    REQUIRE(other.tip(0) == 50);
    Slot slot = other.slot(0);
    REQUIRE(rollback::dsv4::load(other.memory, slot, layout, LoadAs::state, Reader{blob}) == Verdict::io_failed);
    REQUIRE(other.tip(0) == 0);
    REQUIRE(landings(other, 0).empty());
    other.tokens[0].clear();
    equal_to_fresh_run(other, 0, 140);
  }
}

TEST_CASE("BR-56 on a DSV4 memory: saved, loaded and saved again, a state has the same bytes") {
  Engine source(options_of(3, 128, 4));
  source.feed(0, 700, 1);
  for (Position p : {700, 698, 640, 512}) {
    for (bool history : {false, true}) {
      CAPTURE(p, history);
      Blob const blob = saved(source, 0, p, {history, true});
      Engine other(options_of(3, 128, 4));
      REQUIRE(load(other, 0, blob, source.tokens[0], p) == Verdict::accepted);
      REQUIRE(saved(other, 0, p, {history, true}) == blob);
    }
  }
}

TEST_CASE("BR-85 on a DSV4 memory: a place that is being saved is not written") {
  Engine engine(options_of(0, 64, 2));  // at 192 HCA has a state as well
  engine.feed(0, 200, 1);
  rollback::Hold hold;
  REQUIRE(engine.books().hold(engine.slot(0), 192, hold) == Verdict::accepted);
  std::vector<std::pair<std::byte const*, std::size_t>> places;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    rollback::StatePlaces at;
    REQUIRE(engine.books().state_at(engine.slot(0), 192, engine.memory.component(compressor),
                                    engine.memory.row_map(compressor), at) == Verdict::accepted);
    REQUIRE(at.count == 1);
    for (rollback::PlaneTensor const& tensor : engine.memory.state_tensors(compressor)) {
      auto const rows = static_cast<std::int64_t>(Memory::geometry(compressor).rows);
      places.emplace_back(tensor.base + at.rows[0] * tensor.row_bytes,
                          static_cast<std::size_t>(rows * tensor.row_bytes));
    }
  }
  auto const held_bytes = [&places] {
    std::vector<std::byte> bytes;
    for (auto const& [first, size] : places) bytes.insert(bytes.end(), first, first + size);
    return bytes;
  };
  std::vector<std::byte> const there = held_bytes();
  auto const cross = [&](int boundaries) {
    for (int i = 0; i < boundaries; ++i) {
      engine.feed(0, 64, static_cast<std::uint32_t>(i));
      bool const untouched = held_bytes() == there;
      REQUIRE(untouched);
    }
  };
  cross(5);
  Slot slot = engine.slot(0);
  REQUIRE(engine.books().clear(slot) == Verdict::accepted);  // nor by the slot's next user
  engine.tokens[0].clear();
  cross(5);
  engine.books().release(hold);
  for (std::uint32_t i = 0; i < 3; ++i) engine.feed(0, 64, i);
  REQUIRE(landings(engine, 0) == std::vector<Position>{448, 512});  // the tier is whole again
  equal_to_fresh_run(engine, 0, 5);
}
