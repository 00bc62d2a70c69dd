// Checks of sequences that are saved, loaded and copied.
#pragma once

#include <rollback/testing/check.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

[[nodiscard]] inline bool needs_save(Session& s) {
  return s.needs(s.memory().save && s.memory().load, "save and load");
}

/// Saves a slot and loads it into slot 0 of a new memory.
inline void move_to_new_memory(Session& s, std::int32_t slot) {
  Bytes const bytes = s.save(slot);
  std::vector<Token> const tokens = s.tokens(slot);
  s.restart();
  s.expect(s.load(0, bytes, tokens), "bytes that were saved to load", "a refusal");
}

/// The checks of this file.
[[nodiscard]] inline std::vector<Check> checks_save() {
  return {
      {"BR-17", "saved at, below and above boundaries",
       [](Session& s) {
         if (!needs_save(s)) return;
         Position const q = s.reach().alignment > 0 ? s.reach().alignment : 8;
         if (!s.needs_tokens(3 * q + 21)) return;
         std::set<Position> tips;
         for (std::int32_t k = 1; k <= 3; ++k) tips.insert({k * q - 1, k * q, k * q + 1, k * q + 2});
         for (Position tip : tips) {
           s.restart();
           s.feed(0, tip);
           move_to_new_memory(s, 0);
           s.equal(0, 20);
         }
       }},
      {"BR-46", "saved with a rollback to a boundary put off",
       [](Session& s) {
         if (!needs_save(s) || !needs_boundaries(s, 1) || !s.needs_tokens(tip_above(s, 3))) return;
         s.feed(0, tip_above(s, 2));
         s.roll(0, 2 * s.reach().alignment);
         move_to_new_memory(s, 0);
         s.feed(0, s.reach().alignment);
         s.equal(0, 3);
       }},
      {"BR-47", "saved bytes are of the sequence, not of what was taken back",
       [](Session& s) {
         if (!needs_save(s) || !needs_depth(s, 1)) return;
         Position const depth = std::min(s.reach().per_token, 2);
         s.feed(0, 21);
         s.roll(0, 21 - depth);
         move_to_new_memory(s, 0);
         s.equal(0, 2);
       }},
      {"BR-49", "boundaries of the sequence that a load replaced are gone",
       [](Session& s) {
         if (!needs_save(s)) return;
         Position const q = s.reach().alignment;
         Position const tip = q > 0 ? tip_above(s, 3) : 30;
         if (!s.needs_tokens(tip + std::max<Position>(q, 4) + 3)) return;
         s.feed(0, tip - 1);
         Bytes const bytes = s.save(0);
         std::vector<Token> const tokens = s.tokens(0);
         auto const setup = [&](Position more) {
           static_cast<void>(s.new_tokens(tip));  // the other sequence has other tokens
           s.feed(0, tip + 2);
           s.expect(s.load(0, bytes, tokens), "bytes that were saved to load", "a refusal");
           s.feed(0, more);
         };
         for (Position more : {Position{0}, Position{1}, std::max<Position>(q, 4)}) {
           every_landing(s, 0, [&] { setup(more); });
         }
       }},
      {"BR-51", "loading one slot leaves the others alone",
       [](Session& s) {
         if (!needs_save(s) || !s.needs_slots(2)) return;
         std::int32_t const slots = s.description().slots;
         for (std::int32_t i = 0; i < slots; ++i) s.feed(i, 20 + 7 * i);
         Bytes const bytes = s.save(1);
         std::vector<Token> const tokens = s.tokens(1);
         s.feed(1, 5);
         s.expect(s.load(1, bytes, tokens), "bytes that were saved to load", "a refusal");
         for (std::int32_t i = 0; i < slots; ++i) {
           if (i != 1 && s.promised(i, s.tip(i) - 1)) s.roll(i, s.tip(i) - 1);
         }
         s.equal_all();
       }},
      {"BR-52", "saving one slot saves that one only",
       [](Session& s) {
         if (!needs_save(s) || !s.needs_slots(2)) return;
         std::int32_t const slots = s.description().slots;
         s.feed(0, 20);
         std::size_t const alone = s.save(0).size();
         for (std::int32_t i = 1; i < slots; ++i) s.feed(i, 20 + 7 * i);
         Bytes const bytes = s.save(0);
         std::vector<Token> const tokens = s.tokens(0);
         s.expect(bytes.size() == alone, std::to_string(alone) + " bytes, however many slots are in use",
                  std::to_string(bytes.size()));
         for (std::int32_t i = 0; i < slots; ++i) s.feed(i, 3);
         s.expect(s.load(0, bytes, tokens), "bytes that were saved to load", "a refusal");
         s.equal_all();
       }},
      {"BR-54", "a load brings the state back, not only the position",
       [](Session& s) {
         if (!needs_save(s)) return;
         s.feed(0, 30);
         Bytes const bytes = s.save(0);
         std::vector<Token> const tokens = s.tokens(0);
         s.feed(0, 10);
         s.expect(s.load(0, bytes, tokens), "bytes that were saved to load", "a refusal");
         s.equal(0, 1);
         s.equal(0, 5);
       }},
      {"BR-55", "bytes that were cut short are refused, or what they lack is not listed",
       [](Session& s) {
         if (!needs_save(s)) return;
         s.feed(0, 30);
         Bytes const bytes = s.save(0);
         std::vector<Token> const tokens = s.tokens(0);
         for (std::size_t i = 0; i < 12 && !s.stopped(); ++i) {
           s.restart();
           s.feed(0, 13);
           Bytes const cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * i / 12));
           Bytes const before = s.state(0);
           if (!s.load(0, cut, tokens)) s.expect(s.state(0) == before, "a refused load to change nothing", "it did");
           s.equal(0, 2);
         }
       }},
      {"BR-56", "saved, loaded and saved again: the same bytes",
       [](Session& s) {
         if (!needs_save(s)) return;
         s.feed(0, 30);
         Bytes const bytes = s.save(0);
         move_to_new_memory(s, 0);
         s.expect(s.save(0) == bytes, "the same bytes", "others");
       }},
      {"BR-74", "a copy is one, or is refused",
       [](Session& s) {
         if (!s.needs(static_cast<bool>(s.memory().copy), "copy") || !s.needs_slots(2)) return;
         Position const q = s.reach().alignment;
         Position const tip = q > 0 ? tip_above(s, 2) : 20;
         if (!s.needs_tokens(tip + 3)) return;
         bool back = false;  // some copy kept states only, where a rollback put one off
         bool copied = false;
         auto const setup = [&] {
           s.feed(0, tip);
           s.feed(1, tip + 2);
           if (back) s.roll(0, s.nearest(0, tip - 1));
           copied = s.copy(0, 1);
         };
         setup();
         if (!copied) {
           s.equal(1);
           s.restart();
           back = true;
           setup();
         }
         s.equal(0, 2);
         s.equal(1, 3);
         if (!s.needs(copied, "a copy that is not refused")) return;
         every_landing(s, 1, setup);
         every_landing(s, 1, [&] { setup(), s.feed(1, 2), s.feed(0, 2); });
       }},
  };
}

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
