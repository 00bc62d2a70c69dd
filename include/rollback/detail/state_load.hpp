// Loading: the header is read and believed only as far as it agrees with the books; then rows, section by section.
#pragma once

#include <rollback/detail/state_format.hpp>
#include <rollback/state_io.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace detail {

template <class Source>
class StateLoad {
 public:
  StateLoad(Books const& books, StateLayout const& layout, Source& source)
      : books_(books), layout_(layout), source_(source) {}

  [[nodiscard]] Verdict read_header(LoadAs as) {
    checksum_.reset(0);
    unsigned char magic[sizeof state_magic];
    if (!get(magic, sizeof magic)) return Verdict::io_failed;
    if (std::memcmp(magic, state_magic, sizeof magic) != 0) return Verdict::not_a_state;
    auto const version = static_cast<std::uint32_t>(number(4));
    auto const flags = static_cast<std::uint32_t>(number(4));
    if (failed_) return Verdict::io_failed;
    if (version != state_version) return Verdict::unknown_version;
    bool same = true;
    write_geometry(books_, layout_, [&](void const* data, std::size_t size) {
      unsigned char theirs[8];
      same = same && get(theirs, size) && std::memcmp(theirs, data, size) == 0;
    });
    if (failed_) return Verdict::io_failed;
    if (!same) return Verdict::other_layout;
    std::uint64_t const total = number(8);
    p_ = static_cast<Position>(number(8));
    for (std::int32_t w = 0; w < books_.windows(); ++w) oldest_[w] = static_cast<Position>(number(8));
    std::uint64_t const count = number(8);
    for (std::uint64_t i = 0; i < count && !failed_; ++i) {
      auto const position = static_cast<Position>(number(8));
      auto const kind = static_cast<std::uint32_t>(number(4));
      if (failed_ || position < 1 || (i > 0 && position >= landings_.back().position)) break;  // no more than there are
      bool const rows = kind == (state_pinned | state_with_rows);
      if (kind > state_pinned && !rows) break;
      landings_.push_back({position, kind >= state_pinned, rows});
    }
    if (failed_) return Verdict::io_failed;
    std::uint64_t const digest = checksum_.digest();
    if (number(8) != digest) return failed_ ? Verdict::io_failed : Verdict::damaged;
    checksums_ = flags == state_checksums;
    if (flags > state_checksums || !makes_sense(total, count)) return Verdict::damaged;
    if (books_.max_context() > 0 && p_ > books_.max_context()) return Verdict::beyond_context;
    bool const placed =
        as == LoadAs::state || p_ == 0 || books_.pins() > 0 || books_.tiers_keep(p_, p_) == Verdict::accepted;
    return placed ? Verdict::accepted : Verdict::no_free_pin;
  }

  /// Reads all rows, into `slot` of `books` where there are such, else nowhere.
  [[nodiscard]] Verdict read_rows(Books* books, Slot slot, LoadAs as) {
    slot_ = slot;
    Verdict verdict = books != nullptr ? take_up(*books, as) : Verdict::accepted;
    if (verdict != Verdict::accepted) return verdict;
    auto const rows = [this](StateSection const& section) { return read(section); };
    verdict = for_each_state(books_, layout_, p_, rows);
    if (verdict == Verdict::accepted) verdict = for_each_history(books_, layout_, p_, oldest_, rows);
    for (SavedLanding const& landing : landings_) {
      if (landing.position != p_ && verdict == Verdict::accepted) {
        if (books != nullptr) take_up(*books, landing);
        verdict = for_each_state(books_, layout_, landing.position, rows);
      }
      if (landing.rows && verdict == Verdict::accepted) {
        verdict = for_each_pinned(books_, layout_, landing.position, rows);
      }
    }
    return verdict;
  }

 private:
  [[nodiscard]] bool get(void* data, std::size_t size) {
    failed_ = failed_ || !source_.bytes(data, size);
    if (!failed_) checksum_.update(data, size);
    return !failed_;
  }
  [[nodiscard]] std::uint64_t number(std::size_t size) {
    unsigned char bytes[8] = {};
    return get(bytes, size) ? from_little_endian(bytes, size) : 0;
  }

  // Whether the header is one that `save` can have written.
  [[nodiscard]] bool makes_sense(std::uint64_t total, std::uint64_t count) const {
    if (p_ < 0 || p_ > max_position || count != landings_.size()) return false;
    if (!landings_.empty() && landings_.front().position > p_) return false;
    Position lowest = p_;  // of what needs no rows of a pin
    for (SavedLanding const& landing : landings_) {
      bool in_rings = true;
      for (std::int32_t w = 0; w < books_.windows(); ++w) {
        in_rings = in_rings && oldest_[w] <= first_row_of(books_.window(w), landing.position);
      }
      if (!in_rings && !landing.rows) return false;
      if (in_rings) lowest = landing.position;
    }
    for (std::int32_t w = 0; w < books_.windows(); ++w) {
      if (oldest_[w] != first_row_of(books_.window(w), lowest)) return false;
    }
    // What was read so far, and the rows.
    std::uint64_t bytes = header_bytes();
    auto const add = [&](StateSection const& section) {
      auto const rows = static_cast<std::uint64_t>(section.count);
      std::uint64_t const sum = checksums_ ? 8 : 0;
      if (rows > (UINT64_MAX - bytes - sum) / section.row_bytes) return Verdict::damaged;
      bytes += rows * section.row_bytes + sum;
      return Verdict::accepted;
    };
    Verdict verdict = for_each_state(books_, layout_, p_, add);
    if (verdict == Verdict::accepted) verdict = for_each_history(books_, layout_, p_, oldest_, add);
    for (SavedLanding const& landing : landings_) {
      if (landing.position != p_ && verdict == Verdict::accepted) {
        verdict = for_each_state(books_, layout_, landing.position, add);
      }
      if (landing.rows && verdict == Verdict::accepted) {
        verdict = for_each_pinned(books_, layout_, landing.position, add);
      }
    }
    return verdict == Verdict::accepted && bytes == total;
  }

  [[nodiscard]] std::uint64_t header_bytes() const {
    std::uint64_t geometry = 0;
    write_geometry(books_, layout_, [&geometry](void const*, std::size_t size) { geometry += size; });
    auto const windows = static_cast<std::uint64_t>(books_.windows());
    return sizeof state_magic + 2 * 4 + geometry + 2 * 8 + windows * 8 + 8 + landings_.size() * (8 + 4) + 8;
  }

  [[nodiscard]] Verdict take_up(Books& books, LoadAs as) {
    bool const pinned = !landings_.empty() && landings_.front().position == p_ && landings_.front().pinned;
    Verdict taken = Verdict::no_free_pin;
    if (as == LoadAs::state) taken = books.adopt(slot_, p_, Adopt::live, oldest_);
    if (as == LoadAs::landing) taken = books.adopt(slot_, p_, Adopt::pin_with_rows, oldest_);
    if (as == LoadAs::state && pinned) take_up_pin(books, landings_.front(), true);
    if (taken == Verdict::accepted) return taken;
    Verdict const in_tiers = books.adopt(slot_, p_, Adopt::tiers, oldest_);
    return in_tiers == Verdict::accepted || in_tiers == Verdict::no_free_page ? in_tiers : taken;
  }

  void take_up(Books& books, SavedLanding const& landing) {
    Position const q = landing.position;
    bool in_rings = true;
    for (std::int32_t w = 0; w < books.windows(); ++w) {
      in_rings = in_rings && books.oldest_row(slot_, w) <= first_row_of(books.window(w), q);
    }
    // If there are not enough raw rows here it could never be landed on.
    if (!in_rings && !(landing.rows && books.pin_windows())) return;
    bool const in_tiers = in_rings && books.adopt(slot_, q, Adopt::tiers) == Verdict::accepted;
    if (landing.pinned) take_up_pin(books, landing, in_tiers);
  }

  // A pin that was saved before its rows were copied is wanted here as well, if its state is at hand: the next batch
  // copies them.
  void take_up_pin(Books& books, SavedLanding const& landing, bool at_hand) {
    bool const with_rows = landing.rows && books.pin_windows();
    bool const no_rows_yet = books.pin_windows() && books.windows() > 0 && !with_rows;
    if (no_rows_yet && at_hand && books.pin(slot_, landing.position) == Verdict::accepted) return;
    static_cast<void>(books.adopt(slot_, landing.position, with_rows ? Adopt::pin_with_rows : Adopt::pin));
  }

  [[nodiscard]] Verdict read(StateSection const& section) {
    StateRows rows;
    rows.store = section.store;
    rows.index = section.index;
    rows.layer = section.layer;
    rows.row_bytes = section.row_bytes;
    rows.copies = 0;
    StateSection kept = section;  // of it, what there is room for
    Position around = 0;
    std::int64_t base[4] = {};
    bool const nowhere = slot_.index < 0;
    if (section.store == StateRows::Store::state) {
      around = books_.component(section.index).geometry.rows;
      StatePlaces places;
      if (!nowhere &&
          books_.state_at(slot_, section.at, section.index, layout_.maps[section.index], places) == Verdict::accepted) {
        rows.copies = places.count;
        std::copy(places.rows, places.rows + places.count, base);
      }
    } else if (section.store == StateRows::Store::cache) {
      RowMap const& map = layout_.maps[section.index];
      base[0] = map.cache + std::int64_t{slot_.index} * map.cache_slot_stride;
      rows.copies = nowhere ? 0 : 1;
    } else if (section.store == StateRows::Store::pinned) {
      around = books_.window(section.index).window - 1;
      base[0] = pinned_rows(section);
      rows.copies = base[0] >= 0 ? 1 : 0;
    } else {
      around = books_.window(section.index).rows;
      base[0] = slot_.index * around;
      rows.copies = nowhere ? 0 : 1;
      kept.first = std::max(section.first, section.first + section.count - around);
      kept.count = section.first + section.count - kept.first;
    }
    if (rows.copies == 0) kept.count = 0;
    checksum_.reset(++section_);
    if (!drop(section.count - kept.count, section.row_bytes)) return Verdict::io_failed;
    bool const windows = section.store == StateRows::Store::window;
    bool const read =
        windows ? read_window(kept, base[0], rows) : for_each_run(kept, around, [&](Position row, Position count) {
          for (std::int32_t i = 0; i < rows.copies; ++i) rows.first[i] = base[i] + row;
          rows.count = count;
          return source_.rows(std::as_const(rows), checksum_);
        });
    if (!read) return Verdict::io_failed;
    if (!checksums_) return Verdict::accepted;
    std::uint64_t const digest = checksum_.digest();
    std::uint64_t const saved = number(8);
    if (failed_) return Verdict::io_failed;
    return saved == digest ? Verdict::accepted : Verdict::damaged;
  }

  // Where a pin at the section's position keeps the window rows below it; negative where none does.
  [[nodiscard]] std::int64_t pinned_rows(StateSection const& section) const {
    WindowRows there;
    if (slot_.index < 0) return there.pin;
    static_cast<void>(books_.window_at(slot_, section.at, section.index, layout_.window_maps[section.index], there));
    return there.pin;
  }

  // Reads rows into a ring, and those that a pin at the section's position keeps there as well.
  [[nodiscard]] bool read_window(StateSection const& section, std::int64_t ring, StateRows& rows) {
    Position const around = books_.window(section.index).rows;
    Position const kept = books_.window(section.index).window - 1;
    std::int64_t const pin = pinned_rows(section);
    Position const end = section.first + section.count;
    Position const shared = pin >= 0 ? section.at - kept : end;  // from here on they go to both
    for (Position q = section.first; q < end; q += rows.count) {
      bool const both = q >= shared;
      Position const room = both ? kept - q % kept : shared - q;
      rows.count = std::min({end - q, around - q % around, room});
      rows.copies = both ? 2 : 1;
      rows.first[0] = ring + q % around;
      rows.first[1] = both ? pin + q % kept : 0;
      if (!source_.rows(std::as_const(rows), checksum_)) return false;
    }
    return true;
  }

  // Reads rows that have no place here.
  [[nodiscard]] bool drop(Position count, std::uint64_t row_bytes) {
    unsigned char buffer[4096];
    for (std::uint64_t left = static_cast<std::uint64_t>(count) * row_bytes; left > 0;) {
      std::size_t const n = static_cast<std::size_t>(std::min<std::uint64_t>(left, sizeof buffer));
      if (!get(buffer, n)) return false;
      left -= n;
    }
    return true;
  }

  Books const& books_;
  StateLayout const& layout_;
  Source& source_;
  Slot slot_;
  Checksum checksum_;
  std::uint64_t section_ = 0;
  bool failed_ = false;
  bool checksums_ = false;
  Position p_ = 0;
  Position oldest_[max_windows] = {};
  std::vector<SavedLanding> landings_;  // in falling order
};

/// Leaves a slot empty, unless all went well: on the way out, whether by return or by exception.
struct EmptyUnlessDone {
  Books& books;
  Slot& slot;
  bool done = false;
  ~EmptyUnlessDone() {
    if (!done) static_cast<void>(books.clear(slot));
  }
};

}  // namespace detail

template <class Source>
Verdict check(Books const& books, StateLayout const& layout, LoadAs as, Source&& source) {
  if (!detail::usable(books, layout)) return Verdict::bad_layout;
  detail::StateLoad<std::remove_reference_t<Source>> state(books, layout, source);
  Verdict const verdict = state.read_header(as);
  return verdict == Verdict::accepted ? state.read_rows(nullptr, Slot{}, as) : verdict;
}

template <class Source>
Verdict load(Books& books, Slot& slot, StateLayout const& layout, LoadAs as, Source&& source) {
  Verdict verdict = books.can_land(slot, 0);  // known, and no batch open
  if (verdict != Verdict::accepted) return verdict;
  if (!detail::usable(books, layout)) return Verdict::bad_layout;
  detail::StateLoad<std::remove_reference_t<Source>> state(books, layout, source);
  verdict = state.read_header(as);
  if (verdict != Verdict::accepted) return verdict;
  verdict = books.clear(slot);
  detail::EmptyUnlessDone scope{books, slot};
  verdict = state.read_rows(&books, slot, as);
  scope.done = verdict == Verdict::accepted;
  return verdict;
}

}  // namespace v0_1
}  // namespace rollback
