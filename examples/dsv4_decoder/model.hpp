// The DeepSeek-V4 decoder: tokens in, logits out, with its state kept by `rollback::dsv4::Memory`.
#pragma once

#include "hyper_connections.hpp"
#include "hyper_parameters.hpp"
#include "rotation.hpp"
#include "weights.hpp"

#include <rollback/dsv4/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dsv4_decoder {

struct ModelOptions {
  std::int32_t max_rows = 64;         // most rows of a chunk
  std::int64_t max_positions = 4096;  // positions of a sequence are below this
  std::int64_t top_k = 0;             // rows that the indexer selects; 0: as the model's file says
  std::int32_t workers = 0;           // teams that share the rows of a chunk; 0: two a hardware thread
  bool hadamard = true;               // transforms the indexer's queries, as `Memory` must its rows
  bool rounding = false;  // rounds raw rows to FP8 and the indexer's queries to FP4, as the model was trained

  // For tests: what a part of the attention contributes.
  bool attend_csa_rows = true;  // compressed rows of ratio 4
  bool attend_hca_rows = true;  // compressed rows of ratio 128
};

/// Runs chunks of tokens through all layers. All arithmetic is F32.
///
/// A token's logits have the same bits whatever the chunk it comes in, the other slots in it, and the number of workers
/// and threads: every row is computed by itself, by library calls whose shapes depend on its position alone.
class Model {
 public:
  /// Reads a model and allocates everything that `forward` needs.
  /// @throws FileError              the file's metadata or tensors are not a usable model
  /// @throws std::invalid_argument  an option is out of range
  Model(Gguf const& file, ModelOptions const& options);

  [[nodiscard]] HyperParameters const& hyper() const noexcept { return hyper_; }
  /// Of the file that the model was read from: states of one model are of no use to another.
  [[nodiscard]] std::uint64_t file_checksum() const noexcept { return file_checksum_; }
  [[nodiscard]] ModelOptions const& options() const noexcept { return options_; }  ///< 0 replaced by what it stands for

  /// Runs one planned chunk: carries out its restores, writes the state of its rows into `memory`, and computes the
  /// logits that are wanted.
  ///
  /// Layer by layer over the whole chunk. In each, all raw rows are written first, then the compressors run, then
  /// attention reads. Padded rows are skipped. Never allocates; not for two threads at once, as scratch is shared.
  ///
  /// @param chunk         rows, slots and positions, and the index lists of every component
  /// @param tokens        [chunk.rows] ids in [0, vocabulary); not read for padded rows
  /// @param wants_logits  [chunk.rows] 0 or 1; not read for padded rows
  /// @param logits        [wanted rows, vocabulary] in the order of the rows
  /// @throws std::invalid_argument  too many rows, a token or position out of range, or a memory that was made for
  ///                                another shape or with other `hadamard` or `rounding`; nothing has been written
  void forward(rollback::dsv4::Memory& memory, rollback::dsv4::Chunk const& chunk, std::int32_t const* tokens,
               std::uint8_t const* wants_logits, float* logits);

 private:
  // Scratch of one row while one worker has it.
  struct Worker {
    std::vector<float> input;             // [width] of a sublayer, then normed
    std::vector<float> latent;            // [query_rank]
    std::vector<float> window;            // [window, head_width] raw rows in order of position
    std::vector<float> selected;          // [top_k, head_width] compressed rows that the indexer selected
    std::vector<float> weights;           // [window + attended compressed rows]
    std::vector<float> attended;          // [heads, head_width]
    std::vector<float> groups;            // [output_groups, output_rank]
    std::vector<float> result;            // [width] of a sublayer
    std::vector<float> dots;              // [visible rows]
    std::vector<float> scores;            // [visible rows] of the indexer
    std::vector<std::int32_t> rows;       // [top_k] that the indexer selected
    std::vector<float> expert_scores;     // [experts]
    std::vector<float> biased;            // [experts]
    std::vector<std::int32_t> chosen;     // [experts_used]
    std::vector<float> expert_weights;    // [experts_used]
    std::vector<float> hidden;            // [2, expert_width]
    std::vector<float> expert_result;     // [width]
    std::vector<std::uint64_t> ordering;  // [visible rows or experts]
  };

  // What the rows of a chunk carry from one step to the next.
  struct Rows {
    std::vector<float> streams;          // [max_rows, streams, width]
    std::vector<StreamMix> mix;          // [max_rows] of the sublayer at work
    std::vector<float> input;            // [max_rows, width] of attention and of the compressors
    std::vector<float> queries;          // [max_rows, heads, head_width]
    std::vector<float> indexer_queries;  // [max_rows, indexer_heads, indexer_width]
    std::vector<float> indexer_weights;  // [max_rows, indexer_heads]
    std::vector<std::int32_t> wanted;    // [max_rows] rows whose logits are wanted
  };

  // The steps of one row. `layer` and `row` are in range, the row is not padded.
  void embed(std::int32_t row, std::int32_t token);
  void project(rollback::dsv4::Memory& memory, rollback::dsv4::Chunk const& chunk, int layer, std::int32_t row,
               Worker& worker);
  void attend(rollback::dsv4::Memory& memory, rollback::dsv4::Chunk const& chunk, int layer, std::int32_t row,
              Worker& worker);
  void feed_forward(int layer, std::int32_t row, std::int32_t token, Worker& worker);
  void head(std::int32_t row, Worker& worker, float* logits);

  void check(rollback::dsv4::Memory const& memory, rollback::dsv4::Chunk const& chunk,
             std::int32_t const* tokens) const;
  [[nodiscard]] MatrixView select(rollback::dsv4::Memory const& memory, int layer, std::int32_t slot,
                                  std::int64_t visible, std::int32_t row, Worker& worker) const;
  [[nodiscard]] rollback::kernels::Rope const& rope(int layer) const;

  /// Calls `body(i, worker)` for i in [0, count), shared among the workers.
  template <class Body>
  void spread(std::int32_t count, Body const& body);

  ModelOptions options_;
  std::uint64_t file_checksum_;
  HyperParameters hyper_;
  Weights weights_;
  rollback::kernels::Rope plain_rope_;       // layers of ratio 0
  rollback::kernels::Rope compressed_rope_;  // all others
  Rows rows_;
  std::vector<Worker> workers_;
};

}  // namespace dsv4_decoder
