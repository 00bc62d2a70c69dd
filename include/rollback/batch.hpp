// What an engine hands in (a batch) and what it gets back (a ticket; after a failure, an outcome a slot).
#pragma once

#include <rollback/position.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

/// How many of a slot's last rows in a batch may still be rejected.
struct Unverified {
  Slot slot;
  std::int32_t rows = 0;
};

/// The rows an engine decodes together, and how it cut them into chunks. All memory is the engine's and may be freed
/// once `Books::begin` has returned.
///
/// A slot's rows stand in rising order of position, each one past the last, starting at the slot's head; between them
/// there may be rows of other slots. A row whose slot index is negative is padding and is ignored.
///
/// Of a relative batch positions count from where the batch starts, 0, 1, ... for every slot, since only the device
/// knows where that is: how many rows of the batch before were accepted. See `Books::observe`. What limits positions
/// then holds for the case that all are, and the slot's places must be its own: neither shared nor held, nor pages that
/// the engine hands out (`shared_places`). Where a plane is overwritten in place its chunks are of one row each
/// (`cut_needed`).
struct Batch {
  Slot const* slots = nullptr;          // [rows]
  Position const* positions = nullptr;  // [rows]
  std::int32_t rows = 0;
  std::int32_t const* chunk_ends = nullptr;  // [chunks] rising; row `chunk_ends[k] - 1` is the last of chunk k
  std::int32_t chunks = 0;
  Unverified const* unverified = nullptr;  // [unverified_count] a slot at most once; others have none
  std::int32_t unverified_count = 0;
  bool relative = false;
};

/// Handle of an open batch, of the books that gave it. Closed once every slot in it is committed or failed.
struct Ticket {
  std::int32_t index = -1;
  std::uint32_t serial = 0;
};

/// What is known of the first bad chunk, and so of all after it.
enum class BadChunk : std::uint8_t {
  may_have_run,   // some of its work, and of later chunks', may have been carried out
  ran_last,       // some of its work may have been carried out, but nothing of a later chunk's: chunks run one by one
  never_started,  // nothing of it, or of a later chunk, was carried out
};

/// What became of one slot of a failed batch.
struct Outcome {
  Slot slot;
  Position tip = 0;    // feed on from here
  bool armed = false;  // whether the next batch restores a kept state first
  Position reach = 0;  // the slot's oldest landing now; see `Books::reach`
};

}  // namespace v0_1
}  // namespace rollback
