// A toy engine that goes far back through pins, with several batches open: what it holds is compared with its history,
// which is what a fresh run would have left.
#pragma once

#include "toy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace toy {

class Pinned : public Engine {
 public:
  using Engine::Engine;

  /// An open batch that is not the engine's current one.
  struct Held {
    Ticket ticket;
    std::vector<Slot> row_slots;
    std::vector<Position> positions;
    std::vector<std::int32_t> chunk_ends;
  };

  Verdict begin_one(std::size_t s, std::int32_t rows, std::int32_t chunk, std::int32_t rejectable = 0) {
    return begin(std::vector<std::int32_t>(static_cast<std::size_t>(rows), static_cast<std::int32_t>(s)), chunk,
                 {{slots[s], rejectable}});
  }
  [[nodiscard]] Held hold_open() const { return {ticket, row_slots, positions, chunk_ends}; }
  void resume(Held const& held) {
    ticket = held.ticket;
    row_slots = held.row_slots;
    positions = held.positions;
    chunk_ends = held.chunk_ends;
  }
  void run_all() {
    for (std::int32_t k = 0; k < chunks(); ++k) run(k), settle(k);
  }
  [[nodiscard]] bool stand(std::size_t s, Position accepted) {
    bool const stands = books.commit(ticket, slots[s], accepted) == Verdict::accepted;
    history[s].truncate(books.head(slots[s]));
    return stands;
  }
  /// Feeds `rows` tokens as one batch; empty where the slot holds what a fresh run would have left.
  std::string go_on(std::size_t s, std::int32_t rows, std::int32_t chunk) {
    if (begin_one(s, rows, chunk) != Verdict::accepted) return "a batch was refused";
    run_all();
    return stand(s, books.head(slots[s])) ? differs(s) : "a commit was refused";
  }
  /// Fails the open batch, which ran up to `first_bad`; what may have run is torn.
  Outcome fail_at(std::int32_t first_bad, BadChunk state) {
    std::int32_t const end = state == BadChunk::never_started ? first_bad
                             : state == BadChunk::ran_last    ? std::min(first_bad + 1, chunks())
                                                              : chunks();
    for (std::int32_t k = first_bad; k < end; ++k) tear(k);
    Outcome outcome;
    Outcomes outcomes{&outcome, 1, 0};
    if (books.fail(ticket, first_bad, state, outcomes) != Verdict::accepted) error = "fail was refused";
    history[static_cast<std::size_t>(outcome.slot.index)].truncate(outcome.tip);
    return outcome;
  }
  bool back(std::size_t s, Position p) {
    bool const landed = books.roll_back(slots[s], p) == Verdict::accepted;
    if (landed) history[s].truncate(p);
    return landed;
  }
  /// Goes back on a copy of all and feeds on, in chunks of so many rows; empty where everything is as it must be.
  [[nodiscard]] std::string lands(std::size_t s, Position p, std::int32_t chunk) const {
    Pinned copy = *this;
    if (!copy.back(s, p)) return "no landing at " + std::to_string(p);
    for (int feeds = 0; feeds < 6; ++feeds) {
      std::string const wrong = copy.go_on(s, 1 + feeds * 2, chunk);
      if (!wrong.empty()) return "from " + std::to_string(p) + ": " + wrong;
    }
    return "";
  }

  /// What of an unarmed slot is not as a fresh run would have left it.
  [[nodiscard]] std::string differs(std::size_t s) const {
    if (!error.empty()) return error;
    Position const end = books.tip(slots[s]);
    if (tip(s) != end) return "the tip";
    for (std::int32_t c = 0; c < books.components(); ++c) {
      auto const i = static_cast<std::size_t>(c);
      Position const rows = books.component(c).geometry.rows;
      Row const* const plane = storage.planes[i].data() + live_row(i, s);
      bool same = books.component(c).states_inside_chunk || std::equal(plane, plane + rows, history[s].plane(i, end));
      for (Position q = std::max<Position>(0, end - rows); q < end && books.component(c).states_inside_chunk; ++q) {
        Row const wanted = history[s].ring_row(i, q);
        auto const words = static_cast<std::ptrdiff_t>(history[s].readable_words(i, q, end));
        same = same && std::equal(wanted.begin(), wanted.begin() + words, plane[q % rows].begin());
      }
      if (!same) return std::string("the state of ") + books.component(c).name + " at " + std::to_string(end);
    }
    for (std::size_t w = 0; w < storage.windows.size(); ++w) {
      Window const& window = options.books.windows[w];
      for (Position q = std::max<Position>(0, end - (window.window - 1)); q < end; ++q) {
        auto const row = static_cast<std::size_t>(static_cast<Position>(s) * window.rows + q % window.rows);
        if (storage.windows[w][row] != history[s].window_row(w, q)) return "the window row of " + std::to_string(q);
      }
    }
    return "";
  }
};

}  // namespace toy
