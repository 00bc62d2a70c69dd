// Checks of single rollbacks and of what follows them: depth, stacking, the one restore, cuts into chunks.
#pragma once

#include <rollback/testing/check.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// The checks of this file.
[[nodiscard]] inline std::vector<Check> checks_going_back() {
  return {
      {"split invariance", "any cut into calls and chunks gives the same bytes",
       [](Session& s) {
         Position const n = std::min<Position>(s.reach().alignment > 0 ? tip_above(s, 2) : 60, 400);
         if (!s.needs_tokens(n)) return;
         for (std::int32_t i = 0; i < 6; ++i) {
           s.restart();
           std::vector<Token> const tokens = s.new_tokens(n);
           for (std::size_t at = 0; at < tokens.size() && !s.stopped();) {
             std::size_t const rows =
                 std::min(static_cast<std::size_t>(1 + (i * 7 + s.below(40)) % 40), tokens.size() - at);
             auto const from = tokens.begin() + static_cast<std::ptrdiff_t>(at);
             s.feed_tokens(0, {from, from + static_cast<std::ptrdiff_t>(rows)},
                           static_cast<std::int32_t>(1 + s.below(9)));
             at += rows;
           }
           s.equal(0);
         }
       }},
      {"BR-79", "blocks are the same from single steps and from batches",
       [](Session& s) {
         std::vector<std::vector<std::int32_t>> const cuts{
             std::vector<std::int32_t>(16, 1), {4, 4, 4, 4}, {8, 8}, {16}, {3, 5, 7, 1}};
         for (auto const& cut : cuts) {
           s.restart();
           for (std::int32_t rows : cut) s.feed(0, rows), s.equal(0);
         }
       }},
      {"BR-80", "a long prompt is the same whatever the chunk",
       [](Session& s) {
         if (!s.needs_tokens(1811)) return;
         for (std::int32_t chunk : {512, 2048}) {
           s.restart();
           s.feed(0, 1811, chunk, chunk);
           s.equal(0);
         }
       }},
      {"BR-01", "exactly the last call can be undone",
       [](Session& s) {
         if (!needs_depth(s, 1)) return;
         std::int32_t const last = std::min({s.reach().per_token, s.description().max_rows, 4});
         s.feed(0, 20);
         s.feed(0, last);
         s.roll(0, 20);
         s.equal(0, 3);
       }},
      {"BR-02", "single steps after a long call: each depth is a state of its own",
       [](Session& s) {
         if (!needs_depth(s, 1)) return;
         for (std::int32_t depth = 1; depth <= std::min(s.reach().per_token, 11); ++depth) {
           s.restart();
           s.feed(0, 10);
           s.feed(0, 1);
           s.feed(0, 1);
           s.roll(0, 12 - depth);
           s.equal(0, 3);
         }
       }},
      {"BR-04", "a second rollback to a boundary, before any token, counts on from the first",
       [](Session& s) {
         if (!needs_boundaries(s, 2) || !s.needs_tokens(tip_above(s, 3))) return;
         Position const q = s.reach().alignment;
         s.feed(0, tip_above(s, 3));
         s.roll(0, 3 * q);
         s.roll(0, 2 * q);
         s.equal(0, 5);
       }},
      {"stacking", "rollbacks of a token each, with none fed between, add up",
       [](Session& s) {
         if (!needs_depth(s, 2)) return;
         std::int32_t const depth = std::min(s.reach().per_token, 19);
         s.feed(0, 20);
         for (std::int32_t d = 1; d <= depth; ++d) s.roll(0, 20 - d);
         s.equal(0, 3);
       }},
      {"BR-06", "the restore is consumed by the first call after a rollback",
       [](Session& s) {
         Position const q = s.reach().alignment;
         bool const token = s.reach().per_token >= 2;
         if (!s.needs(token || q > 0, "a promise of the last 2 states or of a boundary")) return;
         Position const tip = token ? 12 : q + 2;
         if (!s.needs_tokens(tip + 4)) return;
         s.feed(0, tip);
         s.roll(0, tip - 2);
         for (int i = 0; i < 3; ++i) s.feed(0, 2), s.equal(0);
       }},
      {"BR-07", "a replay cut into several chunks and calls restores before the first only",
       [](Session& s) {
         if (!needs_boundaries(s, 1) || !s.needs_tokens(tip_above(s, 4))) return;
         Position const q = s.reach().alignment;
         auto const chunk = static_cast<std::int32_t>(std::max<Position>(q / 2, 1));
         for (std::int32_t call : {0, 3 * chunk, chunk}) {
           s.restart();
           s.feed(0, tip_above(s, 4));
           s.roll(0, (5 - boundaries_to_try(s)) * q);
           s.feed(0, tip_above(s, 4) - s.tip(0), chunk, call);
           s.equal(0);
         }
       }},
      {"restore once", "asking, however often, restores nothing and consumes nothing",
       [](Session& s) {
         s.feed(0, 30);
         s.roll(0, s.nearest(0, 29));
         for (int i = 0; i < 4; ++i) {
           for (Position p = -1; p <= 31; ++p) {
             static_cast<void>(s.can(0, p));
             static_cast<void>(s.nearest(0, p));
           }
           if (i > 0) s.feed(0, 2, 1), s.equal(0);
         }
       }},
      {"BR-10", "depths that reach into an earlier chunk or call",
       [](Session& s) {
         if (!needs_depth(s, 1)) return;
         for (std::int32_t chunk : {1, 2, 3, 4, 5, 9}) {
           for (std::int32_t depth = 1; depth <= std::min(s.reach().per_token, 9); ++depth) {
             for (std::int32_t call : {0, chunk}) {
               s.restart();
               s.feed(0, 10, chunk, call);
               s.roll(0, 10 - depth);
               s.equal(0, 3, chunk);
             }
           }
         }
       }},
      {"BR-13", "one token of a call that was taken whole can be taken back",
       [](Session& s) {
         if (!needs_depth(s, 1)) return;
         s.feed(0, 100);
         s.feed(0, 2);
         s.roll(0, 101);
         s.equal(0, 5);
       }},
      {"BR-40", "blocks above the landing are not read before they are written again",
       [](Session& s) {
         if (!needs_depth(s, 2)) return;
         s.feed(0, 12);
         s.roll(0, 10);
         for (int i = 0; i < 4; ++i) s.feed(0, 1), s.equal(0);
       }},
      {"BR-43", "every member of the state is kept",
       [](Session& s) {
         if (!s.needs(s.reach().per_token > 0 || s.reach().boundaries > 0, "a promise of any kept state")) return;
         Position const q = s.reach().alignment;
         if (!s.needs_tokens(q + 3)) return;
         s.feed(0, q + 2);
         s.roll(0, q > 0 ? q : 1);
         s.equal(0, 1);
         s.restart();
         s.feed(0, 10);
         s.roll(0, 10 - std::min(s.reach().per_token, 2));
         s.equal(0, 1);
       }},
      {"BR-76", "the first block has no rows before it, also in storage that was used",
       [](Session& s) {
         s.feed(0, 4);
         s.equal(0);
         if (s.can(0, 2)) s.roll(0, 2), s.feed(0, 2), s.equal(0);
         s.roll(0, 0);
         s.feed(0, 4);
         s.equal(0);
         s.feed(0, 37);
         s.roll(0, 0);
         s.feed(0, 3);
         s.equal(0, 1);
         s.feed(0, 37);
         s.clear(0);
         s.feed(0, 4);
         s.equal(0, 5);
       }},
      {"question and act agree", "can, roll and nearest give one answer at every position",
       [](Session& s) {
         Position const tip = s.reach().alignment > 0 ? tip_above(s, boundaries_to_try(s) + 1) : 40;
         if (!s.needs_tokens(tip)) return;
         auto const setup = [&s, tip] { s.feed(0, tip); };
         every_landing(s, 0, setup);
         s.restart();
         setup();
         Position const step = tip / 60 + 1;
         for (Position p = -2; p <= tip + 2; p += p < tip - 20 ? step : 1) {
           if (p >= 0) check_nearest(s, 0, p);
           if (p != 0 && p != tip && !s.can(0, p)) s.roll(0, p);
         }
         s.equal(0, 1);
       }},
      {"BR-75", "a target that is not kept is refused by an answer",
       [](Session& s) {
         s.feed(0, 40);
         for (Position p : {Position{39}, Position{21}, Position{1}}) {
           if (!s.can(0, p)) roll_or_nothing(s, 0, p);
         }
         s.equal(0, 2);
       }},
      {"refusal changes nothing", "refused rollbacks leave the state, the landings and an armed restore alone",
       [](Session& s) {
         Position const tip = s.reach().alignment > 0 ? tip_above(s, boundaries_to_try(s) + 1) : 40;
         if (!s.needs_tokens(tip)) return;
         auto const refuse_all = [&s](Position from) {
           Position const step = from / 40 + 1;
           for (Position p = -2; p < from; p += step) {
             if (!s.can(0, p)) roll_or_nothing(s, 0, p);
           }
         };
         s.feed(0, tip);
         std::vector<Position> landings;
         for (Position p = 0; p < tip; ++p) {
           if (s.can(0, p)) landings.push_back(p);
         }
         refuse_all(tip);
         for (Position p : landings)
           s.expect(s.can(0, p), "landing " + std::to_string(p) + " after refusals", "it is gone");
         s.roll(0, landings.empty() ? 0 : landings.back());
         refuse_all(s.tip(0));
         s.equal(0, 4);
         refuse_all(s.tip(0));
         s.equal(0, 1);
       }},
  };
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
