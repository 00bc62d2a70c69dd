// The conformance suite: holds an engine's own memory to the laws of going back, through a few callbacks.
#pragma once

#include <rollback/testing/check.hpp>
#include <rollback/testing/checks_boundaries.hpp>
#include <rollback/testing/checks_going_back.hpp>
#include <rollback/testing/checks_save.hpp>
#include <rollback/testing/checks_slots.hpp>
#include <rollback/testing/checks_verify.hpp>
#include <rollback/testing/memory.hpp>
#include <rollback/testing/report.hpp>
#include <rollback/testing/session.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// Random calls of every kind that the memory has, over all slots, compared with fresh runs all along.
inline void random_walk(Session& s) {
  Memory const& m = s.memory();
  std::int32_t const slots = s.description().slots;
  Position far = s.reach().alignment > 0 ? tip_above(s, s.reach().boundaries + 2) : 80;
  far = std::min({std::max<Position>(far, 40), s.options().max_tokens / 2, Position{600}});
  if (!s.needs_tokens(far + 40)) return;
  for (std::int32_t step = 0; step < s.options().steps && !s.stopped(); ++step) {
    auto const slot = static_cast<std::int32_t>(s.below(slots));
    auto const other = static_cast<std::int32_t>(s.below(slots));
    Position const tip = s.tip(slot);
    if (tip > far) s.roll(slot, s.nearest(slot, s.below(far)));
    std::int64_t const what = s.below(100);
    auto const rows = static_cast<std::int32_t>(1 + s.below(std::min(s.description().max_rows, 40)));
    auto const chunk = static_cast<std::int32_t>(s.below(8));
    if (what < 25) {
      s.feed(slot, rows, chunk);
    } else if (what < 45) {
      s.feed(slot, 1 + s.below(3));
    } else if (what < 60) {
      std::int32_t const w = verify_rows(s, rows);
      if (m.verify && w > 0) s.verify(slot, w, static_cast<std::int32_t>(s.below(w + 1)), chunk);
    } else if (what < 75) {
      s.roll(slot, s.nearest(slot, s.below(s.tip(slot) + 1)));
    } else if (what < 82) {
      s.roll(slot, s.tip(slot) - s.below(12));
    } else if (what < 86) {
      if (m.save && m.load) s.load(other, s.save(slot), s.tokens(slot));
    } else if (what < 89) {
      if (m.copy && other != slot) s.copy(slot, other);
    } else if (what < 93) {
      if (m.fail_next) s.fail(slot, rows, static_cast<std::int32_t>(s.below(rows)));
    } else if (what < 97) {
      if (m.batch && s.description().max_rows >= 4) s.batch({slot, other, -1, slot});
    } else {
      s.clear(slot);
    }
    if (!s.armed(slot) || s.below(4) == 0) s.equal(slot);
  }
}

/// Every check of the suite, in the order in which it runs.
[[nodiscard]] inline std::vector<Check> all_checks() {
  std::vector<Check> checks;
  for (auto const& part : {checks_going_back(), checks_boundaries(), checks_verify(), checks_slots(), checks_save()}) {
    checks.insert(checks.end(), part.begin(), part.end());
  }
  checks.push_back({"random walk", "equality after anything, in any order", random_walk});
  return checks;
}

/// Runs the checks, each on memories that `make` makes for it, and reports. Nothing of a check reaches the next one.
/// The same memory and options give the same report. An exception of a callback is a finding of the check at work,
/// and so is an id in `only` that no check has.
[[nodiscard]] inline Report run(Factory const& make, Options const& options = {}) {
  Report report;
  for (Check const& check : all_checks()) {
    std::vector<std::string> const& only = options.only;
    if (!only.empty() && std::find(only.begin(), only.end(), check.id) == only.end()) continue;
    Session session(make, options);
    if (!session.stopped()) check.run(session);
    session.result.check = check.id;
    session.result.about = check.about;
    report.results.push_back(session.result);
  }
  for (std::string const& id : options.only) {
    if (report.find(id) != nullptr) continue;
    report.results.push_back({id, "asked for by id", Status::failed, "there is no check of this id", {}});
  }
  return report;
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
