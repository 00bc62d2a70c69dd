// The walk of a case: one function for each kind of operation, done to the books, the engine and the model alike. To
// add a kind: name it in `Kind`, write its function, list it in `step`.
#pragma once

#include "check.hpp"
#include "engine.hpp"
#include "model_batches.hpp"

#include "../toy_landings.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace model {

/// What was done: a test that did nothing would agree.
struct Tally {
  std::size_t steps = 0, batches = 0, commits = 0, partial = 0, failures = 0, roll_backs = 0, pins = 0, forks = 0,
              loads = 0, refusals = 0;

  Tally& operator+=(Tally const& x) {
    steps += x.steps;
    batches += x.batches;
    commits += x.commits;
    partial += x.partial;
    failures += x.failures;
    roll_backs += x.roll_backs;
    pins += x.pins;
    forks += x.forks;
    loads += x.loads;
    refusals += x.refusals;
    return *this;
  }
};

class Walk {
 public:
  Tally tally;

  explicit Walk(Configuration const& f)
      : options_(options_of(f)), books_(options_), model_(options_), engine_(f, options_), checker_(books_) {
    bool const one_by_one = options_.steps_in_flight == 1 && options_.pins == 0;
    for (std::int32_t s = 0; s < options_.slots; ++s) alone_.push_back({toy::ExpectedLandings(options_), one_by_one});
  }

  /// Does an operation; empty where all agrees afterwards, else what differs.
  std::string step(Op const& op) {
    touched_.assign(model_.slots.size(), false);
    for (std::size_t s = 0; s < model_.slots.size(); ++s) {  // short sequences, so that every step can be checked
      if (model_.head(s) > 180) clear(s);
    }
    random_.seed(op.a * 31u + op.b * 1009u + op.c * 65537u + op.d);
    switch (op.kind) {
      case Kind::begin:
        begin(op);
        break;
      case Kind::run:
        run(op);
        break;
      case Kind::settle:
        settle(op);
        break;
      case Kind::commit:
        commit(op);
        break;
      case Kind::fail:
        fail(op);
        break;
      case Kind::roll_back:
        roll_back(op);
        break;
      case Kind::pin:
        pin(op);
        break;
      case Kind::unpin:
        unpin(op);
        break;
      case Kind::fork:
        fork(op);
        break;
      case Kind::clear:
        clear(slot_of(op.a));
        break;
      case Kind::ask:
        ask(op);
        break;
      case Kind::refused:
        refused(op);
        break;
      case Kind::save_and_load:
        save_and_load(op);
        break;
    }
    for (std::size_t s = 0; s < model_.slots.size(); ++s) {
      if (engine_.history[s].size() > model_.head(s)) engine_.history[s].truncate(model_.head(s));
    }
    if (wrong_.empty()) wrong_ = checker_.check(books_, model_, engine_, touched_);
    return wrong_.empty() ? check_alone() : wrong_;
  }

 private:
  /// What a slot must list that never had two batches open, pins or forks: worked out without any places.
  struct Alone {
    toy::ExpectedLandings expected;
    bool holds;
  };
  [[nodiscard]] static toy::Rows alone_rows(OpenRows const& o) {
    return {o.rows.begin, o.rows.verified, o.rows.end, o.chunk};
  }
  [[nodiscard]] std::string check_alone() const {
    for (std::size_t s = 0; s < alone_.size(); ++s) {
      if (!alone_[s].holds || !touched_[s] || model_.in_flight(s)) continue;
      toy::ExpectedLandings const& e = alone_[s].expected;
      bool same = books_.tip(handle(s)) == e.tip && books_.is_armed(handle(s)) == e.armed;
      for (Position p = 0; p <= e.tip && same; ++p) {
        same = (books_.can_land(handle(s), p) == Verdict::accepted) == e.lands(p);
      }
      if (!same) return "slot " + std::to_string(s) + ": what is expected of positions alone";
    }
    return "";
  }

  [[nodiscard]] std::size_t slot_of(std::uint32_t n) const { return n % model_.slots.size(); }
  [[nodiscard]] Slot handle(std::size_t s) const { return {static_cast<std::int32_t>(s), model_.slots[s].generation}; }
  [[nodiscard]] static Position modulo(std::uint32_t n, Position count) { return static_cast<Position>(n) % count; }
  void touch(std::size_t s) { touched_[s] = true; }
  void touch(ModelBatch const& b) {
    for (OpenRows const& o : b.slots) touch(o.slot);
  }
  void expect(char const* call, Verdict is, Verdict wanted) {
    tally.refusals += wanted == Verdict::accepted ? 0 : 1;
    if (is != wanted && wrong_.empty()) {
      wrong_ = std::string(call) + " answers '" + text(is) + "', not '" + text(wanted) + "'";
    }
  }

  // ---- batches -----------------------------------------------------------------------------------------------------

  /// A batch of new rows of some slots, interleaved, with padding between, cut where it must be and where it may.
  ModelBatch make_batch(Op const& op, std::vector<Unverified>& unverified) {
    ModelBatch b;
    std::vector<Position> next, left, end;
    std::uint32_t const many = op.b % 4 == 0 ? static_cast<std::uint32_t>(options_.max_rows) : 5;
    Position room = options_.max_rows;
    for (std::size_t s = 0; s < model_.slots.size(); ++s) {
      bool const chosen = s == slot_of(op.a) || (op.a / 8 >> s) % 4 == 1;
      Position rows = chosen && room > 0
                          ? 1 + modulo(op.b / 4 + static_cast<std::uint32_t>(s) * op.c, std::min<Position>(room, many))
                          : 0;
      if (options_.max_context > 0) rows = std::max<Position>(0, std::min(rows, options_.max_context - model_.head(s)));
      room -= rows;
      next.push_back(model_.head(s));
      left.push_back(rows);
      end.push_back(model_.head(s) + rows);
      Position const most = std::min<Position>(rows, model_.per_token);
      if (rows > 0 && (op.d + s) % 2 == 0) {
        unverified.push_back({handle(s), static_cast<std::int32_t>(modulo(op.d / 2, most + 1))});
      }
    }
    std::int32_t begin = 0;
    std::vector<bool> in_chunk(next.size(), false);
    auto const cut = [&] {
      auto const at = static_cast<std::int32_t>(b.row_slots.size());
      if (at == begin) return;
      b.chunk_ends.push_back(at);
      begin = at;
      in_chunk.assign(next.size(), false);
    };
    std::uint32_t const often = 2 + op.c % 9;  // how many rows a chunk has
    while (std::any_of(left.begin(), left.end(), [](Position n) { return n > 0; })) {
      std::size_t s = random_() % next.size();
      while (left[s] == 0) s = (s + 1) % next.size();
      auto const i = static_cast<std::int32_t>(b.row_slots.size());
      bool const must = in_chunk[s] && model_.must_cut(s, next[s], model_.head(s), end[s]);
      if (must || i - begin == options_.max_chunk_rows || random_() % often == 0) cut();
      if (room > 0 && random_() % 5 == 0) {
        --room;
        b.row_slots.push_back({});
        b.positions.push_back(-7);
        continue;
      }
      b.row_slots.push_back(handle(s));
      b.positions.push_back(next[s]++);
      in_chunk[s] = true;
      --left[s];
    }
    cut();
    return b;
  }

  void begin_with(ModelBatch b, std::vector<Unverified> const& unverified) {
    std::vector<OpenRows> rows;
    Verdict const wanted = judge(model_, b, unverified, rows);
    Verdict const is =
        books_.begin({b.row_slots.data(), b.positions.data(), static_cast<std::int32_t>(b.row_slots.size()),
                      b.chunk_ends.data(), b.chunks(), unverified.data(), static_cast<std::int32_t>(unverified.size())},
                     b.ticket);
    expect("begin", is, wanted);
    if (is != Verdict::accepted || wanted != is) return;
    ++tally.batches;
    open(model_, b, rows);
    Engine::Running& running = engine_.running[b.ticket.serial];
    running = {};
    for (std::size_t s = 0; s < model_.slots.size(); ++s) running.live_place.push_back(books_.live_place(handle(s)));
    for (OpenRows const& o : rows) {
      touch(o.slot);
      for (Position p = o.rows.begin; p < o.rows.end; ++p) engine_.history[o.slot].append(++token_ * 2654435761u);
    }
  }
  void begin(Op const& op) {
    std::vector<Unverified> unverified;
    ModelBatch b = make_batch(op, unverified);
    begin_with(std::move(b), unverified);
  }

  // Chunks run in order, those of older batches first, and may run long before they are known to have.
  bool run_one(std::uint32_t seed) {
    for (ModelBatch const& b : model_.batches) {
      Engine::Running& r = engine_.running[b.ticket.serial];
      if (r.ran == b.chunks()) continue;
      engine_.run(books_, b, r.ran++, seed);
      return true;
    }
    return false;
  }
  void run(Op const& op) {
    for (std::uint32_t i = 0; i <= op.a % 6 && run_one(op.b + i); ++i) {}
  }
  void settle_one(ModelBatch& b) {
    std::int32_t const k = b.settled;
    expect("settle", books_.settle(b.ticket, k), model::settle(model_, b, k));
  }
  void settle(Op const& op) {
    std::uint32_t left = 1 + op.a % 6;
    for (ModelBatch& b : model_.batches) {
      while (left > 0 && b.settled < engine_.running[b.ticket.serial].ran) {
        settle_one(b);
        --left;
      }
      if (b.settled < b.chunks()) return;
    }
  }
  /// Mostly finishes the oldest batch first, so that commits go through; else asks as things are.
  void commit(Op const& op) {
    if (model_.batches.empty()) return;
    std::size_t const age = op.a % 4 == 0 ? op.a / 4 % model_.batches.size() : 0;
    if (op.a % 8 != 0) {
      for (std::size_t i = 0; i <= age; ++i) {
        while (engine_.running[model_.batches[i].ticket.serial].ran < model_.batches[i].chunks()) run_one(op.c);
        while (model_.batches[i].settled < model_.batches[i].chunks()) settle_one(model_.batches[i]);
      }
    }
    ModelBatch& b = model_.batches[age];
    OpenRows const& o = b.slots[op.b % b.slots.size()];
    Position const accepted = op.c % 2 == 0 ? o.rows.end : o.rows.verified + modulo(op.c / 2, o.unverified + 1);
    Slot const slot = handle(o.slot);
    touch(o.slot);
    Ticket const t = b.ticket;
    Position const end = o.rows.end;
    std::size_t const s = o.slot;
    toy::Rows const rows = alone_rows(o);
    Verdict const wanted = model::commit(model_, b, slot, accepted);
    if (wanted == Verdict::accepted) {
      ++(accepted == end ? tally.commits : tally.partial);
      if (alone_[s].holds) alone_[s].expected.commit(rows, accepted);
    }
    expect("commit", books_.commit(t, slot, accepted), wanted);
  }
  void fail(Op const& op) {
    if (model_.batches.empty()) return;
    std::size_t const age = op.a % model_.batches.size();
    ModelBatch& b = model_.batches[age];
    std::int32_t const first_bad = b.settled + static_cast<std::int32_t>(modulo(op.b, b.chunks() - b.settled + 1));
    auto state = static_cast<BadChunk>(op.c % 3);
    // What is said of the bad chunks must be true.
    std::int32_t const may = state == BadChunk::ran_last ? first_bad + 1 : first_bad;
    if (engine_.running[b.ticket.serial].ran > may) state = BadChunk::may_have_run;
    for (std::size_t i = age + 1; i < model_.batches.size(); ++i) {
      ModelBatch const& younger = model_.batches[i];
      if (engine_.running[younger.ticket.serial].ran > younger.settled) state = BadChunk::may_have_run;
    }
    while (engine_.running[b.ticket.serial].ran < first_bad && run_one(op.d)) {}
    bool const refused = fail_is_refused(b);
    for (std::size_t i = age; i < model_.batches.size() && !refused && state != BadChunk::never_started; ++i) {
      ModelBatch const& torn = model_.batches[i];
      std::int32_t const first = i == age ? first_bad : torn.settled;
      std::int32_t const end = state == BadChunk::may_have_run ? torn.chunks() : i == age ? first_bad + 1 : first;
      for (std::int32_t k = first; k < std::min(end, torn.chunks()); ++k) {
        if (op.d % 4 != 0 || random_() % 2 == 0) engine_.tear(books_, torn, k, op.d + static_cast<std::uint32_t>(k));
      }
    }
    for (std::size_t i = age; i < model_.batches.size(); ++i) touch(model_.batches[i]);
    std::int32_t const end = state == BadChunk::never_started ? first_bad
                             : state == BadChunk::ran_last    ? std::min(first_bad + 1, b.chunks())
                                                              : b.chunks();
    for (OpenRows const& o : b.slots) {
      if (alone_[o.slot].holds) alone_[o.slot].expected.fail(alone_rows(o), first_bad, end);
    }
    fail_with(b, first_bad, state);
  }
  [[nodiscard]] bool fail_is_refused(ModelBatch const& b) const {
    bool seen = false;
    for (ModelBatch const& x : model_.batches) {
      seen = seen || &x == &b;
      for (OpenRows const& o : x.slots) {
        if (seen && older_has(model_, b, o.slot)) return true;
      }
    }
    return false;
  }
  void fail_with(ModelBatch& b, std::int32_t first_bad, BadChunk state) {
    std::vector<std::size_t> failed;
    Ticket const t = b.ticket;
    Verdict const wanted = model::fail(model_, b, first_bad, state, failed);
    std::vector<Outcome> data(model_.slots.size());
    Outcomes outcomes{data.data(), static_cast<std::int32_t>(data.size()), 0};
    Verdict const is = books_.fail(t, first_bad, state, outcomes);
    expect("fail", is, wanted);
    if (is != Verdict::accepted || is != wanted || !wrong_.empty()) return;
    ++tally.failures;
    if (outcomes.count != static_cast<std::int32_t>(failed.size())) wrong_ = "how many outcomes a failure has";
    for (std::int32_t i = 0; i < outcomes.count && wrong_.empty(); ++i) {
      Outcome const& o = data[static_cast<std::size_t>(i)];
      auto const s = static_cast<std::size_t>(o.slot.index);
      if (o.slot != handle(s) || o.tip != model_.slots[s].tip || o.armed != model_.armed(s)) {
        wrong_ = "the outcome of slot " + std::to_string(s) + ": tip " + std::to_string(o.tip) + ", not " +
                 std::to_string(model_.slots[s].tip);
      }
    }
  }

  // ---- landings ----------------------------------------------------------------------------------------------------

  void roll_back(Op const& op) {
    std::size_t const s = slot_of(op.a);
    Position p = modulo(op.b, model_.slots[s].tip + 2);
    if (op.b % 2 == 0) p = model_.slots[s].tip - modulo(op.c, 6);  // often not far
    if (op.d % 4 != 0 && p > 0 && p <= model_.slots[s].tip) p = model_.floor(s, p);
    std::vector<ModelPin> const& pins = model_.slots[s].pins;
    if (op.d % 8 == 7 && !pins.empty()) p = pins[op.c % pins.size()].position;  // often far
    Verdict const wanted = model_.nearest(handle(s), p).why;
    expect("can_land", books_.can_land(handle(s), p), wanted);
    expect("roll_back", books_.roll_back(handle(s), p), wanted);
    touch(s);
    if (wanted != Verdict::accepted) return;
    ++tally.roll_backs;
    model_.roll_back(s, p);
    if (alone_[s].holds) alone_[s].expected.roll_back(p);
  }
  void pin(Op const& op) {
    std::size_t const s = slot_of(op.a);
    Position const p = model_.head(s) - 8 + modulo(op.b, 18);
    touch(s);
    Verdict const is = books_.pin(handle(s), p);
    expect("pin", is, model_.pin(handle(s), p));
    tally.pins += is == Verdict::accepted ? 1 : 0;
  }
  void unpin(Op const& op) {
    std::size_t const s = slot_of(op.a);
    std::vector<ModelPin> const& pins = model_.slots[s].pins;
    Position const p = pins.empty() ? modulo(op.b, 9) : pins[op.b % pins.size()].position;
    touch(s);
    Verdict const is = books_.unpin(handle(s), p);
    expect("unpin", is, model_.unpin(handle(s), p));
  }
  [[nodiscard]] Verdict judge_fork(Slot from, Position p, Slot to) const {
    Verdict verdict = model_.nearest(from, p).why;
    if (verdict == Verdict::accepted) verdict = model_.known(to);
    if (verdict != Verdict::accepted) return verdict;
    if (from.index == to.index) return Verdict::same_slot;
    return p > 0 && !model_.all_kept(static_cast<std::size_t>(from.index), p) ? Verdict::live_only : Verdict::accepted;
  }
  void fork(Op const& op) {
    std::size_t const from = slot_of(op.a);
    std::size_t const to = slot_of(op.b);
    Position p = modulo(op.c, model_.slots[from].tip + 2);
    if (op.d % 4 != 0 && p <= model_.slots[from].tip) p = model_.floor(from, p);
    Verdict const wanted = judge_fork(handle(from), p, handle(to));
    Slot handle_to = handle(to);
    Verdict const is = books_.fork(handle(from), p, handle_to);
    expect("fork", is, wanted);
    touch(from);
    touch(to);
    if (is != Verdict::accepted || is != wanted) return;
    ++tally.forks;
    alone_[from].holds = alone_[to].holds = false;
    model_.fork(from, p, to);
    engine_.fork(from, p, to);
    if (handle_to != handle(to)) wrong_ = "the handle of a forked slot";
  }
  void clear(std::size_t s) {
    Slot slot = handle(s);
    model_.clear(s);
    alone_[s].expected.clear();
    touch(s);
    expect("clear", books_.clear(slot), Verdict::accepted);
    if (slot != handle(s)) wrong_ = "the handle of a cleared slot";
    engine_.history[s].truncate(0);
  }
  void ask(Op const& op) {
    std::size_t const s = slot_of(op.a);
    Position const end = model_.head(s) + 1 + modulo(op.b, 12);
    Position const from = modulo(op.c, end);
    if (books_.next_cut(handle(s), from, end) != model_.next_cut(s, from, end)) wrong_ = "next_cut";
    std::vector<Position> wanted, positions, lost, lost_wanted;
    Landing best;
    Slot best_slot;
    for (std::size_t i = 0; i < model_.slots.size(); ++i) {
      wanted.push_back(modulo(op.d + static_cast<std::uint32_t>(i) * op.b, 60) - 1);
      if (wanted.back() < 0) continue;
      Landing const l = model_.nearest(handle(i), wanted.back());
      if (l.position <= 0 || l.position <= best.position) continue;
      best = l;
      best_slot = handle(i);
    }
    Landing is;
    auto const n = static_cast<std::int32_t>(wanted.size());
    if (books_.nearest_over(wanted.data(), n, is) != best_slot || !same(is, best)) wrong_ = "nearest_over";
    for (Position p = -1; p <= model_.slots[s].tip + 1; ++p) {
      positions.push_back(p);
      bool const there = p >= 0 && p <= model_.slots[s].tip && (p == model_.slots[s].tip || model_.lands(s, p));
      if (!there) lost_wanted.push_back(p);
    }
    lost.resize(positions.size());
    lost.resize(static_cast<std::size_t>(
        books_.lost(handle(s), positions.data(), static_cast<std::int32_t>(positions.size()), lost.data())));
    if (lost != lost_wanted) wrong_ = "the lost landings";
  }

  void save_and_load(Op const& op);  // walk_saved.hpp

  // ---- calls that must be refused: walk_refused.hpp ---------------------------------------------------------------

  void refused(Op const& op);
  void refused_chunk(Op const& op, ModelBatch* b);
  void refused_commit(Op const& op, ModelBatch* b, Slot bad);
  void refused_begin(Op const& op, Slot bad);

  BooksOptions options_;
  Books books_;
  Model model_;
  Engine engine_;
  Checker checker_;
  std::vector<Alone> alone_;
  std::mt19937 random_;
  std::uint32_t token_ = 0;
  std::vector<bool> touched_;
  std::string wrong_;
};

/// Does a case; empty where all agrees after every step, else the first step after which something differs.
inline std::string replay(Case const& c, Tally* tally = nullptr) try {
  Walk walk(c.configuration);
  std::string wrong;
  for (std::size_t i = 0; i < c.ops.size() && wrong.empty(); ++i) {
    wrong = walk.step(c.ops[i]);
    if (!wrong.empty()) wrong = "step " + std::to_string(i) + ": " + wrong;
    ++walk.tally.steps;
  }
  if (tally != nullptr) *tally += walk.tally;
  return wrong;
} catch (std::exception const& e) { return std::string("an exception: ") + e.what(); }

}  // namespace model

#include "walk_refused.hpp"
#include "walk_saved.hpp"
