// By example: what a slot is offered after its batch failed, chunk by chunk.
#include "catch.hpp"
#include "toy_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using rollback::BadChunk;
using rollback::Landing;
using rollback::Outcome;
using rollback::Position;
using rollback::Verdict;
using toy::Engine;
using toy::engine_options;
using toy::EngineOptions;
using toy::fold;
using toy::ring8;
using toy::with;

namespace {

constexpr BadChunk ran = BadChunk::may_have_run;
constexpr BadChunk last = BadChunk::ran_last;
constexpr BadChunk never = BadChunk::never_started;

/// The states at the last 3 tokens and at the last 4 multiples of 8, of a plane overwritten in place and of a ring.
EngineOptions options(bool entry_copy) {
  EngineOptions o = engine_options({with(fold(), 3, 8, 4), with(ring8(), 3, 8, 4)}, 2, 32, 32);
  o.books.entry_copy = entry_copy;
  return o;
}

/// An engine whose slot 0 stands at 20, with a batch of 10 rows of which the first `good` chunks ran and settled.
/// The books cut it at 24 (a multiple of 8) and before each of its last 3 states: 27, 28, 29.
Engine at_20(bool entry_copy, std::int32_t good, std::int32_t unverified = 0) {
  Engine engine(options(entry_copy));
  engine.feed(0, 20, 32);
  REQUIRE(engine.begin(std::vector<std::int32_t>(10, 0), 32, {{engine.slot(0), unverified}}) == Verdict::accepted);
  REQUIRE(engine.chunk_ends == std::vector<std::int32_t>{4, 7, 8, 9, 10});
  for (std::int32_t k = 0; k < good; ++k) engine.run(k), engine.settle(k);
  return engine;
}

/// Fails the batch, compares the one outcome, feeds the rows again and looks at everything.
void check_outcome(Engine engine, std::int32_t first_bad, BadChunk state, Position tip, bool armed, Position reach) {
  std::vector<Outcome> const outcomes = engine.fail(first_bad, state);
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].slot == engine.slot(0));
  CHECK(outcomes[0].tip == tip);
  CHECK(outcomes[0].armed == armed);
  CHECK(outcomes[0].reach == reach);
  CHECK(engine.books.tip(engine.slot(0)) == tip);
  CHECK(engine.books.is_armed(engine.slot(0)) == armed);
  CHECK(engine.check(0) == "");
  engine.feed(0, 13, 5);
  CHECK(engine.check(0) == "");
}

}  // namespace

TEST_CASE("a batch of which nothing ran leaves everything as it was") {
  for (bool entry_copy : {false, true}) {
    Engine engine = at_20(entry_copy, 0);
    check_outcome(engine, 0, never, 20, false, 8);
  }
}

TEST_CASE("what an open batch may overwrite is unlisted from its start and listed again if it survived") {
  Engine engine = at_20(false, 0);
  CHECK(listed(engine, 0) == std::vector<Position>{8, 16});
  CHECK(engine.books.reach(engine.slot(0)) == 8);
  static_cast<void>(engine.fail(0, never));
  CHECK(listed(engine, 0) == std::vector<Position>{8, 16, 17, 18, 19});
}

TEST_CASE("a plane torn in the first chunk goes back to the newest landing that the batch did not write over") {
  check_outcome(at_20(false, 0), 0, ran, 16, true, 8);  // 17, 18 and 19 may hold anything
}

TEST_CASE("where chunks run one by one the states that only later chunks write over are still there") {
  check_outcome(at_20(false, 0), 0, last, 19, true, 8);
  check_outcome(at_20(false, 1), 1, last, 24, true, 8);
  check_outcome(at_20(false, 2), 2, last, 27, true, 8);
  check_outcome(at_20(false, 4), 4, last, 29, true, 8);
  // With an entry copy nothing is lost but what the bad chunk itself writes over: in chunk 2 the place of 19.
  Engine first = at_20(true, 0);
  static_cast<void>(first.fail(0, last));
  CHECK(listed(first, 0) == std::vector<Position>{8, 16, 17, 18, 19});
  Engine third = at_20(true, 2);
  static_cast<void>(third.fail(2, last));
  CHECK(third.tip(0) == 20);
  CHECK(listed(third, 0) == std::vector<Position>{8, 16, 17});  // 18 went with 27, which chunk 1 wrote
  CHECK(third.check(0) == "");
}

TEST_CASE("chunks that ran stand where nothing of the bad one was carried out") {
  check_outcome(at_20(false, 1), 1, never, 24, false, 8);
  check_outcome(at_20(false, 3), 3, never, 28, false, 8);
}

TEST_CASE("a torn plane goes back to the newest state that a settled chunk wrote") {
  check_outcome(at_20(false, 1), 1, ran, 24, true, 8);
  check_outcome(at_20(false, 2), 2, ran, 27, true, 8);  // the last of chunk 1 is the first state per token
  check_outcome(at_20(false, 4), 4, ran, 29, true, 8);
}

TEST_CASE("chunks may be known to have run without having been settled") {
  Engine engine = at_20(false, 0);
  engine.run(0);
  engine.run(1);
  check_outcome(engine, 2, never, 27, false, 8);
  for (std::int32_t k = 2; k < 5; ++k) engine.run(k);
  check_outcome(engine, 5, ran, 30, false, 8);
}

TEST_CASE("a batch that ran as a whole but is not committed ends at its end") {
  check_outcome(at_20(false, 5), 5, never, 30, false, 8);
}

TEST_CASE("unverified rows that ran before the failure do not stand") {
  // 28 and 29 are unverified: a failure is no acceptance, so the newest landing below them is the best.
  check_outcome(at_20(false, 5, 2), 5, never, 28, true, 8);
  check_outcome(at_20(false, 4, 2), 4, ran, 28, true, 8);
  check_outcome(at_20(false, 3, 3), 3, never, 27, true, 8);
}

TEST_CASE("with an entry copy a failed batch leaves the tip as before") {
  for (std::int32_t good = 0; good < 5; ++good) {
    for (BadChunk state : {ran, last, never}) {
      CAPTURE(good, state);
      check_outcome(at_20(true, good), good, state, 20, false, 8);
    }
  }
}

TEST_CASE("an armed rollback stays armed through any failure") {
  for (bool entry_copy : {false, true}) {
    for (Position landing : {18, 16, 8}) {
      for (std::int32_t good = 0; good < 4; ++good) {
        for (BadChunk state : {ran, last, never}) {
          CAPTURE(entry_copy, landing, good, state);
          Engine engine(options(entry_copy));
          engine.feed(0, 20, 32);
          REQUIRE(engine.roll_back(0, landing) == Verdict::accepted);
          REQUIRE(engine.begin(std::vector<std::int32_t>(10, 0), 32) == Verdict::accepted);
          REQUIRE(engine.chunks() >= 4);
          for (std::int32_t k = 0; k < good; ++k) engine.run(k), engine.settle(k);
          check_outcome(engine, good, state, landing, true, 8);
        }
      }
    }
  }
}

TEST_CASE("a sequence whose first batch fails is empty again or keeps what ran") {
  for (bool entry_copy : {false, true}) {
    Engine engine(options(entry_copy));
    REQUIRE(engine.begin(std::vector<std::int32_t>(10, 0), 32) == Verdict::accepted);
    Engine torn = engine;
    check_outcome(torn, 0, ran, 0, false, 0);
    engine.run(0);
    engine.settle(0);  // up to 7
    if (entry_copy) {
      check_outcome(engine, 1, never, 0, false, 0);
    } else {
      check_outcome(engine, 1, never, 7, false, 7);
    }
  }
}

TEST_CASE("a slot that was committed before the failure keeps its tip") {
  Engine engine(options(false));
  engine.feed(0, 5, 32);
  engine.feed(1, 9, 32);
  REQUIRE(engine.begin({0, 0, 1, 1, 1, 1}, 1) == Verdict::accepted);
  for (std::int32_t k = 0; k < 3; ++k) engine.run(k), engine.settle(k);
  engine.commit(0, 7);
  std::vector<Outcome> const outcomes = engine.fail(3, ran);
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].slot == engine.slot(1));
  CHECK(engine.books.tip(engine.slot(0)) == 7);
  CHECK(engine.check(0) == "");
  CHECK(engine.check(1) == "");
}

TEST_CASE("a ticket is closed once every slot is committed or failed") {
  Engine engine = at_20(false, 2);
  static_cast<void>(engine.fail(2, ran));
  CHECK(engine.books.settle(engine.ticket, 2) == Verdict::unknown_ticket);
  CHECK(engine.books.commit(engine.ticket, engine.slot(0), 30) == Verdict::unknown_ticket);
  std::vector<Outcome> data(1);
  rollback::Outcomes outcomes{data.data(), 1, 0};
  CHECK(engine.books.fail(engine.ticket, 2, ran, outcomes) == Verdict::unknown_ticket);
}
