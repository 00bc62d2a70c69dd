// One check at work: calls a memory, writes every call down, and compares what it answers with what must be so.
#pragma once

#include <rollback/testing/memory.hpp>
#include <rollback/testing/promised.hpp>
#include <rollback/testing/report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

/// How the suite runs.
struct Options {
  std::uint64_t seed = 1;           // of the tokens and of the random walk
  Position max_tokens = 4096;       // checks that need a longer sequence are skipped
  std::int32_t steps = 400;         // of the random walk
  std::vector<std::string> only;    // the checks to run, by id; empty: all
  std::int32_t reference_rows = 0;  // rows of a call that feeds a reference; 0: as many as a call takes
  std::function<bool(Bytes const& seen, Bytes const& reference)> equal;  // empty: byte for byte
};

/// What a check works with. It remembers, for every slot, the tokens that must be in and what they emitted, and holds
/// the memory to it after every call. After the first finding nothing is called any more and every call answers no.
class Session {
 public:
  Session(Factory make, Options const& options) : make_(std::move(make)), options_(options) { restart(); }
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  /// A new memory, and the same tokens over again.
  void restart() {
    if (stopped()) return;
    trace_.clear();
    random_ = options_.seed;
    slots_.clear();
    if (!guarded("making a memory", memory_, make_)) return;
    if (!memory_.clear || !memory_.feed || !memory_.tip || !memory_.can || !memory_.roll || !memory_.nearest ||
        !memory_.state) {
      found("all callbacks that are needed", "an empty function");
      return;
    }
    char const* const wrong = wrong_with(memory_.description);
    if (wrong != nullptr) found("a description that can be", wrong);
    if (!stopped()) slots_.assign(static_cast<std::size_t>(description().slots), State(memory_.description));
  }

  // ---- what the check may ask for ----------------------------------------------------------------------------------

  [[nodiscard]] Memory const& memory() const { return memory_; }
  [[nodiscard]] Description const& description() const { return memory_.description; }
  [[nodiscard]] Options const& options() const { return options_; }
  [[nodiscard]] Reach reach() const { return reach_of(memory_.description); }
  [[nodiscard]] Position tip(std::int32_t slot) const {
    return stopped() ? 0 : static_cast<Position>(at(slot).tokens.size());
  }
  [[nodiscard]] bool armed(std::int32_t slot) const { return !stopped() && at(slot).armed; }
  [[nodiscard]] bool promised(std::int32_t slot, Position p) const {
    return !stopped() && at(slot).promised.lands(p, tip(slot));
  }
  [[nodiscard]] bool stopped() const { return result.status != Status::passed; }
  /// A number in [0, n).
  [[nodiscard]] std::int64_t below(std::int64_t n) {
    random_ += 0x9e3779b97f4a7c15u;
    std::uint64_t x = random_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::int64_t>(((x ^ (x >> 31)) >> 1) % static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)));
  }
  /// Whether the check can go on; else it counts as skipped, for that reason.
  [[nodiscard]] bool needs(bool has, std::string const& what) {
    if (stopped()) return false;
    if (has) return true;
    result.status = Status::skipped;
    result.text = "needs " + what;
    return false;
  }
  [[nodiscard]] bool needs_slots(std::int32_t n) {
    return needs(description().slots >= n, "at least " + std::to_string(n) + " slots");
  }
  [[nodiscard]] bool needs_tokens(Position n) {
    Position const context = description().max_context;
    bool const fits = n <= options_.max_tokens && (context == 0 || n <= context);
    return needs(fits, "a sequence of " + std::to_string(n) + " tokens");
  }

  // ---- findings ----------------------------------------------------------------------------------------------------

  void found(std::string const& expected, std::string const& seen) {
    if (stopped()) return;
    result.status = Status::failed;
    result.text = "expected " + expected + "; seen: " + seen;
    result.trace = trace_;
  }
  bool expect(bool holds, std::string const& expected, std::string const& seen) {
    if (!holds) found(expected, seen);
    return holds && !stopped();
  }
  void note(std::string call) { trace_.push_back(std::move(call)); }

  // ---- calls -------------------------------------------------------------------------------------------------------

  /// Feeds `n` new tokens, in calls of at most `call` rows (0: as many as a call takes) and chunks of `chunk`.
  void feed(std::int32_t slot, Position n, std::int32_t chunk = 0, std::int32_t call = 0) {
    feed_tokens(slot, new_tokens(n), chunk, call);
  }
  void feed_tokens(std::int32_t slot, std::vector<Token> const& tokens, std::int32_t chunk = 0, std::int32_t call = 0) {
    std::int32_t const most = description().max_rows;
    auto const width = static_cast<std::size_t>(call > 0 ? std::min(call, most) : most);
    for (std::size_t first = 0; first < tokens.size() && !stopped(); first += width) {
      auto const from = tokens.begin() + static_cast<std::ptrdiff_t>(first);
      auto const to = from + static_cast<std::ptrdiff_t>(std::min(width, tokens.size() - first));
      call_rows({slot, tip(slot), {from, to}, chunk}, -1);
    }
  }
  /// Verifies `n` new tokens of which the first `accepted` stand.
  void verify(std::int32_t slot, std::int32_t n, std::int32_t accepted, std::int32_t chunk = 0) {
    call_rows({slot, tip(slot), new_tokens(n), chunk}, accepted);
  }
  [[nodiscard]] std::vector<Token> new_tokens(Position n) {
    std::vector<Token> tokens;
    for (Position i = 0; i < n; ++i) tokens.push_back(static_cast<Token>(below(INT32_MAX)));
    return tokens;
  }
  /// One call of `batch`: a new token for each slot named, in this order; -1 is padding.
  void batch(std::vector<std::int32_t> const& slots) {
    std::vector<Row> rows;
    std::map<std::int32_t, std::vector<Token>> added;
    for (std::int32_t s : slots) {
      Row row{s, -7, static_cast<Token>(below(INT32_MAX))};
      if (s >= 0) {
        row.position = tip(s) + static_cast<Position>(added[s].size());
        added[s].push_back(row.token);
      }
      rows.push_back(row);
    }
    bool ran = false;
    Outputs outputs;
    std::string call = "batch of slots";
    for (std::int32_t s : slots) call += " " + std::to_string(s);
    note(call);
    if (!guarded("batch", ran, [&] { return memory_.batch(rows, outputs); })) return;
    if (!expect(ran, "the batch to run", "it was refused")) return;
    if (!outputs.empty() && !expect(outputs.size() == rows.size(), "an output a row", count(outputs.size()))) return;
    for (auto const& [s, tokens] : added) {
      Outputs of_slot;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].slot == s && !outputs.empty()) of_slot.push_back(outputs[i]);
      }
      took(s, tokens, of_slot, tokens.size());
    }
    for (std::int32_t s = 0; s < description().slots; ++s) check_tip(s, "batch");
  }

  /// Asks, then acts; both must agree with each other and with the promise. @return whether it was accepted
  bool roll(std::int32_t slot, Position p) {
    bool can = false;
    bool did = false;
    note("roll(slot " + std::to_string(slot) + ", " + std::to_string(p) + ") at tip " + std::to_string(tip(slot)));
    if (!guarded("can", can, [&] { return memory_.can(slot, p); })) return false;
    if (!guarded("roll", did, [&] { return memory_.roll(slot, p); })) return false;
    std::string const where = "position " + std::to_string(p) + " at tip " + std::to_string(tip(slot));
    expect(can == did, "can and roll to agree on " + where,
           can ? "can says yes, roll refuses" : "roll did it, can says no");
    if (p < 0) expect(!did, "a refusal of " + where, "it was accepted");
    expect(did || !promised(slot, p), where + " to be reached, as was promised", "a refusal");
    if (!stopped() && did && p < tip(slot)) {
      State& s = at(slot);
      s.tokens.resize(static_cast<std::size_t>(p));
      s.outputs.resize(static_cast<std::size_t>(p));
      s.promised.land(p);
      s.armed = p > 0;
    }
    check_tip(slot, "roll");
    return did && !stopped();
  }
  [[nodiscard]] bool can(std::int32_t slot, Position p) {
    bool answer = false;
    return guarded("can", answer, [&] { return memory_.can(slot, p); }) && answer;
  }
  [[nodiscard]] Position nearest(std::int32_t slot, Position wanted) {
    Position p = -1;
    return guarded("nearest", p, [&] { return memory_.nearest(slot, wanted); }) ? p : -1;
  }
  void clear(std::int32_t slot) {
    bool did = false;
    note("clear(slot " + std::to_string(slot) + ")");
    if (!guarded("clear", did, [&] { return memory_.clear(slot); })) return;
    if (!expect(did, "clear to be accepted", "a refusal")) return;
    at(slot) = State(memory_.description);
    check_tip(slot, "clear");
  }
  [[nodiscard]] Bytes save(std::int32_t slot) {
    Bytes bytes;
    note("save(slot " + std::to_string(slot) + ")");
    guarded("save", bytes, [&] { return memory_.save(slot); });
    return bytes;
  }
  /// Loads bytes that were saved of a slot with these tokens. @return whether it was accepted
  bool load(std::int32_t slot, Bytes const& bytes, std::vector<Token> const& tokens) {
    bool did = false;
    note("load(slot " + std::to_string(slot) + ", " + std::to_string(bytes.size()) + " bytes)");
    if (!guarded("load", did, [&] { return memory_.load(slot, bytes); })) return false;
    if (did) replaced(slot, tokens, true);
    check_tip(slot, "load");
    return did && !stopped();
  }
  bool copy(std::int32_t source, std::int32_t destination) {
    bool did = false;
    note("copy(slot " + std::to_string(source) + " to slot " + std::to_string(destination) + ")");
    if (!guarded("copy", did, [&] { return memory_.copy(source, destination); })) return false;
    if (did) replaced(destination, tokens(source), true);
    check_tip(source, "copy");
    check_tip(destination, "copy");
    return did && !stopped();
  }
  /// A feed of `n` tokens that fails after `rows_run` of them. The slot is then where it says it is.
  void fail(std::int32_t slot, std::int32_t n, std::int32_t rows_run) {
    note("fail_next(" + std::to_string(rows_run) + ")");
    bool ran = false;
    Outputs outputs;
    Rows const rows{slot, tip(slot), new_tokens(n), 0};
    note(text(rows) + ", to fail");
    int none = 0;
    auto const arm = [&] { return memory_.fail_next(rows_run), 0; };
    if (!guarded("fail_next", none, arm)) return;
    if (!guarded("feed", ran, [&] { return memory_.feed(rows, outputs); })) return;
    if (!expect(!ran, "the feed to answer that it failed", "it says that it ran")) return;
    Position now = -1;
    if (!guarded("tip", now, [&] { return memory_.tip(slot); })) return;
    Position const before = tip(slot);
    bool const honest = rows_run == 0 ? now == before : now >= 0 && now <= before + rows_run;
    std::string const range = rows_run == 0 ? std::to_string(before) : "at most " + std::to_string(before + rows_run);
    if (!expect(honest, "tip " + range + " after the failure", std::to_string(now))) return;
    std::vector<Token> in = tokens(slot);
    in.insert(in.end(), rows.tokens.begin(), rows.tokens.end());
    in.resize(static_cast<std::size_t>(now));
    if (rows_run == 0) return;
    replaced(slot, in, true);
  }
  [[nodiscard]] std::vector<Token> tokens(std::int32_t slot) const {
    return stopped() ? std::vector<Token>() : at(slot).tokens;
  }
  /// Whether the memory told what rows of the slot emitted.
  [[nodiscard]] bool emits(std::int32_t slot) const {
    if (stopped()) return false;
    Outputs const& o = at(slot).outputs;
    return std::any_of(o.begin(), o.end(), [](Bytes const& bytes) { return !bytes.empty(); });
  }
  [[nodiscard]] Bytes state(std::int32_t slot) {
    Bytes bytes;
    guarded("state", bytes, [&] { return memory_.state(slot); });
    return bytes;
  }

  // ---- equality ----------------------------------------------------------------------------------------------------

  /// The slot's state and outputs must be those of a new memory that was fed only the tokens that are in. `more` tokens
  /// are fed before; at least one where a restore may have been put off.
  void equal(std::int32_t slot, Position more = 0, std::int32_t chunk = 0) {
    if (!stopped() && at(slot).armed && more == 0) more = 1;
    feed(slot, more, chunk);
    if (stopped()) return;
    State const& s = at(slot);
    Reference const* const r = reference(s.tokens);
    if (r == nullptr) return;
    std::string const where = "slot " + std::to_string(slot) + " at tip " + std::to_string(tip(slot));
    for (std::size_t p = 0; p < s.outputs.size(); ++p) {
      if (s.outputs[p].empty() || r->outputs[p].empty() || same(s.outputs[p], r->outputs[p])) continue;
      found("what position " + std::to_string(p) + " of " + where + " emitted to equal a fresh run", "it differs");
      return;
    }
    if (s.tokens.empty()) return;
    Bytes const now = state(slot);
    if (stopped()) return;
    expect(!now.empty() || emits(slot), "a state of " + where + ", or outputs", "neither: nothing can be compared");
    expect(same(now, r->state), "the state of " + where + " to equal a fresh run", difference(now, r->state));
  }
  void equal_all() {
    for (std::int32_t s = 0; s < description().slots; ++s) equal(s);
  }
  [[nodiscard]] bool same(Bytes const& seen, Bytes const& wanted) const {
    return options_.equal ? options_.equal(seen, wanted) : seen == wanted;
  }
  /// Calls a function of the memory; an exception is a finding. @return whether it came back
  template <class T, class F>
  bool guarded(char const* name, T& out, F const& f) {
    if (stopped()) return false;
#if defined(__cpp_exceptions)
    try {
      out = f();
      return true;
    } catch (std::exception const& e) { found(std::string("no exception from ") + name, e.what()); } catch (...) {
      found(std::string("no exception from ") + name, "one of an unknown type");
    }
    return false;
#else
    static_cast<void>(name);
    out = f();
    return true;
#endif
  }

  Result result;

 private:
  struct State {
    explicit State(Description const& d) : promised(d) {}
    std::vector<Token> tokens;
    Outputs outputs;  // [tokens] empty where not known
    Promised promised;
    bool armed = false;  // a restore may have been put off, so `state` must not be asked
  };
  struct Reference {
    Bytes state;
    Outputs outputs;
  };

  [[nodiscard]] State& at(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] State const& at(std::int32_t slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] static std::string count(std::size_t n) { return std::to_string(n) + " of them"; }
  [[nodiscard]] static std::string difference(Bytes const& seen, Bytes const& wanted) {
    if (seen.size() != wanted.size()) {
      return std::to_string(seen.size()) + " bytes for " + std::to_string(wanted.size());
    }
    auto const first = std::mismatch(seen.begin(), seen.end(), wanted.begin()).first;
    return "byte " + std::to_string(first - seen.begin()) + " of " + std::to_string(seen.size()) + " differs";
  }
  [[nodiscard]] static std::string text(Rows const& rows) {
    return "feed(slot " + std::to_string(rows.slot) + ", positions " + std::to_string(rows.position) + " to " +
           std::to_string(rows.position + static_cast<Position>(rows.tokens.size()) - 1) +
           (rows.chunk_rows > 0 ? ", chunks of " + std::to_string(rows.chunk_rows) : "") + ")";
  }

  // accepted < 0: feed
  void call_rows(Rows const& rows, std::int32_t accepted) {
    if (stopped() || rows.tokens.empty()) return;
    bool const verify = accepted >= 0;
    note(text(rows) + (verify ? ", verified, " + std::to_string(accepted) + " stand" : ""));
    bool ran = false;
    Outputs outputs;
    auto const call = [&] { return verify ? memory_.verify(rows, accepted, outputs) : memory_.feed(rows, outputs); };
    if (!guarded(verify ? "verify" : "feed", ran, call)) return;
    if (!expect(ran, "the rows to run", "they were refused")) return;
    std::size_t const n = rows.tokens.size();
    if (!expect(outputs.empty() || outputs.size() == n, "an output a row", count(outputs.size()))) return;
    took(rows.slot, rows.tokens, outputs, verify ? static_cast<std::size_t>(accepted) : n);
    check_tip(rows.slot, verify ? "verify" : "feed");
  }

  void took(std::int32_t slot, std::vector<Token> const& tokens, Outputs outputs, std::size_t accepted) {
    State& s = at(slot);
    Position const begin = tip(slot);
    auto const end = begin + static_cast<Position>(tokens.size());
    outputs.resize(tokens.size());
    s.tokens.insert(s.tokens.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(accepted));
    s.outputs.insert(s.outputs.end(), outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(accepted));
    s.promised.ran(begin, end, tip(slot), s.armed);
    s.armed = tip(slot) > 0 && tip(slot) < end;
  }

  void replaced(std::int32_t slot, std::vector<Token> const& tokens, bool is_armed) {
    State& s = at(slot);
    s.tokens = tokens;
    s.outputs.assign(tokens.size(), Bytes());
    s.promised.forget(tip(slot));
    s.armed = is_armed && !tokens.empty();
  }

  void check_tip(std::int32_t slot, char const* after) {
    Position now = -1;
    if (!guarded("tip", now, [&] { return memory_.tip(slot); })) return;
    expect(now == tip(slot),
           "tip " + std::to_string(tip(slot)) + " of slot " + std::to_string(slot) + " after " + after,
           std::to_string(now));
  }

  [[nodiscard]] Reference const* reference(std::vector<Token> const& tokens) {
    auto const known = references_.find(tokens);
    if (known != references_.end()) return &known->second;
    Memory fresh;
    if (!guarded("making a memory", fresh, make_)) return nullptr;
    Reference r;
    std::int32_t const most = std::max(fresh.description.max_rows, 1);
    auto const width =
        static_cast<std::size_t>(options_.reference_rows > 0 ? std::min(options_.reference_rows, most) : most);
    for (std::size_t first = 0; first < tokens.size(); first += width) {
      auto const from = tokens.begin() + static_cast<std::ptrdiff_t>(first);
      auto const n = std::min(width, tokens.size() - first);
      Outputs outputs;
      bool ran = false;
      Rows const rows{0, static_cast<Position>(first), {from, from + static_cast<std::ptrdiff_t>(n)}, 0};
      if (!guarded("feed of a fresh memory", ran, [&] { return fresh.feed(rows, outputs); })) return nullptr;
      if (!expect(ran, "a fresh memory to take the surviving tokens", "a refusal of " + text(rows))) return nullptr;
      outputs.resize(n);
      r.outputs.insert(r.outputs.end(), outputs.begin(), outputs.end());
    }
    if (!tokens.empty() && !guarded("state of a fresh memory", r.state, [&] { return fresh.state(0); })) return nullptr;
    return &references_.emplace(tokens, std::move(r)).first->second;
  }

  Factory make_;
  Options const& options_;
  Memory memory_;
  std::vector<State> slots_;
  std::vector<std::string> trace_;
  std::uint64_t random_ = 0;
  std::map<std::vector<Token>, Reference> references_;
};

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
