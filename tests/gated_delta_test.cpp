// The recurrent example: after any rollback its outputs have the bits of a fresh run, and both kinds of state matter.
#include "gated_delta/session.hpp"

#include "catch.hpp"

namespace {

using gated_delta::Kept;
using gated_delta::Model;
using gated_delta::Session;
using rollback::Position;
using rollback::Verdict;

constexpr std::int32_t depth = 5;
constexpr std::int32_t boundaries = 3;

rollback::RingOptions options() {
  rollback::RingOptions o;
  o.depth = boundaries;
  o.per_token = depth;
  o.max_rows = 256;
  return o;
}

std::vector<int> tokens(std::size_t count, int seed) {
  std::vector<int> list(count);
  for (std::size_t i = 0; i < count; ++i) list[i] = (static_cast<int>(i * i) * 7 + seed * 13 + 5) % 64;
  return list;
}

bool equals_fresh_run(Model const& model, Session const& session, std::size_t from) {
  std::vector<gated_delta::Logits> const fresh = gated_delta::fresh_run(model, session.tokens());
  for (std::size_t p = from; p < fresh.size(); ++p) {
    if (session.logits(p) != fresh[p]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every landing of the recurrent model continues with the bits of a fresh run") {
  Model const model({}, 1);
  for (Position p : {0, 64, 80, 96, 98, 99, 100, 101, 102}) {
    INFO("back to " << p);
    Session session(model, options());
    REQUIRE(session.feed(tokens(103, 1)) == Verdict::accepted);
    REQUIRE(session.roll_back(p) == Verdict::accepted);
    REQUIRE(session.feed(tokens(40, 2)) == Verdict::accepted);
    CHECK(equals_fresh_run(model, session, static_cast<std::size_t>(p)));
  }
}

TEST_CASE("a state without its convolution rows or without its matrix is not enough") {
  Model const model({}, 1);
  for (Kept kept : {Kept::convolution_only, Kept::matrix_only}) {
    Session session(model, options(), kept);
    REQUIRE(session.feed(tokens(103, 1)) == Verdict::accepted);
    REQUIRE(session.roll_back(96) == Verdict::accepted);
    REQUIRE(session.feed(tokens(40, 2)) == Verdict::accepted);
    CHECK_FALSE(equals_fresh_run(model, session, 96));
  }
}

TEST_CASE("an early token moves late outputs of the recurrent model") {
  Model const model({}, 1);
  std::vector<int> changed = tokens(120, 1);
  gated_delta::Logits const before = gated_delta::fresh_run(model, changed).back();
  changed[3] = (changed[3] + 1) % 64;
  CHECK(gated_delta::fresh_run(model, changed).back() != before);
}

TEST_CASE("a draft of the recurrent model is accepted as far as the model agrees") {
  Model const model({}, 1);
  std::vector<int> const prompt = tokens(62, 3);
  for (std::size_t right = 0; right <= 5; ++right) {
    Session session(model, options());
    REQUIRE(session.feed(prompt) == Verdict::accepted);
    std::vector<int> said = gated_delta::continuation(model, prompt, 6);
    if (right < 5) said[right + 1] = (said[right + 1] + 1) % 64;
    REQUIRE(session.verify(said[0], {said.begin() + 1, said.end()}) == Verdict::accepted);
    CHECK(session.tokens().size() == prompt.size() + 1 + right);
    REQUIRE(session.feed(tokens(30, 4)) == Verdict::accepted);
    CHECK(equals_fresh_run(model, session, prompt.size()));
  }
}
