// What the toy engine computes, as pure functions of a sequence's tokens: the oracle of the tests.
#pragma once

#include <rollback/component.hpp>
#include <rollback/position.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace toy {

using rollback::Component;
using rollback::Position;
using rollback::Window;

using Token = std::uint32_t;
using Row = std::array<std::uint32_t, 4>;  // a row of any plane, cache or window

inline std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  x ^= y + 0x9e3779b9u + (x << 6) + (x >> 2);
  x = (x ^ (x >> 15)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

/// The row that a token leaves in a ring or in a window.
inline Row row_of(Token token, Position p, std::uint32_t salt) {
  Row row;
  for (std::uint32_t i = 0; i < row.size(); ++i) row[i] = mix(mix(token, static_cast<std::uint32_t>(p)), salt + i);
  return row;
}

/// FOLD: a plane of `rows` rows that every token overwrites in place, each row a function of its neighbour too. With
/// `empty_at` it starts anew at those positions.
inline void advance(Component const& c, std::uint32_t salt, Token token, Position p, Row* plane) {
  auto const rows = static_cast<std::size_t>(c.geometry.rows);
  for (std::size_t r = 0; r < rows; ++r) {
    Row const fresh = row_of(token, p, salt + static_cast<std::uint32_t>(r));
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      plane[r][i] = mix(plane[r][i] ^ plane[(r + 1) % rows][(i + 1) % fresh.size()], fresh[i]);
    }
  }
  if (c.empty_at > 0 && (p + 1) % c.empty_at == 0) {
    for (std::size_t r = 0; r < rows; ++r) plane[r] = Row{};
  }
}

/// A block out of its rows; null is "no such position". With overlap the first half of every row belongs to the block
/// that follows and the second half to its own, as in DSV4's overlapping compressors.
inline Row block_of(std::vector<Row const*> const& previous, std::vector<Row const*> const& current, bool overlap) {
  Row block{1, 2, 3, 4};
  std::size_t const half = overlap ? 2 : 0;
  for (Row const* row : previous) {
    for (std::uint32_t& word : block) word = mix(word, row == nullptr ? 0x0ffu : mix((*row)[0], (*row)[1]));
  }
  for (Row const* row : current) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = mix(block[i], row == nullptr ? 0x0ffu : (*row)[half + i % (4 - half)]);
    }
  }
  return block;
}

/// FOLD, a plane overwritten in place; RING8 and RING128, the rings of DSV4. A test adds the tiers it wants.
inline Component fold() {
  Component c;
  c.name = "FOLD";
  return c;
}
inline Component ring8() {
  Component c;
  c.name = "RING8";
  c.geometry = {8, 4, true};
  c.states_inside_chunk = true;
  return c;
}
inline Component ring128() {
  Component c;
  c.name = "RING128";
  c.geometry = {128, 128, false};
  c.states_inside_chunk = true;
  return c;
}
/// A ring that emits nothing: the last inputs of a convolution.
inline Component trail() {
  Component c;
  c.name = "TRAIL";
  c.geometry = {3, 0, false};
  c.states_inside_chunk = true;
  return c;
}
/// The tiers: a state a token, `aligned` boundaries of `quantum` tokens, and where the state is empty.
inline Component with(Component c, std::int32_t per_token, Position quantum = 0, std::int32_t aligned = 0,
                      Position empty_at = 0) {
  c.per_token = per_token;
  c.quantum = quantum;
  c.aligned = aligned;
  c.empty_at = empty_at;
  return c;
}

/// The tokens of one sequence and what every position of it must look like. Keeps every state there ever was.
class History {
 public:
  explicit History(std::vector<Component> components) : components_(std::move(components)) {
    blocks_.resize(components_.size());
    for (Component const& c : components_) {
      states_.emplace_back(static_cast<std::size_t>(c.geometry.rows));  // position 0: empty
    }
  }

  [[nodiscard]] Position size() const { return static_cast<Position>(tokens_.size()); }
  [[nodiscard]] Token token(Position p) const { return tokens_[static_cast<std::size_t>(p)]; }

  void append(Token token) {
    Position const p = size();
    tokens_.push_back(token);
    for (std::size_t c = 0; c < components_.size(); ++c) {
      rollback::RowGeometry const& g = components_[c].geometry;
      if (g.block > 0 && (p + 1) % g.block == 0) blocks_[c].push_back(emitted(c, p / g.block));
      if (components_[c].states_inside_chunk) continue;
      auto const rows = static_cast<std::size_t>(g.rows);
      std::vector<Row>& states = states_[c];
      for (std::size_t r = 0; r < rows; ++r) states.push_back(states[states.size() - rows]);
      advance(components_[c], salt(c), token, p, states.data() + (states.size() - rows));
    }
  }

  void truncate(Position p) {
    tokens_.resize(static_cast<std::size_t>(p));
    for (std::size_t c = 0; c < components_.size(); ++c) {
      rollback::RowGeometry const& g = components_[c].geometry;
      if (g.block > 0) blocks_[c].resize(static_cast<std::size_t>(p / g.block));
      if (!components_[c].states_inside_chunk) states_[c].resize(static_cast<std::size_t>(g.rows * (p + 1)));
    }
  }

  /// FOLD: the plane after position p - 1.
  [[nodiscard]] Row const* plane(std::size_t c, Position p) const {
    return states_[c].data() + components_[c].geometry.rows * p;
  }
  /// A ring's row of position p.
  [[nodiscard]] Row ring_row(std::size_t c, Position p) const { return row_of(token(p), p, salt(c)); }

  /// The blocks of a ring up to the last token.
  [[nodiscard]] std::vector<Row> const& blocks(std::size_t c) const { return blocks_[c]; }

  [[nodiscard]] Row window_row(std::size_t window, Position p) const {
    return row_of(token(p), p, 0x77770000u + static_cast<std::uint32_t>(window));
  }

  /// How many words of a ring's row of position q < p a step at p or later can still read.
  [[nodiscard]] std::size_t readable_words(std::size_t c, Position q, Position p) const {
    rollback::RowGeometry const& g = components_[c].geometry;
    if (g.block == 0) return q >= p - g.rows ? 4 : 0;
    Position const block = p / g.block * g.block;  // of the next row
    if (q >= block) return 4;
    return g.overlap && q >= block - g.block ? 2 : 0;
  }

  [[nodiscard]] static std::uint32_t salt(std::size_t c) { return 0x1000u * static_cast<std::uint32_t>(c + 1); }

 private:
  [[nodiscard]] Row emitted(std::size_t c, Position w) const {
    rollback::RowGeometry const& g = components_[c].geometry;
    std::vector<Row> rows;
    Position const first = (g.overlap ? w - 1 : w) * g.block;
    for (Position p = first; p < (w + 1) * g.block; ++p) rows.push_back(p < 0 ? Row{} : ring_row(c, p));
    std::vector<Row const*> previous;
    std::vector<Row const*> current;
    for (Position p = first; p < (w + 1) * g.block; ++p) {
      Row const* const row = p < 0 ? nullptr : &rows[static_cast<std::size_t>(p - first)];
      (p < w * g.block ? previous : current).push_back(row);
    }
    return block_of(previous, current, g.overlap);
  }

  std::vector<Component> components_;
  std::vector<Token> tokens_;
  std::vector<std::vector<Row>> states_;  // FOLD: [positions + 1, rows of the plane]
  std::vector<std::vector<Row>> blocks_;
};

}  // namespace toy
