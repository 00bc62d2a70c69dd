// What a model refuses, and what a chunk's rows, padding and wishes for logits do. Right logits: oracle_test.cpp.
#include "model.hpp"

#include "catch.hpp"
#include "file_refusal.hpp"
#include "input_files.hpp"
#include "random_values.hpp"
#include "small_model.hpp"
#include "tiny_model.hpp"

#include <rollback/batch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>

using Catch::Matchers::ContainsSubstring;
using dsv4_decoder::Gguf;
using dsv4_decoder::Model;
using dsv4_decoder::ModelOptions;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;
using rollback::dsv4::Chunk;
using rollback::dsv4::Memory;
using rollback::dsv4::MemoryOptions;
using rollback::dsv4::ModelShape;

namespace {

ModelOptions small_options(std::int32_t max_rows = 8) {
  ModelOptions options;
  options.max_rows = max_rows;
  options.max_positions = 256;
  return options;
}

MemoryOptions memory_options() {
  MemoryOptions options;
  options.slots = 2;
  options.max_context = 512;
  options.max_rows = 64;
  return options;
}

// A memory in tensors of this test, every byte of them 0x3e, so that a write shows.
struct OwnMemory {
  std::vector<std::vector<float>> tensors;
  Memory memory;

  OwnMemory(ModelShape const& shape, MemoryOptions const& options)
      : tensors(stale_tensors(shape, options)), memory(shape, options, pointers()) {}
  explicit OwnMemory(Model const& model) : OwnMemory(model.hyper().shape(), memory_options()) {}

 private:
  static std::vector<std::vector<float>> stale_tensors(ModelShape const& shape, MemoryOptions const& options) {
    std::vector<std::vector<float>> all;
    for (auto const& t : Memory::tensors(shape, options)) {
      all.push_back(stale(static_cast<std::int64_t>(t.bytes / sizeof(float))));
    }
    return all;
  }
  std::vector<float*> pointers() {
    std::vector<float*> all;
    for (auto& t : tensors) all.push_back(t.data());
    return all;
  }
};

struct Row {
  std::int32_t slot;  // negative: padding
  std::int32_t token;
  std::uint8_t wanted = 1;
};

// One chunk of rows, each of its slot's next position, begun and planned.
struct Planned {
  std::vector<Slot> slots;
  std::vector<Position> positions;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> wants;
  std::vector<Position> ends;  // by slot
  rollback::Ticket ticket;
  Chunk chunk;

  Planned(Memory& memory, std::vector<Row> const& rows) {
    for (std::int32_t slot = 0; slot < memory.options().slots; ++slot) {
      ends.push_back(memory.books().tip(memory.books().slot(slot)));
    }
    for (Row const& row : rows) {
      bool const padding = row.slot < 0;
      slots.push_back(padding ? Slot{-1, 0} : memory.books().slot(row.slot));
      positions.push_back(padding ? -1 : ends[static_cast<std::size_t>(row.slot)]++);
      tokens.push_back(row.token);
      wants.push_back(row.wanted);
    }
    auto const count = static_cast<std::int32_t>(rows.size());
    rollback::Batch const batch{slots.data(), positions.data(), count, &count, 1, nullptr, 0};
    REQUIRE(memory.books().begin(batch, ticket) == Verdict::accepted);
    REQUIRE(memory.plan(ticket, 0, batch, chunk) == Verdict::accepted);
  }

  // What `forward` writes, and one row more, which it must not.
  std::vector<float> run(Model& model, Memory& memory) {
    std::int64_t wanted = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) wanted += slots[i].index >= 0 && wants[i] != 0 ? 1 : 0;
    auto logits = stale((wanted + 1) * model.hyper().vocabulary);
    model.forward(memory, chunk, tokens.data(), wants.data(), logits.data());
    return logits;
  }
  void commit(Memory& memory) {
    REQUIRE(memory.books().settle(ticket, 0) == Verdict::accepted);
    for (std::size_t slot = 0; slot < ends.size(); ++slot) {
      Slot const named = memory.books().slot(static_cast<std::int32_t>(slot));
      bool const fed = std::any_of(slots.begin(), slots.end(), [&](Slot s) { return s.index == named.index; });
      if (fed) REQUIRE(memory.books().commit(ticket, named, ends[slot]) == Verdict::accepted);
    }
  }
};

// Runs and commits one chunk; the logits of its wanted rows.
std::vector<float> feed(Model& model, Memory& memory, std::vector<Row> const& rows) {
  Planned planned(memory, rows);
  auto logits = planned.run(model, memory);
  planned.commit(memory);
  auto const vocabulary = static_cast<std::size_t>(model.hyper().vocabulary);
  CHECK(std::all_of(logits.end() - static_cast<std::ptrdiff_t>(vocabulary), logits.end(),
                    [](float v) { return v == stale(1)[0]; }));
  logits.resize(logits.size() - vocabulary);
  return logits;
}

std::vector<Row> rows_of(std::int32_t slot, std::vector<std::int32_t> const& tokens) {
  std::vector<Row> rows;
  for (std::int32_t token : tokens) rows.push_back({slot, token});
  return rows;
}

// The file's bytes with one value of a tensor changed.
Gguf changed(std::string const& tensor, std::int64_t index, std::uint32_t bits) {
  std::string bytes = dsv4_decoder::read_text(tiny_directory + "/model.gguf");
  std::size_t const at = tiny_file().tensor(tensor).offset + static_cast<std::size_t>(index) * sizeof bits;
  std::memcpy(&bytes[at], &bits, sizeof bits);
  std::vector<std::byte> copy(bytes.size());
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return Gguf::parse(std::move(copy), "changed.gguf");
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::string argument_error(std::function<void()> const& call) {
  try {
    call();
  } catch (std::invalid_argument const& error) { return error.what(); }
  return {};
}

// That the call throws with this text, and that neither the memory nor the logits have changed.
void check_refused(Model& model, OwnMemory& own, Planned const& planned, Chunk const& chunk, char const* why) {
  auto const before = own.tensors;
  auto logits = stale(64 * model.hyper().vocabulary);
  CHECK_THAT(argument_error(
                 [&] { model.forward(own.memory, chunk, planned.tokens.data(), planned.wants.data(), logits.data()); }),
             ContainsSubstring(why));
  CHECK(equal_bits(logits, stale(64 * model.hyper().vocabulary)));
  REQUIRE(own.tensors.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(equal_bits(own.tensors[i], before[i]));
}

}  // namespace

TEST_CASE("options out of range are refused by name", "[model]") {
  auto const refused = [](std::function<void(ModelOptions&)> const& change) {
    ModelOptions options = small_options();
    change(options);
    return argument_error([&] { Model(tiny_file(), options); });
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK_THAT(refused([](auto& o) { o.max_rows = 0; }), ContainsSubstring("max_rows"));
  CHECK_THAT(refused([](auto& o) { o.max_rows = -1; }), ContainsSubstring("max_rows"));
  CHECK_THAT(refused([](auto& o) { o.max_positions = 0; }), ContainsSubstring("max_positions"));
  CHECK_THAT(refused([](auto& o) { o.max_positions = -5; }), ContainsSubstring("max_positions"));
  CHECK_THAT(refused([](auto& o) { o.max_positions = 1048577; }), ContainsSubstring("max_positions"));
  CHECK(refused([](auto& o) { o.max_positions = 1; }).empty());
  CHECK_THAT(refused([](auto& o) { o.top_k = -1; }), ContainsSubstring("top_k"));
  CHECK_THAT(refused([](auto& o) { o.workers = -1; }), ContainsSubstring("workers"));
}

TEST_CASE("options of 0 are replaced by what they stand for", "[model]") {
  ModelOptions options = small_options();
  options.max_rows = 1000;
  Model const model(tiny_file(), options);
  CHECK(model.options().top_k == 32);
  CHECK(model.options().workers >= 1);
  options.top_k = 5;
  options.workers = 3;
  CHECK(Model(tiny_file(), options).options().top_k == 5);
  CHECK(Model(tiny_file(), options).options().workers == 3);
  options.max_rows = 2;
  CHECK(Model(tiny_file(), options).options().workers == 2);  // no more than there can be rows
}

TEST_CASE("a file that is no usable model is refused", "[model]") {
  SmallModel small;
  small.keys.erase("deepseek4.block_count");
  CHECK_THAT(refusal([&] { Model(small.parse(), small_options()); }), ContainsSubstring("block_count"));
  SmallModel shapes;
  shapes.tensors["blk.1.attn_kv.weight"].shape[0] += 1;
  CHECK_THAT(refusal([&] { Model(shapes.parse(), small_options()); }), ContainsSubstring("blk.1.attn_kv.weight"));
  SmallModel missing;
  missing.tensors.erase("output.weight");
  CHECK_THAT(refusal([&] { Model(missing.parse(), small_options()); }), ContainsSubstring("output.weight"));
}

TEST_CASE("a chunk that is too long is refused and nothing is written", "[model]") {
  Model model(tiny_file(), small_options(3));
  OwnMemory own(model);
  Planned const planned(own.memory, rows_of(0, {1, 2, 3, 4}));
  check_refused(model, own, planned, planned.chunk, "max_rows");
}

TEST_CASE("a token outside the vocabulary is refused and nothing is written", "[model]") {
  Model model(tiny_file(), small_options());
  for (std::int32_t token : {-1, 384, 1 << 30}) {
    for (std::size_t at : {0u, 2u}) {
      OwnMemory own(model);
      std::vector<std::int32_t> tokens = {1, 2, 3};
      tokens[at] = token;
      Planned const planned(own.memory, rows_of(0, tokens));
      check_refused(model, own, planned, planned.chunk, "vocabulary");
    }
  }
}

TEST_CASE("a position out of range is refused and nothing is written", "[model]") {
  ModelOptions options = small_options();
  options.max_positions = 5;
  Model model(tiny_file(), options);
  {
    OwnMemory own(model);  // which has room for more than the model
    Planned const planned(own.memory, rows_of(0, {1, 2, 3, 4, 5, 6}));
    check_refused(model, own, planned, planned.chunk, "position");
  }
  OwnMemory own(model);
  Planned const planned(own.memory, rows_of(0, {1, 2, 3, 4, 5}));
  std::vector<Position> positions = planned.positions;
  positions[1] = -1;
  Chunk chunk = planned.chunk;
  chunk.positions = positions.data();
  check_refused(model, own, planned, chunk, "position");
  Planned ran = planned;
  CHECK_NOTHROW(ran.run(model, own.memory));  // up to the last position
}

TEST_CASE("a memory of another model's shape is refused and nothing is written", "[model]") {
  Model model(tiny_file(), small_options());
  ModelShape const good = model.hyper().shape();
  std::function<void(ModelShape&)> const changes[] = {
      [](ModelShape& s) { s.ratios.pop_back(); }, [](ModelShape& s) { s.ratios[0] = 4; },
      [](ModelShape& s) { s.head_width += 4; }, [](ModelShape& s) { s.indexer_width += 4; },
      [](ModelShape& s) { s.window += 1; }};
  for (auto const& change : changes) {
    ModelShape shape = good;
    change(shape);
    OwnMemory own(shape, memory_options());
    Planned const planned(own.memory, rows_of(0, {1, 2}));
    check_refused(model, own, planned, planned.chunk, "shape");
  }
}

TEST_CASE("a memory with another form of its rows is refused and nothing is written", "[model]") {
  for (bool hadamard : {false, true}) {
    for (bool rounding : {false, true}) {
      ModelOptions options = small_options();
      options.hadamard = hadamard;
      options.rounding = rounding;
      Model model(tiny_file(), options);
      for (bool other : {false, true}) {
        MemoryOptions of_memory = memory_options();
        of_memory.hadamard = other ? hadamard : !hadamard;
        of_memory.rounding = other ? !rounding : rounding;
        OwnMemory own(model.hyper().shape(), of_memory);
        Planned const planned(own.memory, rows_of(0, {1, 2}));
        check_refused(model, own, planned, planned.chunk, "hadamard or rounding");
      }
      MemoryOptions of_memory = memory_options();
      of_memory.hadamard = hadamard;
      of_memory.rounding = rounding;
      OwnMemory own(model.hyper().shape(), of_memory);
      Planned planned(own.memory, rows_of(0, {1, 2}));
      CHECK_NOTHROW(planned.run(model, own.memory));
    }
  }
}

TEST_CASE("after a refusal the same chunk runs as if nothing had been", "[model]") {
  Model model(tiny_file(), small_options());
  OwnMemory own(model), fresh(model);
  Planned planned(own.memory, rows_of(0, {5, 6, 7}));
  planned.tokens[1] = 384;
  check_refused(model, own, planned, planned.chunk, "vocabulary");
  planned.tokens[1] = 6;
  Planned untroubled(fresh.memory, rows_of(0, {5, 6, 7}));
  CHECK(equal_bits(planned.run(model, own.memory), untroubled.run(model, fresh.memory)));
}

TEST_CASE("padded rows are skipped and neither their tokens nor their wishes are read", "[model]") {
  Model model(tiny_file(), small_options());
  OwnMemory own(model), plain(model);
  auto const padded = feed(model, own.memory, {{-1, -99}, {0, 5}, {-1, 1 << 30}, {0, 6}, {0, 7}, {-1, 384, 1}, {0, 8}});
  auto const expected = feed(model, plain.memory, rows_of(0, {5, 6, 7, 8}));
  CHECK(equal_bits(padded, expected));
  for (std::size_t i = 0; i < own.tensors.size(); ++i) CHECK(equal_bits(own.tensors[i], plain.tensors[i]));
}

TEST_CASE("logits come for the rows that want them in the order of the rows", "[model]") {
  Model model(tiny_file(), small_options());
  OwnMemory all(model), some(model), none(model);
  auto const vocabulary = static_cast<std::ptrdiff_t>(model.hyper().vocabulary);
  auto const full = feed(model, all.memory, rows_of(0, {9, 8, 7, 6}));
  auto const part = feed(model, some.memory, {{0, 9, 0}, {0, 8, 1}, {0, 7, 0}, {0, 6, 1}});
  REQUIRE(part.size() == 2 * static_cast<std::size_t>(vocabulary));
  CHECK(std::equal(part.begin(), part.begin() + vocabulary, full.begin() + vocabulary));
  CHECK(std::equal(part.begin() + vocabulary, part.end(), full.begin() + 3 * vocabulary));
  CHECK(feed(model, none.memory, {{0, 9, 0}, {0, 8, 0}, {0, 7, 0}, {0, 6, 0}}).empty());
  for (std::size_t i = 0; i < all.tensors.size(); ++i) CHECK(equal_bits(all.tensors[i], none.tensors[i]));
}

TEST_CASE("two slots in one chunk have the bits that each has alone", "[model]") {
  Model model(tiny_file(), small_options(64));
  OwnMemory both(model), one(model), other(model);
  std::vector<float> together, first, second;
  auto const vocabulary = static_cast<std::ptrdiff_t>(model.hyper().vocabulary);
  for (int step = 0; step < 5; ++step) {
    std::vector<Row> rows;
    for (std::int32_t i = 0; i < 30; ++i) {
      rows.push_back({0, (7 * i + step) % 384});
      if (i % 3 == 0) rows.push_back({1, (11 * i + step) % 384});
    }
    auto const logits = feed(model, both.memory, rows);
    std::vector<Row> a, b;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const from = logits.begin() + static_cast<std::ptrdiff_t>(i) * vocabulary;
      (rows[i].slot == 0 ? first : second).insert((rows[i].slot == 0 ? first : second).end(), from, from + vocabulary);
      (rows[i].slot == 0 ? a : b).push_back(rows[i]);
    }
    for (Row& row : b) row.slot = 0;
    auto const alone = feed(model, one.memory, a), other_alone = feed(model, other.memory, b);
    CHECK(equal_bits(first, alone));
    CHECK(equal_bits(second, other_alone));
    first.clear();
    second.clear();
  }
}

TEST_CASE("the number of workers changes no bit", "[model]") {
  std::vector<float> expected;
  for (std::int32_t workers : {1, 2, 3, 16}) {
    ModelOptions options = small_options(64);
    options.workers = workers;
    Model model(tiny_file(), options);
    OwnMemory own(model);
    std::vector<float> all;
    for (std::size_t at = 0; at < 192; at += 64) {
      auto const tokens = std::vector<std::int32_t>(tiny_tokens().begin() + static_cast<std::ptrdiff_t>(at),
                                                    tiny_tokens().begin() + static_cast<std::ptrdiff_t>(at + 64));
      auto const logits = feed(model, own.memory, rows_of(0, tokens));
      all.insert(all.end(), logits.begin(), logits.end());
    }
    if (expected.empty()) expected = all;
    INFO(workers << " workers");
    CHECK(equal_bits(all, expected));
  }
}

TEST_CASE("the Hadamard transform changes no choice and rounding changes logits a little", "[model]") {
  auto const run = [](bool hadamard, bool rounding) {
    ModelOptions options = small_options(64);
    options.hadamard = hadamard;
    options.rounding = rounding;
    Model model(tiny_file(), options);
    MemoryOptions of_memory = memory_options();
    of_memory.hadamard = hadamard;
    of_memory.rounding = rounding;
    OwnMemory own(model.hyper().shape(), of_memory);
    std::vector<float> last;
    for (std::size_t at = 0; at < 192; at += 64) {
      last = feed(model, own.memory,
                  rows_of(0, {tiny_tokens().begin() + static_cast<std::ptrdiff_t>(at),
                              tiny_tokens().begin() + static_cast<std::ptrdiff_t>(at + 64)}));
    }
    return last;
  };
  auto const difference = [](std::vector<float> const& a, std::vector<float> const& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
    return worst;
  };
  auto const with = run(true, false);
  CHECK(difference(with, run(false, false)) < 1e-4);  // an orthogonal transform of both sides
  double const rounded = difference(with, run(true, true));
  CHECK(rounded > 1e-3);
  CHECK(rounded < 20);
}

TEST_CASE("the first layers take the experts that the table lists for the token", "[model]") {
  std::string const table = "blk.0.ffn_gate_tid2eid.weight";
  auto const listed = tiny_file().integers(tiny_file().tensor(table));
  auto const logits_of = [](Gguf const& file, std::int32_t token) {
    Model model(file, small_options());
    OwnMemory own(model);
    return feed(model, own.memory, {{0, token}});
  };
  std::int32_t other = 0;  // an expert that is not among those of token 5
  while (std::find(listed.begin() + 15, listed.begin() + 18, other) != listed.begin() + 18) ++other;
  Gguf const file = changed(table, 3 * 5 + 1, static_cast<std::uint32_t>(other));
  CHECK_FALSE(equal_bits(logits_of(file, 5), logits_of(tiny_file(), 5)));
  for (std::int32_t token : {4, 6, 383}) CHECK(equal_bits(logits_of(file, token), logits_of(tiny_file(), token)));
}

TEST_CASE("the later layers choose experts by score plus bias and weigh them by score", "[model]") {
  auto const logits_of = [](Gguf const& file) {
    Model model(file, small_options());
    OwnMemory own(model);
    return feed(model, own.memory, rows_of(0, {1, 2, 3, 4, 5, 6, 7, 8}));
  };
  auto const expected = logits_of(tiny_file());
  std::string const bias = "blk.3.exp_probs_b.bias";
  CHECK_FALSE(equal_bits(logits_of(changed(bias, 2, bits_of(-1e6f))), expected));  // it is chosen no more
  Model probe(tiny_file(), small_options());
  REQUIRE(probe.hyper().experts_used < probe.hyper().experts);
  // Chosen for certain, it has the weight of its score: a bias that is larger still changes no bit.
  CHECK(equal_bits(logits_of(changed(bias, 2, bits_of(1e3f))), logits_of(changed(bias, 2, bits_of(2e3f)))));
}
