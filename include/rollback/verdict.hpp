// Answers: a verdict (accepted, or the reason why not) and a landing (where a sequence can go back to).
#pragma once

#include <rollback/position.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {

/// What a call answers: `accepted`, or why it was refused. A refused call has changed nothing.
enum class Verdict : std::uint8_t {
  accepted,

  // who and where
  unknown_slot,        // the slot's index is out of range
  stale_slot,          // the slot was cleared since: its generation is older than the books'
  in_flight,           // the slot has an open batch, or one that waits for `observe`; commit or fail it first
  negative_position,   // positions start at 0
  ahead_of_tip,        // the position has not been fed yet
  not_a_boundary,      // no tier keeps states at such positions: see `nearest`
  beyond_reach,        // the position's state is no longer kept, or never was
  window_not_covered,  // the raw rows that a query at the position reads have been overwritten

  // begin
  batch_too_large,      // more rows, chunks or rows in a chunk than the books were made for
  too_many_in_flight,   // every ticket is open
  no_rows,              // a batch without a single row that belongs to a slot
  bad_chunk_ends,       // chunk ends must rise and the last one must be the number of rows
  position_repeated,    // a row's position has been fed already
  position_gap,         // a row's position is beyond the next one
  beyond_context,       // a position at or past the largest context
  bad_unverified,       // unverified rows of a slot that the batch lacks, more than it has, or a negative number
  too_many_unverified,  // more than the per-token tier reaches: a commit of a prefix could not be served
  shared_places,        // a relative batch of a slot whose places are not its own: shared, held, or pages
  cut_needed,           // a kept state falls inside a chunk of a plane that cannot deliver it there: see `next_cut`

  // plan
  unknown_ticket,     // not open: never begun, or closed
  unknown_chunk,      // the batch has no chunk of that index
  unknown_component,  // the books have no component of that index
  unknown_window,     // the books have no window of that index
  shape_too_small,    // the chunk does not fit the shape: see `shape`

  // pins and forks
  no_free_pin,  // all pins of the slot are in use
  unknown_pin,  // the slot has no pin at the position
  same_slot,    // a slot cannot be forked into itself
  live_only,    // the state at the tip is in the live plane alone: pin it first

  // pages
  unknown_page,   // the component has no page of that number
  page_given,     // the page was handed out already
  no_free_page,   // no page is free for a state that is brought
  restore_armed,  // the slot's next batch restores the state

  // save and load
  io_failed,        // the engine's sink or source said that it did not write or read
  not_a_state,      // what is read does not begin as a saved state does
  unknown_version,  // a version of the format that this library does not read
  other_layout,     // saved by an engine whose model, components, windows or layers differ
  damaged,          // a checksum is wrong, or what is read contradicts itself
  bad_layout,       // the engine's own layout: layers below 0, no row_bytes, or a cache where no blocks are emitted

  // settle, commit, fail
  out_of_order,   // chunks settle in order, each once; a slot's batches commit and fail in order
  not_settled,    // the slot's chunks are not all known to have run
  slot_not_open,  // the ticket has no open rows of that slot
  outside_batch,  // a slot commits at a position from its first unverified row to its end
  chunk_failed,   // a chunk's work reported failure: the batch was failed, see `Feed::outcome`
  below_settled,  // a chunk that was settled cannot be the first bad one
};

/// The verdict in words, for messages and logs. Never null; static storage; any thread.
[[nodiscard]] constexpr char const* text(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::accepted:
      return "accepted";
    case Verdict::unknown_slot:
      return "unknown slot";
    case Verdict::stale_slot:
      return "the slot was cleared since: its generation is older";
    case Verdict::in_flight:
      return "the slot has an open batch";
    case Verdict::negative_position:
      return "the position is negative";
    case Verdict::ahead_of_tip:
      return "the position is ahead of the tip";
    case Verdict::not_a_boundary:
      return "no state is kept at such a position";
    case Verdict::beyond_reach:
      return "the state of the position is no longer kept";
    case Verdict::window_not_covered:
      return "the window's raw rows before the position have been overwritten";
    case Verdict::batch_too_large:
      return "the batch is larger than the books were made for";
    case Verdict::too_many_in_flight:
      return "too many batches are open";
    case Verdict::no_rows:
      return "the batch has no row of a slot";
    case Verdict::bad_chunk_ends:
      return "the chunk ends do not rise to the number of rows";
    case Verdict::position_repeated:
      return "a row's position has been fed already";
    case Verdict::position_gap:
      return "a row's position is beyond the next one";
    case Verdict::beyond_context:
      return "a position is past the largest context";
    case Verdict::bad_unverified:
      return "the unverified rows do not match the batch";
    case Verdict::too_many_unverified:
      return "more unverified rows than the per-token tier reaches";
    case Verdict::shared_places:
      return "the slot's places are shared, held or pages, so that its positions must be known";
    case Verdict::cut_needed:
      return "a kept state falls inside a chunk: cut there";
    case Verdict::unknown_ticket:
      return "the ticket is not open";
    case Verdict::unknown_chunk:
      return "the batch has no such chunk";
    case Verdict::unknown_component:
      return "there is no such component";
    case Verdict::unknown_window:
      return "there is no such window";
    case Verdict::shape_too_small:
      return "the chunk does not fit the shape";
    case Verdict::live_only:
      return "the state at the tip is only live: pin it first";
    case Verdict::no_free_pin:
      return "all pins of the slot are in use";
    case Verdict::unknown_pin:
      return "the slot has no pin at the position";
    case Verdict::same_slot:
      return "a slot cannot be forked into itself";
    case Verdict::unknown_page:
      return "the component has no such page";
    case Verdict::page_given:
      return "the page was handed out already";
    case Verdict::no_free_page:
      return "no page is free for the state";
    case Verdict::restore_armed:
      return "the slot's next batch restores the state";
    case Verdict::io_failed:
      return "the engine could not write or read";
    case Verdict::not_a_state:
      return "this is not a saved state";
    case Verdict::unknown_version:
      return "a version of the format that is not known";
    case Verdict::other_layout:
      return "the state was saved with another model or layout";
    case Verdict::damaged:
      return "the saved state is damaged";
    case Verdict::bad_layout:
      return "the layout's layers are not possible";
    case Verdict::out_of_order:
      return "chunks and batches settle in order, each once";
    case Verdict::not_settled:
      return "the slot's chunks are not all settled";
    case Verdict::slot_not_open:
      return "the ticket has no open rows of the slot";
    case Verdict::outside_batch:
      return "the position is not one where the slot can commit";
    case Verdict::chunk_failed:
      return "the work of a chunk failed";
    case Verdict::below_settled:
      return "a settled chunk cannot be the first bad one";
  }
  return "unknown verdict";
}

/// Which kind of kept state serves a landing.
enum class Tier : std::uint8_t {
  none,       // there is no landing
  start,      // position 0: an empty state
  tip,        // no kept state is read: the tip itself, or any landing of books that have windows alone
  per_token,  // the states at tip-1 .. tip-depth
  aligned,    // the last boundaries, one every quantum; also where every component is empty
  pin,        // a landing that the engine placed
};

/// The tier's name, for messages and tables. Never null; static storage.
[[nodiscard]] constexpr char const* text(Tier tier) noexcept {
  switch (tier) {
    case Tier::none:
      return "none";
    case Tier::start:
      return "start";
    case Tier::tip:
      return "tip";
    case Tier::per_token:
      return "per-token";
    case Tier::aligned:
      return "aligned";
    case Tier::pin:
      return "pin";
  }
  return "unknown tier";
}

/// A position to which a sequence can go back now, and what it takes to get from there to the wanted one.
struct Landing {
  Position position = -1;           // negative: none (unknown or stale slot, or one with an open batch)
  Position replay = 0;              // tokens from `position` to the wanted position, to be fed again
  Position warm_up = 0;             // tokens below `position` to be fed first, without emits or logits
  Tier tier = Tier::none;           // of the component that keeps the coarsest state
  Verdict why = Verdict::accepted;  // what keeps the sequence from landing on the wanted position itself
  std::int32_t limited_by = -1;     // the component, or components + the window, behind `why`; -1 where none is
};

}  // namespace v0_1
}  // namespace rollback
