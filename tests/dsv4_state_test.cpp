// Saving and loading a DSV4 memory: what comes back is what was there, whatever the other memory is made like; a model
// of another shape is refused.
#include <rollback/dsv4/state.hpp>

#include "catch.hpp"
#include "dsv4_engine.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dsv4_engine;

namespace {

MemoryOptions options_of(std::int32_t per_token, std::int32_t aligned, Position quantum, std::int32_t slots = 3) {
  MemoryOptions o = small_options();
  o.slots = slots;
  o.per_token = per_token;
  o.aligned = aligned;
  o.quantum = quantum;
  o.max_rows = 24;
  o.max_chunk_rows = 10;
  return o;
}

/// Slot 1 at `tip`, not at a boundary, with some going back on the way; the others elsewhere.
Engine made(MemoryOptions const& options, Position tip) {
  Engine engine(options);
  for (std::size_t s = 0; s < static_cast<std::size_t>(options.slots); ++s) {
    engine.feed(s, static_cast<std::size_t>(tip) - 20 + 13 * s, static_cast<std::uint32_t>(s));
    Position const back = engine.books().landing_before(engine.slot(s), engine.tip(s));
    REQUIRE(engine.roll_back(s, back) == Verdict::accepted);
  }
  engine.feed(1, static_cast<std::size_t>(tip - engine.tip(1)), 5);
  return engine;
}

}  // namespace

TEST_CASE("a slot is saved at its tip and at every landing, and comes back in a memory made otherwise") {
  MemoryOptions entry_copies = options_of(5, 3, 48, 2);
  entry_copies.entry_copy = true;
  entry_copies.steps_in_flight = 3;
  entry_copies.pins = 2;
  MemoryOptions raw_rows = options_of(2, 1, 16, 4);
  raw_rows.raw_rows = 5 + 10 + 2;
  std::vector<MemoryOptions> const others{options_of(3, 2, 16), options_of(0, 0, 16, 2),
                                          options_of(7, 9, 8),  options_of(0, 4, 128),
                                          entry_copies,         raw_rows};
  Engine const source = made(options_of(3, 4, 16), 301);
  std::vector<Position> at = landings(source, 1);
  REQUIRE(at.size() >= 6);
  at.push_back(source.tip(1));
  at.push_back(0);
  for (Position p : at) {
    for (bool history : {false, true}) {
      Blob const blob = saved(source, 1, p, {history, p % 2 == 0});
      for (std::size_t o = 0; o < others.size(); ++o) {
        for (LoadAs as : {LoadAs::state, LoadAs::landing}) {
          CAPTURE(p, history, o, as == LoadAs::landing);
          Engine other(others[o]);
          other.feed(0, 137, 40);
          other.feed(1, 60, 41);
          std::vector<float> const others_values = values_of_slot(other, 0);
          Verdict const verdict = load(other, 1, blob, source.tokens[1], p, as);
          REQUIRE(values_of_slot(other, 0) == others_values);
          if (verdict == Verdict::no_free_pin) {  // neither a tier nor a pin of the other memory can keep it
            REQUIRE(as == LoadAs::landing);
            REQUIRE(others[o].pins == 0);
            equal_to_fresh_run(other, 1, 3);
            continue;
          }
          REQUIRE(verdict == Verdict::accepted);
          REQUIRE(other.books().is_armed(other.slot(1)) == (as == LoadAs::landing && p > 0));
          if (history && o == 2 && p == source.tip(1) && as == LoadAs::state) {
            REQUIRE(landings(other, 1) == landings(source, 1));  // deeper in both tiers, of half the quantum
          }
          equal_to_fresh_run(other, 1, p % 3 == 0 ? 0 : 30);
          equal_to_fresh_run(other, 0, 9);
        }
      }
    }
  }
}

TEST_CASE("every landing that comes along is one") {
  Engine const source = made(options_of(4, 5, 16), 301);
  Blob const blob = saved(source, 1, 301);
  for (Position p : landings(source, 1)) {
    CAPTURE(p);
    Engine other(options_of(6, 8, 16));
    REQUIRE(load(other, 2, blob, source.tokens[1], 301) == Verdict::accepted);
    REQUIRE(landings(other, 2) == landings(source, 1));
    REQUIRE(other.roll_back(2, p) == Verdict::accepted);
    equal_to_fresh_run(other, 2, 21);
  }
}

TEST_CASE("a state that several places keep is loaded into all of them") {
  MemoryOptions options = options_of(4, 3, 16);
  options.pins = 2;
  options.raw_rows = 200;
  Engine source(options);
  for (Position p : {304, 306}) REQUIRE(source.books().pin(source.slot(1), p) == Verdict::accepted);
  source.feed(1, 306, 1);
  source.feed(1, 1, 2);
  for (Position tip : {Position{307}, Position{306}}) {  // 306 is live as well, then
    if (tip == 306) REQUIRE(source.roll_back(1, 306) == Verdict::accepted);
    Blob const blob = saved(source, 1, tip);
    for (Position p : {Position{304}, Position{306}}) {
      struct Left {
        std::size_t more;  // tokens fed before going back
        bool pinned;
      };
      for (Left const left : {Left{0, true}, Left{9, false}, Left{9, true}, Left{90, true}}) {
        if (!left.pinned && p == 306) continue;  // no boundary: only the pin keeps it that long
        CAPTURE(tip, p, left.more, left.pinned);
        Engine other(options);
        REQUIRE(load(other, 0, blob, source.tokens[1], tip) == Verdict::accepted);
        other.feed(0, left.more, 3);
        if (!left.pinned) REQUIRE(other.books().unpin(other.slot(0), p) == Verdict::accepted);
        REQUIRE(other.roll_back(0, p) == Verdict::accepted);
        equal_to_fresh_run(other, 0, 12);
      }
    }
  }
}

TEST_CASE("saved, loaded and saved again, a slot has the same bytes, with pins and an armed restore") {
  MemoryOptions options = options_of(3, 4, 16);
  options.pins = 2;
  for (Position tip : {Position{37}, Position{128}, Position{256}, Position{301}}) {
    Engine source = made(options, tip);
    REQUIRE(source.books().pin(source.slot(1), tip) == Verdict::accepted);
    source.feed(1, 7, 6);
    for (bool armed : {false, true}) {
      if (armed) REQUIRE(source.roll_back(1, tip) == Verdict::accepted);
      CAPTURE(tip, armed);
      REQUIRE(source.books().is_armed(source.slot(1)) == armed);
      Blob const blob = saved(source, 1, source.tip(1));
      Engine other = made(options, 90);
      REQUIRE(load(other, 0, blob, source.tokens[1], source.tip(1)) == Verdict::accepted);
      REQUIRE(saved(other, 0, source.tip(1)) == blob);
      REQUIRE(other.books().is_pinned(other.slot(0), tip));
    }
  }
}

TEST_CASE("the bytes depend on the tokens alone, not on chunks, places or other slots") {
  MemoryOptions options = options_of(0, 2, 16, 1);
  Engine whole(options);
  whole.feed(0, 300, 3);
  options.slots = 4;
  options.max_chunk_rows = 3;
  options.entry_copy = true;
  Engine cut(options);
  for (std::size_t s : {0U, 1U, 3U}) cut.feed(s, 50 + 40 * s, 8);
  cut.feed(2, 272, 3);
  cut.feed(2, 20, 4);
  REQUIRE(cut.roll_back(2, 272) == Verdict::accepted);
  Tokens const all = tokens_of(300, 3);
  cut.feed(2, Tokens(all.begin() + 272, all.end()));
  REQUIRE(saved(cut, 2, 300) == saved(whole, 0, 300));
  REQUIRE(saved(cut, 2, 288) == saved(whole, 0, 288));
}

TEST_CASE("a state of another model is refused and changes nothing") {
  ModelShape const shape = small_shape({0, 4, 128, 4});
  MemoryOptions const options = options_of(3, 2, 16);
  Engine source(options, shape);
  source.feed(0, 150, 1);
  Blob const blob = saved(source, 0, 150);
  auto const refused = [&](ModelShape const& other_shape, MemoryOptions const& other_options) {
    Engine other(other_options, other_shape);
    other.feed(0, 40, 2);
    std::vector<float> const before = values_of_slot(other, 0);
    REQUIRE(load(other, 0, blob, source.tokens[0], 150) == Verdict::other_layout);
    REQUIRE(values_of_slot(other, 0) == before);
    REQUIRE(other.tip(0) == 40);
  };
  for (std::vector<int> const& ratios : {std::vector<int>{4, 0, 128, 4},
                                         {0, 4, 4, 128},
                                         {0, 4, 128},
                                         {0, 4, 4, 4},
                                         {0, 4, 128, 128},
                                         {0, 0, 128, 128},
                                         {0, 0, 0, 0}}) {
    ModelShape other = shape;
    other.ratios = ratios;
    refused(other, options);
  }
  ModelShape other = shape;
  other.head_width = 12;
  refused(other, options);
  other = shape;
  other.rotary_width = 2;
  refused(other, options);
  other = shape;
  other.indexer_width = 8;
  refused(other, options);
  other = shape;
  other.window = 7;
  refused(other, options);
  MemoryOptions stored = options;
  stored.hadamard = false;
  refused(shape, stored);
  stored = options;
  stored.rounding = true;
  refused(shape, stored);

  MemoryLayout const weights(source.memory, 5);  // other weights of the same shape
  Slot slot = source.slot(0);
  REQUIRE(rollback::dsv4::load(source.memory, slot, weights, LoadAs::state, Reader{blob}) == Verdict::other_layout);
  REQUIRE(source.tip(0) == 150);
}

TEST_CASE("the fingerprint of a model is the one that is documented") {
  Memory const memory(small_shape({0, 4, 128}), small_options());
  rollback::Checksum checksum;
  checksum.reset(17);
  unsigned char const bytes[] = {4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 128, 0, 0, 0};
  checksum.update(bytes, sizeof bytes);
  MemoryLayout const layout(memory, 17);
  REQUIRE(layout.state_layout().model == checksum.digest());
}

TEST_CASE("an engine with its own tensors finds every saved row by tensor and offset") {
  using rollback::StateRows;
  ModelShape const shape = small_shape({0, 4, 128, 4});
  MemoryOptions const options = options_of(3, 2, 16);
  std::vector<rollback::dsv4::Tensor> const list = Memory::tensors(shape, options);
  Engine engine(options, shape);
  engine.feed(0, 40, 2);
  engine.feed(1, 290, 1);
  std::vector<std::vector<unsigned char>> copies;  // of tensors, as another address space would have them
  for (rollback::dsv4::Tensor const& t : list) {
    auto const* const first = reinterpret_cast<unsigned char const*>(engine.memory.data(t));
    copies.emplace_back(first, first + t.bytes);
  }
  struct Sink {
    MemoryLayout const& layout;
    std::vector<std::vector<unsigned char>> const& tensors;
    Blob blob;
    bool bytes(void const* data, std::size_t size) {
      auto const* const first = static_cast<unsigned char const*>(data);
      blob.insert(blob.end(), first, first + size);
      return true;
    }
    bool rows(StateRows const& rows, rollback::Checksum& checksum) {
      std::size_t const size = static_cast<std::size_t>(rows.count) * rows.row_bytes;
      std::vector<unsigned char> const& tensor = tensors[layout.tensor(rows)];
      std::size_t const offset = static_cast<std::size_t>(rows.first[0]) * rows.row_bytes;
      REQUIRE(offset + size <= tensor.size());
      checksum.update(tensor.data() + offset, size);
      return bytes(tensor.data() + offset, size);
    }
  };
  MemoryLayout const first(engine.memory);
  MemoryLayout const layout = first;  // a copy stands on its own
  Sink sink{layout, copies, {}};
  REQUIRE(rollback::save(engine.books(), engine.slot(1), 290, layout.state_layout(), {}, sink) == Verdict::accepted);
  REQUIRE(sink.blob == saved(engine, 1, 290));
}

TEST_CASE("a model that lacks compressors is saved and loaded") {
  for (std::vector<int> const& ratios : {std::vector<int>{0, 0}, {4}, {128, 0}}) {
    CAPTURE(ratios.front());
    Engine source(options_of(3, 2, 16), small_shape(ratios));
    source.feed(1, 150, 1);
    for (Position p : {Position{150}, Position{149}, Position{144}}) {
      Engine other(options_of(2, 3, 16), small_shape(ratios));
      REQUIRE(load(other, 0, saved(source, 1, p), source.tokens[1], p) == Verdict::accepted);
      equal_to_fresh_run(other, 0, 20);
    }
  }
}
