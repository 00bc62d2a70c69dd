// Batches that do not end well, on the whole decoder: a failure in every chunk, and drafts that are rejected in part.
#include "catch.hpp"
#include "engine.hpp"
#include "readable_state.hpp"
#include "tiny_model.hpp"

#include <limits>

namespace {

using rollback::BadChunk;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Position;
using rollback::Verdict;

constexpr float poison = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t depth = 5;
constexpr Position entry = 391;  // where the batch that fails starts; in the middle of blocks of both ratios
constexpr std::int32_t chunk_rows = 29;
constexpr std::size_t batch_rows = 140;  // past the boundary 512, in five chunks

rollback::dsv4::MemoryOptions options_of(bool entry_copy) {
  rollback::dsv4::MemoryOptions options;
  options.per_token = depth;
  options.aligned = 3;
  options.max_context = 1024;
  options.max_rows = 512;
  options.max_chunk_rows = 200;
  options.entry_copy = entry_copy;
  return options;
}

// What feeding the surviving tokens to an empty memory gives: the logits of the last `rows`, and the state.
struct Fresh {
  std::vector<float> logits;
  std::vector<float> state;
};
Fresh fresh_run(std::vector<std::int32_t> const& tokens, std::size_t rows) {
  rollback::dsv4::MemoryOptions options = options_of(false);
  options.per_token = options.aligned = 0;
  options.max_rows = 1024;
  Engine engine(tiny_model(), options);
  Fresh fresh;
  std::size_t const head = tokens.size() - rows;
  REQUIRE(engine.feed({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(head)}, 64) == Verdict::accepted);
  REQUIRE(engine.feed({tokens.begin() + static_cast<std::ptrdiff_t>(head), tokens.end()}, 64) == Verdict::accepted);
  fresh.logits = engine.logits;
  fresh.state = readable_state(engine.memory, 0);
  return fresh;
}

// How an engine comes to `entry`: by feeding, or by a rollback whose restore the batch would consume.
void reach_entry(Engine& engine, bool armed) {
  fill_all(engine.memory, poison);
  if (armed) {
    REQUIRE(engine.feed(joined(tiny_tokens(), entry + depth - 1, {}), 128) == Verdict::accepted);
    REQUIRE(engine.books().roll_back(engine.slot(), entry) == Verdict::accepted);
  } else {
    REQUIRE(engine.feed(joined(tiny_tokens(), entry, {}), 128) == Verdict::accepted);
  }
  REQUIRE(engine.books().is_armed(engine.slot()) == armed);
}

}  // namespace

TEST_CASE("a batch that fails in any chunk says where its slot is and the retry has the bits of a fresh run",
          "[decoder]") {
  std::vector<std::int32_t> const batch = other_tokens(batch_rows, 11);
  std::vector<std::int32_t> const all = joined(tiny_tokens(), entry, batch);
  Fresh const fresh = fresh_run(all, batch_rows);
  std::int64_t const vocabulary = tiny_model().hyper().vocabulary;

  for (bool entry_copy : {false, true}) {
    for (bool armed : {false, true}) {
      for (BadChunk state : {BadChunk::may_have_run, BadChunk::ran_last, BadChunk::never_started}) {
        for (std::int32_t bad = 0; bad < 5; ++bad) {
          INFO("chunk " << bad
                        << (state == BadChunk::never_started ? " never started"
                            : state == BadChunk::ran_last    ? " ran last"
                                                             : " may have run")
                        << (armed ? ", armed" : "") << (entry_copy ? ", with an entry copy" : ""));
          Engine engine(tiny_model(), options_of(entry_copy));
          reach_entry(engine, armed);
          REQUIRE(engine.begin(batch, chunk_rows) == Verdict::accepted);
          REQUIRE(engine.chunks() == 5);
          for (std::int32_t k = 0; k < bad; ++k) {
            REQUIRE(engine.run(k) == Verdict::accepted);
            REQUIRE(engine.books().settle(engine.ticket, k) == Verdict::accepted);
          }
          if (state != BadChunk::never_started) REQUIRE(engine.run(bad) == Verdict::accepted);
          Outcome outcome;
          Outcomes outcomes{&outcome, 1, 0};
          REQUIRE(engine.books().fail(engine.ticket, bad, state, outcomes) == Verdict::accepted);
          REQUIRE(outcomes.count == 1);

          Position const good_end = entry + bad * chunk_rows;
          bool const untouched = bad == 0 && state == BadChunk::never_started;
          if (untouched || entry_copy || armed) {  // the entry is still there
            CHECK(outcome.tip == entry);
            CHECK(outcome.armed == armed);
          } else if (state == BadChunk::never_started) {  // what ran is good
            CHECK(outcome.tip == good_end);
            CHECK_FALSE(outcome.armed);
          } else {  // the newest landing that the good chunks wrote or left: the per-token tier keeps the last 5 states
                    // of the whole batch, over the old ones, and they lie in its last chunk
            Position const left = state == BadChunk::ran_last && bad < 4 ? entry - 1 : entry - 7;
            CHECK(outcome.tip == (good_end >= 512 ? 512 : left));
            CHECK(outcome.armed);
          }
          REQUIRE(engine.tip() == outcome.tip);
          REQUIRE(engine.books().is_armed(engine.slot()) == outcome.armed);
          CHECK(engine.books().reach(engine.slot()) == outcome.reach);

          if (outcome.armed) poison_unreadable(engine.memory, 0, poison);
          std::vector<std::int32_t> const rest(all.begin() + outcome.tip, all.end());
          REQUIRE(engine.feed(rest, chunk_rows) == Verdict::accepted);
          auto const again = static_cast<std::int64_t>(std::min(rest.size(), batch_rows)) * vocabulary;
          CHECK(std::equal(engine.logits.end() - again, engine.logits.end(), fresh.logits.end() - again));
          CHECK(same_bits(readable_state(engine.memory, 0), fresh.state));
        }
      }
    }
  }
}

TEST_CASE("a batch that ran but is not committed is failed like any other", "[decoder]") {
  std::vector<std::int32_t> const batch = other_tokens(batch_rows, 12);
  Engine engine(tiny_model(), options_of(false));
  reach_entry(engine, false);
  REQUIRE(engine.begin(batch, chunk_rows) == Verdict::accepted);
  REQUIRE(engine.run_all() == Verdict::accepted);
  Outcome outcome;
  Outcomes outcomes{&outcome, 1, 0};
  CHECK(engine.books().fail(engine.ticket, 4, BadChunk::may_have_run, outcomes) == Verdict::below_settled);
  REQUIRE(engine.books().fail(engine.ticket, 5, BadChunk::may_have_run, outcomes) == Verdict::accepted);
  CHECK(outcome.tip == entry + static_cast<Position>(batch_rows));
  CHECK(same_bits(readable_state(engine.memory, 0), fresh_run(joined(tiny_tokens(), entry, batch), 1).state));
}

TEST_CASE("a draft of which any part is rejected leaves the bits of a fresh run", "[decoder]") {
  std::vector<std::int32_t> const tail = other_tokens(141, 10);
  for (Position start : {391, 508, 509}) {  // in the middle, and so that the draft crosses the boundary 512
    std::vector<std::int32_t> const draft = other_tokens(1 + depth, 9);  // the last token, then what was drafted
    std::vector<std::int32_t> const head = joined(tiny_tokens(), start, draft);
    for (std::int32_t accepted = 0; accepted <= depth; ++accepted) {
      INFO(accepted << " of " << depth << " drafted tokens accepted behind position " << start);
      Engine engine(tiny_model(), options_of(false));
      fill_all(engine.memory, poison);
      REQUIRE(engine.feed(joined(tiny_tokens(), start, {}), 128) == Verdict::accepted);
      REQUIRE(engine.begin(draft, 1 + depth, depth) == Verdict::accepted);
      REQUIRE(engine.run_all() == Verdict::accepted);
      REQUIRE(engine.books().commit(engine.ticket, engine.slot(), start + 1 + accepted) == Verdict::accepted);
      CHECK(engine.books().is_armed(engine.slot()) == (accepted < depth));
      if (accepted < depth) poison_unreadable(engine.memory, 0, poison);
      REQUIRE(engine.feed(tail, 50) == Verdict::accepted);
      Fresh const fresh = fresh_run(joined(head, start + 1 + accepted, tail), tail.size());
      CHECK(same_bits(engine.logits, fresh.logits));
      CHECK(same_bits(readable_state(engine.memory, 0), fresh.state));
    }
  }
}

TEST_CASE("the same plan comes out however often and in whatever order chunks are asked for", "[decoder]") {
  // An engine plans a chunk to see whether its graph fits, to build it, and to set its inputs.
  std::vector<std::int32_t> const batch = other_tokens(batch_rows, 13);
  Engine engine(tiny_model(), options_of(false));
  reach_entry(engine, true);
  REQUIRE(engine.begin(batch, chunk_rows) == Verdict::accepted);
  for (std::int32_t k : {4, 0, 0, 2, 0, 1, 4, 3, 3}) REQUIRE(engine.plan_only(k) == Verdict::accepted);
  REQUIRE(engine.run_all() == Verdict::accepted);
  REQUIRE(engine.books().commit(engine.ticket, engine.slot(), entry + static_cast<Position>(batch_rows)) ==
          Verdict::accepted);
  CHECK(same_bits(readable_state(engine.memory, 0), fresh_run(joined(tiny_tokens(), entry, batch), 1).state));
}
