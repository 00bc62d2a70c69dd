// dsv4::Memory: its tensors, whose they are, where positions lie in them, what a plan has, what it refuses.
#include <rollback/dsv4/memory.hpp>

#include "catch.hpp"
#include "dsv4_small.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using rollback::PlaneTensor;
using rollback::Ticket;
using rollback::Verdict;
using rollback::dsv4::Chunk;
using rollback::dsv4::Compressor;
using rollback::dsv4::Memory;
using rollback::dsv4::Path;
using rollback::dsv4::Tensor;
using namespace dsv4_small;

TEST_CASE("tensors stand layer by layer with the rows and widths of what they hold") {
  MemoryOptions const options = small_options();
  std::vector<Tensor> const list = Memory::tensors(small_shape({0, 4, 128}), options);
  std::int64_t const raw = Memory::raw_rows(small_shape({0, 4, 128}), options);
  std::int64_t const places = 1 + 3 + 1 + 2 + 1;  // live; per-token and aligned, each with a spare
  struct Expected {
    Path path;
    int layer;
    bool scores;
    std::int64_t rows;
    std::int64_t width;
  };
  std::vector<Expected> const expected{
      {Path::window, 0, false, raw, 8},
      {Path::window, 1, false, raw, 8},
      {Path::csa_cache, 1, false, 251, 8},  // 1001 positions, the last block begun
      {Path::csa_state, 1, false, places * 8, 16},
      {Path::csa_state, 1, true, places * 8, 16},
      {Path::lid_cache, 1, false, 251, 4},
      {Path::lid_state, 1, false, places * 8, 8},
      {Path::lid_state, 1, true, places * 8, 8},
      {Path::window, 2, false, raw, 8},
      {Path::hca_cache, 2, false, 8, 8},
      {Path::hca_state, 2, false, places * 128, 8},
      {Path::hca_state, 2, true, places * 128, 8},
  };
  REQUIRE(list.size() == expected.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CAPTURE(i);
    REQUIRE(list[i].path == expected[i].path);
    REQUIRE(list[i].layer == expected[i].layer);
    REQUIRE(list[i].scores == expected[i].scores);
    REQUIRE(list[i].rows == expected[i].rows);
    REQUIRE(list[i].width == expected[i].width);
    REQUIRE(list[i].bytes == static_cast<std::size_t>(2 * list[i].rows * list[i].width) * sizeof(float));
  }
}

TEST_CASE("a memory in the engine's tensors uses them and nothing else") {
  ModelShape const shape = small_shape({0, 4, 128});
  MemoryOptions const options = small_options();
  std::vector<Tensor> const list = Memory::tensors(shape, options);
  std::vector<std::vector<float>> tensors;
  std::vector<float*> data;
  for (Tensor const& t : list) {
    tensors.emplace_back(t.bytes / sizeof(float), 7.0f);
    data.push_back(tensors.back().data());
  }
  Memory memory(shape, options, data);
  std::int64_t const raw = memory.options().raw_rows;
  REQUIRE(memory.raw_row(0, 0, 0) == data[0]);
  REQUIRE(memory.raw_row(1, 1, raw + 3) == data[1] + (raw + 3) * 8);
  REQUIRE(memory.raw_row(2, 0, raw - 1) == data[8] + (raw - 1) * 8);
  REQUIRE(memory.compressed_rows(1, 1) == data[2] + 251 * 8);
  REQUIRE(memory.indexer_rows(1, 1) == data[5] + 251 * 4);
  REQUIRE(memory.compressed_rows(2, 1) == data[9] + 8 * 8);
  REQUIRE(memory.view(Compressor::csa, 1).kv == data[3]);
  REQUIRE(memory.view(Compressor::csa, 1).score == data[4]);
  REQUIRE(memory.view(Compressor::lid, 1).kv == data[6]);
  REQUIRE(memory.view(Compressor::lid, 1).score == data[7]);
  REQUIRE(memory.view(Compressor::hca, 2).kv == data[10]);
  REQUIRE(memory.view(Compressor::hca, 2).score == data[11]);
  REQUIRE(memory.view(Compressor::csa, 0).kv == nullptr);
  REQUIRE(memory.view(Compressor::lid, 2).kv == nullptr);
  REQUIRE(memory.view(Compressor::csa, 1).state_rows == 2 * list[3].rows);
  REQUIRE(memory.view(Compressor::hca, 2).cache_rows == 8);
  std::vector<PlaneTensor> const& lid = memory.state_tensors(Compressor::lid);
  REQUIRE(lid.size() == 2);
  REQUIRE(lid[0].base == reinterpret_cast<std::byte*>(data[6]));
  REQUIRE(lid[1].base == reinterpret_cast<std::byte*>(data[7]));
  REQUIRE(lid[0].row_bytes == 8 * 4);
  for (auto const& tensor : tensors)
    REQUIRE(std::count(tensor.begin(), tensor.end(), 7.0f) == static_cast<std::ptrdiff_t>(tensor.size()));
}

TEST_CASE("pointers of the engine that cannot be tensors are refused") {
  ModelShape const shape = small_shape({0, 4});
  MemoryOptions const options = small_options();
  std::vector<std::vector<float>> tensors;
  std::vector<float*> data;
  for (Tensor const& t : Memory::tensors(shape, options)) {
    tensors.emplace_back(t.bytes / sizeof(float) + 4);
    data.push_back(tensors.back().data());
  }
  std::vector<float*> few(data.begin(), data.end() - 1);
  REQUIRE_THROWS_WITH(Memory(shape, options, few), ContainsSubstring("one pointer a tensor"));
  std::vector<float*> null = data;
  null[2] = nullptr;
  REQUIRE_THROWS_WITH(Memory(shape, options, null), ContainsSubstring("16-byte aligned"));
  std::vector<float*> off = data;
  ++off.back();
  REQUIRE_THROWS_WITH(Memory(shape, options, off), ContainsSubstring("16-byte aligned"));
  REQUIRE_NOTHROW(Memory(shape, options, data));
}

TEST_CASE("a memory's own tensors are zeroed") {
  Memory memory(small_shape({0, 4, 128}), small_options());
  for (int layer = 0; layer < 3; ++layer) {
    for (Position p = 0; p < memory.options().raw_rows; ++p) {
      for (int i = 0; i < 8; ++i) REQUIRE(memory.raw_row(layer, 1, p)[i] == 0.0f);
    }
  }
  Memory::LayerView const& view = memory.view(Compressor::hca, 2);
  for (std::int64_t i = 0; i < view.state_rows * 8; ++i) REQUIRE(view.score[i] == 0.0f);
}

TEST_CASE("compressors that a model lacks are no components") {
  Memory const all(small_shape({0, 4, 128}), small_options());
  REQUIRE(all.component(Compressor::csa) == 0);
  REQUIRE(all.component(Compressor::hca) == 1);
  REQUIRE(all.component(Compressor::lid) == 2);
  REQUIRE(all.books().components() == 3);
  REQUIRE(std::string(all.books().name(3)) == "window");
  Memory const only_csa(small_shape({4, 0}), small_options());
  REQUIRE(only_csa.component(Compressor::hca) == -1);
  REQUIRE(only_csa.component(Compressor::lid) == 1);
  Memory const only_hca(small_shape({128}), small_options());
  REQUIRE(only_hca.component(Compressor::csa) == -1);
  REQUIRE(only_hca.component(Compressor::hca) == 0);
  REQUIRE(only_hca.state_tensors(Compressor::csa).empty());
}

TEST_CASE("a chunk's plan has the chunk's rows and no lists of what the model lacks") {
  Memory memory(small_shape({4, 0}), small_options());
  Slot const slot = memory.books().slot(0);
  Rows const r(slot, 0, 12, 0, 5);
  Ticket ticket;
  REQUIRE(memory.books().begin(r.batch, ticket) == Verdict::accepted);
  Chunk chunk;
  REQUIRE(memory.plan(ticket, 1, r.batch, chunk) == Verdict::accepted);
  REQUIRE(chunk.rows == 5);
  REQUIRE(chunk.slots == r.slots.data() + 5);
  REQUIRE(chunk.positions == r.positions.data() + 5);
  rollback::Lists const& csa = chunk.lists[0];
  REQUIRE(csa.persists == 5);
  REQUIRE(csa.blocks == 1);  // positions 4 .. 7 end in this chunk
  REQUIRE(csa.block_position[0] == 4);
  REQUIRE(csa.block_row[0] == 1);
  REQUIRE(csa.visible[2] == 2);
  REQUIRE(chunk.lists[1].restore_source == nullptr);
  REQUIRE(chunk.lists[1].persists == 0);
  REQUIRE(chunk.lists[2].blocks == 1);
  REQUIRE(memory.plan(ticket, 3, r.batch, chunk) == Verdict::unknown_chunk);
  REQUIRE(memory.plan(Ticket{}, 0, r.batch, chunk) == Verdict::unknown_ticket);
}

TEST_CASE("planes for entry copies of every open batch and for pins stand in the tensors and in the books") {
  MemoryOptions options = small_options();
  options.steps_in_flight = 3;
  options.entry_copy = true;
  options.pins = 5;
  // live, and one a batch; per-token with a spare and one a pin; aligned with a spare; pins
  std::int64_t const states = 1 + 3 + 3 + 1 + 5 + 2 + 1 + 5;
  for (Tensor const& t : Memory::tensors(small_shape({4, 128}), options)) {
    if (t.path == Path::csa_state || t.path == Path::lid_state) REQUIRE(t.rows == states * 8);
    if (t.path == Path::hca_state) REQUIRE(t.rows == states * 128);
  }
  Memory const memory(small_shape({4, 128}), options);
  REQUIRE(memory.books().steps_in_flight() == 3);
  REQUIRE(memory.books().pins() == 5);
  REQUIRE(memory.books().places(0).total() == states);
  REQUIRE(memory.row_map(Compressor::csa).live_slot_stride == states * 8);
  REQUIRE(memory.row_map(Compressor::csa).kept == 4 * 8);
}

TEST_CASE("the lists of an open batch stay until another of its chunks is planned") {
  MemoryOptions options = small_options();
  options.steps_in_flight = 3;
  options.pins = 1;
  Memory memory(small_shape({0, 4, 128}), options);
  Slot const slot = memory.books().slot(0);
  struct Planned {
    Planned(Slot of, Position tip, std::int32_t count) : rows(of, tip, count, 0, 5) {}
    Rows rows;  // points into itself
    Ticket ticket;
    Chunk chunk;
    std::vector<std::vector<std::int64_t>> lists;
  };
  auto const copied = [](Chunk const& chunk) {  // every entry of every list, as long as the plan says
    std::vector<std::vector<std::int64_t>> all;
    for (rollback::Lists const& l : chunk.lists) {
      int const states = &l == &chunk.lists[1] ? 128 : 8;
      int const block = &l == &chunk.lists[1] ? 128 : 4;
      auto const take = [&all](auto const* list, std::int64_t n) { all.emplace_back(list, list + n); };
      take(l.restore_source, l.restores);
      take(l.restore_destination, l.restores);
      take(l.snapshot_source, std::int64_t{l.snapshots} * states);
      take(l.snapshot_destination, std::int64_t{l.snapshots} * states);
      take(l.persist_source, chunk.rows);
      take(l.persist_destination, chunk.rows);
      take(l.block_current, std::int64_t{l.blocks} * block);
      take(l.block_row, l.blocks);
      take(l.block_position, l.blocks);
      take(l.block_slot, l.blocks);
      take(l.visible, chunk.rows);
    }
    return all;
  };
  std::vector<std::unique_ptr<Planned>> open;
  for (std::int32_t rows : {12, 7, 9}) {
    REQUIRE(memory.books().pin(slot, memory.books().head(slot) + 2) ==
            (open.empty() ? Verdict::accepted : Verdict::no_free_pin));
    open.push_back(std::make_unique<Planned>(slot, memory.books().head(slot), rows));
    Planned& p = *open.back();
    REQUIRE(memory.books().begin(p.rows.batch, p.ticket) == Verdict::accepted);
    REQUIRE(memory.plan(p.ticket, 0, p.rows.batch, p.chunk) == Verdict::accepted);
    p.lists = copied(p.chunk);
  }
  for (auto const& p : open) REQUIRE(copied(p->chunk) == p->lists);
  REQUIRE(memory.plan(open[1]->ticket, 1, open[1]->rows.batch, open[1]->chunk) == Verdict::accepted);
  REQUIRE(copied(open[0]->chunk) == open[0]->lists);
  REQUIRE(copied(open[2]->chunk) == open[2]->lists);
  REQUIRE(open[1]->chunk.positions == open[1]->rows.positions.data() + 5);
}

TEST_CASE("defaults are filled in and what was given stays") {
  Memory const memory(small_shape({4}), small_options());
  REQUIRE(memory.options().max_chunk_rows == 12);
  REQUIRE(memory.options().max_chunks == 12);
  REQUIRE(memory.options().raw_rows == Memory::raw_rows(small_shape({4}), small_options()));
  MemoryOptions options = small_options();
  options.max_chunk_rows = 3;
  options.max_chunks = 7;
  options.raw_rows = 200;
  Memory const other(small_shape({4}), options);
  REQUIRE(other.options().max_chunk_rows == 3);
  REQUIRE(other.options().max_chunks == 7);
  REQUIRE(other.options().raw_rows == 200);
  REQUIRE(Memory::raw_rows(small_shape({4}), options) == memory.options().raw_rows);
}

TEST_CASE("a refused option is named") {
  auto const refused = [](auto change, char const* name) {
    ModelShape shape = small_shape({0, 4, 128});
    MemoryOptions options = small_options();
    change(shape, options);
    REQUIRE_THROWS_WITH(Memory::tensors(shape, options), ContainsSubstring(name));
    REQUIRE_THROWS_WITH(Memory::budget(shape, options), ContainsSubstring(name));
    REQUIRE_THROWS_WITH(Memory(shape, options), ContainsSubstring(name));
  };
  using S = ModelShape;
  using O = MemoryOptions;
  refused([](S& s, O&) { s.ratios.clear(); }, "ratios");
  refused([](S& s, O&) { s.ratios = {4, 5}; }, "ratio");
  refused([](S& s, O&) { s.head_width = 0; }, "head_width");
  refused([](S& s, O&) { s.head_width = 10; }, "head_width");
  refused([](S& s, O&) { s.head_width = 65540; }, "head_width");
  refused([](S& s, O&) { s.indexer_width = -4; }, "indexer_width");
  refused([](S& s, O&) { s.indexer_width = 6; }, "indexer_width");
  refused([](S& s, O&) { s.indexer_width = 65540; }, "indexer_width");
  refused([](S& s, O&) { s.window = 0; }, "window");
  refused([](S& s, O&) { s.window = 65537; }, "window");
  refused([](S&, O& o) { o.slots = 0; }, "slots");
  refused([](S&, O& o) { o.slots = 65537; }, "slots");
  refused([](S&, O& o) { o.max_context = 0; }, "max_context");
  refused([](S&, O& o) { o.max_context = (Position{1} << 40) + 1; }, "max_context");
  refused([](S&, O& o) { o.per_token = -1; }, "per_token");
  refused([](S&, O& o) { o.per_token = (1 << 20) + 1; }, "per_token");
  refused([](S&, O& o) { o.aligned = -1; }, "aligned");
  refused([](S&, O& o) { o.aligned = (1 << 20) + 1; }, "aligned");
  refused([](S&, O& o) { o.quantum = 1; }, "quantum");
  refused([](S&, O& o) { o.quantum = (Position{1} << 30) + 1; }, "quantum");
  refused([](S&, O& o) { o.max_rows = 0; }, "max_rows");
  refused([](S&, O& o) { o.max_rows = (1 << 24) + 1; }, "max_rows");
  refused([](S&, O& o) { o.max_chunk_rows = -1; }, "max_chunk_rows");
  refused([](S&, O& o) { o.max_chunk_rows = 13; }, "max_chunk_rows");
  refused([](S&, O& o) { o.max_chunks = -1; }, "max_chunks");
  refused([](S&, O& o) { o.steps_in_flight = 0; }, "steps_in_flight");
  refused([](S&, O& o) { o.steps_in_flight = 65; }, "steps_in_flight");
  refused([](S&, O& o) { o.pins = -1; }, "pins");
  refused([](S&, O& o) { o.pins = 4097; }, "pins");
  refused([](S&, O& o) { o.raw_rows = -1; }, "raw_rows");
  MemoryOptions few = small_options();
  few.raw_rows = 5 + 12 + 3 - 1;
  REQUIRE_THROWS_WITH(Memory(small_shape({4}), few), ContainsSubstring("raw_rows must be at least window"));
  REQUIRE_THROWS_WITH(Memory::tensors(small_shape({4}), few), ContainsSubstring("raw_rows must be at least window"));
  ++few.raw_rows;
  REQUIRE_NOTHROW(Memory(small_shape({4}), few));
  few.max_rows = 2;  // of three open batches up to six rows may be unverified
  few.steps_in_flight = 3;
  few.per_token = 10;
  few.raw_rows = 5 + 2 + 6 - 1;
  REQUIRE_THROWS_WITH(Memory(small_shape({4}), few), ContainsSubstring("raw_rows must be at least window"));
  ++few.raw_rows;
  REQUIRE_NOTHROW(Memory(small_shape({4}), few));
  MemoryOptions most = small_options();
  most.steps_in_flight = 64;
  most.pins = 4096;
  REQUIRE_NOTHROW(Memory::tensors(small_shape({4}), most));
}

TEST_CASE("what the books would refuse is refused before any memory is asked for, in the same words") {
  auto const accepted_by_all = [](std::vector<int> const& ratios, MemoryOptions const& options) {
    REQUIRE_NOTHROW(Memory::tensors(small_shape(ratios), options));
    REQUIRE_NOTHROW(Memory::budget(small_shape(ratios), options));
    REQUIRE_NOTHROW(Memory(small_shape(ratios), options));
  };
  auto const refused_by_all = [](std::vector<int> const& ratios, MemoryOptions const& options, char const* name) {
    REQUIRE_THROWS_WITH(Memory::tensors(small_shape(ratios), options), ContainsSubstring(name));
    REQUIRE_THROWS_WITH(Memory::budget(small_shape(ratios), options), ContainsSubstring(name));
    REQUIRE_THROWS_WITH(Memory(small_shape(ratios), options), ContainsSubstring(name));
  };
  MemoryOptions options = small_options();  // a model without a compressor may reject every row
  options.max_chunk_rows = 4;
  options.raw_rows = 5 + 4 + 12 - 1;
  accepted_by_all({0, 4}, options);
  refused_by_all({0, 0}, options, "dsv4::Memory: raw_rows must be at least window");
  ++options.raw_rows;
  accepted_by_all({0, 0}, options);

  MemoryOptions most = small_options();
  most.slots = 65536;
  most.aligned = 0;
  most.per_token = 2046;  // 2048 states * 8 rows * 65536 slots: 2^30, and no room for a chunk's rows
  refused_by_all({4}, most, "must be at most 2^30 together");
}

TEST_CASE("every path has a name of its own") {
  std::set<std::string> names;
  for (int p = 0; p < rollback::dsv4::paths; ++p) names.insert(text(static_cast<Path>(p)));
  REQUIRE(names.size() == static_cast<std::size_t>(rollback::dsv4::paths));
  REQUIRE(names.count("") == 0);
}
