// What a check of the conformance suite is, and what several of them do.
#pragma once

#include <rollback/testing/session.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// A named check. Its body calls the session, which keeps the first finding.
struct Check {
  char const* id;
  char const* about;
  void (*run)(Session&);
};

/// The last tip with so many boundaries below it: the newest is as deep as can be.
[[nodiscard]] inline Position tip_above(Session const& s, std::int32_t boundaries) {
  Position const q = s.reach().alignment;
  return (boundaries + 1) * q - 1;
}

/// How many boundaries a check looks at: what is kept, as long as a sequence may be.
[[nodiscard]] inline std::int32_t boundaries_to_try(Session const& s) { return std::min(s.reach().boundaries, 4); }

[[nodiscard]] inline bool needs_boundaries(Session& s, std::int32_t n) {
  return s.needs(s.reach().boundaries >= n, "a promise of boundaries, at least " + std::to_string(n));
}
[[nodiscard]] inline bool needs_depth(Session& s, std::int32_t n) {
  return s.needs(s.reach().per_token >= n, "a promise of a state a token, at least " + std::to_string(n));
}
[[nodiscard]] inline bool needs_verify(Session& s, std::int32_t rows) {
  bool const has = s.memory().verify && std::min(s.description().unverified, s.description().max_rows) >= rows;
  return s.needs(has, "verify of at least " + std::to_string(rows) + " rows");
}
/// The rows of a verify: `wanted`, or as many as may be.
[[nodiscard]] inline std::int32_t verify_rows(Session const& s, std::int32_t wanted) {
  return std::min({wanted, s.description().unverified, s.description().max_rows});
}

/// Goes back to the landings that a slot has after `setup`, each from a new memory, and compares what follows. Of many,
/// some of each kind: the newest, and others spread evenly.
template <class Setup>
void every_landing(Session& s, std::int32_t slot, Setup const& setup) {
  constexpr std::size_t most = 20;
  s.restart();
  setup();
  std::vector<Position> landings;
  for (Position p = s.tip(slot) - 1; p >= 0 && !s.stopped(); --p) {
    if (s.can(slot, p)) {
      landings.push_back(p);
    } else {
      s.expect(!s.promised(slot, p), "position " + std::to_string(p) + " to be reached, as was promised",
               "can says no");
    }
  }
  std::size_t const step = landings.size() / most + 1;
  for (std::size_t i = 0; i < landings.size() && !s.stopped(); i += i < 8 ? 1 : step) {
    s.restart();
    setup();
    s.expect(s.roll(slot, landings[i]), "the same answer on the same calls", "a refusal");
    s.equal(slot, 3);
  }
}

/// Goes back to `p`; where that is refused, nothing may have changed.
inline void roll_or_nothing(Session& s, std::int32_t slot, Position p) {
  bool const readable = !s.armed(slot) && s.tip(slot) > 0;
  Bytes const before = readable ? s.state(slot) : Bytes();
  if (!s.roll(slot, p) && readable) {
    s.expect(s.state(slot) == before, "a refused roll to " + std::to_string(p) + " to change nothing",
             "the state differs");
  }
}

/// Asks for the landing nearest to `wanted`: it must be one, and the newest.
inline Position check_nearest(Session& s, std::int32_t slot, Position wanted) {
  Position const p = s.nearest(slot, wanted);
  Position const highest = std::min(wanted, s.tip(slot));
  std::string const what = "of nearest(slot " + std::to_string(slot) + ", " + std::to_string(wanted) + ") at tip " +
                           std::to_string(s.tip(slot)) + " ";
  if (!s.expect(p >= 0 && p <= highest, what + "a position from 0 to " + std::to_string(highest), std::to_string(p)) ||
      !s.expect(s.can(slot, p), what + "a position that can be reached", std::to_string(p))) {
    return 0;
  }
  for (Position q = p + 1; q <= highest && !s.stopped(); ++q) {
    s.expect(!s.can(slot, q), what + "the newest landing",
             std::to_string(p) + ", while can accepts " + std::to_string(q));
  }
  return p;
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
