// A toy engine around a RollbackRing, for its tests: a state that remembers every token, in storage full of 0x3e, and
// what a fresh run over the same tokens gives.
#pragma once

#include <rollback/planes/whole.hpp>
#include <rollback/ring.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ring_engine {

using rollback::Landing;
using rollback::PlaneTensor;
using rollback::Position;
using rollback::RingOptions;
using rollback::RollbackRing;
using rollback::Slot;
using rollback::Verdict;
using rollback::WholePlane;

inline constexpr std::byte untouched{0x3e};
inline constexpr std::array<std::int64_t, 2> row_bytes{24, 37};  // two layers of sizes that share nothing
inline constexpr std::size_t state_bytes = 24 + 37;

using State = std::array<std::byte, state_bytes>;

// Advances a state by one token: every byte depends on the whole state, the token and the position.
inline void advance(std::byte* first, std::byte* second, std::uint32_t token, Position p) {
  std::uint64_t mix = token * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(p);
  auto const stir = [&mix](std::byte& b) {
    mix = (mix ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3u;
    mix ^= mix >> 29;
    b = static_cast<std::byte>(mix >> 7);
  };
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < row_bytes[0]; ++i) stir(first[i]);
    for (std::int64_t i = 0; i < row_bytes[1]; ++i) stir(second[i]);
  }
}

inline State fresh_run(std::vector<std::uint32_t> const& tokens) {
  State state{};
  Position p = 0;
  for (std::uint32_t token : tokens) advance(state.data(), state.data() + row_bytes[0], token, p++);
  return state;
}

// Exactly as many states as a ring asks for, full of 0x3e, with guard bytes around them.
struct Storage {
  static constexpr std::size_t guard = 64;
  std::array<std::vector<std::byte>, 2> memory;
  std::array<PlaneTensor, 2> tensors;
  std::int64_t states;

  explicit Storage(std::int64_t count) : states(count) {
    for (std::size_t t = 0; t < 2; ++t) {
      memory[t].assign(static_cast<std::size_t>(count * row_bytes[t]) + 2 * guard, untouched);
      tensors[t] = {memory[t].data() + guard, row_bytes[t]};
    }
  }
  std::byte* at(std::size_t tensor, std::int32_t state) { return tensors[tensor].base + state * row_bytes[tensor]; }
  State state(std::int32_t number) {
    State s;
    std::memcpy(s.data(), at(0, number), static_cast<std::size_t>(row_bytes[0]));
    std::memcpy(s.data() + row_bytes[0], at(1, number), static_cast<std::size_t>(row_bytes[1]));
    return s;
  }
  std::size_t untouched_states() {
    State blank;
    blank.fill(untouched);
    std::size_t n = 0;
    for (std::int32_t s = 0; s < states; ++s) n += state(s) == blank ? 1 : 0;
    return n;
  }
  bool guards_hold() const {
    for (auto const& m : memory) {
      for (std::size_t i = 0; i < guard; ++i) {
        if (m[i] != untouched || m[m.size() - 1 - i] != untouched) return false;
      }
    }
    return true;
  }
};

// A whole plane that counts what is done to it.
struct CountingPlane {
  WholePlane plane;
  int* copies;
  int* clears;
  void copy(std::int32_t source, std::int32_t destination) noexcept {
    ++*copies;
    plane.copy(source, destination);
  }
  void clear(std::int32_t destination) noexcept {
    ++*clears;
    plane.clear(destination);
  }
  std::int64_t states() const noexcept { return plane.states(); }
  std::size_t state_bytes() const noexcept { return plane.state_bytes(); }
};

// A ring with its storage and, for each slot, the tokens that are in.
template <int Quantum, int Depth>
struct Engine {
  using Ring = RollbackRing<CountingPlane, Quantum, Depth>;
  RingOptions options;
  Storage storage;
  int copies = 0;
  int clears = 0;
  Ring ring;
  std::vector<Slot> slots;
  std::vector<std::vector<std::uint32_t>> tokens;
  std::uint32_t next_token = 1;

  explicit Engine(RingOptions const& o)
      : options(o),
        storage(Ring::states(o)),
        ring(CountingPlane{WholePlane(storage.tensors.data(), 2, storage.states), &copies, &clears}, o),
        tokens(static_cast<std::size_t>(o.slots)) {
    for (std::int32_t s = 0; s < o.slots; ++s) slots.push_back(ring.slot(s));
  }

  // Feeds new tokens; `accepted` of the last `unverified` stand; the chunk of position `bad` fails, and a chunk that
  // fails has advanced the state part of the way and scribbled over it.
  Verdict feed(std::size_t slot, std::int32_t rows, std::int32_t unverified = 0, std::int32_t accepted = 0,
               Position bad = -1) {
    std::vector<std::uint32_t>& in = tokens[slot];
    auto const tip = static_cast<Position>(in.size());
    std::vector<std::uint32_t> next = in;
    for (std::int32_t i = 0; i < rows; ++i) next.push_back(next_token++ * 2654435761u);
    auto const step = [&](std::int32_t state, Position begin, Position end) {
      for (Position p = begin; p < end; ++p) {
        if (p == bad) {
          std::memset(storage.at(0, state), 0x11, static_cast<std::size_t>(row_bytes[0]));
          return false;
        }
        advance(storage.at(0, state), storage.at(1, state), next[static_cast<std::size_t>(p)], p);
      }
      return true;
    };
    Position const end = tip + rows - unverified + accepted;
    Verdict const verdict = unverified == 0 ? ring.feed(slots[slot], rows, step)
                                            : ring.verify(slots[slot], rows, unverified, step, [&] { return end; });
    if (verdict == Verdict::accepted) {
      next.resize(static_cast<std::size_t>(end));
      in = next;
    } else if (verdict == Verdict::chunk_failed) {
      next.resize(static_cast<std::size_t>(ring.outcome().tip));
      in = next;
    }
    return verdict;
  }

  Verdict roll_back(std::size_t slot, Position p) {
    Verdict const verdict = ring.roll_back(slots[slot], p);
    if (verdict == Verdict::accepted) tokens[slot].resize(static_cast<std::size_t>(p));
    return verdict;
  }

  Verdict fork(std::size_t from, Position p, std::size_t to) {
    Verdict const verdict = ring.fork(slots[from], p, slots[to]);
    if (verdict == Verdict::accepted) {
      tokens[to].assign(tokens[from].begin(), tokens[from].begin() + static_cast<std::ptrdiff_t>(p));
    }
    return verdict;
  }

  // Equality, where the live state can be looked at.
  bool equal(std::size_t slot) {
    if (ring.tip(slots[slot]) != static_cast<Position>(tokens[slot].size())) return false;
    if (ring.is_armed(slots[slot]) || tokens[slot].empty()) return true;
    return storage.state(ring.live(slots[slot])) == fresh_run(tokens[slot]);
  }

  std::vector<Position> landings(std::size_t slot) {
    std::vector<Landing> out(static_cast<std::size_t>(storage.states) + 1);
    std::int32_t const n = ring.landings(slots[slot], out.data(), static_cast<std::int32_t>(out.size()));
    std::vector<Position> positions;
    for (std::int32_t i = 0; i < n; ++i) positions.push_back(out[static_cast<std::size_t>(i)].position);
    return positions;
  }
};

inline RingOptions options_of(std::int32_t slots, std::int32_t depth, std::int32_t per_token, bool entry_copy) {
  RingOptions options;
  options.slots = slots;
  options.depth = depth;
  options.per_token = per_token;
  options.entry_copy = entry_copy;
  return options;
}

}  // namespace ring_engine
