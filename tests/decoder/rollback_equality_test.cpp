// The contract, on the whole decoder: after a rollback, logits and state have the bits of a fresh run.
#include "catch.hpp"
#include "readable_state.hpp"
#include "tiny_model.hpp"

#include <limits>
#include <map>

namespace {

using dsv4_decoder::Session;
using dsv4_decoder::SessionOptions;
using rollback::Landing;
using rollback::Position;
using rollback::Tier;
using rollback::Verdict;

constexpr float poison = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t depth = 5;
constexpr std::int32_t boundaries = 3;
constexpr Position tip = 519;
constexpr std::size_t continued = 141;  // past the next boundary from every landing, where HCA emits

SessionOptions options_of(std::int32_t per_token, std::int32_t aligned, std::int32_t chunk) {
  SessionOptions options;
  options.per_token = per_token;
  options.aligned = aligned;
  options.chunk = chunk;
  options.max_context = 1024;
  return options;
}

struct Result {
  std::vector<float> logits;  // of every row fed after the landing
  std::vector<float> state;   // readable at the end
};

Result feed_on(Session& session, std::vector<std::int32_t> const& tokens) {
  Result result;
  result.logits.resize(tokens.size() * static_cast<std::size_t>(tiny_model().hyper().vocabulary));
  session.feed(tokens.data(), static_cast<std::int64_t>(tokens.size()), result.logits.data());
  result.state = readable_state(session.memory(), 0);
  return result;
}

// A session that was fed only what survived, without any tier, in chunks of its own.
Result fresh_run(std::vector<std::int32_t> const& head, Position keep, std::vector<std::int32_t> const& tail) {
  Session session(tiny_model(), options_of(0, 0, 64));
  if (keep > 0) session.feed(head.data(), keep);
  return feed_on(session, tail);
}

Session filled_session(SessionOptions const& options) {
  Session session(tiny_model(), options);
  fill_all(session.memory(), poison);
  return session;
}

}  // namespace

TEST_CASE("every landing continues with the bits of a fresh run in every cut into chunks", "[decoder]") {
  std::vector<std::int32_t> const tail = other_tokens(continued, 7);
  std::map<Position, Result> fresh;
  for (std::int32_t chunk : {1, 5, 128, 300}) {
    Session probe = filled_session(options_of(depth, boundaries, chunk));
    probe.feed(tiny_tokens().data(), tip);
    std::vector<Landing> landings(32);
    landings.resize(static_cast<std::size_t>(probe.books().landings(probe.slot(), landings.data(), 32)));
    std::vector<Position> wanted{0};
    for (Landing const& landing : landings) {
      if (landing.position < tip) wanted.push_back(landing.position);
    }
    // the aligned tier 1 to 3 boundaries back; then the per-token tier 1 to 5 tokens back
    CHECK(wanted == std::vector<Position>{0, 256, 384, 512, 514, 515, 516, 517, 518});

    for (Position p : wanted) {
      INFO("back to " << p << " in chunks of " << chunk);
      Session session = filled_session(options_of(depth, boundaries, chunk));
      session.feed(tiny_tokens().data(), tip);
      REQUIRE(session.roll_back(p) == Verdict::accepted);
      poison_unreadable(session.memory(), 0, poison);
      Result const result = feed_on(session, tail);
      if (fresh.count(p) == 0) fresh[p] = fresh_run(tiny_tokens(), p, tail);
      CHECK(same_bits(result.logits, fresh[p].logits));
      CHECK(same_bits(result.state, fresh[p].state));
    }
  }
}

TEST_CASE("a second rollback before any token goes further back with the bits of a fresh run", "[decoder]") {
  std::vector<std::int32_t> const tail = other_tokens(continued, 8);
  Session session = filled_session(options_of(depth, boundaries, 128));
  session.feed(tiny_tokens().data(), tip);
  REQUIRE(session.roll_back(517) == Verdict::accepted);
  REQUIRE(session.roll_back(515) == Verdict::accepted);
  REQUIRE(session.roll_back(384) == Verdict::accepted);
  CHECK(session.roll_back(512) == Verdict::ahead_of_tip);
  poison_unreadable(session.memory(), 0, poison);
  Result const result = feed_on(session, tail);
  Result const fresh = fresh_run(tiny_tokens(), 384, tail);
  CHECK(same_bits(result.logits, fresh.logits));
  CHECK(same_bits(result.state, fresh.state));
}

TEST_CASE("a conversation that goes back many times has the bits of a fresh run after every turn", "[decoder]") {
  Session session = filled_session(options_of(depth, boundaries, 128));
  std::vector<std::int32_t> prompt(tiny_tokens().begin(), tiny_tokens().begin() + 400);
  std::map<Tier, int> tiers;
  struct Turn {
    std::int64_t keep;
    std::size_t more;
  };
  std::uint32_t seed = 100;
  for (Turn turn : {Turn{400, 0}, {399, 30}, {300, 200}, {498, 70}, {130, 3}, {132, 260}, {391, 1}, {392, 130}}) {
    prompt = joined(prompt, turn.keep, other_tokens(turn.more, ++seed));
    dsv4_decoder::Extension const e = session.extend(prompt);
    ++tiers[e.landing.tier];
    Session fresh(tiny_model(), options_of(0, 0, 50));
    fresh.feed(prompt.data(), static_cast<std::int64_t>(prompt.size()));
    INFO("prompt of " << prompt.size() << " tokens, landed on " << e.landing.position);
    CHECK(same_bits(session.logits(), fresh.logits()));
    CHECK(same_bits(readable_state(session.memory(), 0), readable_state(fresh.memory(), 0)));
  }
  CHECK(tiers[Tier::per_token] > 0);
  CHECK(tiers[Tier::aligned] > 0);
  CHECK(tiers[Tier::start] > 0);
}
