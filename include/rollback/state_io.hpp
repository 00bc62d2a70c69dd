// Saving a sequence and loading it elsewhere, through the engine's own reads and writes. Opt-in: needs xxHash's header
// (Debian: libxxhash-dev); nothing else of the library does. The bytes: docs/state-format.md.
#pragma once

#include <rollback/books.hpp>
#include <rollback/checksum.hpp>
#include <rollback/state_layout.hpp>

#include <cstddef>
#include <cstdint>

namespace rollback {
inline namespace v0_1 {

struct SaveOptions {
  bool history = true;    // all landings below the position as well, else the state at the position alone
  bool checksums = true;  // of rows too: then `StateSink::rows` has to tell the checksum what it wrote
};

// A sink is any type with
//   bool bytes(void const* data, std::size_t size);        // write these bytes
//   bool rows(StateRows const& rows, Checksum& checksum);  // write these rows; `checksum.update` with the same bytes
// and a source any type with
//   bool bytes(void* data, std::size_t size);              // read so many bytes
//   bool rows(StateRows const& rows, Checksum& checksum);  // read these rows; `checksum.update` with the same bytes
// Both say whether they did; what they throw is passed on. A row is as many bytes in the one as in the other.

/// Saves the state at `p` of a slot: at the tip, a restore armed or not, or at any landing, without moving the tip.
/// Reads nothing of other slots, nothing that a later step cannot read, and writes every byte once.
/// @return accepted; as `Books::state_at`; `bad_layout`; `io_failed` where the sink said no
template <class Sink>
[[nodiscard]] Verdict save(Books const& books, Slot slot, Position p, StateLayout const& layout,
                           SaveOptions const& options, Sink&& sink);

/// How many bytes `save` writes, exactly; 0 where it would refuse.
[[nodiscard]] std::uint64_t saved_bytes(Books const& books, Slot slot, Position p, StateLayout const& layout,
                                        SaveOptions const& options = {});

/// What a load makes of the saved state.
enum class LoadAs : std::uint8_t {
  state,    // the live plane's: the slot goes on from it
  landing,  // a landing's, in a pin or else a tier, with a restore armed: the slot can come back to it later
};

/// Reads a saved state through, changes nothing and calls `source.bytes` alone: whether `load` would take it.
/// @return accepted; as `load`
template <class Source>
[[nodiscard]] Verdict check(Books const& books, StateLayout const& layout, LoadAs as, Source&& source);

/// Empties a slot, which gets a new generation, and loads a saved state into it. Landings that the books' depths and
/// quanta have no place for are left out; pins stay pins where there are enough, and with `pin_windows` keep their
/// rows.
///
/// What the books' part says is checked before anything changes. What is wrong with rows (the source fails, or their
/// checksum does) shows only while they are read: then the slot is left empty, at its new generation; `check`
/// beforehand where that must not be. So is it where a landing finds every pin held and every page in use, which
/// `check` does not know. Allocates, as many positions as the state has landings.
/// @return accepted; `in_flight`; `not_a_state`, `unknown_version`, `other_layout`, `damaged`, `beyond_context`;
///         `bad_layout`; `no_free_pin`: as a landing, and neither a pin nor a tier can keep it; `no_free_page`: as a
///         landing, and a tier could, but no page is free; `io_failed`
template <class Source>
[[nodiscard]] Verdict load(Books& books, Slot& slot, StateLayout const& layout, LoadAs as, Source&& source);

}  // namespace v0_1
}  // namespace rollback

#include <rollback/detail/state_load.hpp>
#include <rollback/detail/state_save.hpp>
