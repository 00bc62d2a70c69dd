// Saving: the header, then rows section by section.
#pragma once

#include <rollback/detail/state_format.hpp>
#include <rollback/state_io.hpp>

#include <utility>

namespace rollback {
inline namespace v0_1 {
namespace detail {

/// A sink that only counts.
struct CountingSink {
  std::uint64_t total = 0;
  bool bytes(void const*, std::size_t size) noexcept {
    total += size;
    return true;
  }
  bool rows(StateRows const& rows, Checksum&) noexcept {
    total += static_cast<std::uint64_t>(rows.count) * rows.row_bytes;
    return true;
  }
};

template <class Sink>
class StateSave {
 public:
  StateSave(Books const& books, Slot slot, Position p, StateLayout const& layout, SaveOptions const& options,
            Sink& sink)
      : books_(books), slot_(slot), p_(p), layout_(layout), options_(options), sink_(sink) {}

  /// @param total  the bytes of the whole, as the header names them
  [[nodiscard]] Verdict run(std::uint64_t total) {
    Position oldest[max_windows];
    find_oldest_rows(oldest);
    if (!write_header(total, oldest)) return Verdict::io_failed;
    auto const rows = [this](StateSection const& section) { return write(section); };
    Verdict verdict = for_each_state(books_, layout_, p_, rows);
    if (verdict == Verdict::accepted) verdict = for_each_history(books_, layout_, p_, oldest, rows);
    for_each_landing([&](SavedLanding const& landing) {
      if (landing.position != p_ && verdict == Verdict::accepted) {
        verdict = for_each_state(books_, layout_, landing.position, rows);
      }
      if (landing.rows && verdict == Verdict::accepted) {
        verdict = for_each_pinned(books_, layout_, landing.position, rows);
      }
    });
    return verdict;
  }

 private:
  // In falling order: what has a place of its own, that is not those at which every component is empty.
  template <class F>
  void for_each_landing(F f) const {
    if (!options_.history) return;
    for (Position q = books_.has_pin(slot_, p_) ? p_ : books_.landing_before(slot_, p_); q > 0;
         q = books_.landing_before(slot_, q)) {
      bool const pinned = books_.has_pin(slot_, q);
      bool kept = pinned;
      for (std::int32_t c = 0; c < books_.components() && !kept; ++c) {
        Position const empty_at = books_.component(c).empty_at;
        kept = empty_at == 0 || q % empty_at != 0;
      }
      if (kept) f(SavedLanding{q, pinned, pinned && books_.windows() > 0 && window_rows(0, q).pin >= 0});
    }
  }

  [[nodiscard]] WindowRows window_rows(std::int32_t window, Position q) const {
    WindowRows rows;
    static_cast<void>(books_.window_at(slot_, q, window, layout_.window_maps[window], rows));
    return rows;
  }
  [[nodiscard]] bool in_rings(Position q) const {
    bool all = true;
    for (std::int32_t w = 0; w < books_.windows(); ++w) all = all && window_rows(w, q).ring >= 0;
    return all;
  }

  // The window rows that the saved landings need, and the tip; but not what pins alone have.
  void find_oldest_rows(Position* oldest) const {
    Position lowest = p_;
    for_each_landing([&](SavedLanding const& landing) {
      if (in_rings(landing.position)) lowest = std::min(lowest, landing.position);
    });
    for (std::int32_t w = 0; w < books_.windows(); ++w) oldest[w] = first_row_of(books_.window(w), lowest);
  }

  [[nodiscard]] bool write_header(std::uint64_t total, Position const* oldest) {
    bool written = true;
    checksum_.reset(0);
    auto const put = [&](void const* data, std::size_t size) {
      checksum_.update(data, size);
      written = written && sink_.bytes(data, size);
    };
    LittleEndian<decltype(put)> out{put};
    put(state_magic, sizeof state_magic);
    out.u32(state_version);
    out.u32(options_.checksums ? state_checksums : 0);
    write_geometry(books_, layout_, put);
    out.u64(total);
    out.i64(p_);
    for (std::int32_t w = 0; w < books_.windows(); ++w) out.i64(oldest[w]);
    std::uint64_t landings = 0;
    for_each_landing([&landings](SavedLanding const&) { ++landings; });
    out.u64(landings);
    for_each_landing([&out](SavedLanding const& landing) {
      out.i64(landing.position);
      out.u32((landing.pinned ? state_pinned : 0) | (landing.rows ? state_with_rows : 0));
    });
    out.u64(checksum_.digest());
    return written;
  }

  [[nodiscard]] Verdict write(StateSection const& section) {
    StateRows rows;
    rows.store = section.store;
    rows.index = section.index;
    rows.layer = section.layer;
    rows.row_bytes = section.row_bytes;
    std::int64_t base = 0;
    Position around = 0;
    if (section.store == StateRows::Store::state) {
      StatePlaces places;
      Verdict const verdict = books_.state_at(slot_, section.at, section.index, layout_.maps[section.index], places);
      if (verdict != Verdict::accepted) return verdict;
      base = places.rows[0];
      around = books_.component(section.index).geometry.rows;
    } else if (section.store == StateRows::Store::cache) {
      RowMap const& map = layout_.maps[section.index];
      base = map.cache + slot_.index * map.cache_slot_stride;
    } else {
      WindowRows const there = window_rows(section.index, section.at);
      bool const in_ring = section.store == StateRows::Store::window && there.ring >= 0;
      rows.store = in_ring ? StateRows::Store::window : StateRows::Store::pinned;
      around = in_ring ? books_.window(section.index).rows : books_.window(section.index).window - 1;
      base = in_ring ? slot_.index * around : there.pin;
    }
    checksum_.reset(++section_);
    bool const written = for_each_run(section, around, [&](Position row, Position count) {
      rows.first[0] = base + row;
      rows.count = count;
      return sink_.rows(std::as_const(rows), checksum_);
    });
    if (!written) return Verdict::io_failed;
    if (options_.checksums) {
      auto const put = [&](void const* data, std::size_t size) {
        return sink_.bytes(data, size) ? void() : void(failed_ = true);
      };
      LittleEndian<decltype(put)> out{put};
      out.u64(checksum_.digest());
    }
    return failed_ ? Verdict::io_failed : Verdict::accepted;
  }

  Books const& books_;
  Slot slot_;
  Position p_;
  StateLayout const& layout_;
  SaveOptions options_;
  Sink& sink_;
  Checksum checksum_;
  std::uint64_t section_ = 0;
  bool failed_ = false;
};

[[nodiscard]] inline Verdict can_save(Books const& books, Slot slot, Position p, StateLayout const& layout) noexcept {
  StatePlaces places;
  Verdict const verdict =
      books.components() > 0 ? books.state_at(slot, p, 0, layout.maps[0], places) : books.can_land(slot, p);
  if (verdict != Verdict::accepted) return verdict;
  return usable(books, layout) ? verdict : Verdict::bad_layout;
}

}  // namespace detail

inline std::uint64_t saved_bytes(Books const& books, Slot slot, Position p, StateLayout const& layout,
                                 SaveOptions const& options) {
  if (detail::can_save(books, slot, p, layout) != Verdict::accepted) return 0;
  detail::CountingSink sink;
  Verdict const verdict = detail::StateSave<detail::CountingSink>(books, slot, p, layout, options, sink).run(0);
  return verdict == Verdict::accepted ? sink.total : 0;
}

template <class Sink>
Verdict save(Books const& books, Slot slot, Position p, StateLayout const& layout, SaveOptions const& options,
             Sink&& sink) {
  Verdict const verdict = detail::can_save(books, slot, p, layout);
  if (verdict != Verdict::accepted) return verdict;
  using State = detail::StateSave<std::remove_reference_t<Sink>>;
  return State(books, slot, p, layout, options, sink).run(saved_bytes(books, slot, p, layout, options));
}

}  // namespace v0_1
}  // namespace rollback
