// All state of a DSV4 model's sequences: raw window rows, compressed caches, compressor states with their tiers, and
// the books that keep them together.
#pragma once

#include <rollback/books.hpp>
#include <rollback/dsv4/shape.hpp>
#include <rollback/plane.hpp>
#include <rollback/planes/owning.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace dsv4 {

/// The three compressors. CSA and LID run in layers of ratio 4, HCA in layers of ratio 128.
enum class Compressor : std::uint8_t { csa, hca, lid };
inline constexpr int compressors = 3;

/// What a tensor of the memory holds.
enum class Path : std::uint8_t { window, csa_cache, hca_cache, lid_cache, csa_state, hca_state, lid_state };
inline constexpr int paths = 7;

/// The path's name, for tables and messages. Never null; static storage.
[[nodiscard]] constexpr char const* text(Path path) noexcept {
  switch (path) {
    case Path::window:
      return "window";
    case Path::csa_cache:
      return "CSA cache";
    case Path::hca_cache:
      return "HCA cache";
    case Path::lid_cache:
      return "LID cache";
    case Path::csa_state:
      return "CSA state";
    case Path::hca_state:
      return "HCA state";
    case Path::lid_state:
      return "LID state";
  }
  return "";
}

/// Depths, sizes and forms of a memory. Depths are in states, the rest in tokens unless it says otherwise.
struct MemoryOptions {
  std::int32_t slots = 1;            // sequences kept at once
  std::int32_t per_token = 0;        // depth of the per-token tier; 0 is off
  std::int32_t aligned = 0;          // depth of the aligned tier; 0 is off
  Position quantum = hca_ratio;      // of the aligned tier; any, but only at multiples of 128 does HCA need no state
  Position max_context = 0;          // positions are below this; at least 1
  std::int32_t max_rows = 1;         // of a batch
  std::int32_t max_chunk_rows = 0;   // of a chunk; 0: max_rows
  std::int32_t max_chunks = 0;       // of a batch; 0: max_rows
  Position raw_rows = 0;             // raw rows kept a slot; 0: what the reach of both tiers needs
  bool entry_copy = false;           // a live plane more per open batch: a failed batch leaves the plane at entry
  std::int32_t steps_in_flight = 1;  // batches that may be open at once; in [1, 64]
  std::int32_t pins = 0;             // landings a slot that the engine places; in [0, 4096]; 0 is off
  bool hadamard = true;              // LID rows are stored after a Hadamard transform
  bool rounding = false;             // compressed rows are rounded as in training: CSA, HCA to FP8, LID to FP4
};

/// One tensor of F32 values: [slots, rows, width], width fastest. States come twice, keys and scores.
struct Tensor {
  Path path;
  int layer;
  bool scores;        // of a state: the scores, not the keys
  std::int64_t rows;  // a slot
  std::int64_t width;
  std::size_t bytes;  // all slots
};

/// Bytes of one path over all its layers and slots, by what they are for.
struct PathBytes {
  Path path;
  int layers = 0;
  std::size_t plane = 0;  // one state of one slot, all layers: keys and scores; of a cache or window all its rows
  std::size_t live = 0;
  std::size_t per_token = 0;   // the tier's depth
  std::size_t aligned = 0;     // the tier's depth
  std::size_t spares = 0;      // both tiers'; with pins one more each where the per-token tier is on
  std::size_t entry_copy = 0;  // one state an open batch
  std::size_t pins = 0;
  [[nodiscard]] std::size_t total() const noexcept { return live + per_token + aligned + spares + entry_copy + pins; }
};

/// What a memory in its own tensors takes, in bytes: equal to the size of the object and all that it holds.
struct MemoryBudget {
  PathBytes paths[dsv4::paths];
  std::size_t scratch = 0;  // the chunk's own rows, before they are persisted, and the index lists of every open batch
  std::size_t books = 0;    // bookkeeping: the books, the tensors' pointers and sizes, the padding between tensors
  [[nodiscard]] std::size_t tensors() const noexcept {
    std::size_t total = 0;
    for (PathBytes const& p : paths) total += p.total();
    return total;
  }
  [[nodiscard]] std::size_t total() const noexcept { return tensors() + scratch + books; }
};

/// One chunk, planned for every compressor. Each open batch has lists of its own: they stay until the memory plans
/// another chunk of the same batch, or, once that batch is over, any chunk. Rows, slots and positions are the batch's.
struct Chunk {
  std::int32_t rows = 0;
  Slot const* slots = nullptr;          // [rows] index < 0: padding
  Position const* positions = nullptr;  // [rows]
  Shape shape;
  Lists lists[compressors];  // of compressors that the model lacks: empty
};

/// The state of `slots` sequences of one DSV4 model, in tensors that the engine owns, or that the memory does.
///
/// The raw window and the compressed caches keep no history: a window row is overwritten `raw_rows` positions later,
/// which a guard watches, and a compressed row is rewritten before a query of a later timeline may see it. The states
/// of the compressors are planes with a per-token and an aligned tier, kept by copies of the whole ring. HCA keeps
/// nothing at multiples of 128, where its block starts.
class Memory {
 public:
  /// The tensors of a memory, in the order in which the constructor takes them.
  /// @throws std::invalid_argument naming the option and its allowed range
  [[nodiscard]] static std::vector<Tensor> tensors(ModelShape const& shape, MemoryOptions const& options);
  /// What a memory would take; asked before anything exists. @throws as `tensors`
  [[nodiscard]] static MemoryBudget budget(ModelShape const& shape, MemoryOptions const& options);
  /// Raw rows a slot that the reach of both tiers needs: the window below the oldest landing, and all the batches that
  /// may be open at once. Pins do not count: one at p has its window until a row at p + raw_rows - (window - 1) or
  /// above is written, so one below the reach of both tiers needs `MemoryOptions::raw_rows`.
  /// @throws as `tensors`
  [[nodiscard]] static Position raw_rows(ModelShape const& shape, MemoryOptions const& options);

  /// A memory in its own zeroed tensors.
  /// @throws std::invalid_argument as `tensors`; std::bad_alloc
  Memory(ModelShape const& shape, MemoryOptions const& options);
  /// A memory in the engine's tensors, which outlive it. Their content does not matter.
  /// @param data  one pointer a tensor of `tensors`, not null, 16-byte aligned, in its order
  Memory(ModelShape const& shape, MemoryOptions const& options, std::vector<float*> const& data);

  [[nodiscard]] ModelShape const& shape() const noexcept { return shape_; }
  [[nodiscard]] MemoryOptions const& options() const noexcept { return options_; }  // defaults filled in
  [[nodiscard]] Books& books() noexcept { return books_; }
  [[nodiscard]] Books const& books() const noexcept { return books_; }
  /// The index of a compressor among the books' components; -1 where the model lacks it.
  [[nodiscard]] std::int32_t component(Compressor compressor) const noexcept {
    return component_of_[static_cast<int>(compressor)];
  }

  /// The first value of a tensor of `tensors`.
  [[nodiscard]] float* data(Tensor const& tensor) const noexcept;
  /// The raw row (key and value) of a position, [head_width]. Rows of the last `raw_rows` positions exist.
  [[nodiscard]] float* raw_row(int layer, std::int32_t slot, Position p) noexcept {
    std::int64_t const row = slot * options_.raw_rows + p % options_.raw_rows;
    return raw_[static_cast<std::size_t>(layer)] + row * shape_.head_width;
  }
  /// The compressed rows of a CSA or HCA layer, [max_context / ratio, head_width]; row w is of positions
  /// [ratio * w, ratio * w + ratio).
  [[nodiscard]] float const* compressed_rows(int layer, std::int32_t slot) const noexcept {
    LayerView const& view = layers_[static_cast<std::size_t>(layer)];
    return view.cache + slot * view.cache_rows * shape_.head_width;
  }
  /// The indexer's rows of a CSA layer, [max_context / 4, indexer_width].
  [[nodiscard]] float const* indexer_rows(int layer, std::int32_t slot) const noexcept {
    LayerView const& view = indexer_layers_[static_cast<std::size_t>(layer)];
    return view.cache + slot * view.cache_rows * shape_.indexer_width;
  }

  /// One compressor of one layer, as kernels see it.
  struct LayerView {
    float* kv = nullptr;     // [state_rows, width] keys: slots, places, ring rows
    float* score = nullptr;  // [state_rows, width]
    float* cache = nullptr;  // [slots, cache_rows, pooled]
    std::int64_t state_rows = 0;
    std::int64_t cache_rows = 0;  // a slot
  };
  /// The view of a layer's CSA or HCA; of its LID with `Compressor::lid`. Null pointers where the layer has none.
  [[nodiscard]] LayerView const& view(Compressor compressor, int layer) const noexcept {
    return (compressor == Compressor::lid ? indexer_layers_ : layers_)[static_cast<std::size_t>(layer)];
  }
  /// The tensors of a compressor's states, keys and scores of every layer: what a restore copies.
  [[nodiscard]] std::vector<PlaneTensor> const& state_tensors(Compressor compressor) const noexcept {
    return state_tensors_[static_cast<int>(compressor)];
  }
  /// Where the chunk's own rows go before they are persisted: [max_chunk_rows, width], shared by all layers, and by all
  /// open batches: a chunk reads what the one before it wrote, so they run one after another whatever is planned.
  [[nodiscard]] float* fresh_kv(Compressor compressor) noexcept { return fresh_[static_cast<int>(compressor)].data(); }
  [[nodiscard]] float* fresh_score(Compressor compressor) noexcept {
    auto const c = static_cast<int>(compressor);
    return fresh_[c].data() + static_cast<std::int64_t>(options_.max_chunk_rows) * width(compressor);
  }
  /// The width of a state row: of both halves with overlap.
  [[nodiscard]] std::int64_t width(Compressor compressor) const noexcept { return width(shape_, compressor); }
  /// The width of a compressed row.
  [[nodiscard]] std::int64_t pooled(Compressor compressor) const noexcept {
    return compressor == Compressor::lid ? shape_.indexer_width : shape_.head_width;
  }
  [[nodiscard]] static constexpr RowGeometry geometry(Compressor compressor) noexcept {
    return compressor == Compressor::hca ? RowGeometry{hca_ratio, hca_ratio, false}
                                         : RowGeometry{2 * csa_ratio, csa_ratio, true};
  }
  /// The numbers that lists of a compressor are written in.
  [[nodiscard]] RowMap const& row_map(Compressor compressor) const noexcept {
    return row_maps_[static_cast<int>(compressor)];
  }

  /// Plans a chunk of an open batch for every compressor. Never allocates. `batch` is the one that was begun. Chunks of
  /// different batches may be planned before any of them runs; how long `out` is valid stands with `Chunk`.
  [[nodiscard]] Verdict plan(Ticket const& ticket, std::int32_t chunk, Batch const& batch, Chunk& out) noexcept;

 private:
  struct ListMemory {
    std::vector<std::int32_t> rows;       // [steps_in_flight, list_rows of the worst shape]
    std::vector<std::int64_t> positions;  // [steps_in_flight, list_positions of the worst shape]
  };

  [[nodiscard]] static Position rejectable_rows(ModelShape const& shape, MemoryOptions const& o) noexcept;
  [[nodiscard]] static Position rows_in_reach(ModelShape const& shape, MemoryOptions const& o) noexcept;
  [[nodiscard]] static MemoryOptions resolved(ModelShape const& shape, MemoryOptions options);
  [[nodiscard]] static BooksOptions books_options(ModelShape const& shape, MemoryOptions const& options);
  [[nodiscard]] static Component component_of(Compressor compressor, MemoryOptions const& options) noexcept;
  [[nodiscard]] static Places places_of(Compressor compressor, MemoryOptions const& options) noexcept;
  [[nodiscard]] static std::int64_t width(ModelShape const& shape, Compressor compressor) noexcept {
    if (compressor == Compressor::lid) return 2 * static_cast<std::int64_t>(shape.indexer_width);
    return (compressor == Compressor::csa ? 2 : 1) * static_cast<std::int64_t>(shape.head_width);
  }
  [[nodiscard]] static std::int64_t list_rows(Lengths const& n) noexcept {
    return 2 * std::int64_t{n.restores} + 2 * std::int64_t{n.snapshots} + 2 * std::int64_t{n.rows} +
           2 * std::int64_t{n.block_reads} + n.blocks;
  }
  [[nodiscard]] static std::int64_t list_positions(Lengths const& n) noexcept {
    return 2 * std::int64_t{n.blocks} + n.rows;
  }
  void attach(std::vector<float*> const& data);

  ModelShape shape_;
  MemoryOptions options_;
  Books books_;
  std::unique_ptr<OwnedTensors> owned_;
  std::int32_t component_of_[compressors] = {-1, -1, -1};
  std::vector<float*> raw_;                // [layers]
  std::vector<LayerView> layers_;          // [layers]
  std::vector<LayerView> indexer_layers_;  // [layers]
  std::vector<PlaneTensor> state_tensors_[compressors];
  std::vector<float> fresh_[compressors];  // keys, then scores
  RowMap row_maps_[compressors];
  ListMemory lists_[compressors];
};

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback

#include <rollback/detail/dsv4_memory.hpp>
