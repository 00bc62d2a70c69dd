// The books: who can go where, and what each chunk must do. Pure host C++, no pointers to state.
#pragma once

#include <rollback/batch.hpp>
#include <rollback/component.hpp>
#include <rollback/detail/open_batch.hpp>
#include <rollback/detail/pin_table.hpp>
#include <rollback/detail/tier_table.hpp>
#include <rollback/plan.hpp>
#include <rollback/position.hpp>
#include <rollback/verdict.hpp>
#include <rollback/window_guard.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollback {
inline namespace v0_1 {

/// What books are made for. Everything is allocated by the constructor; nothing later.
struct BooksOptions {
  std::int32_t slots = 1;            // sequences kept at once; at least 1
  std::int32_t max_rows = 1;         // rows of a batch; at least 1
  std::int32_t max_chunks = 1;       // chunks of a batch; at least 1
  std::int32_t max_chunk_rows = 0;   // rows of a chunk; 0: max_rows
  Position max_context = 0;          // positions are below this; 0: no limit
  bool entry_copy = false;           // a batch advances a copy of the plane, so that a failure keeps the plane at entry
  std::int32_t steps_in_flight = 1;  // batches that may be open at once; in [1, 64]
  std::int32_t pins = 0;             // landings a slot that the engine places where it wants them; 0 is off
  std::vector<Component> components;  // at most max_components; components are joined: all of them can land, or none
  std::vector<Window> windows;        // at most max_windows
};

/// Where the outcomes of a failed batch go.
struct Outcomes {
  Outcome* data = nullptr;
  std::int32_t capacity = 0;
  std::int32_t count = 0;  // slots whose batch failed; only the first `capacity` are written
};

/// The books of all sequences of one engine.
///
/// A position is a landing of a slot if every component keeps its state there (in any tier, or it is empty there) and
/// every window still has the rows below it. Components and windows go back together or not at all.
///
/// The way of a batch: `begin`, then `plan` for every chunk and component (const, as often as wanted), `settle` for
/// every chunk that is known to have run, `commit` for every slot at the position up to which it was accepted; or
/// `fail`, naming the first bad chunk. `steps_in_flight` batches may be open at once: a younger one starts where the
/// older one ends, and falls with it, for every slot of which the older one loses a row.
///
/// Books can be copied and moved; those that were moved from can only be assigned to or destroyed.
///
/// Threads: one writer; any number of concurrent const calls while nobody writes. Distinct books are independent.
/// Nothing but the constructor allocates or throws; nothing locks. Costs do not depend on tips, nor on depths unless
/// stated.
class Books {
 public:
  /// @throws std::invalid_argument naming the option and its allowed range; std::bad_alloc
  explicit Books(BooksOptions const& options);

  // ---- what they were made for -------------------------------------------------------------------------------------

  [[nodiscard]] std::int32_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::int32_t components() const noexcept { return static_cast<std::int32_t>(components_.size()); }
  /// The component; the index must be in [0, components()).
  [[nodiscard]] Component const& component(std::int32_t index) const noexcept;
  [[nodiscard]] std::int32_t steps_in_flight() const noexcept { return static_cast<std::int32_t>(batches_.size()); }
  [[nodiscard]] std::int32_t pins() const noexcept { return pins_.pins(); }
  /// The planes of a slot, by purpose; the index must be in [0, components()).
  [[nodiscard]] Places places(std::int32_t component) const noexcept;
  /// The name of a component or, from components() on, of a window; for `Landing::limited_by`. Empty where out of
  /// range.
  [[nodiscard]] char const* name(std::int32_t index) const noexcept;
  /// The distance between boundaries that all components keep, in tokens: the least common multiple of their quanta, or
  /// of `empty_at` where a component has no aligned tier; 1 where nothing limits; 0 where some component has neither,
  /// so that there are none.
  [[nodiscard]] Position alignment() const noexcept { return alignment_; }
  /// How many rows of a slot may be unverified: the least depth of a per-token tier.
  [[nodiscard]] std::int32_t per_token() const noexcept { return per_token_; }
  /// The host memory that books of `options` take, in bytes; asked before anything exists. @throws as the constructor
  [[nodiscard]] static std::size_t bytes(BooksOptions const& options);

  // ---- where sequences are -----------------------------------------------------------------------------------------

  /// The handle of the slot at `index`; of no slot where out of range.
  [[nodiscard]] Slot slot(std::int32_t index) const noexcept;
  /// The committed end: positions [0, tip) are in; -1 for an unknown or stale slot.
  [[nodiscard]] Position tip(Slot slot) const noexcept;
  /// The next position `begin` expects: the tip, or the end of the slot's youngest open batch; -1 for an unknown or
  /// stale slot.
  [[nodiscard]] Position head(Slot slot) const noexcept;
  /// Whether a rollback was accepted and its restore has not been consumed yet. Never at tip 0, where the next chunk
  /// empties the live plane in any case.
  [[nodiscard]] bool is_armed(Slot slot) const noexcept;
  /// The live place (0; with entry copies each in turn) that the slot's youngest open batch advances, or where none is
  /// open the next one, unless it takes an entry copy; -1 if unknown.
  [[nodiscard]] std::int32_t live_place(Slot slot) const noexcept;

  // ---- where they can go back to -----------------------------------------------------------------------------------

  /// Whether the sequence can go back to position `p`, that is keep the positions below `p` only. `tip` is accepted and
  /// changes nothing; 0 is always accepted. Same answer as `roll_back`.
  [[nodiscard]] Verdict can_land(Slot slot, Position p) const noexcept;
  /// The newest landing at or below `wanted`, and what it takes to get from there to it. Position 0 is always possible,
  /// so there is a landing unless the slot is unknown, stale or in flight (then `position` is -1 and `why` says so).
  /// Of a negative `wanted` it is 0, with the reason.
  [[nodiscard]] Landing nearest(Slot slot, Position wanted) const noexcept;
  /// The oldest landing that is not a restart: above 0, or the tip where there is none; -1 for an unknown slot.
  /// O(depth), whatever the tip.
  [[nodiscard]] Position reach(Slot slot) const noexcept;
  /// All landings above 0 and below the tip in rising order, and the tip itself where it is kept. O(how many
  /// there are): where all components are empty at some multiples, each multiple below the tip is one.
  /// @return how many there are; they are written to `out` only if `capacity` is enough
  [[nodiscard]] std::int32_t landings(Slot slot, Landing* out, std::int32_t capacity) const noexcept;

  /// Takes the positions from `p` on back. On acceptance the tip is `p`, and unless `p` was the tip or 0 a restore is
  /// armed: it stands in the plan of the next chunk that contains the slot, and in no other. Refused: nothing changes.
  [[nodiscard]] Verdict roll_back(Slot slot, Position p) noexcept;
  /// Empties the slot for its next user: tip 0, nothing kept, a new generation, which is written to `slot`. Goes
  /// through while a batch is open; the slot's rows in it are then padding. O(depth).
  [[nodiscard]] Verdict clear(Slot& slot) noexcept;

  // ---- landings placed by the engine, and shared ones ---------------------------------------------------------------

  /// Keeps a landing at position `p`, whatever the tiers do, until `unpin`, or until the slot goes back below it. A
  /// position that was passed already must be a landing now: its state is copied out of its place. Any other is kept by
  /// the batch that starts at it or crosses it. Either way the slot's next batch that can does the work, as entries of
  /// its plans, and the pin is a landing once that batch is committed; until then it is wanted. A landing on a pin
  /// needs its window rows like any other. At 0, or twice: accepted, nothing changes. With a batch of the slot open
  /// only beyond its head (`in_flight`). O(pins).
  [[nodiscard]] Verdict pin(Slot slot, Position p) noexcept;
  /// Gives a pin up. An armed restore that reads it still finds it. O(pins).
  [[nodiscard]] Verdict unpin(Slot slot, Position p) noexcept;
  /// Whether a pin at `p` is kept, that is no longer only wanted. O(pins).
  [[nodiscard]] bool is_pinned(Slot slot, Position p) const noexcept;

  /// Empties slot `to`, which gets a new generation, and lets it go on from the landing `p` of slot `from`: its tip is
  /// `p`, a restore is armed (unless at 0), and it has all landings of `from` at or below `p`. Kept states are shared,
  /// not copied: who writes first takes a place of its own. What has no history, compressed caches and window rows, is
  /// the engine's to share or to copy. The state at an unarmed tip may be live only (`live_only`): pin it first.
  /// O(depth + pins).
  [[nodiscard]] Verdict fork(Slot from, Position p, Slot& to) noexcept;
  /// Asks many slots at once for a landing to serve one prompt from: the highest one leaves the fewest tokens to feed.
  /// @param wanted   [count] for slots 0 .. count-1: how far the prompt agrees with the slot; negative: leave it out
  /// @param landing  the highest of the slots' `nearest` landings
  /// @return its slot; no slot where none has a landing above 0. O(count).
  [[nodiscard]] Slot nearest_over(Position const* wanted, std::int32_t count, Landing& landing) const noexcept;
  /// Which of the positions that the engine took for landings are none any more, nor will be if all open batches are
  /// accepted: what the engine keeps beside them can go. All of them for an unknown or stale slot.
  /// @param positions  [count]
  /// @param lost       [count] where those that are lost go
  /// @return how many are lost. O(count).
  [[nodiscard]] std::int32_t lost(Slot slot, Position const* positions, std::int32_t count,
                                  Position* lost) const noexcept;

  // ---- batches -----------------------------------------------------------------------------------------------------

  /// Where a chunk that starts at `from` must end at the latest, if the slot's batch ends at `end`: the next position
  /// in (from, end] whose state is kept and that some component cannot deliver inside a chunk; else `end`, as where
  /// `from` is negative or not below `end`.
  [[nodiscard]] Position next_cut(Slot slot, Position from, Position end) const noexcept;
  /// Opens a batch. From here on `tip` stays, `head` is the batch's end, and what the batch may overwrite is not
  /// listed. Refused: nothing changes, and `bad_row` (where not null) has the row that was refused, or -1. O(rows).
  [[nodiscard]] Verdict begin(Batch const& batch, Ticket& ticket, std::int32_t* bad_row = nullptr) noexcept;

  /// The smallest shape that a chunk fits, counts rounded up to powers of two.
  [[nodiscard]] Verdict shape(Ticket const& ticket, std::int32_t chunk, Shape& out) const noexcept;
  /// A shape that fits every chunk of at most so many rows (no more than `max_chunk_rows` are counted) and sequences.
  [[nodiscard]] Shape worst_shape(std::int32_t rows, std::int32_t sequences) const noexcept;
  /// How many entries each list of a component needs for a shape. Depends on nothing else.
  [[nodiscard]] Lengths lengths(std::int32_t component, Shape const& shape) const noexcept;
  /// Writes what a chunk must do for one component. Pure: any chunk, in any order, as often as wanted, with the same
  /// result. Lists whose pointer is null are left out. O(rows of the chunk + states kept * rows of a plane).
  [[nodiscard]] Verdict plan(Ticket const& ticket, std::int32_t chunk, std::int32_t component, Shape const& shape,
                             RowMap const& map, Lists& lists) const noexcept;

  /// Chunk `chunk` is known to have run on every device. Chunks settle in order, those of older batches first.
  [[nodiscard]] Verdict settle(Ticket const& ticket, std::int32_t chunk) noexcept;
  /// The slot's rows are accepted up to `accepted`, its new tip: from its first unverified row's position to its end.
  /// Below the end a restore is armed, unless at 0, and younger open batches lose the slot: its rows in them are
  /// padding from here on. All chunks with rows of the slot must have settled, and older batches have let the slot go.
  [[nodiscard]] Verdict commit(Ticket const& ticket, Slot slot, Position accepted) noexcept;
  /// Ends the batch for every slot that is not committed: chunk `first_bad` and all after it count as `state` says. The
  /// number of chunks names none: all ran, but the engine will not commit. Younger open batches fail with it: of theirs
  /// what was settled ran, and for the rest `state` holds. Refused while an older batch has one of the slots.
  ///
  /// A slot is offered the best of: its entry (untouched, or in an entry copy, or an armed restore whose place is still
  /// there), the end of the good chunks if nothing of the bad one ran, the newest landing, armed; 0 at the worst.
  /// O(rows + depth).
  [[nodiscard]] Verdict fail(Ticket const& ticket, std::int32_t first_bad, BadChunk state, Outcomes& outcomes) noexcept;

 private:
  using KeptPlace = detail::KeptPlace;
  using OpenBatch = detail::OpenBatch;
  using OpenSlot = detail::OpenSlot;

  struct SlotState {
    Position tip = 0;
    Position head = 0;
    Position live = 0;  // the position whose state the live plane holds; -1: nobody knows
    std::uint32_t generation = 1;
    std::int32_t live_place = 0;
    std::int32_t open = 0;  // batches that have rows of it
  };
  struct ComponentState {
    Component component;
    std::int32_t per_token_tier = -1;  // index into tiers_
    std::int32_t aligned_tier = -1;
    std::int32_t aligned_base = 0;  // first kept place of the tier, as kept places are counted
    std::int32_t pin_base = 0;
  };
  struct ChunkSpan {  // the rows of one slot in one chunk
    Position begin;
    Position end;
    bool first;  // the slot's first rows in the batch
  };
  struct Floor {
    Position position;
    std::int32_t limited_by;
  };

  static void check(BooksOptions const& options);
  [[nodiscard]] static std::int32_t chunk_rows(BooksOptions const& options) noexcept;
  [[nodiscard]] static std::int32_t least_per_token(BooksOptions const& options) noexcept;
  [[nodiscard]] std::int32_t tier_of(Position quantum, std::int32_t depth, std::int32_t spares);
  [[nodiscard]] Verdict known(Slot slot) const noexcept;
  [[nodiscard]] bool armed(SlotState const& s) const noexcept { return s.tip > 0 && s.live != s.tip; }

  [[nodiscard]] Position floor_of(std::int32_t component, std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] Floor joint_floor(std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] Verdict why_not(std::int32_t slot, Position p, std::int32_t limited_by) const noexcept;
  [[nodiscard]] Tier tier_at(std::int32_t slot, Position p) const noexcept;
  void land(std::int32_t slot, Position p) noexcept;

  [[nodiscard]] KeptPlace place_in(std::int32_t tier, std::int32_t page, std::int32_t base) const noexcept;
  [[nodiscard]] KeptPlace kept_place(std::int32_t component, std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] bool all_kept(std::int32_t slot, Position p) const noexcept;

  [[nodiscard]] OpenBatch* find(Ticket const& ticket) noexcept;
  [[nodiscard]] OpenBatch const* find(Ticket const& ticket) const noexcept;
  [[nodiscard]] bool older_has(OpenBatch const& batch, std::int32_t slot) const noexcept;
  [[nodiscard]] Verdict check_chunks(Batch const& batch, OpenBatch& open) const noexcept;
  [[nodiscard]] Verdict check_rows(Batch const& batch, OpenBatch& open, std::int32_t* bad_row) noexcept;
  [[nodiscard]] Verdict check_unverified(Batch const& batch, OpenBatch& open) noexcept;
  [[nodiscard]] Verdict check_cuts(OpenBatch const& batch) const noexcept;
  static void index_rows(OpenBatch& open) noexcept;
  void open_slot(OpenBatch& batch, std::int32_t index, OpenSlot& open) noexcept;
  template <class WrittenAt>
  void resolve(std::int32_t batch, OpenSlot const& open, Position limit, WrittenAt written) noexcept;
  void close(OpenBatch& batch, OpenSlot& open) noexcept;
  void abandon(std::int32_t slot) noexcept;
  [[nodiscard]] Outcome fail_slot(std::int32_t slot, std::int32_t first_bad, OpenBatch const& failed,
                                  BadChunk state) noexcept;

  template <class F>
  void for_each_span(OpenBatch const& batch, std::int32_t chunk, F f) const noexcept;
  template <class F>
  void for_each_restore(OpenBatch const& batch, std::int32_t component, OpenSlot const& open, ChunkSpan const& span,
                        F f) const noexcept;
  template <class F>
  void for_each_snapshot(OpenBatch const& batch, std::int32_t component, OpenSlot const& open, ChunkSpan const& span,
                         F f) const noexcept;
  template <class F>
  void for_each_pin(OpenBatch const& batch, std::int32_t component, OpenSlot const& open, F f) const noexcept;
  [[nodiscard]] ComponentShape count(OpenBatch const& batch, std::int32_t component, std::int32_t chunk) const noexcept;

  std::int32_t slots_;
  std::int32_t max_rows_;
  std::int32_t max_chunks_;
  std::int32_t max_chunk_rows_;
  Position max_context_;
  bool entry_copy_;
  std::int32_t per_token_;
  Position alignment_;
  Position empty_lattice_;  // at its multiples nothing has to be kept at all; 0 where there are none
  std::vector<ComponentState> components_;
  std::vector<detail::TierTable> tiers_;  // components that keep the same states share one
  std::vector<WindowGuard> guards_;
  std::vector<SlotState> slot_states_;  // [slots]

  detail::PinTable pins_;
  std::uint32_t serial_ = 0;
  std::vector<OpenBatch> batches_;    // [steps_in_flight]
  std::vector<std::int32_t> by_age_;  // [steps_in_flight] of which `open_count_` are used: open batches, oldest first
  std::int32_t open_count_ = 0;
};

}  // namespace v0_1
}  // namespace rollback

#include <rollback/detail/books_batch.hpp>
#include <rollback/detail/books_landings.hpp>
#include <rollback/detail/books_plan.hpp>
#include <rollback/detail/books_setup.hpp>
#include <rollback/detail/books_shared.hpp>
