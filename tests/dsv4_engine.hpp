// An engine over a DSV4 memory that is full of 0x3e, without a model: every row is a hash of the tokens up to its own,
// every emitted row one of the rows that its block pools, and every output one of the rows that are attended to.
#pragma once

#include <rollback/dsv4/state.hpp>

#include "catch.hpp"
#include "decoder/readable_state.hpp"
#include "dsv4_small.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace dsv4_engine {

using rollback::Lists;
using rollback::LoadAs;
using rollback::SaveOptions;
using rollback::Ticket;
using rollback::Verdict;
using rollback::dsv4::Chunk;
using rollback::dsv4::Compressor;
using rollback::dsv4::Memory;
using rollback::dsv4::MemoryLayout;
using namespace dsv4_small;

using Tokens = std::vector<std::uint32_t>;
using Blob = std::vector<unsigned char>;

inline std::uint32_t mixed(std::uint32_t a, std::uint32_t b) {
  a = (a ^ b) * 2654435761u;
  return a ^ (a >> 15);
}
inline float value(std::uint32_t hash) { return static_cast<float>(hash >> 8); }  // exact
inline std::uint32_t mixed(std::uint32_t a, float f) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof bits);
  return mixed(a, bits);
}

/// `count` tokens that the seed decides.
inline Tokens tokens_of(std::size_t count, std::uint32_t seed) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = mixed(mixed(seed, 77u), static_cast<std::uint32_t>(i));
  return tokens;
}

/// The next rows of a slot in a batch, some of the last of which may be rejected; or rows of padding.
struct Part {
  std::size_t slot;
  Tokens tokens;
  std::int32_t unverified = 0;
};
inline constexpr std::size_t padding = SIZE_MAX;

/// A batch with all that it points to, and the chunk of it that was planned last.
struct Flight {
  Flight() = default;
  Flight(Flight&&) = default;
  std::vector<Slot> slots;
  std::vector<Position> positions;
  std::vector<std::uint32_t> hashes;  // [rows] of the tokens up to the row's own
  std::vector<std::int32_t> ends;
  std::vector<Unverified> unverified;
  Batch batch;
  Ticket ticket;
  Chunk chunk;
};

class Engine {
 public:
  explicit Engine(MemoryOptions const& options, ModelShape const& shape = small_shape({0, 4, 128, 4}),
                  bool zeroed = false)
      : memory(shape, options),
        tokens(static_cast<std::size_t>(options.slots)),
        outputs(static_cast<std::size_t>(options.slots)) {
    if (!zeroed) std::memset(&filling, 0x3e, sizeof filling);
    fill_all(memory, filling);
  }
  Engine(Engine const& other)
      : memory(other.memory.shape(), other.memory.options()),
        tokens(other.tokens),
        outputs(other.outputs),
        filling(other.filling),
        seed(other.seed) {
    books() = other.books();
    for (rollback::dsv4::Tensor const& t : Memory::tensors(memory.shape(), memory.options())) {
      std::memcpy(memory.data(t), other.memory.data(t), t.bytes);
    }
  }
  Engine& operator=(Engine const&) = delete;

  [[nodiscard]] rollback::Books& books() { return memory.books(); }
  [[nodiscard]] rollback::Books const& books() const { return memory.books(); }
  [[nodiscard]] Slot slot(std::size_t s) const { return books().slot(static_cast<std::int32_t>(s)); }
  [[nodiscard]] Position tip(std::size_t s) const { return books().tip(slot(s)); }

  /// Tokens that it has not drawn before.
  [[nodiscard]] Tokens drawn(std::size_t count) { return tokens_of(count, ++seed); }

  /// The batch of these rows, part after part, in chunks of at most `chunk_rows`; 0: of as many as there may be.
  [[nodiscard]] Flight rows_of(std::vector<Part> const& parts, std::int32_t chunk_rows = 0) const {
    Flight f;
    std::vector<Tokens> all = tokens;
    for (Part const& part : parts) {
      if (part.slot == padding) {
        f.slots.resize(f.slots.size() + part.tokens.size());
        f.positions.resize(f.slots.size());
        f.hashes.resize(f.slots.size());
        continue;
      }
      Tokens& held = all[part.slot];
      std::uint32_t hash = 0;
      for (std::uint32_t token : held) hash = mixed(hash, token);
      for (std::uint32_t token : part.tokens) {
        f.slots.push_back(slot(part.slot));
        f.positions.push_back(static_cast<Position>(held.size()));
        held.push_back(token);
        f.hashes.push_back(hash = mixed(hash, token));
      }
      if (part.unverified > 0) f.unverified.push_back({slot(part.slot), part.unverified});
    }
    auto const rows = static_cast<std::int32_t>(f.slots.size());
    std::int32_t const most = chunk_rows > 0 ? chunk_rows : memory.options().max_chunk_rows;
    for (std::int32_t at = 0; at < rows;) f.ends.push_back(at = std::min(at + most, rows));
    f.batch = {f.slots.data(),
               f.positions.data(),
               rows,
               f.ends.data(),
               static_cast<std::int32_t>(f.ends.size()),
               f.unverified.data(),
               static_cast<std::int32_t>(f.unverified.size())};
    return f;
  }
  [[nodiscard]] Flight begin(std::vector<Part> const& parts, std::int32_t chunk_rows = 0) {
    Flight f = rows_of(parts, chunk_rows);
    REQUIRE(books().begin(f.batch, f.ticket) == Verdict::accepted);
    for (Part const& part : parts) {
      if (part.slot != padding)
        tokens[part.slot].insert(tokens[part.slot].end(), part.tokens.begin(), part.tokens.end());
    }
    return f;
  }
  void plan(Flight& f, std::int32_t chunk = 0) {
    REQUIRE(memory.plan(f.ticket, chunk, f.batch, f.chunk) == Verdict::accepted);
  }
  /// Carries out the chunk that was planned last, however long ago.
  void run(Flight const& f) {
    Chunk const& chunk = f.chunk;
    std::uint32_t const* const hashes = f.hashes.data() + (chunk.positions - f.positions.data());
    std::vector<std::uint32_t> output(hashes, hashes + chunk.rows);
    for (int layer = 0; layer < memory.shape().layers(); ++layer) {
      for (std::int32_t i = 0; i < chunk.rows; ++i) {
        if (chunk.slots[i].index < 0) continue;
        fill(memory.raw_row(layer, chunk.slots[i].index, chunk.positions[i]), memory.shape().head_width,
             mixed(hashes[i], static_cast<std::uint32_t>(8 * layer + 7)));
      }
      int const ratio = memory.shape().ratios[static_cast<std::size_t>(layer)];
      if (ratio == 4) compress(chunk, hashes, Compressor::csa, layer);
      if (ratio == 128) compress(chunk, hashes, Compressor::hca, layer);
      if (ratio == 4) compress(chunk, hashes, Compressor::lid, layer);
      attend(chunk, layer, output);
    }
    for (std::int32_t i = 0; i < chunk.rows; ++i) {
      if (chunk.slots[i].index < 0) continue;
      std::vector<std::uint32_t>& of_slot = outputs[static_cast<std::size_t>(chunk.slots[i].index)];
      auto const at = static_cast<std::size_t>(chunk.positions[i]);
      of_slot.resize(std::max(of_slot.size(), at + 1));
      of_slot[at] = output[static_cast<std::size_t>(i)];
    }
  }
  /// Plans, runs and settles a chunk; all of them.
  void carry_out(Flight& f, std::int32_t chunk) {
    plan(f, chunk);
    run(f);
    REQUIRE(books().settle(f.ticket, chunk) == Verdict::accepted);
  }
  void carry_out(Flight& f) {
    for (std::int32_t k = 0; k < f.batch.chunks; ++k) carry_out(f, k);
  }
  void commit(Flight const& f, std::size_t s, Position accepted) {
    REQUIRE(books().commit(f.ticket, slot(s), accepted) == Verdict::accepted);
    tokens[s].resize(static_cast<std::size_t>(books().head(slot(s))));
  }
  std::vector<rollback::Outcome> fail(Flight const& f, std::int32_t first_bad, rollback::BadChunk state) {
    std::vector<rollback::Outcome> all(tokens.size());
    rollback::Outcomes outcomes{all.data(), static_cast<std::int32_t>(all.size()), 0};
    REQUIRE(books().fail(f.ticket, first_bad, state, outcomes) == Verdict::accepted);
    all.resize(static_cast<std::size_t>(outcomes.count));
    for (rollback::Outcome const& o : all) {
      tokens[static_cast<std::size_t>(o.slot.index)].resize(static_cast<std::size_t>(o.tip));
    }
    return all;
  }

  /// Feeds tokens of which all are accepted, in the largest batches there may be.
  void feed(std::size_t s, Tokens const& next, std::int32_t chunk_rows = 0) {
    for (std::size_t at = 0; at < next.size();) {
      std::size_t const rows = std::min(next.size() - at, static_cast<std::size_t>(memory.options().max_rows));
      auto const first = next.begin() + static_cast<std::ptrdiff_t>(at);
      verify(s, Tokens(first, first + static_cast<std::ptrdiff_t>(rows)), 0, 0, chunk_rows);
      at += rows;
    }
  }
  void feed(std::size_t s, std::size_t count, std::uint32_t of_seed) { feed(s, tokens_of(count, of_seed)); }
  /// Feeds tokens of which the last `unverified` may be rejected, and as many of these are accepted as it says.
  void verify(std::size_t s, Tokens const& next, std::int32_t unverified, std::int32_t accepted,
              std::int32_t chunk_rows = 0) {
    Flight f = begin({{s, next, unverified}}, chunk_rows);
    carry_out(f);
    commit(f, s, f.positions.back() + 1 - unverified + accepted);
  }

  [[nodiscard]] Verdict roll_back(std::size_t s, Position p) {
    Verdict const verdict = books().roll_back(slot(s), p);
    if (verdict == Verdict::accepted) tokens[s].resize(static_cast<std::size_t>(p));
    return verdict;
  }
  void clear(std::size_t s) {
    Slot cleared = slot(s);
    REQUIRE(books().clear(cleared) == Verdict::accepted);
    tokens[s].clear();
  }
  /// Lets slot `to` go on from a landing of `from`. What has no history is the engine's to copy.
  [[nodiscard]] Verdict fork(std::size_t from, Position p, std::size_t to) {
    Slot target = slot(to);
    Verdict const verdict = books().fork(slot(from), p, target);
    if (verdict != Verdict::accepted) return verdict;
    tokens[to].assign(tokens[from].begin(), tokens[from].begin() + static_cast<std::ptrdiff_t>(p));
    outputs[to] = outputs[from];
    for (rollback::dsv4::Tensor const& t : Memory::tensors(memory.shape(), memory.options())) {
      if (t.path >= rollback::dsv4::Path::csa_state) continue;
      std::int64_t const of_slot = t.rows * t.width;
      std::copy_n(memory.data(t) + static_cast<std::int64_t>(from) * of_slot, of_slot,
                  memory.data(t) + static_cast<std::int64_t>(to) * of_slot);
    }
    return verdict;
  }

  Memory memory;
  std::vector<Tokens> tokens;                       // [slots] what each holds, rows of open batches included
  std::vector<std::vector<std::uint32_t>> outputs;  // [slots] what each row attended to; 0 where it was not run here
  float filling = 0;
  std::uint32_t seed = 1000;

 private:
  // What a query reads: the raw rows of its window, and the compressed rows that are visible to it.
  void attend(Chunk const& chunk, int layer, std::vector<std::uint32_t>& output) {
    int const ratio = memory.shape().ratios[static_cast<std::size_t>(layer)];
    for (std::int32_t i = 0; i < chunk.rows; ++i) {
      std::int32_t const s = chunk.slots[i].index;
      if (s < 0) continue;
      std::uint32_t& out = output[static_cast<std::size_t>(i)];
      Position const last = chunk.positions[i];
      for (Position p = std::max(Position{0}, last - (memory.shape().window - 1)); p <= last; ++p) {
        out = mixed(out, *memory.raw_row(layer, s, p));
      }
      for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
        if (ratio != (compressor == Compressor::hca ? 128 : 4)) continue;
        Memory::LayerView const& view = memory.view(compressor, layer);
        std::int64_t const pooled = memory.pooled(compressor);
        for (std::int64_t w = 0; w < chunk.lists[static_cast<int>(compressor)].visible[i]; ++w) {
          out = mixed(out, view.cache[(s * view.cache_rows + w) * pooled]);
        }
      }
    }
  }

  static void fill(float* row, std::int64_t width, std::uint32_t hash) {
    for (std::int64_t i = 0; i < width; ++i) row[i] = value(mixed(hash, static_cast<std::uint32_t>(i)));
  }

  // In the order of work that `Lists` states.
  void compress(Chunk const& chunk, std::uint32_t const* hashes, Compressor compressor, int layer) {
    auto const c = static_cast<std::uint32_t>(compressor);
    Memory::LayerView const& view = memory.view(compressor, layer);
    Lists const& lists = chunk.lists[c];
    rollback::RowGeometry const g = Memory::geometry(compressor);
    std::int64_t const width = memory.width(compressor);
    std::int64_t const pooled = memory.pooled(compressor);
    float* const planes[2] = {view.kv, view.score};
    std::vector<float> fresh[2];
    for (std::uint32_t scores : {0u, 1u}) {
      fresh[scores].resize(static_cast<std::size_t>(chunk.rows * width));
      for (std::int32_t i = 0; i < chunk.rows; ++i) {
        std::uint32_t const of = 8 * static_cast<std::uint32_t>(layer) + 2 * c + scores;
        fill(fresh[scores].data() + i * width, width, mixed(hashes[i], of));
      }
      for (std::int32_t i = 0; i < lists.restores; ++i) {
        float* const to = planes[scores] + lists.restore_destination[i] * width;
        if (lists.restore_source[i] < 0) {
          std::fill_n(to, g.rows * width, 0.0f);
        } else {
          std::copy_n(planes[scores] + lists.restore_source[i] * width, g.rows * width, to);
        }
      }
    }
    auto const source = [&](int scores, std::int64_t row) {
      return row < view.state_rows ? planes[scores] + row * width
                                   : fresh[scores].data() + (row - view.state_rows) * width;
    };
    for (std::int32_t b = 0; b < lists.blocks; ++b) {
      std::uint32_t hash = 0;
      auto const pool = [&](std::int32_t const* rows, std::int64_t first) {
        for (std::int32_t i = b * g.block; i < (b + 1) * g.block; ++i) {
          for (int scores = 0; scores < 2 && rows[i] >= 0; ++scores) {
            for (std::int64_t v = first; v < first + pooled; ++v) hash = mixed(hash, source(scores, rows[i])[v]);
          }
        }
      };
      if (g.overlap) pool(lists.block_previous, 0);
      pool(lists.block_current, width - pooled);
      fill(view.cache + lists.block_row[b] * pooled, pooled, hash);
    }
    for (int scores = 0; scores < 2; ++scores) {
      for (std::int32_t i = 0; i < lists.snapshots * g.rows; ++i) {
        if (lists.snapshot_source[i] < 0 || lists.snapshot_destination[i] < 0) continue;
        std::copy_n(source(scores, lists.snapshot_source[i]), width,
                    planes[scores] + lists.snapshot_destination[i] * width);
      }
      for (std::int32_t i = 0; i < chunk.rows; ++i) {
        if (lists.persist_destination[i] < 0) continue;
        std::copy_n(fresh[scores].data() + lists.persist_source[i] * width, width,
                    planes[scores] + lists.persist_destination[i] * width);
      }
    }
  }
};

/// The values of a tensor that belong to one slot, tensor after tensor.
inline std::vector<float> values_of_slot(Engine const& engine, std::size_t s) {
  std::vector<float> values;
  for (rollback::dsv4::Tensor const& t : Memory::tensors(engine.memory.shape(), engine.memory.options())) {
    float const* const first = engine.memory.data(t) + static_cast<std::int64_t>(s) * t.rows * t.width;
    values.insert(values.end(), first, first + t.rows * t.width);
  }
  return values;
}

/// The landings of a slot above 0, the tip too where it is kept, in rising order.
inline std::vector<Position> landings(Engine const& engine, std::size_t s) {
  std::vector<rollback::Landing> list(static_cast<std::size_t>(engine.books().landings(engine.slot(s), nullptr, 0)));
  static_cast<void>(engine.books().landings(engine.slot(s), list.data(), static_cast<std::int32_t>(list.size())));
  std::vector<Position> positions;
  for (rollback::Landing const& landing : list) positions.push_back(landing.position);
  return positions;
}

/// Saves a slot, and sees that its size was foretold.
inline Verdict save(Engine const& engine, std::size_t s, Position p, Blob& blob, SaveOptions const& options = {}) {
  MemoryLayout const layout(engine.memory);
  blob.clear();
  Verdict const verdict =
      rollback::dsv4::save(engine.memory, engine.slot(s), p, layout, options, [&blob](void const* data, std::size_t n) {
        auto const* const first = static_cast<unsigned char const*>(data);
        blob.insert(blob.end(), first, first + n);
        return true;
      });
  REQUIRE(blob.size() == rollback::saved_bytes(engine.books(), engine.slot(s), p, layout.state_layout(), options));
  return verdict;
}
inline Blob saved(Engine const& engine, std::size_t s, Position p, SaveOptions const& options = {}) {
  Blob blob;
  REQUIRE(save(engine, s, p, blob, options) == Verdict::accepted);
  return blob;
}

/// Reads a blob from its first byte on.
struct Reader {
  Blob const& blob;
  std::size_t at = 0;
  bool operator()(void* data, std::size_t size) {
    if (size > blob.size() - at) return false;
    std::memcpy(data, blob.data() + at, size);
    at += size;
    return true;
  }
};

/// Checks, then loads what a slot that held `tokens` was saved as at `p`.
inline Verdict load(Engine& engine, std::size_t s, Blob const& blob, Tokens const& tokens, Position p,
                    LoadAs as = LoadAs::state) {
  MemoryLayout const layout(engine.memory);
  Verdict const would = rollback::dsv4::check(engine.memory, layout, as, Reader{blob});
  Slot slot = engine.slot(s);
  Verdict const verdict = rollback::dsv4::load(engine.memory, slot, layout, as, Reader{blob});
  REQUIRE(would == verdict);
  if (verdict == Verdict::accepted) {
    engine.tokens[s].assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(p));
    engine.outputs[s].assign(static_cast<std::size_t>(p), 0);
    REQUIRE(engine.tip(s) == p);
  }
  return verdict;
}

/// An engine that was never rolled back, with nothing in it.
inline Engine fresh_engine(Engine const& like, std::int32_t max_rows = 12) {
  MemoryOptions options = small_options();
  options.max_context = like.memory.options().max_context;
  options.max_rows = max_rows;
  return Engine(options, like.memory.shape());
}

/// What of a slot without an armed restore is not as in slot 0 of a fresh run over the same tokens: what a later step
/// can read, or what its own rows attended to. Empty where nothing is.
inline std::string difference(Engine& engine, std::size_t s, Engine& fresh) {
  if (engine.tokens[s] != fresh.tokens[0] || engine.tip(s) != fresh.tip(0)) return "the tokens";
  for (std::size_t p = 0; p < engine.tokens[s].size(); ++p) {
    std::uint32_t const output = engine.outputs[s][p];
    if (output != 0 && output != fresh.outputs[0][p]) return "the output at " + std::to_string(p);
  }
  auto const index = static_cast<std::int32_t>(s);
  bool const equal = same_bits(readable_state(engine.memory, index), readable_state(fresh.memory, 0));
  return equal ? "" : "the state at " + std::to_string(engine.tip(s));
}

/// Whether a slot, fed `more` tokens, has what a fresh run over all its tokens has.
inline void equal_to_fresh_run(Engine& engine, std::size_t s, std::size_t more) {
  if (engine.books().is_armed(engine.slot(s)) && more == 0) more = 1;
  engine.feed(s, more, 99);
  Engine fresh = fresh_engine(engine);
  fresh.feed(0, engine.tokens[s]);
  REQUIRE(difference(engine, s, fresh) == "");
}

}  // namespace dsv4_engine
