// Saving a slot and loading it into another one, or into itself.
#pragma once

#include "walk.hpp"

#include "../toy_state.hpp"

#include <cstddef>
#include <vector>

namespace model {

inline void Walk::save_and_load(Op const& op) {
  std::size_t const from = slot_of(op.a);
  std::size_t const to = slot_of(op.b);
  Position const tip = model_.slots[from].tip;
  Position p = modulo(op.c, tip + 2);
  if (op.d % 4 == 0) p = tip;
  if (op.d % 4 == 1 && p <= tip) p = model_.floor(from, p);
  bool const history = op.d / 4 % 4 != 0;
  auto const as = op.d / 16 % 2 == 0 ? rollback::LoadAs::state : rollback::LoadAs::landing;
  rollback::SaveOptions const options{history, op.d / 32 % 2 == 0};

  Verdict can_save = model_.nearest(handle(from), p).why;
  if (can_save == Verdict::in_flight && p < tip && !options_.components.empty()) {  // a landing can still be read
    can_save = p == 0 || model_.limit(from, p) < 0 ? Verdict::accepted : model_.why_not(from, p, model_.limit(from, p));
  }
  if (can_save == Verdict::in_flight && p > tip && !options_.components.empty()) can_save = Verdict::ahead_of_tip;
  toy::ToyLayout const toy(books_, engine_.maps, engine_.window_maps);
  toy::Blob blob;
  toy::StateSink sink{engine_.storage, blob};
  std::uint64_t const bytes = rollback::saved_bytes(books_, handle(from), p, toy.layout, options);
  expect("save", rollback::save(books_, handle(from), p, toy.layout, options, sink), can_save);
  if (bytes != blob.size()) wrong_ = "how many bytes a save writes";
  if (can_save != Verdict::accepted || !wrong_.empty()) return;

  std::vector<Model::Saved> const landings = history ? model_.saved(from, p) : std::vector<Model::Saved>{};
  bool const landing = as == rollback::LoadAs::landing;
  bool placed = p == 0 || !landing || options_.pins > 0;
  if (!placed) {
    placed = true;
    for (std::size_t c = 0; c < options_.components.size(); ++c) {
      auto const fits = [&](int tier) { return tier >= 0 && model_.tiers[static_cast<std::size_t>(tier)].fits(p, p); };
      placed = placed && (model_.is_empty(c, p) || fits(model_.by_token[c]) || fits(model_.aligned[c]));
    }
  }
  Verdict const wanted = model_.in_flight(to) ? Verdict::in_flight : placed ? Verdict::accepted : Verdict::no_free_pin;
  toy::History const history_of = engine_.history[from];
  Slot loaded = handle(to);
  toy::StateSource source{engine_.storage, blob};
  expect("load", rollback::load(books_, loaded, toy.layout, as, source), wanted);
  touch(to);
  touch(from);
  if (wanted != Verdict::accepted || !wrong_.empty()) return;
  ++tally.loads;
  model_.load(to, p, landings, landing);
  engine_.history[to] = history_of;
  engine_.history[to].truncate(p);
  std::vector<Position> positions;
  for (Model::Saved const& x : landings) positions.push_back(x.position);
  if (alone_[to].holds) alone_[to].expected.load(p, positions, landing);
  if (loaded != handle(to)) wrong_ = "the handle of a loaded slot";
  if (source.at != blob.size()) wrong_ = "how many bytes a load reads";
}

}  // namespace model
