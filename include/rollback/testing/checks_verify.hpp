// Checks of speculation: rows that ran and of which only the first stand.
#pragma once

#include <rollback/testing/check.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// The checks of this file.
[[nodiscard]] inline std::vector<Check> checks_verify() {
  return {
      {"BR-15", "nothing accepted: the state before the rows is there",
       [](Session& s) {
         if (!needs_verify(s, 1)) return;
         for (std::int32_t w = 1; w <= verify_rows(s, 8); ++w) {
           s.restart();
           s.feed(0, 50);
           s.verify(0, w, 0);
           s.expect(s.roll(0, 50), "a roll to where the rows began", "a refusal");
           s.verify(0, w, 0);
           s.equal(0, 3);
         }
       }},
      {"BR-16", "partly accepted rows twice in a row",
       [](Session& s) {
         if (!needs_verify(s, 2)) return;
         std::int32_t const w = verify_rows(s, 4);
         s.feed(0, 4);
         s.verify(0, w, w / 2);
         s.verify(0, w, w - 1);
         s.equal(0, 3);
       }},
      {"BR-21", "a boundary that only rejected rows crossed is none",
       [](Session& s) {
         if (!needs_verify(s, 3) || !needs_boundaries(s, 1)) return;
         Position const q = s.reach().alignment;
         std::int32_t const w = verify_rows(s, 4);
         if (!s.needs(q > 2, "a quantum above 2") || !s.needs_tokens(tip_above(s, 3))) return;
         for (std::int32_t k : {1, 2}) {
           for (std::int32_t accepted = 0; accepted <= w; ++accepted) {
             auto const setup = [&s, q, k, w, accepted](Position more) {
               s.restart();
               s.feed(0, k * q - 2);
               s.verify(0, w, accepted);
               s.feed(0, more);
             };
             setup(0);
             Position const tip = s.tip(0);
             if (tip < k * q) roll_or_nothing(s, 0, k * q);
             s.equal(0, 1);
             if (tip >= k * q) {
               setup(0);
               s.roll(0, k * q);
               s.equal(0, 2);
             }
             for (Position more : {Position{3}, Position{3} + s.reach().per_token}) {  // out of its reach too
               setup(more);
               s.roll(0, k * q);
               s.equal(0, 2);
             }
           }
         }
       }},
      {"BR-36", "every tip, width and accepted prefix, and the row after",
       [](Session& s) {
         if (!needs_verify(s, 1)) return;
         for (Position tip = 16; tip < 32; ++tip) {
           for (std::int32_t w = 1; w <= verify_rows(s, 10); ++w) {
             for (std::int32_t accepted = 0; accepted <= w && !s.stopped(); ++accepted) {
               s.restart();
               s.feed(0, tip);
               s.verify(0, w, accepted);
               s.equal(0, 1);
             }
           }
         }
       }},
      {"BR-38", "after every accepted prefix single steps equal serial ones",
       [](Session& s) {
         if (!needs_verify(s, 1)) return;
         std::int32_t const w = verify_rows(s, 6);
         for (Position tip = 8; tip < 16; ++tip) {
           for (std::int32_t accepted = 0; accepted <= w && !s.stopped(); ++accepted) {
             s.restart();
             s.feed(0, tip);
             s.verify(0, w, accepted, 1 + accepted % 3);
             for (int i = 0; i < 5; ++i) s.feed(0, 1), s.equal(0);
           }
         }
       }},
      {"BR-39", "every width, under a load of all slots",
       [](Session& s) {
         if (!needs_verify(s, 1) || !s.needs_slots(2)) return;
         std::int32_t const slots = std::min(s.description().slots, 12);
         for (std::int32_t w = 1; w <= verify_rows(s, 16); ++w) {
           s.restart();
           for (std::int32_t i = 0; i < slots; ++i) s.feed(i, 5 + i);
           for (std::int32_t round = 0; round < 3; ++round) {
             for (std::int32_t i = 0; i < slots; ++i) {
               auto const accepted = static_cast<std::int32_t>(s.below(w + 1));
               s.verify((i + round) % slots, w, accepted);
               if (s.below(2) == 0) s.feed(i, 1 + s.below(5));
             }
           }
           s.equal_all();
         }
       }},
      {"BR-42", "rejections, acceptances and halves in a row, across every wrap",
       [](Session& s) {
         if (!needs_verify(s, 2)) return;
         for (std::int32_t w : {verify_rows(s, 4), verify_rows(s, 16)}) {
           s.restart();
           s.feed(0, 8);
           for (int round = 0; round < 12; ++round) {
             for (std::int32_t accepted : {0, w, w / 2, 1, w / 2}) s.verify(0, w, accepted);
             if (round % 3 == 0) s.equal(0);
           }
           s.equal(0, 5);
         }
       }},
      {"BR-45", "half accepted: state and output are of the same row",
       [](Session& s) {
         if (!needs_verify(s, 2)) return;
         s.feed(0, 9);
         if (!s.needs(s.emits(0), "outputs")) return;
         s.verify(0, 2, 1);
         s.equal(0);
         s.verify(0, verify_rows(s, 4), 1);
         s.equal(0, 2);
       }},
  };
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
