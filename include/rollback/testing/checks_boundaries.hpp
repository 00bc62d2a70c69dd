// Checks of boundaries, of where to land, and of windows.
#pragma once

#include <rollback/testing/check.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// The checks of this file.
[[nodiscard]] inline std::vector<Check> checks_boundaries() {
  return {
      {"BR-18", "targets at the tip, above it, at 0 and below 0",
       [](Session& s) {
         Position const tip = s.reach().alignment > 0 ? 2 * s.reach().alignment : 20;
         if (!s.needs_tokens(tip + 1)) return;
         s.feed(0, tip);
         s.expect(s.roll(0, tip), "a roll to the tip to be accepted", "a refusal");
         for (Position p : {tip, tip + 1, tip + 44, Position{-1}}) roll_or_nothing(s, 0, p);
         s.equal(0, 1);
         roll_or_nothing(s, 0, s.tip(0) - 1);
         s.equal(0, 1);
         s.expect(s.roll(0, 0), "a roll to 0 to be accepted", "a refusal");
         s.equal(0, 3);
       }},
      {"BR-23", "the last boundaries and no others, after many",
       [](Session& s) {
         if (!needs_boundaries(s, 1)) return;
         std::int32_t const n = s.reach().boundaries;
         if (!s.needs_tokens(tip_above(s, 2 * n + 1))) return;
         every_landing(s, 0, [&s, n] { s.feed(0, tip_above(s, 2 * n + 1)); });
       }},
      {"BR-26", "kinds of state with different quanta meet at their least common multiple",
       [](Session& s) {
         std::set<Position> quanta;
         for (Promise const& p : s.description().promises) {
           if (p.boundaries > 0) quanta.insert(p.quantum);
         }
         if (!s.needs(quanta.size() > 1, "promises of different quanta") || !needs_boundaries(s, 1)) return;
         if (!s.needs_tokens(tip_above(s, 2))) return;
         for (std::int32_t k : {1, 2}) {
           s.restart();
           s.feed(0, tip_above(s, k));
           check_nearest(s, 0, s.tip(0) - 1);
           s.roll(0, k * s.reach().alignment);
           s.equal(0, 3);
           s.roll(0, 0);
           s.equal(0, 3);
         }
       }},
      {"BR-28", "kinds of state of different depths go back together or not at all",
       [](Session& s) {
         if (!s.needs(s.description().promises.size() > 1, "promises of several kinds of state")) return;
         std::int32_t depth = 0;
         for (Promise const& p : s.description().promises) depth = std::max(depth, p.per_token);
         Position const tip = s.reach().alignment > 0 ? tip_above(s, 2) : 50;
         if (!s.needs_tokens(tip)) return;
         for (std::int32_t d = 1; d <= std::min<Position>(depth + 2, tip - 1); ++d) {
           s.restart();
           s.feed(0, tip);
           s.roll(0, tip - d);
           s.equal(0, 3);
         }
       }},
      {"BR-29", "where one kind of state refuses, none has moved or lost a landing",
       [](Session& s) {
         if (!s.needs(s.description().promises.size() > 1, "promises of several kinds of state")) return;
         Position const tip = s.reach().alignment > 0 ? tip_above(s, 2) : 50;
         if (!s.needs_tokens(tip)) return;
         for (Position p = 1; p < tip && !s.stopped(); p += p < tip - 24 ? tip / 16 + 1 : 1) {
           s.restart();
           s.feed(0, tip);
           if (s.can(0, p)) continue;
           roll_or_nothing(s, 0, p);
           s.roll(0, s.nearest(0, tip - 1));
           s.equal(0, 3);
         }
       }},
      {"BR-30", "boundaries are kept wherever calls and chunks end",
       [](Session& s) {
         if (!needs_boundaries(s, 1)) return;
         Position const q = s.reach().alignment;
         std::int32_t const n = boundaries_to_try(s);
         Position const tip = tip_above(s, n + 1);
         if (!s.needs_tokens(tip)) return;
         for (Position call : {Position{37}, Position{100}, q - 1, q, q + 1, Position{1000}}) {
           for (std::int32_t k = 2; k <= n + 1 && call > 0; ++k) {
             s.restart();
             s.feed(0, tip, 0, static_cast<std::int32_t>(call));
             s.roll(0, k * q);
             s.equal(0, 2);
           }
         }
       }},
      {"BR-31", "a target between landings: the nearest below, and a replay from there",
       [](Session& s) {
         if (!needs_boundaries(s, 1)) return;
         Position const q = s.reach().alignment;
         Position const tip = tip_above(s, boundaries_to_try(s) + 1);
         if (!s.needs_tokens(tip)) return;
         for (Position above : {Position{0}, Position{1}, q / 3, q - 1}) {
           for (Position wanted = above; wanted < tip && !s.stopped(); wanted += q) {
             s.restart();
             s.feed(0, tip);
             std::vector<Token> const tokens = s.tokens(0);
             Position const p = check_nearest(s, 0, wanted);
             s.expect(s.roll(0, p), "a roll to where nearest said", "a refusal");
             if (s.stopped()) return;
             s.feed_tokens(0, {tokens.begin() + p, tokens.begin() + wanted});
             s.equal(0, 2);
           }
         }
       }},
      {"BR-96", "the newest landing at or below the wanted position, never one above it",
       [](Session& s) {
         Position const tip = s.reach().alignment > 0 ? tip_above(s, boundaries_to_try(s) + 2) : 40;
         if (!s.needs_tokens(tip)) return;
         s.feed(0, tip);
         Position const step = tip / 80 + 1;
         for (Position wanted = 0; wanted <= tip + 1; wanted += step) check_nearest(s, 0, wanted);
         s.roll(0, s.nearest(0, tip - 1));
         for (Position wanted = 0; wanted <= tip + 1; wanted += step) check_nearest(s, 0, wanted);
         s.equal(0, 1);
       }},
      {"BR-97", "using a boundary keeps the lower ones",
       [](Session& s) {
         if (!needs_boundaries(s, 2)) return;
         Position const q = s.reach().alignment;
         std::int32_t const n = boundaries_to_try(s);
         if (!s.needs_tokens(tip_above(s, n + 1))) return;
         for (std::int32_t k = 2; k <= n; ++k) {
           for (std::int32_t rows : {0, 1}) {
             s.restart();
             s.feed(0, tip_above(s, n + 1));
             s.roll(0, (k + 1) * q);
             s.feed(0, rows);
             s.roll(0, k * q);
             s.equal(0, 2);
           }
         }
       }},
      {"BR-99", "deeper targets fall through to coarser landings, in order",
       [](Session& s) {
         Position const q = s.reach().alignment;
         Position const tip = q > 0 ? tip_above(s, boundaries_to_try(s) + 2) : 40;
         if (!s.needs_tokens(tip)) return;
         Position const r = s.reach().per_token;
         for (Position depth : {Position{1}, r, r + 1, q / 2, q, q + 1, 2 * q, tip - 1, tip}) {
           if (depth < 1 || depth > tip || s.stopped()) continue;
           s.restart();
           s.feed(0, tip);
           if (!s.roll(0, tip - depth)) s.roll(0, check_nearest(s, 0, tip - depth));
           s.equal(0, 3);
         }
       }},
      {"provenance", "nothing of a timeline that was left is ever served",
       [](Session& s) {
         Position const q = s.reach().alignment;
         std::int32_t const n = boundaries_to_try(s);
         Position const tip = q > 0 ? tip_above(s, n + 1) : 24;
         if (!s.needs_tokens(tip)) return;
         every_landing(s, 0, [&s, tip] {
           s.feed(0, tip);
           s.roll(0, s.nearest(0, tip / 2));
           s.feed(0, tip - s.tip(0));
         });
         every_landing(s, 0, [&s, tip] {
           s.feed(0, tip);
           s.roll(0, s.nearest(0, tip - 2));
           s.feed(0, 3);
         });
       }},
      {"BR-32", "a landing needs the raw rows of its window, whatever was written since",
       [](Session& s) {
         Description const& d = s.description();
         if (!s.needs(d.window > 0, "a window")) return;
         Position const q = s.reach().alignment;
         Position const tip =
             std::max(q > 0 ? tip_above(s, s.reach().boundaries + 1) : 0, d.window_rows + d.window + 8);
         if (!s.needs_tokens(tip)) return;
         every_landing(s, 0, [&s, tip] { s.feed(0, tip); });
         every_landing(s, 0, [&s, tip] {
           s.feed(0, tip);
           s.roll(0, s.nearest(0, tip - 1));
           s.roll(0, s.nearest(0, s.tip(0) - s.description().window / 2));
           s.feed(0, 2);
         });
         every_landing(s, 0, [&s, tip] {
           s.feed(0, tip);
           s.roll(0, 0);
           s.feed(0, tip / 2);
         });
       }},
  };
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
