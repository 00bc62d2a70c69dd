// Making books: checks of the options, tiers shared by components, sizes.
#pragma once

#include <rollback/books.hpp>

#include <algorithm>
#include <numeric>

namespace rollback {
inline namespace v0_1 {

namespace detail {

/// The least common multiple, or 0 where it does not fit or a factor is 0.
[[nodiscard]] inline Position common_multiple(Position a, Position b) noexcept {
  if (a == 0 || b == 0) return 0;
  Position const factor = b / std::gcd(a, b);
  return a > INT64_MAX / factor ? 0 : a * factor;
}

}  // namespace detail

inline void Books::check(BooksOptions const& o) {
  using detail::refuse_setup;
  if (o.slots < 1) refuse_setup("Books: slots is how many sequences are kept; it must be at least 1");
  if (o.max_rows < 1) refuse_setup("Books: max_rows is the rows of a batch; it must be at least 1");
  if (o.max_chunks < 1) refuse_setup("Books: max_chunks is the chunks of a batch; it must be at least 1");
  if (o.max_chunk_rows < 0 || o.max_chunk_rows > o.max_rows) {
    refuse_setup("Books: max_chunk_rows must be in [1, max_rows], or 0 for max_rows");
  }
  if (o.max_context < 0) refuse_setup("Books: max_context must be at least 1, or 0 for no limit");
  if (o.steps_in_flight < 1 || o.steps_in_flight > 64) {
    refuse_setup("Books: steps_in_flight is the batches that may be open at once; it must be in [1, 64]");
  }
  if (o.pins < 0 || o.pins > 4096) refuse_setup("Books: pins is the pins of a slot; it must be in [0, 4096]");
  if (o.pins > INT32_MAX / o.slots) refuse_setup("Books: slots * pins must be below 2^31");
  if (o.pages < 0)
    refuse_setup("Books: pages is the pages that the engine hands out; it must be at least 1, or 0 for off");
  if (o.components.size() > max_components) refuse_setup("Books: at most 8 components");
  if (o.windows.size() > max_windows) refuse_setup("Books: at most 4 windows");
  for (Component const& c : o.components) {
    if (c.name == nullptr) refuse_setup("Books: a component's name must not be null");
    if (c.geometry.rows < 1) refuse_setup("Books: a component's geometry.rows must be at least 1");
    if (c.geometry.block < 0)
      refuse_setup("Books: a component's geometry.block must be at least 1, or 0 for no blocks");
    if (c.geometry.block > 0 && !c.states_inside_chunk) {
      refuse_setup("Books: a component with blocks is a ring of rows: it must have states_inside_chunk");
    }
    Position const needed = static_cast<Position>(c.geometry.block) * (c.geometry.overlap ? 2 : 1);
    if (c.geometry.rows < needed) {
      refuse_setup("Books: a component's geometry.rows must be at least block, with overlap at least 2 * block");
    }
    if (c.per_token < 0) refuse_setup("Books: a component's per_token depth must be at least 1, or 0 for off");
    if (c.aligned < 0) refuse_setup("Books: a component's aligned depth must be at least 1, or 0 for off");
    if (c.aligned > 0 && c.quantum < 2) {
      refuse_setup("Books: a component's quantum must be at least 2 (a state a token is what per_token keeps)");
    }
    if (c.quantum < 0) refuse_setup("Books: a component's quantum must not be negative");
    if (c.quantum > INT32_MAX) refuse_setup("Books: a component's quantum must be below 2^31");
    if (c.empty_at < 0) refuse_setup("Books: a component's empty_at must be at least 1, or 0 for never");
    Places const p = rollback::places(c, o.entry_copy, o.steps_in_flight, o.pins, o.pages);
    std::int64_t const pages = c.aligned > 0 ? o.pages : 0;
    std::int64_t const states =
        std::int64_t{p.live} + p.per_token + p.per_token_spares + p.aligned + p.aligned_spares + p.pins;
    if (states > ((max_state_rows - chunk_rows(o)) / c.geometry.rows - pages) / o.slots) {
      refuse_setup(
          "Books: slots * places * geometry.rows of a component, pages * geometry.rows, and the rows of a chunk, must "
          "be at most 2^30 together: lists name rows by 32-bit indices");
    }
  }
  for (Window const& w : o.windows) {
    if (w.name == nullptr) refuse_setup("Books: a window's name must not be null");
    WindowGuard::check(o.slots, w, chunk_rows(o), most_unverified(o));
    Position const most = max_state_rows / o.slots;
    if (o.pin_windows && o.pins > 0 && (w.rows > most || w.window - 1 > (most - w.rows) / o.pins)) {
      refuse_setup(
          "Books: with pin_windows slots * (rows + pins * (window - 1)) of a window must be at most 2^30: lists name "
          "rows by 32-bit indices");
    }
  }
}

inline std::int32_t Books::chunk_rows(BooksOptions const& o) noexcept {
  return o.max_chunk_rows > 0 ? o.max_chunk_rows : o.max_rows;
}

inline std::int32_t Books::least_per_token(BooksOptions const& o) noexcept {
  std::int32_t least = o.components.empty() ? o.max_rows : INT32_MAX;
  for (Component const& c : o.components) least = std::min(least, c.per_token);
  return least;
}

// Rows of a slot that may be rejected at once: those of all open batches together.
inline Position Books::most_unverified(BooksOptions const& o) noexcept {
  return std::min(Position{least_per_token(o)}, Position{o.steps_in_flight} * o.max_rows);
}

inline std::int32_t Books::tier_of(Position quantum, std::int32_t depth, std::int32_t spares) {
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    if (tiers_[t].quantum() == quantum && tiers_[t].depth() == depth && tiers_[t].spares() == spares) {
      return static_cast<std::int32_t>(t);
    }
  }
  tiers_.emplace_back(slots_, quantum, depth, spares, quantum == 1 ? 0 : pages_);
  return static_cast<std::int32_t>(tiers_.size()) - 1;
}

inline Books::Books(BooksOptions const& options)
    : slots_((check(options), options.slots)),
      max_rows_(options.max_rows),
      max_chunks_(options.max_chunks),
      max_chunk_rows_(chunk_rows(options)),
      max_context_(options.max_context),
      entry_copy_(options.entry_copy),
      pages_(options.pages),
      pin_windows_(options.pin_windows && options.pins > 0),
      per_token_(least_per_token(options)),
      alignment_(1),
      landing_lattice_(1),
      empty_lattice_(1),
      pins_(options.slots, options.pins) {
  components_.reserve(options.components.size());
  tiers_.reserve(2 * options.components.size());
  guards_.reserve(options.windows.size());
  for (Component const& component : options.components) {
    ComponentState state;
    state.component = component;
    Places const p = rollback::places(component, entry_copy_, options.steps_in_flight, options.pins, pages_);
    state.aligned_base = p.per_token + p.per_token_spares;
    state.pin_base = state.aligned_base + p.aligned + p.aligned_spares;
    if (p.per_token > 0) state.per_token_tier = tier_of(1, p.per_token, p.per_token_spares);
    if (component.aligned > 0) state.aligned_tier = tier_of(component.quantum, component.aligned, p.aligned_spares);
    components_.push_back(state);
    Position const lattice = component.aligned > 0 ? component.quantum : component.empty_at;
    alignment_ = detail::common_multiple(alignment_, lattice);
    Position const each = std::gcd(component.aligned > 0 ? component.quantum : 0, component.empty_at);
    landing_lattice_ = detail::common_multiple(landing_lattice_, each);
    empty_lattice_ = detail::common_multiple(empty_lattice_, component.empty_at);
  }
  for (Window const& window : options.windows) {
    guards_.emplace_back(slots_, window, max_chunk_rows_, most_unverified(options));
  }
  slot_states_.resize(static_cast<std::size_t>(slots_));
  batches_.reserve(static_cast<std::size_t>(options.steps_in_flight));
  for (std::int32_t i = 0; i < options.steps_in_flight; ++i) {
    OpenBatch& batch = batches_.emplace_back(slots_, max_rows_, max_chunks_, tiers_.size());
    for (std::size_t t = 0; t < tiers_.size(); ++t) batch.page_shift[t] = tiers_[t].per_token() ? 0 : 1;
  }
  by_age_.resize(batches_.size());
}

inline std::size_t Books::bytes(BooksOptions const& o) {
  check(o);
  auto const slots = static_cast<std::size_t>(o.slots);
  std::size_t total = sizeof(Books) + slots * sizeof(SlotState) + detail::PinTable::bytes(o.slots, o.pins) +
                      o.components.size() * (sizeof(ComponentState) + 2 * sizeof(detail::TierTable)) +
                      o.windows.size() * (sizeof(WindowGuard) + slots * sizeof(Position));
  std::size_t tiers = 0;
  auto const first_with = [&](std::size_t end, auto same) {
    auto const begin = o.components.begin();
    return std::none_of(begin, begin + static_cast<std::ptrdiff_t>(end), same);
  };
  for (std::size_t i = 0; i < o.components.size(); ++i) {
    Component const& component = o.components[i];
    Places const p = rollback::places(component, o.entry_copy, o.steps_in_flight, o.pins, o.pages);
    bool const new_per_token = first_with(i, [&](Component const& c) { return c.per_token == p.per_token; });
    bool const new_aligned = first_with(i, [&](Component const& c) {
      return c.aligned == component.aligned && c.quantum == component.quantum &&
             rollback::places(c, o.entry_copy, o.steps_in_flight, o.pins, o.pages).aligned_spares == p.aligned_spares;
    });
    if (new_per_token) total += detail::TierTable::bytes(o.slots, p.per_token, p.per_token_spares);
    if (new_aligned) total += detail::TierTable::bytes(o.slots, component.aligned, p.aligned_spares, o.pages);
    tiers += (new_per_token && p.per_token > 0 ? 1u : 0u) + (new_aligned && component.aligned > 0 ? 1u : 0u);
  }
  return total + static_cast<std::size_t>(o.steps_in_flight) *
                     (sizeof(std::int32_t) + OpenBatch::bytes(o.slots, o.max_rows, o.max_chunks, tiers));
}

inline Component const& Books::component(std::int32_t index) const noexcept {
  return components_[static_cast<std::size_t>(index)].component;
}

inline Window const& Books::window(std::int32_t index) const noexcept {
  return guards_[static_cast<std::size_t>(index)].window();
}

inline Places Books::places(std::int32_t component) const noexcept {
  return rollback::places(this->component(component), entry_copy_, steps_in_flight(), pins(), pages_);
}

inline std::int32_t Books::pages(std::int32_t component) const noexcept {
  return this->component(component).aligned > 0 ? pages_ : 0;
}

inline char const* Books::name(std::int32_t index) const noexcept {
  if (index < 0) return "";
  if (index < components()) return component(index).name;
  auto const window = static_cast<std::size_t>(index - components());
  return window < guards_.size() ? guards_[window].window().name : "";
}

}  // namespace v0_1
}  // namespace rollback
