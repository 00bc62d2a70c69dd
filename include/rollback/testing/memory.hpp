// What an engine tells the conformance suite about its memory: a description, and about ten callbacks.
#pragma once

#include <rollback/position.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// What the suite feeds. An engine maps it to a token of its vocabulary, for instance modulo its size.
using Token = std::uint32_t;
using Bytes = std::vector<unsigned char>;
/// What each row of a call emitted, logits for instance: [rows], or empty where an engine does not say.
using Outputs = std::vector<Bytes>;

/// Where one kind of state can be taken back to, whatever else happens. The suite holds the memory to it: a refusal
/// within the promise is a finding. Where there are several, a sequence can go where all of them can.
struct Promise {
  std::int32_t per_token = 0;   // the states at tip-1 .. tip-per_token; fewer after a rollback, until as many are fed
  Position quantum = 0;         // tokens between two boundaries
  std::int32_t boundaries = 0;  // how many of the last boundaries are kept
  Position empty_at = 0;        // at multiples of this the state is empty, so nothing is kept; 0: never
};

/// What a memory is made for.
struct Description {
  std::int32_t slots = 1;         // sequences kept at once
  std::int32_t max_rows = 1;      // the most tokens of one call
  std::int32_t unverified = 0;    // the most rows of one `verify`
  Position max_context = 0;       // positions are below this, at least 512; 0: no limit
  Position window = 0;            // raw rows that a step reads, its own included; 0: there is no window
  Position window_rows = 0;       // rows of a slot that the window's store holds
  std::vector<Promise> promises;  // one a kind of state; none: nothing but position 0 is promised
};

/// One call: tokens that follow the slot's tip.
struct Rows {
  std::int32_t slot = 0;
  Position position = 0;  // of the first token
  std::vector<Token> tokens;
  std::int32_t chunk_rows = 0;  // the rows of a chunk; 0: as the engine likes. One that cuts by itself may ignore it
};

/// One row of a call over several slots.
struct Row {
  std::int32_t slot = -1;  // negative: padding; token and position mean nothing
  Position position = 0;
  Token token = 0;
};

/// A memory, as the suite sees it. The suite calls one at a time, from one thread; it copies the functions.
///
/// Where a call answers whether it was carried out, false means refused: nothing has changed. Slots that do not exist
/// are refused. The functions below `needs` may stay empty: then the checks that need them are skipped, and say so.
struct Memory {
  Description description;

  // ---- needed ------------------------------------------------------------------------------------------------------

  /// Empties a slot for its next user.
  std::function<bool(std::int32_t slot)> clear;
  /// Runs the tokens, all of which stand. Refuses a position that is not the slot's tip.
  std::function<bool(Rows const& rows, Outputs& outputs)> feed;
  /// The end of the sequence: positions [0, tip) are in. Negative for a slot that does not exist.
  std::function<Position(std::int32_t slot)> tip;
  /// Whether `roll` would accept.
  std::function<bool(std::int32_t slot, Position p)> can;
  /// Keeps the positions below `p` only. May put off the work to the next call.
  std::function<bool(std::int32_t slot, Position p)> roll;
  /// The newest position at or below `wanted` (and the tip) that `roll` accepts; 0 at the worst.
  std::function<Position(std::int32_t slot, Position wanted)> nearest;
  /// All that a later step of the slot can read, in an order of the engine's choice, and nothing else: no rows that are
  /// rewritten before they are read, no addresses. Asked only when nothing is put off: after a `feed`.
  std::function<Bytes(std::int32_t slot)> state;

  // ---- optional ----------------------------------------------------------------------------------------------------

  /// Runs all tokens; then only the first `accepted` stand, from 0 to all. Must not look at `accepted` before.
  std::function<bool(Rows const& rows, std::int32_t accepted, Outputs& outputs)> verify;
  /// Runs rows of several slots in one call, in this order; all stand.
  std::function<bool(std::vector<Row> const& rows, Outputs& outputs)> batch;
  /// The sequence as bytes, those of a rollback that was put off included.
  std::function<Bytes(std::int32_t slot)> save;
  /// Replaces a slot by what `save` gave, of this memory or of another. Refuses bytes that are not whole.
  std::function<bool(std::int32_t slot, Bytes const& bytes)> load;
  /// Makes the destination a copy of the source; or refuses.
  std::function<bool(std::int32_t source, std::int32_t destination)> copy;
  /// Makes the next `feed` fail, that is answer false, after so many of its rows have run; 0: before anything ran.
  /// After a failure `tip` says where the sequence is now: at the tip before where nothing ran, below it perhaps where
  /// rows ran, and above it by no more than these.
  std::function<void(std::int32_t rows_run)> fail_next;
  /// The bytes that live and kept states of all slots take now, without caches that grow with every token.
  std::function<std::size_t()> held;
};

/// Makes a memory in which nothing was ever fed. References are fed to one of their own, so two exist at a time; an
/// engine that has only one may give out views of disjoint slots of it.
using Factory = std::function<Memory()>;

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
