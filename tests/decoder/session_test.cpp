// What a server does with a slot: prompts brought in, answers to impossible ones, and a feed that ends half-way.
#include "session.hpp"

#include "catch.hpp"
#include "readable_state.hpp"
#include "tiny_model.hpp"

#include <stdexcept>

namespace {

using dsv4_decoder::Extension;
using dsv4_decoder::Session;
using dsv4_decoder::SessionError;
using dsv4_decoder::SessionOptions;
using rollback::Landing;
using rollback::Position;
using rollback::Tier;
using rollback::Verdict;

SessionOptions small_options() {
  SessionOptions options;
  options.per_token = 4;
  options.aligned = 2;
  options.chunk = 100;
  options.max_context = 800;
  return options;
}

std::vector<std::int32_t> first(std::int64_t count) { return joined(tiny_tokens(), count, {}); }

// All that a refused call may not change.
struct Seen {
  std::vector<std::int32_t> held;
  std::vector<float> state;
  std::vector<Position> landings;
  bool armed;
  friend bool operator==(Seen const& a, Seen const& b) {
    return a.held == b.held && same_bits(a.state, b.state) && a.landings == b.landings && a.armed == b.armed;
  }
};
Seen look(Session& session) {
  std::vector<Landing> landings(64);
  landings.resize(static_cast<std::size_t>(session.books().landings(session.slot(), landings.data(), 64)));
  Seen seen{session.held(), readable_state(session.memory(), 0), {}, session.books().is_armed(session.slot())};
  for (Landing const& landing : landings) seen.landings.push_back(landing.position);
  return seen;
}

}  // namespace

TEST_CASE("a refused rollback names its reason and the nearest landing and changes nothing", "[decoder]") {
  Session session(tiny_model(), small_options());
  session.feed(tiny_tokens().data(), 519);
  auto const nearest = [&](Position p) { return session.books().nearest(session.slot(), p); };
  Seen const before = look(session);
  CHECK(before.landings == std::vector<Position>{384, 512, 515, 516, 517, 518});

  CHECK(session.roll_back(520) == Verdict::ahead_of_tip);
  CHECK(nearest(520).position == 519);
  CHECK(nearest(520).why == Verdict::ahead_of_tip);
  CHECK(session.roll_back(-1) == Verdict::negative_position);
  CHECK(session.roll_back(514) == Verdict::not_a_boundary);
  CHECK(nearest(514).position == 512);
  CHECK(nearest(514).replay == 2);
  CHECK(nearest(514).tier == Tier::aligned);
  CHECK(nearest(514).why == Verdict::not_a_boundary);
  CHECK(std::string(session.books().name(nearest(514).limited_by)) == "CSA");
  CHECK(session.roll_back(256) == Verdict::beyond_reach);
  CHECK(nearest(256).position == 0);
  CHECK(nearest(256).tier == Tier::start);
  CHECK(nearest(256).why == Verdict::beyond_reach);
  CHECK(look(session) == before);
  CHECK(session.books().can_land(rollback::Slot{1, 1}, 0) == Verdict::unknown_slot);
  CHECK(session.memory().books().roll_back(rollback::Slot{-1, 0}, 0) == Verdict::unknown_slot);
  CHECK(session.books().nearest(rollback::Slot{7, 1}, 3).why == Verdict::unknown_slot);
  rollback::Slot const old = session.slot();
  rollback::Slot cleared = old;
  REQUIRE(session.memory().books().clear(cleared) == Verdict::accepted);
  CHECK(session.memory().books().roll_back(old, 0) == Verdict::stale_slot);
}

TEST_CASE("a boundary whose window rows are gone is refused for the window", "[decoder]") {
  rollback::dsv4::MemoryOptions options;
  options.aligned = 4;
  options.max_context = 1024;
  options.max_rows = 64;
  options.raw_rows = 127 + 64 + 140;  // fewer than four boundaries need
  rollback::dsv4::Memory memory(tiny_model().hyper().shape(), options);
  rollback::Feed feed(memory.books(), 64, 64);
  rollback::Slot const slot = memory.books().slot(0);
  for (int i = 0; i < 9; ++i) {
    REQUIRE(feed.run(slot, 64, [](rollback::FeedChunk const&) { return true; }) == Verdict::accepted);
  }
  REQUIRE(memory.books().tip(slot) == 576);  // raw rows from 245 on
  CHECK(memory.books().can_land(slot, 512) == Verdict::accepted);
  CHECK(memory.books().can_land(slot, 384) == Verdict::accepted);
  CHECK(memory.books().roll_back(slot, 256) == Verdict::window_not_covered);
  CHECK(std::string(memory.books().name(memory.books().nearest(slot, 256).limited_by)) == "window");
  CHECK(memory.books().nearest(slot, 256).position == 0);
  CHECK(memory.books().tip(slot) == 576);
}

TEST_CASE("a prompt keeps what it shares and one token is always fed", "[decoder]") {
  Session session(tiny_model(), small_options());
  Extension e = session.extend(first(300));
  CHECK((e.prompt == 300 && e.held == 0 && e.divergence == 0 && e.fed == 300));

  e = session.extend(first(300));  // the same again: the state before the last token is kept
  CHECK((e.divergence == 300 && e.landing.position == 299 && e.fed == 1));
  CHECK(e.landing.tier == Tier::per_token);

  e = session.extend(first(350));  // longer: nothing to go back over
  CHECK((e.divergence == 300 && e.landing.position == 300 && e.fed == 50 && e.replayed() == 0));
  CHECK(e.landing.tier == Tier::tip);

  e = session.extend(first(290));  // shorter
  CHECK((e.divergence == 290 && e.landing.position == 256 && e.fed == 34));
  CHECK(session.held() == first(290));
}

TEST_CASE("a prompt that cannot be served is refused before anything is taken back", "[decoder]") {
  Session session(tiny_model(), small_options());
  session.feed(tiny_tokens().data(), 300);
  Seen const before = look(session);
  std::vector<std::int32_t> foreign = first(290);
  foreign.back() = 384;
  CHECK_THROWS_AS(session.extend(foreign), SessionError);
  foreign.back() = -1;
  CHECK_THROWS_AS(session.extend(foreign), SessionError);
  CHECK_THROWS_AS(session.extend({}), SessionError);
  CHECK_THROWS_AS(session.extend(std::vector<std::int32_t>(801, 1)), SessionError);
  CHECK_THROWS_AS(session.feed(foreign.data(), 290), SessionError);
  CHECK_THROWS_AS(session.feed(tiny_tokens().data(), 501), SessionError);
  CHECK(look(session) == before);
}

TEST_CASE("a feed that an exception ends holds what the books kept and goes on from there", "[decoder]") {
  SessionOptions options = small_options();
  options.aligned = 3;
  Session session(tiny_model(), options);
  session.feed(tiny_tokens().data(), 300);
  auto const stop = [](std::int64_t done, std::int64_t) {
    if (done >= 200) throw std::runtime_error("stopped");
  };
  CHECK_THROWS_AS(session.feed(tiny_tokens().data() + 300, 350, nullptr, stop), std::runtime_error);
  // the chunk at work may have run: back to the newest boundary that was settled
  CHECK(session.held() == first(384));
  CHECK(session.books().tip(session.slot()) == 384);
  CHECK(session.books().is_armed(session.slot()));

  session.extend(first(650));
  Session fresh(tiny_model(), small_options());
  fresh.feed(tiny_tokens().data(), 650);
  CHECK(same_bits(session.logits(), fresh.logits()));
  CHECK(same_bits(readable_state(session.memory(), 0), readable_state(fresh.memory(), 0)));
}

TEST_CASE("sessions for which the model is too small are refused", "[decoder]") {
  SessionOptions options = small_options();
  options.chunk = 0;
  CHECK_THROWS_AS(Session(tiny_model(), options), std::invalid_argument);
  options.chunk = 513;
  options.batch = 513;
  CHECK_THROWS_AS(Session(tiny_model(), options), std::invalid_argument);
  options.chunk = 100;
  options.batch = 99;
  CHECK_THROWS_AS(Session(tiny_model(), options), std::invalid_argument);
  options = small_options();
  options.max_context = 8193;
  CHECK_THROWS_AS(Session(tiny_model(), options), std::invalid_argument);
  options = small_options();
  options.aligned = -1;
  CHECK_THROWS_AS(Session(tiny_model(), options), std::invalid_argument);
}

TEST_CASE("the books take less than a hundredth of the time of feeding", "[decoder]") {
  SessionOptions options;  // both tiers on
  options.max_context = 4096;
  Session session(tiny_model(), options);
  std::vector<std::int32_t> const tokens = other_tokens(4096, 14);
  session.feed(tokens.data(), 4096);
  dsv4_decoder::SessionProfile const& profile = session.profile();
  CHECK(profile.books > 0);
  CHECK(profile.books < 0.01 * (profile.books + profile.copies + profile.forward));
}
