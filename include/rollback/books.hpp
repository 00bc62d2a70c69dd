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
  Position max_context = 0;          // positions are below this, and below max_position; 0: no other limit
  bool entry_copy = false;           // a batch advances a copy of the plane, so that a failure keeps the plane at entry
  std::int32_t steps_in_flight = 1;  // batches that may be open at once; in [1, 64]
  std::int32_t pins = 0;             // landings a slot that the engine places where it wants them; 0 is off
  std::int32_t pages = 0;    // aligned tiers: their slots share pages in [0, pages) that the engine hands out; 0 is off
  bool pin_windows = false;  // a pin keeps the window - 1 raw rows below it as well, for every window: `plan_window`
  std::vector<Component> components;  // at most max_components; components are joined: all of them can land, or none
  std::vector<Window> windows;        // at most max_windows
};

/// What an engine that brings a state itself has the books take it for; see `Books::adopt`.
enum class Adopt : std::uint8_t {
  live,           // the live plane holds it: the slot goes on from there
  pin,            // a pin holds it, but none of the window rows: a landing while the rings have these
  pin_with_rows,  // a pin holds it and, with `pin_windows`, the window rows below it, where `window_at` says
  tiers,          // the tiers hold it that would keep it in a run over the same tokens
};

/// Where one component has the state at a position, as first rows of planes; with several, all hold the same.
struct StatePlaces {
  std::int64_t rows[4] = {};
  std::int32_t count = 0;  // 0: the empty state, which is nowhere
};

/// Where the raw rows are that a landing needs of a window, [max(p - (window - 1), 0), p); where both are, the same
/// ones.
struct WindowRows {
  std::int64_t ring = -1;  // row of position q: ring + q % Window::rows; negative: the slot's ring lacks some
  std::int64_t pin = -1;   // row of position q: pin + q % (window - 1); negative: no pin keeps them
};

/// Places that are being read and must not be written; see `Books::hold`. Of the books that gave it.
struct Hold {
  std::int32_t pages[2 * max_components] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  std::int32_t pin = -1;
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
/// every window still has the rows below it, or a pin keeps them. Components and windows go back together or not at
/// all.
///
/// The way of a batch: `begin`, then `plan` for every chunk and component (const, as often as wanted), `settle` for
/// every chunk that is known to have run, `commit` for every slot at the position up to which it was accepted; or
/// `fail`, naming the first bad chunk. `steps_in_flight` batches may be open at once: a younger one starts where the
/// older one ends. What the older one loses of a slot, the younger one loses of it too; and a batch that fails takes
/// all younger ones with it, whole.
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
  [[nodiscard]] Position max_context() const noexcept { return max_context_; }
  [[nodiscard]] std::int32_t steps_in_flight() const noexcept { return static_cast<std::int32_t>(batches_.size()); }
  [[nodiscard]] std::int32_t windows() const noexcept { return static_cast<std::int32_t>(guards_.size()); }
  /// The window; the index must be in [0, windows()).
  [[nodiscard]] Window const& window(std::int32_t index) const noexcept;
  [[nodiscard]] std::int32_t pins() const noexcept { return pins_.pins(); }
  /// Whether pins keep window rows of their own.
  [[nodiscard]] bool pin_windows() const noexcept { return pin_windows_; }
  /// The planes of a slot, by purpose; the index must be in [0, components()).
  [[nodiscard]] Places places(std::int32_t component) const noexcept;
  /// The pages that the engine may hand out to a component's aligned tier; the index must be in [0, components()).
  [[nodiscard]] std::int32_t pages(std::int32_t component) const noexcept;
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
  /// The next position `begin` expects: the tip, or the end of the slot's youngest open batch (where that is not known
  /// yet, the end if all rows before are accepted); -1 for an unknown or stale slot.
  [[nodiscard]] Position head(Slot slot) const noexcept;
  /// Whether a rollback was accepted and its restore has not been consumed yet. Never at tip 0, where the next chunk
  /// empties the live plane in any case, as it does a plane overwritten in place wherever that is empty (`empty_at`).
  [[nodiscard]] bool is_armed(Slot slot) const noexcept;
  /// The live place (0; with entry copies each in turn) that the slot's youngest planned batch advances, or where none
  /// is open the next one, unless it takes an entry copy; -1 if unknown. A relative batch that waits is not planned.
  [[nodiscard]] std::int32_t live_place(Slot slot) const noexcept;
  /// The live place that this batch advances: what an engine that works in place gives to its kernel. -1 where the
  /// batch is closed or lacks the slot, and for a relative batch that waits: ask again after `observe`.
  [[nodiscard]] std::int32_t live_place(Ticket const& ticket, Slot slot) const noexcept;

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

  /// The newest landing below `p`, also while a batch is open; 0 where there is none above 0, and for an unknown slot.
  [[nodiscard]] Position landing_before(Slot slot, Position p) const noexcept;
  /// Whether the tiers keep the state at `p` of a slot at `tip`, all going well: accepted, or why not;
  /// `negative_position`, `ahead_of_tip`.
  [[nodiscard]] Verdict tiers_keep(Position p, Position tip) const noexcept;

  /// Takes the positions from `p` on back. On acceptance the tip is `p`, and unless `p` was the tip or 0 a restore is
  /// armed: it stands in the plan of the next chunk that contains the slot, and in no other. Refused: nothing changes.
  /// Where the engine hands pages out, those above `p` are free at once: O(log depth) for each, once after it was kept.
  [[nodiscard]] Verdict roll_back(Slot slot, Position p) noexcept;
  /// Empties the slot for its next user: tip 0, nothing kept, a new generation, which is written to `slot`. Goes
  /// through while a batch is open; the slot's rows in it are then padding. O(depth).
  [[nodiscard]] Verdict clear(Slot& slot) noexcept;

  // ---- landings placed by the engine, and shared ones ---------------------------------------------------------------

  /// Keeps a landing at position `p`, whatever the tiers do, until `unpin`, or until the slot goes back below it (a pin
  /// that is only wanted stays wanted: the slot may come there again). A position that was passed already must be a
  /// landing now: its state is copied out of its place. Any other is kept by the batch that starts at it or crosses it.
  /// Either way the slot's next batch that can does the work, as entries of its plans, and the pin is a landing once
  /// that batch is committed; until then it is wanted. A landing on a pin needs its window rows like any other, unless
  /// it keeps them itself (`pin_windows`). At 0, or twice: accepted, nothing changes. With a batch of the slot open
  /// only beyond its head (`in_flight`). O(pins).
  [[nodiscard]] Verdict pin(Slot slot, Position p) noexcept;
  /// Gives a pin up. An armed restore that reads it still finds it. O(pins).
  [[nodiscard]] Verdict unpin(Slot slot, Position p) noexcept;
  /// Whether a pin at `p` is kept, that is no longer only wanted. O(pins).
  [[nodiscard]] bool is_pinned(Slot slot, Position p) const noexcept;
  /// Whether the slot has a pin at `p`, kept or wanted. O(pins).
  [[nodiscard]] bool has_pin(Slot slot, Position p) const noexcept;

  /// Empties slot `to`, which gets a new generation, and lets it go on from the landing `p` of slot `from`: its tip is
  /// `p`, a restore is armed (unless at 0), and it has all landings of `from` at or below `p`. Kept states are shared,
  /// not copied: who writes first takes a place of its own. What has no history, compressed caches and the raw rows of
  /// rings, is the engine's to share or to copy. The state at an unarmed tip may be live only (`live_only`): pin it
  /// first. O(depth + pins).
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

  // ---- pages that the engine hands out -----------------------------------------------------------------------------

  /// Hands page `page` out: aligned states of any slot may be kept there until it is taken back. Components of the same
  /// quantum and aligned depth have their pages together: a page is handed out to all of them at once. A boundary is
  /// kept where a page is free or its slot's own older state may be overwritten; else it is none, and what it would
  /// have pushed out is given up all the same. While batches are open as well. O(1).
  /// @return accepted; `unknown_component`; `unknown_page`: out of range, or no aligned tier; `page_given`: already
  [[nodiscard]] Verdict give_page(std::int32_t component, std::int32_t page) noexcept;
  /// Takes a page back that no slot keeps a state in, no open batch writes and nobody holds; work that the engine
  /// launched for batches that are over may still read or write it.
  /// @return the page; -1 where none is free, and for an unknown component. O(1).
  [[nodiscard]] std::int32_t take_page(std::int32_t component) noexcept;
  /// How many pages of the component could be taken back now; 0 for an unknown component.
  [[nodiscard]] std::int32_t free_pages(std::int32_t component) const noexcept;
  /// Gives up what aligned tiers keep of the slot at `p`, of every component, so that its pages are free, where no
  /// other slot shares them. A pin that is wanted there is lost.
  /// @return accepted; `beyond_reach`: nothing is kept there; `restore_armed`: the next batch restores it; `in_flight`,
  ///         `negative_position`, `ahead_of_tip`. O(components * log depth).
  [[nodiscard]] Verdict evict(Slot slot, Position p) noexcept;

  // ---- states that the engine reads and writes itself ---------------------------------------------------------------

  /// Where a component has the state at `p`: to save it, or after `adopt` to write it. Rows as the map numbers them;
  /// the engine orders its copies after the work it launched before, and before what it plans next.
  /// @return accepted; why `p` is not a landing; at the tip `in_flight` while a batch is open; `unknown_component`
  [[nodiscard]] Verdict state_at(Slot slot, Position p, std::int32_t component, RowMap const& map,
                                 StatePlaces& out) const noexcept;
  /// Where the raw rows of a window are that the landing `p` needs; the numbers, and the order of copies, as above. At
  /// 0 none are needed.
  /// @return as `state_at`, but `unknown_window`
  [[nodiscard]] Verdict window_at(Slot slot, Position p, std::int32_t window, RowMap const& map,
                                  WindowRows& out) const noexcept;
  /// The oldest position whose row a window has in its ring; -1 for an unknown slot or window.
  [[nodiscard]] Position oldest_row(Slot slot, std::int32_t window) const noexcept;
  /// Takes the engine's word that it brings the state at `p` of the slot's sequence, into every row that `state_at`
  /// names from now on. Beyond the tip the slot goes on from there, armed unless live, as if all before had been fed
  /// (emitted blocks and window rows are the engine's to bring as well); at or below it `p` becomes a landing, which
  /// only a landing's state may be (`live`: at the tip, and the restore is made, of window rows as well).
  /// @param oldest_rows  [windows] from where on raw rows exist up to the tip; null: what `p` needs, beyond the tip,
  ///                     and else what there was
  /// @return accepted (at 0: nothing changes); `no_free_pin`; `tiers`: why they would not keep it, or `no_free_page`;
  ///         `position_repeated`: live, below the tip; `in_flight`, `beyond_context`, `negative_position`.
  ///         O(depth + pins).
  [[nodiscard]] Verdict adopt(Slot slot, Position p, Adopt where, Position const* oldest_rows = nullptr) noexcept;

  /// Keeps the places of the landing `p` from being written until `release`, whatever becomes of the slot: for a save
  /// that goes on while batches run. A boundary that would take such a place is not kept, and a pin waits; nothing else
  /// does. What `hold` held before is released.
  /// @return accepted; why `p` is not a landing; `live_only` at an unarmed tip; `not_a_boundary` where only the
  ///         per-token tier has it, which unverified rows need: pin it first. O(components + pins).
  [[nodiscard]] Verdict hold(Slot slot, Position p, Hold& hold) noexcept;
  /// Nobody reads the places any more; `hold` is empty then.
  void release(Hold& hold) noexcept;

  // ---- batches -----------------------------------------------------------------------------------------------------

  /// Where a chunk that starts at `from` must end at the latest, if the slot's batch ends at `end`: the next position
  /// in (from, end] whose state is kept and that some component cannot deliver inside a chunk; else `end`, as where
  /// `from` is negative or not below `end`. In a batch of several slots each may need a chunk to end; in a relative
  /// one, whose boundaries nobody knows yet, a chunk of a plane that cannot deliver states inside it must be one row.
  [[nodiscard]] Position next_cut(Slot slot, Position from, Position end) const noexcept;
  /// Opens a batch. From here on `tip` stays, `head` is the batch's end, and what the batch may overwrite is not
  /// listed. Refused: nothing changes, and `bad_row` (where not null) has the row that was refused, or -1. O(rows), and
  /// O(depth) for each slot of a relative batch whose start is not known.
  [[nodiscard]] Verdict begin(Batch const& batch, Ticket& ticket, std::int32_t* bad_row = nullptr) noexcept;

  /// The smallest shape that a chunk fits, counts rounded up to powers of two.
  [[nodiscard]] Verdict shape(Ticket const& ticket, std::int32_t chunk, Shape& out) const noexcept;
  /// A shape that fits every chunk of at most so many rows (no more than `max_chunk_rows` are counted) and sequences
  /// (of which a chunk has no more than `slots`: asking for more than that only makes lists longer).
  [[nodiscard]] Shape worst_shape(std::int32_t rows, std::int32_t sequences) const noexcept;
  /// How many entries each list of a component needs for a shape. Depends on nothing else.
  [[nodiscard]] Lengths lengths(std::int32_t component, Shape const& shape) const noexcept;
  /// Writes what a chunk must do for one component. Pure: any chunk, in any order, as often as wanted, with the same
  /// result. Lists whose pointer is null are left out. O(rows of the chunk + states kept * rows of a plane).
  [[nodiscard]] Verdict plan(Ticket const& ticket, std::int32_t chunk, std::int32_t component, Shape const& shape,
                             RowMap const& map, Lists& lists) const noexcept;

  /// The same of a window, with `pin_windows`: which of its raw rows to copy between the slots' rings and pins.
  [[nodiscard]] Lengths window_lengths(std::int32_t window, Shape const& shape) const noexcept;
  /// Writes what a chunk must copy of one window's raw rows, row by row: into `restore_source` and
  /// `restore_destination` before the chunk's own rows are written into the rings, into `snapshot_source` and
  /// `snapshot_destination` after they were. A copy is window - 1 entries; rows below position 0, and unused entries,
  /// are the map's `sink`. All of what `plan` says of itself holds. O(pins + copies * window).
  [[nodiscard]] Verdict plan_window(Ticket const& ticket, std::int32_t chunk, std::int32_t window, Shape const& shape,
                                    RowMap const& map, Lists& lists) const noexcept;

  /// Chunk `chunk` is known to have run on every device. Chunks settle in order, those of older batches first.
  [[nodiscard]] Verdict settle(Ticket const& ticket, std::int32_t chunk) noexcept;
  /// The slot's rows are accepted up to `accepted`, its new tip: from its first unverified row's position to its end.
  /// Below the end a restore is armed, unless at 0, and younger open batches lose the slot: its rows in them are
  /// padding from here on. All chunks with rows of the slot must have settled, and older batches have let the slot go.
  /// Refused (`in_flight`) where a relative batch went on from what the device accepts: see `observe`.
  [[nodiscard]] Verdict commit(Ticket const& ticket, Slot slot, Position accepted) noexcept;
  /// As `commit`, of what the device has decided already: relative batches of the slot that were opened since go on
  /// from `accepted`, as the device did. The next of them is planned then; until then its chunks' plans are refused
  /// (`in_flight`) and of the slot only what it cannot overwrite is listed. See `Batch::relative`.
  [[nodiscard]] Verdict observe(Ticket const& ticket, Slot slot, Position accepted) noexcept;
  /// Ends the batch for every slot that is not committed: chunk `first_bad` and all after it count as `state` says. The
  /// number of chunks names none: all ran, but the engine will not commit. Younger open batches fail with it: of theirs
  /// what was settled ran, and for the rest `state` holds. Refused (`out_of_order`) while
  /// a batch older than this one has a slot of it or of a younger one.
  ///
  /// A slot is offered the best of: its entry (untouched, or in an entry copy, or an armed restore whose place is still
  /// there), the end of the good chunks if nothing of the bad one ran, the newest landing, armed; 0 at the worst, as
  /// where rows of a relative batch may have run of which nobody was told where they start.
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
    std::int32_t open = 0;     // batches that have rows of it
    std::int32_t pending = 0;  // of these, the youngest, whose positions are not known yet
  };
  struct ComponentState {
    Component component;
    std::int32_t per_token_tier = -1;  // index into tiers_
    std::int32_t aligned_tier = -1;
    std::int32_t aligned_base = 0;  // first kept place of the tier, as kept places are counted
    std::int32_t pin_base = 0;
  };
  static constexpr std::int32_t max_kept_places = 3;  // both tiers and a pin
  struct ChunkSpan {                                  // the rows of one slot in one chunk
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
  [[nodiscard]] static Position most_unverified(BooksOptions const& options) noexcept;
  [[nodiscard]] std::int32_t tier_of(Position quantum, std::int32_t depth, std::int32_t spares);
  [[nodiscard]] Verdict known(Slot slot) const noexcept;
  [[nodiscard]] Position end_of_context() const noexcept {
    return max_context_ > 0 && max_context_ < max_position ? max_context_ : max_position;
  }
  [[nodiscard]] bool armed(SlotState const& s) const noexcept { return s.tip > 0 && s.live != s.tip; }

  [[nodiscard]] Position floor_of(std::int32_t component, std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] bool per_token_reaches(std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] Floor joint_floor(std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] bool ring_awaits_restore(std::int32_t slot, std::int32_t window) const noexcept;
  [[nodiscard]] Position lowest_covered(std::int32_t slot, std::int32_t window) const noexcept;
  [[nodiscard]] std::int32_t uncovered_window(std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] Verdict why_not(Position tip, Position p, std::int32_t limited_by) const noexcept;
  template <class Room>
  [[nodiscard]] Verdict tiers_take(Position p, Position tip, Room room) const noexcept;
  [[nodiscard]] Verdict can_read(std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] Tier tier_at(std::int32_t slot, Position p) const noexcept;
  void land(std::int32_t slot, Position p) noexcept;
  void forget(std::int32_t slot) noexcept;

  [[nodiscard]] KeptPlace place_in(std::int32_t tier, std::int32_t page, std::int32_t base) const noexcept;
  [[nodiscard]] KeptPlace kept_place(std::int32_t component, std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] std::int32_t kept_places(std::int32_t component, std::int32_t slot, Position p,
                                         KeptPlace* places) const noexcept;
  [[nodiscard]] static std::int64_t kept_row(RowMap const& map, KeptPlace kept) noexcept;
  [[nodiscard]] bool all_kept(std::int32_t slot, Position p) const noexcept;
  [[nodiscard]] std::int32_t paged_tier(std::int32_t component) const noexcept;

  [[nodiscard]] OpenBatch* find(Ticket const& ticket) noexcept;
  [[nodiscard]] OpenBatch const* find(Ticket const& ticket) const noexcept;
  [[nodiscard]] bool older_has(OpenBatch const& batch, std::int32_t slot) const noexcept;
  [[nodiscard]] Verdict check_chunks(Batch const& batch, OpenBatch& open) const noexcept;
  [[nodiscard]] Verdict check_rows(Batch const& batch, OpenBatch& open, std::int32_t* bad_row) noexcept;
  [[nodiscard]] Verdict check_unverified(Batch const& batch, OpenBatch& open) noexcept;
  [[nodiscard]] Verdict check_cuts(OpenBatch const& batch) const noexcept;
  static void index_rows(OpenBatch& open) noexcept;
  [[nodiscard]] Verdict check_pending(Batch const& batch, OpenSlot& open) const noexcept;
  [[nodiscard]] bool is_pending(OpenBatch const& batch, std::int32_t chunk) const noexcept;
  void forget_pending_rows(std::int32_t slot) noexcept;
  void place_pending(std::int32_t slot, Position shift) noexcept;
  [[nodiscard]] Verdict can_commit(Ticket const& ticket, Slot slot, Position accepted) const noexcept;
  void accept(Ticket const& ticket, Slot slot, Position accepted) noexcept;
  void open_slot(OpenBatch& batch, std::int32_t index, OpenSlot& open) noexcept;
  template <class WrittenAt>
  void resolve(std::int32_t batch, OpenSlot const& open, Position limit, WrittenAt written) noexcept;
  void close(OpenBatch& batch, OpenSlot& open) noexcept;
  template <class F>
  void close_all(std::int32_t slot, F f) noexcept;
  void abandon(std::int32_t slot) noexcept;
  [[nodiscard]] Outcome fail_slot(OpenSlot first, std::int32_t first_bad, OpenBatch const& failed,
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
  void for_each_staged(OpenBatch const& batch, OpenSlot const& open, F f) const noexcept;
  template <class F>
  void for_each_pin(OpenBatch const& batch, std::int32_t component, OpenSlot const& open, F f) const noexcept;
  template <class F>
  void for_each_window_restore(OpenBatch const& batch, std::int32_t window, OpenSlot const& open, ChunkSpan const& span,
                               F f) const noexcept;
  template <class F>
  void for_each_window_snapshot(OpenBatch const& batch, std::int32_t window, OpenSlot const& open,
                                ChunkSpan const& span, F f) const noexcept;
  [[nodiscard]] ComponentShape count(OpenBatch const& batch, std::int32_t component, std::int32_t chunk) const noexcept;
  [[nodiscard]] ComponentShape count_window(OpenBatch const& batch, std::int32_t window,
                                            std::int32_t chunk) const noexcept;

  std::int32_t slots_;
  std::int32_t max_rows_;
  std::int32_t max_chunks_;
  std::int32_t max_chunk_rows_;
  Position max_context_;
  bool entry_copy_;
  std::int32_t pages_;
  bool pin_windows_;
  std::int32_t per_token_;
  Position alignment_;
  Position landing_lattice_;  // landings are multiples of it where no per-token tier keeps a state; 0: there are none
  Position empty_lattice_;    // at its multiples nothing has to be kept at all; 0 where there are none
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

#include <rollback/detail/books_adopt.hpp>
#include <rollback/detail/books_batch.hpp>
#include <rollback/detail/books_failure.hpp>
#include <rollback/detail/books_landings.hpp>
#include <rollback/detail/books_observe.hpp>
#include <rollback/detail/books_pages.hpp>
#include <rollback/detail/books_plan.hpp>
#include <rollback/detail/books_setup.hpp>
#include <rollback/detail/books_shared.hpp>
#include <rollback/detail/books_windows.hpp>
