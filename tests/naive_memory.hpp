// A memory of the plainest kind, written without the books: it copies whole states into lists. Right unless told to be
// wrong in one of the ways in which real engines were.
#pragma once

#include <rollback/testing/memory.hpp>

#include "naive_config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace naive {

using rollback::testing::Bytes;
using rollback::testing::Outputs;
using rollback::testing::Rows;
using rollback::testing::Token;

using Words = std::vector<std::uint32_t>;
inline constexpr std::uint32_t untouched = 0x3e3e3e3e;
inline constexpr std::size_t parts = 2;

inline std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  x ^= y + 0x9e3779b9u + (x << 6) + (x >> 2);
  x = (x ^ (x >> 15)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

class Memory {
 public:
  explicit Memory(Config const& config) : config_(config) {
    for (std::int32_t s = 0; s < config.slots; ++s) slots_.push_back(Sequence(config));
  }

  bool clear(std::int32_t slot) {
    if (!find(slot)) return false;
    Sequence& s = *find(slot);
    if (config_.defect == Defect::clear_leaves_kept_states) {
      s.tip = 0;
      s.pending = -1;
    } else {
      s = Sequence(config_);
    }
    return true;
  }

  Position tip(std::int32_t slot) { return find(slot) ? find(slot)->tip : -1; }

  bool feed(Rows const& rows, Outputs& outputs) {
    return run(rows, static_cast<std::int32_t>(rows.tokens.size()), outputs);
  }
  bool verify(Rows const& rows, std::int32_t accepted, Outputs& outputs) {
    if (static_cast<std::int32_t>(rows.tokens.size()) > config_.unverified) return false;
    return run(rows, accepted, outputs);
  }
  bool batch(std::vector<rollback::testing::Row> const& rows, Outputs& outputs) {
    for (auto const& row : rows) {
      outputs.emplace_back();
      if (row.slot < 0) {
        if (is(Defect::padding_writes_slot_0)) slots_[0].live[1][0] = row.token;
        continue;
      }
      Outputs one;
      if (!run({row.slot, row.position, {row.token}, 0}, 1, one)) return false;
      outputs.back() = one[0];
    }
    return true;
  }

  bool can(std::int32_t slot, Position p) {
    Sequence const* const s = find(slot);
    if (s == nullptr || p < 0 || p > s->tip) return false;
    if (p == 0 || p == s->tip) return !(is(Defect::refuses_the_tip) && p > 0);
    if (is(Defect::alignment_inflated) && p % 4096 != 0 && p < s->tip - config_.fold.per_token) return false;
    if (is(Defect::can_says_yes_to_more) && p >= s->tip - 2 * config_.fold.per_token - 2) return true;
    for (std::size_t part = 0; part < parts; ++part) {
      if (!state_of(*s, part, p)) return false;
    }
    Position const lowest = is(Defect::window_judged_by_tip) ? s->tip - config_.window_rows : s->lowest;
    return config_.window == 0 || std::max<Position>(0, p - (config_.window - 1)) >= lowest;
  }

  bool roll(std::int32_t slot, Position p) {
    if (!find(slot)) return false;
    Sequence& s = *find(slot);
    bool accepted = can(slot, p);
    if (is(Defect::rolls_beyond_reach) && p > 0 && p < s.tip) accepted = true;
    if (!accepted) {
      if (is(Defect::throws_on_refusal)) throw std::runtime_error("no state at " + std::to_string(p));
      if (is(Defect::refusal_drops_restore)) s.pending = -1;
      if (is(Defect::truncates_first_part_only) && p > 0 && p < s.tip && state_of(s, 0, p)) {
        s.live[0] = *state_of(s, 0, p);
      }
      return false;
    }
    if (p == s.tip) return true;
    if (!(is(Defect::second_rollback_ignored) && s.pending >= 0)) s.pending = p > 0 ? p : -1;
    land(s, p);
    if (is(Defect::restore_burns_boundaries)) {
      for (std::size_t part = 0; part < parts; ++part) {
        drop_if(s.aligned[part], [p](Position q) { return q != p; });
      }
    }
    return true;
  }

  Position nearest(std::int32_t slot, Position wanted) {
    if (is(Defect::nearest_is_newest)) {
      Position newest = 0;
      for (Kept const& k : find(slot)->aligned[0]) newest = std::max(newest, k.position);
      if (newest > 0) return newest;
    }
    Position p = std::min(wanted, tip(slot));
    while (p > 0 && !can(slot, p)) --p;
    return p;
  }

  Bytes state(std::int32_t slot) { return bytes_of(readable(*find(slot))); }

  Bytes save(std::int32_t slot) {
    Sequence s = *find(slot);
    if (!is(Defect::saves_live_state)) restore(s);
    Words words{static_cast<std::uint32_t>(s.tip), static_cast<std::uint32_t>(s.blocks.size()),
                static_cast<std::uint32_t>(s.window.size())};
    for (Words const* from : {&s.live[0], &s.live[1], &s.blocks, &s.window}) {
      words.insert(words.end(), from->begin(), from->end());
    }
    return bytes_of(words);
  }

  bool load(std::int32_t slot, Bytes const& bytes) {
    if (!find(slot) || bytes.size() % 4 != 0 || bytes.size() < 12) return false;
    Words words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    Sequence fresh(config_);
    fresh.tip = words[0];
    fresh.lowest = std::max<Position>(0, fresh.tip - config_.window_rows);
    fresh.blocks.resize(words[1]);
    if (words[2] != fresh.window.size()) return false;
    std::size_t at = 3;
    for (Words* to : {&fresh.live[0], &fresh.live[1], &fresh.blocks, &fresh.window}) {
      if (is(Defect::loads_what_is_cut)) words.resize(std::max(words.size(), at + to->size()));
      if (words.size() - at < to->size()) return false;
      std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(at), to->size(), to->begin());
      at += to->size();
    }
    if (is(Defect::load_keeps_boundaries)) fresh.aligned = find(slot)->aligned;
    if (is(Defect::load_moves_counter_only)) {
      find(slot)->tip = fresh.tip;
      return true;
    }
    if (is(Defect::load_clears_others)) slots_.assign(slots_.size(), Sequence(config_));
    *find(slot) = fresh;
    return true;
  }

  bool copy(std::int32_t source, std::int32_t destination) {
    if (!find(source) || !find(destination)) return false;
    if (is(Defect::copy_does_nothing)) {
      find(destination)->tip = find(source)->tip;
      return true;
    }
    Sequence const copied = *find(source);
    *find(destination) = copied;
    return true;
  }

  void fail_next(std::int32_t rows_run) { fail_after_ = rows_run; }

  std::size_t held() {
    std::size_t words = 0;
    for (Sequence const& s : slots_) {
      for (std::size_t part = 0; part < parts; ++part) {
        words += (s.per_token[part].size() + s.aligned[part].size() + 1) * s.live[part].size();
      }
    }
    return words * 4;
  }

 private:
  struct Kept {
    Position position;
    Words words;
  };
  using History = std::array<std::vector<Kept>, parts>;
  struct Sequence {
    explicit Sequence(Config const& c) : window(static_cast<std::size_t>(c.window_rows), untouched) {}
    Position tip = 0;
    Position pending = -1;  // the position whose state the next call restores
    Position lowest = 0;    // the oldest position whose window row is there
    std::array<Words, parts> live{Words(7, 0), Words(8, untouched)};
    History per_token, aligned;
    Words blocks;
    Words window;
  };

  [[nodiscard]] bool is(Defect defect) const { return config_.defect == defect; }
  [[nodiscard]] Sequence* find(std::int32_t slot) {
    auto const n = static_cast<std::int32_t>(slots_.size());
    if (is(Defect::slot_wraps_around) && slot >= n) slot %= n;
    return slot < 0 || slot >= n ? nullptr : &slots_[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] Promise const& promise(std::size_t part) const { return part == 0 ? config_.fold : config_.ring; }

  [[nodiscard]] Words const* state_of(Sequence const& s, std::size_t part, Position p) const {
    for (History const* history : {&s.per_token, &s.aligned}) {
      for (Kept const& kept : (*history)[part]) {
        if (kept.position == p) return &kept.words;
      }
    }
    return nullptr;
  }

  template <class F>
  static void drop_if(std::vector<Kept>& states, F const& f) {
    states.erase(std::remove_if(states.begin(), states.end(), [&f](Kept const& k) { return f(k.position); }),
                 states.end());
  }

  // The tip is now `p`; what is above was taken back.
  void land(Sequence& s, Position p) const {
    s.tip = p;
    for (std::size_t part = 0; part < parts; ++part) {
      drop_if(s.per_token[part], [p](Position q) { return q > p; });
      if (!is(Defect::serves_abandoned_boundary)) drop_if(s.aligned[part], [p](Position q) { return q > p; });
    }
    s.lowest = std::min(s.lowest, p);
  }

  void restore(Sequence& s) const {
    if (s.pending < 0) return;
    for (std::size_t part = 0; part < parts; ++part) {
      Words const* const kept = state_of(s, part, s.pending);
      if (kept == nullptr) continue;
      bool const all = part != 0 || !is(Defect::member_not_kept);
      std::copy_n(kept->begin(), all ? kept->size() : 4, s.live[part].begin());
    }
  }

  bool run(Rows const& rows, std::int32_t accepted, Outputs& outputs) {
    Sequence* s = find(rows.slot);
    if (s == nullptr || (rows.position != s->tip && !is(Defect::feeds_anywhere))) return false;
    auto const n = static_cast<std::int32_t>(rows.tokens.size());
    if (n > config_.max_rows) return false;
    if (fail_after_ == 0) {
      fail_after_ = -1;
      if (is(Defect::failed_feed_drops_restore)) s->pending = -1;
      return false;
    }
    if (is(Defect::uses_last_slot_of_shape)) {
      std::int32_t const planned = plans_.emplace(n, rows.slot).first->second;
      std::swap(s->live, find(planned)->live);
    }
    Sequence const entry = *s;
    std::int32_t const chunk = rows.chunk_rows > 0 ? rows.chunk_rows : n;
    History states;
    History boundaries;
    for (std::int32_t i = 0; i < n; ++i) {
      if (i == 0 || (i % chunk == 0 && is(Defect::restores_every_chunk))) restore(*s);
      if (i % chunk == 0 && is(Defect::keeps_states_of_last_chunk_only)) states = {}, s->per_token = {};
      if (i == 0 && rows.position == 0) start(*s);
      if (i == fail_after_) {
        fail_after_ = -1;
        if (is(Defect::failure_claims_entry)) {
          s->tip = entry.tip;
        } else {
          *s = entry;
        }
        outputs.clear();
        return false;
      }
      outputs.push_back(step(*s, rows, i, i + 1 == n, states, boundaries));
    }
    finish(*s, entry, n, accepted, states, boundaries);
    for (Sequence& other : slots_) {
      if (is(Defect::call_drops_states_of_others) && &other != s) other.per_token = {};
    }
    if (is(Defect::output_of_next_row) && accepted < n && accepted > 0) {
      outputs[static_cast<std::size_t>(accepted - 1)] = outputs[static_cast<std::size_t>(accepted)];
    }
    return true;
  }

  void start(Sequence& s) const {
    std::fill(s.live[0].begin(), s.live[0].end(), 0u);
    s.blocks.clear();
  }

  // Advances the live state by row `i`, keeping the states before and after it where they are wanted.
  Bytes step(Sequence& s, Rows const& rows, std::int32_t i, bool last, History& states, History& boundaries) const {
    Position const p = rows.position + i;
    for (std::size_t part = 0; part < parts; ++part) {
      bool const wanted = p > 0 && !(i == 0 && is(Defect::block_start_not_kept) && rows.tokens.size() > 1);
      if (wanted && promise(part).per_token > 0) states[part].push_back({p, s.live[part]});
      if (is(Defect::boundary_off_by_one) && at_boundary(part, p + 1))
        boundaries[part].push_back({p + 1, s.live[part]});
    }
    bool const alone = is(Defect::overlap_only_inside_call) && i < 7;
    Bytes const output = advance(s, p, rows.tokens[static_cast<std::size_t>(i)], alone);
    for (std::size_t part = 0; part < parts; ++part) {
      bool const missed = is(Defect::boundaries_at_ends_of_calls_only) && !last;
      if (is(Defect::boundary_off_by_one) || missed || !at_boundary(part, p + 1)) continue;
      boundaries[part].push_back({p + 1, s.live[part]});
    }
    return output;
  }

  [[nodiscard]] bool at_boundary(std::size_t part, Position p) const {
    return promise(part).boundaries > 0 && p % promise(part).quantum == 0;
  }

  [[nodiscard]] Bytes advance(Sequence& s, Position p, Token token, bool alone) const {
    auto const at = static_cast<std::size_t>(p);
    std::uint32_t const input = mix(token, static_cast<std::uint32_t>(p));
    Words& fold = s.live[0];
    for (std::size_t i = 0; i < 4; ++i)
      fold[i] = mix(fold[i] ^ fold[(i + 1) % 4], input + static_cast<std::uint32_t>(i));
    fold[4 + at % 3] = mix(input, 1);
    Words& ring = s.live[1];
    ring[at % 8] = mix(input, 2);
    if (at % 4 == 3) {
      bool const first = alone || (at == 3 && !is(Defect::first_block_reads_stale_rows));
      std::uint32_t block = 7;
      for (std::size_t i = 0; i < 4; ++i) block = mix(block, first ? 0 : ring[(at + 1 + i) % 8]);
      for (std::size_t i = 0; i < 4; ++i) block = mix(block, ring[(at + 5 + i) % 8]);
      s.blocks.resize(at / 4);
      s.blocks.push_back(block);
    }
    std::uint32_t output = mix(fold[0], mix(fold[4], mix(fold[5], fold[6])));
    std::size_t const visible = is(Defect::stale_blocks_visible) ? s.blocks.size() : (at + 1) / 4;
    if (visible > 0) output = mix(output, mix(block_of(s, visible - 1), block_of(s, 0)));
    if (config_.window > 0) {
      auto const rows = static_cast<std::size_t>(config_.window_rows);
      s.window[at % rows] = mix(input, 3);
      for (Position q = std::max<Position>(0, p + 1 - config_.window); q <= p; ++q) {
        output = mix(output, s.window[static_cast<std::size_t>(q) % rows]);
      }
    }
    return bytes_of({output});
  }

  // Lists what was kept; rows of which only the first stand are taken back like any others.
  void finish(Sequence& s, Sequence const& entry, std::int32_t n, std::int32_t accepted, History& states,
              History& boundaries) const {
    Position const end = entry.tip + n;
    Position const stand = entry.tip + accepted;
    s.tip = end;
    s.lowest = std::max(s.lowest, end - config_.window_rows);
    if (!is(Defect::marker_never_consumed)) s.pending = -1;
    for (std::size_t part = 0; part < parts; ++part) {
      Promise const& kind = promise(part);
      append(s.per_token[part], states[part]);
      Position const oldest = end - kind.per_token;
      if (!is(Defect::kept_states_never_dropped)) drop_if(s.per_token[part], [=](Position q) { return q < oldest; });
      bool const all = is(Defect::lists_rejected_boundary);
      if (!all) drop_if(boundaries[part], [stand](Position q) { return q > stand; });
      append(s.aligned[part], boundaries[part]);
      Position const newest = kind.boundaries > 0 ? stand / kind.quantum * kind.quantum : 0;
      Position const gone = newest - kind.boundaries * kind.quantum;
      if (!is(Defect::kept_states_never_dropped)) drop_if(s.aligned[part], [=](Position q) { return q <= gone; });
    }
    for (Kept& kept : s.per_token[0]) {
      if (is(Defect::width_six_corrupts) && n == 6) kept.words[0] ^= 1;
    }
    if (accepted == n) return;
    if (is(Defect::persists_last_four_rows)) forget_rows(s, entry, end);
    std::array<std::vector<Kept>, parts> const before = s.aligned;
    land(s, stand);
    if (is(Defect::lists_rejected_boundary)) s.aligned = before;
    s.pending = stand > 0 ? stand : -1;
  }

  // A ring's rows below the last four of the call are as before it.
  static void forget_rows(Sequence& s, Sequence const& entry, Position end) {
    for (Kept& kept : s.per_token[1]) {
      for (Position q = entry.tip; q < std::min(kept.position, end - 4); ++q) {
        auto const row = static_cast<std::size_t>(q % 8);
        kept.words[row] = entry.live[1][row];
      }
    }
  }

  void append(std::vector<Kept>& to, std::vector<Kept> const& from) const {
    for (Kept const& kept : from) {
      if (std::none_of(to.begin(), to.end(), [&kept](Kept const& k) { return k.position == kept.position; })) {
        to.push_back(kept);
      }
    }
  }

  [[nodiscard]] static std::uint32_t block_of(Sequence const& s, std::size_t index) {
    return index < s.blocks.size() ? s.blocks[index] : untouched;
  }

  // All that a later step at the tip can read.
  [[nodiscard]] Words readable(Sequence const& s) const {
    Words words = s.live[0];
    Position const block = s.tip / 4 * 4;
    for (Position q = std::max<Position>(0, block - 4); q < s.tip; ++q) {
      words.push_back(s.live[1][static_cast<std::size_t>(q % 8)]);
    }
    for (Position b = 0; b < s.tip / 4; ++b) words.push_back(block_of(s, static_cast<std::size_t>(b)));
    if (config_.window == 0) return words;
    for (Position q = std::max<Position>(0, s.tip + 1 - config_.window); q < s.tip; ++q) {
      words.push_back(s.window[static_cast<std::size_t>(q % config_.window_rows)]);
    }
    return words;
  }

  static Bytes bytes_of(Words const& words) {
    Bytes bytes(words.size() * 4);
    if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
  }

  Config config_;
  std::vector<Sequence> slots_;
  std::map<std::int32_t, std::int32_t> plans_;  // of the last call with so many rows: the slot
  std::int32_t fail_after_ = -1;
};

}  // namespace naive
