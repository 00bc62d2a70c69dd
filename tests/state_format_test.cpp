// The bytes of a saved state are those that docs/state-format.md tells, written here by hand; and a header that says
// otherwise is refused by name.
#include "catch.hpp"
#include "toy_state.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

using namespace toy;
using rollback::LoadAs;
using rollback::StateRows;

namespace {

/// Ends with the fields of a header, little-endian, and with rows of the toy engine.
struct Written {
  Engine const& engine;
  Blob blob;
  std::uint64_t sections = 0;

  void u(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) blob.push_back(static_cast<unsigned char>(value >> (8 * i)));
  }
  void u32(std::initializer_list<std::uint64_t> values) {
    for (std::uint64_t v : values) u(v, 4);
  }
  void u64(std::initializer_list<std::uint64_t> values) {
    for (std::uint64_t v : values) u(v, 8);
  }
  void two_layers() {
    u32({2});
    u64({sizeof(Row) / 2, sizeof(Row) / 2});
  }
  void checksum(std::size_t begin, std::uint64_t seed) {
    rollback::Checksum sum;
    sum.reset(seed);
    sum.update(blob.data() + begin, blob.size() - begin);
    u64({sum.digest()});
  }
  /// Both layers of rows, one section each.
  void rows(StateRows::Store store, std::int32_t index, std::initializer_list<std::int64_t> numbers) {
    for (std::int32_t layer = 0; layer < 2; ++layer) {
      StateRows at;
      at.store = store;
      at.index = index;
      at.layer = layer;
      at.row_bytes = sizeof(Row) / 2;
      std::size_t const begin = blob.size();
      for (std::int64_t row : numbers) {
        unsigned char const* const bytes = state_row(const_cast<Storage&>(engine.storage), at, row);
        blob.insert(blob.end(), bytes, bytes + at.row_bytes);
      }
      checksum(begin, ++sections);
    }
  }
};

/// FOLD, overwritten in place, and RING8, a row a token, in blocks of 4 with overlap; a window of 3 rows.
EngineOptions made_for() {
  return engine_options({with(fold(), 0, 4, 2), with(ring8(), 0, 4, 2)}, 1, 8, 4, {{"raw", 3, 16}});
}

}  // namespace

TEST_CASE("a saved state is what its format says, byte by byte") {
  Engine engine(made_for());
  for (int i = 0; i < 3; ++i) engine.feed(0, 3, 3);
  REQUIRE(engine.tip(0) == 9);
  REQUIRE(saved_landings(engine, 0, 9) == std::vector<Position>{8, 4});
  Blob blob;
  REQUIRE(save(engine, 0, 9, blob) == Verdict::accepted);

  rollback::RowGeometry const ring = engine.books.component(1).geometry;
  REQUIRE((ring.rows == 8 && ring.block == 4 && ring.overlap));
  rollback::RowGeometry const plane = engine.books.component(0).geometry;
  REQUIRE((plane.block == 0 && !plane.overlap && !engine.books.component(0).states_inside_chunk));

  Written w{engine, {}};
  for (char c : std::string("rollback")) w.blob.push_back(static_cast<unsigned char>(c));
  w.u32({1, 1});  // version; each section has its checksum
  w.u64({7});     // model
  w.u32({2, 1});  // components, windows
  w.u32({static_cast<std::uint64_t>(plane.rows), 0, 0});
  w.u64({0});  // empty_at
  w.two_layers();
  w.u32({0});  // no cache
  w.u32({8, 4, 3});
  w.u64({0});
  w.two_layers();
  w.two_layers();
  w.u64({3});
  w.two_layers();
  w.u64({blob.size(), 9, 2});  // the lowest landing, 4, needs the rows 2 and 3
  w.u64({2, 8});
  w.u32({0});
  w.u64({4});
  w.u32({0});
  w.checksum(0, 0);

  using Store = StateRows::Store;
  RowMap const& fold_map = engine.maps[0];
  RowMap const& ring_map = engine.maps[1];
  auto const kept = [&](RowMap const& map, std::int32_t component, Position p, std::int64_t row) {
    rollback::StatePlaces places;
    REQUIRE(engine.books.state_at(engine.slots[0], p, component, map, places) == Verdict::accepted);
    return places.rows[0] + row;
  };
  REQUIRE(plane.rows == 1);
  w.rows(Store::state, 0, {kept(fold_map, 0, 9, 0)});
  w.rows(Store::state, 1, {4, 5, 6, 7, 0});  // the rows from the block before 9's on: positions 4 to 8
  w.rows(Store::cache, 1, {ring_map.cache, ring_map.cache + 1});
  w.rows(Store::window, 0, {2, 3, 4, 5, 6, 7, 8});
  w.rows(Store::state, 0, {kept(fold_map, 0, 8, 0)});
  std::int64_t const at_8 = kept(ring_map, 1, 8, 0);
  w.rows(Store::state, 1, {at_8 + 4, at_8 + 5, at_8 + 6, at_8 + 7});
  w.rows(Store::state, 0, {kept(fold_map, 0, 4, 0)});
  std::int64_t const at_4 = kept(ring_map, 1, 4, 0);
  w.rows(Store::state, 1, {at_4, at_4 + 1, at_4 + 2, at_4 + 3});

  REQUIRE(w.blob.size() == blob.size());
  for (std::size_t i = 0; i < blob.size(); ++i) {
    CAPTURE(i);
    REQUIRE(blob[i] == w.blob[i]);
  }
}

TEST_CASE("other bytes at the start, another version and too long a context are refused by name") {
  EngineOptions o = made_for();
  o.context = 64;
  Engine source(o);
  for (int i = 0; i < 4; ++i) source.feed(0, 5, 5);
  Blob blob;
  REQUIRE(save(source, 0, 20, blob) == Verdict::accepted);
  auto const verdict = [&](Engine& engine, Blob const& bytes) {
    ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
    StateSource checked{engine.storage, bytes};
    Verdict const would = rollback::check(engine.books, toy.layout, LoadAs::state, checked);
    Slot const before = engine.slots[0];
    StateSource read{engine.storage, bytes};
    Verdict const loaded = rollback::load(engine.books, engine.slots[0], toy.layout, LoadAs::state, read);
    REQUIRE(loaded == would);
    if (loaded != Verdict::accepted) REQUIRE(engine.slots[0] == before);
    return loaded;
  };
  Engine other(o);
  other.feed(0, 7, 7);
  Blob bad = blob;
  bad[3] = 'L';
  REQUIRE(verdict(other, bad) == Verdict::not_a_state);
  for (int version : {0, 2, 255}) {
    bad = blob;
    bad[8] = static_cast<unsigned char>(version);
    REQUIRE(verdict(other, bad) == Verdict::unknown_version);
  }
  REQUIRE(other.tip(0) == 7);
  REQUIRE(other.check(0) == "");
  for (Position context : {19, 20}) {
    EngineOptions shorter = o;
    shorter.context = context;
    shorter.books.max_context = context;
    Engine engine(shorter);
    REQUIRE(verdict(engine, blob) == (context == 20 ? Verdict::accepted : Verdict::beyond_context));
  }
}

#if defined(__cpp_exceptions)
TEST_CASE("a source that throws leaves the slot as it was, or empty with a new generation") {
  Engine source(made_for());
  for (int i = 0; i < 3; ++i) source.feed(0, 3, 3);
  Blob blob;
  REQUIRE(save(source, 0, 9, blob) == Verdict::accepted);
  struct Throwing {
    StateSource source;
    int left;
    void pass() {
      if (left-- == 0) throw left;
    }
    bool bytes(void* data, std::size_t size) { return pass(), source.bytes(data, size); }
    bool rows(StateRows const& rows, rollback::Checksum& sum) { return pass(), source.rows(rows, sum); }
  };
  int unchanged = 0;
  int emptied = 0;
  for (int calls = 0;; ++calls) {
    CAPTURE(calls);
    Engine engine(made_for());
    engine.feed(0, 7, 4);
    ToyLayout const toy(engine.books, engine.maps, engine.window_maps);
    Slot const before = engine.slots[0];
    try {
      Throwing io{{engine.storage, blob}, calls};
      Verdict const loaded = rollback::load(engine.books, engine.slots[0], toy.layout, LoadAs::state, io);
      REQUIRE(loaded == Verdict::accepted);
      break;
    } catch (int) {}
    bool const same = engine.slots[0] == before;
    (same ? unchanged : emptied) += 1;
    REQUIRE(engine.books.tip(engine.slots[0]) == (same ? 7 : 0));
    if (!same) REQUIRE(listed(engine, 0).empty());
    if (!same) engine.history[0].truncate(0), engine.expected[0].clear();
    engine.feed(0, 4, 4);
    REQUIRE(engine.check(0) == "");
  }
  CHECK(unchanged > 10);
  CHECK(emptied > 10);
}
#endif
