// Checks of several sequences, of slots that are used again, of failures and of memory.
#pragma once

#include <rollback/testing/check.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// The checks of this file.
[[nodiscard]] inline std::vector<Check> checks_slots() {
  return {
      {"BR-44", "padded rows touch nothing",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().batch), "batch") || !s.needs_slots(2)) return;
         if (!s.needs(s.description().max_rows >= 8, "calls of 8 rows")) return;
         for (std::int32_t i = 0; i < s.description().slots; ++i) s.feed(i, 9 + i);
         for (int i = 0; i < 4; ++i) {
           s.batch({0, 1, -1, -1, -1, -1, -1, -1});
           s.batch({-1, 1, -1, 0});
         }
         s.equal_all();
       }},
      {"BR-58", "a slot that others' calls leave out keeps its states",
       [](Session& s) {
         if (!needs_depth(s, 2) || !s.needs_slots(2)) return;
         s.feed(0, 10);
         s.feed(1, 10);
         for (int i = 0; i < 5; ++i) s.feed(0, 3), s.roll(0, s.tip(0) - 2);
         s.roll(1, 8);
         s.equal(1, 3);
         s.equal(0, 3);
       }},
      {"BR-59", "calls of one shape for different slots",
       [](Session& s) {
         if (!s.needs_slots(2)) return;
         for (int i = 0; i < 100; ++i) s.feed(i % 2, 1);
         s.equal_all();
       }},
      {"BR-63", "two slots with the same prefix go their own ways",
       [](Session& s) {
         if (!s.needs_slots(2) || !s.needs_tokens(300)) return;
         std::vector<Token> const prefix = s.new_tokens(256);
         s.feed_tokens(0, prefix);
         s.feed_tokens(1, prefix);
         for (int i = 0; i < 44; ++i) s.feed(0, 1), s.feed(1, 1);
         s.equal_all();
       }},
      {"BR-64", "the next user of a slot finds nothing of the last",
       [](Session& s) {
         Position const q = std::max<Position>(s.reach().alignment, 16);
         if (!s.needs_tokens(2 * q + q / 2)) return;
         for (Position rows : {q + q / 2, 2 * q + q / 4}) {
           every_landing(s, 0, [&s, q, rows] {
             s.feed(0, 2 * q + q / 2);
             s.clear(0);
             s.feed(0, rows);
           });
         }
         s.restart();
         s.feed(0, 2 * q + q / 2);
         s.clear(0);
         s.feed(0, q / 2);
         roll_or_nothing(s, 0, 2 * q);
         s.equal(0, q / 2 + 1);
       }},
      {"BR-67", "all slots emptied, by clear and by a roll to 0",
       [](Session& s) {
         for (bool by_clear : {true, false}) {
           for (std::int32_t i = 0; i < s.description().slots; ++i) s.feed(i, 20 + i);
           for (std::int32_t i = 0; i < s.description().slots; ++i) {
             if (by_clear) {
               s.clear(i);
             } else {
               s.expect(s.roll(i, 0), "a roll to 0 to be accepted", "a refusal");
             }
           }
           for (std::int32_t i = 0; i < s.description().slots; ++i) s.feed(i, 11);
           s.equal_all();
         }
       }},
      {"BR-68", "slots that do not exist are refused",
       [](Session& s) {
         Memory const& m = s.memory();
         for (std::int32_t i = 0; i < s.description().slots; ++i) s.feed(i, 20);
         for (std::int32_t bad : {-2, -1, s.description().slots, s.description().slots + 1, INT32_MAX}) {
           std::string const what = "slot " + std::to_string(bad);
           auto const refused = [&s, &what](char const* name, auto const& call) {
             bool did = true;
             if (s.guarded(name, did, call))
               s.expect(!did, std::string(name) + " of " + what + " to be refused", "yes");
           };
           Outputs outputs;
           Position tip = 0;
           s.note("every call with " + what);
           refused("clear", [&] { return m.clear(bad); });
           refused("feed", [&] { return m.feed({bad, 0, {1, 2}, 0}, outputs); });
           refused("feed", [&] { return m.feed({bad, 20, {1, 2}, 0}, outputs); });
           refused("can", [&] { return m.can(bad, 0); });
           refused("roll", [&] { return m.roll(bad, 0); });
           refused("roll", [&] { return m.roll(bad, 19); });
           if (s.guarded("tip", tip, [&] { return m.tip(bad); })) {
             s.expect(tip < 0, "a negative tip of " + what, std::to_string(tip));
           }
           if (m.verify) refused("verify", [&] { return m.verify({bad, 0, {1}, 0}, 0, outputs); });
           if (m.copy) refused("copy", [&] { return m.copy(0, bad); });
           if (m.copy) refused("copy", [&] { return m.copy(bad, 0); });
         }
         s.equal_all();
       }},
      {"BR-69", "a call with unequal rows of each slot",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().batch), "batch") || !s.needs_slots(3) || !needs_depth(s, 1)) return;
         if (!s.needs(s.description().max_rows >= 5, "calls of 5 rows")) return;
         for (std::int32_t i = 0; i < 3; ++i) s.feed(i, 10);
         s.batch({0, 0, 1, 0, 0});
         s.roll(0, 14 - std::min(s.reach().per_token, 3));
         s.roll(1, 10);
         s.roll(2, 9);
         s.equal_all();
       }},
      {"BR-88", "rows that do not follow the tip are refused",
       [](Session& s) {
         s.feed(0, 20);
         Bytes const before = s.state(0);
         for (Position p : {Position{-1}, Position{0}, Position{19}, Position{21}}) {
           bool ran = false;
           Outputs outputs;
           s.note("feed at position " + std::to_string(p) + " of tip 20");
           auto const feed = [&] { return s.memory().feed({0, p, {1, 2}, 0}, outputs); };
           if (s.guarded("feed", ran, feed)) {
             s.expect(!ran, "rows at position " + std::to_string(p) + " to be refused at tip 20", "they ran");
           }
         }
         s.expect(s.state(0) == before, "refused rows to change nothing", "the state differs");
         s.equal(0, 2);
       }},
      {"BR-71", "a feed that fails before it starts keeps the rollback that was put off",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().fail_next), "fail_next")) return;
         Position const q = s.reach().alignment;
         Position const tip = q > 0 ? tip_above(s, 2) : 30;
         if (!s.needs_tokens(tip)) return;
         for (Position wanted : {tip - 1, q > 0 ? 2 * q : tip - 2}) {
           s.restart();
           s.feed(0, tip);
           s.roll(0, s.nearest(0, wanted));
           s.fail(0, std::min(s.description().max_rows, 9), 0);
           s.feed(0, 2);
           s.equal(0);
           s.equal(0, 9);
         }
       }},
      {"honest end", "after a failure the sequence is where it says it is",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().fail_next), "fail_next")) return;
         Position const tip = s.reach().alignment > 0 ? tip_above(s, 2) : 30;
         std::int32_t const rows = std::min(s.description().max_rows, 24);
         if (!s.needs_tokens(tip + 2 * rows)) return;
         for (std::int32_t run = 1; run < rows; run += run < 4 ? 1 : 5) {
           for (bool rolled : {false, true}) {
             auto const setup = [&s, tip, rows, run, rolled] {
               s.feed(0, tip);
               if (rolled) s.roll(0, s.nearest(0, tip - 1));
               s.fail(0, rows, run);
             };
             s.restart();
             setup();
             s.equal(0, 3);
             if (run == 3) every_landing(s, 0, setup);
           }
         }
       }},
      {"BR-34", "rounds of edits on one prefix use no more memory each time",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().held), "held") || !s.needs_tokens(600)) return;
         s.feed(0, 400);
         std::size_t held = 0;
         for (int round = 0; round < 20; ++round) {
           s.feed(0, 64);
           std::size_t now = 0;
           if (!s.guarded("held", now, s.memory().held)) return;
           if (round == 2) held = now;
           if (round == 2 && !s.needs(held > 0, "held to be more than 0")) return;
           if (round > 2) {
             s.expect(now <= held, "at most the " + std::to_string(held) + " bytes of the third round",
                      std::to_string(now) + " in round " + std::to_string(round + 1));
           }
           Position const p = s.nearest(0, 400);
           s.roll(0, p);
           s.feed(0, 400 - p);
         }
         s.equal(0, 1);
       }},
      {"BR-82", "kept states take what they take, however long the sequence",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().held), "held")) return;
         Position n = 20;  // enough that every kind of state holds all that it will
         for (Promise const& p : s.description().promises) {
           n = std::max(n, (p.boundaries + 1) * p.quantum + p.per_token + 8);
         }
         if (!s.needs_tokens(3 * n)) return;
         std::size_t first = 0;
         std::size_t now = 0;
         s.feed(0, n);
         if (!s.guarded("held", first, s.memory().held) || !s.needs(first > 0, "held to be more than 0")) return;
         for (int i = 0; i < 2; ++i) {
           s.feed(0, n);
           if (!s.guarded("held", now, s.memory().held)) return;
           s.expect(now <= first, "at most the " + std::to_string(first) + " bytes held at tip " + std::to_string(n),
                    std::to_string(now) + " at tip " + std::to_string(s.tip(0)));
         }
       }},
  };
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
