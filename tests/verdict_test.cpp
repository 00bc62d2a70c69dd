// Texts of verdicts and tiers: every value has its own, and a value from nowhere is said to be unknown.
#include <rollback/verdict.hpp>

#include "catch.hpp"

#include <set>
#include <string>

using rollback::Landing;
using rollback::text;
using rollback::Tier;
using rollback::Verdict;

static_assert(text(Verdict::accepted) != nullptr, "texts are there at compile time");

namespace {

// The texts of all 256 values: distinct and not empty up to `last`, `unknown` above it.
template <class Enum>
void check_texts(Enum last, std::string const& unknown) {
  std::set<std::string> seen;
  for (int value = 0; value < 256; ++value) {
    CAPTURE(value);
    REQUIRE(text(static_cast<Enum>(value)) != nullptr);
    std::string const words = text(static_cast<Enum>(value));
    if (value <= static_cast<int>(last)) {
      REQUIRE_FALSE(words.empty());
      REQUIRE(words != unknown);
      REQUIRE(seen.insert(words).second);
    } else {
      REQUIRE(words == unknown);
    }
  }
}

}  // namespace

TEST_CASE("every verdict has a text of its own") { check_texts(Verdict::below_settled, "unknown verdict"); }

TEST_CASE("every tier has a name of its own") { check_texts(Tier::pin, "unknown tier"); }

TEST_CASE("texts say what the names say") {
  REQUIRE(std::string(text(Verdict::accepted)) == "accepted");
  REQUIRE(std::string(text(Verdict::ahead_of_tip)) == "the position is ahead of the tip");
  REQUIRE(std::string(text(Verdict::beyond_reach)) == "the state of the position is no longer kept");
  REQUIRE(std::string(text(Verdict::window_not_covered)) ==
          "the window's raw rows before the position have been overwritten");
  REQUIRE(std::string(text(Tier::per_token)) == "per-token");
  REQUIRE(std::string(text(Tier::aligned)) == "aligned");
}

TEST_CASE("a landing that nobody filled in is none") {
  Landing const landing;
  REQUIRE(landing.position < 0);
  REQUIRE(landing.tier == Tier::none);
  REQUIRE(landing.limited_by == -1);
  REQUIRE(landing.replay == 0);
  REQUIRE(landing.warm_up == 0);
}
