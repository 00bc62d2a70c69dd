// What the compressors of one layer do with a chunk: project, emit the blocks that are complete, keep states, persist.
#pragma once

#include <rollback/dsv4/memory.hpp>
#include <rollback/kernels/compress.hpp>
#include <rollback/kernels/gather.hpp>
#include <rollback/kernels/persist.hpp>
#include <rollback/kernels/project.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace dsv4 {

/// The weights of one compressor, F32, row-major; pooled is 512 (CSA, HCA) or 128 (LID) in the released models, width
/// twice that with overlap (CSA, LID).
struct CompressorWeights {
  float const* kv = nullptr;    // [width, inputs]
  float const* gate = nullptr;  // [width, inputs]
  float const* ape = nullptr;   // [ratio, width] bias of the score by the position inside a block
  float const* norm = nullptr;  // [pooled]
};

/// Runs one compressor of one layer over a chunk. Blocks are emitted from the state before the chunk and the chunk's
/// own rows; only then are these persisted, since a chunk longer than the ring would overwrite rows still to be read.
///
/// @param x  [chunk.rows, inputs] the attention's normed input
template <class Launcher>
void compress(Launcher const& launcher, Memory& memory, Chunk const& chunk, Compressor compressor, int layer,
              CompressorWeights const& weights, kernels::Rope const& rope, float epsilon, float const* x,
              std::int64_t inputs) {
  Memory::LayerView const& view = memory.view(compressor, layer);
  Lists const& lists = chunk.lists[static_cast<int>(compressor)];
  RowGeometry const geometry = Memory::geometry(compressor);
  std::int64_t const width = memory.width(compressor);
  float* const fresh_kv = memory.fresh_kv(compressor);
  float* const fresh_score = memory.fresh_score(compressor);

  kernels::ProjectParams project;
  project.x = x;
  project.kv_weight = weights.kv;
  project.gate_weight = weights.gate;
  project.ape = weights.ape;
  project.positions = chunk.positions;
  project.ratio = geometry.block;
  project.rows = chunk.rows;
  project.inputs = inputs;
  project.width = width;
  project.kv = fresh_kv;
  project.score = fresh_score;
  launcher.launch(chunk.rows, kernels::Project{}, project);

  if (lists.blocks > 0) {
    kernels::CompressParams p;
    p.state_kv = view.kv;
    p.state_score = view.score;
    p.fresh_kv = fresh_kv;
    p.fresh_score = fresh_score;
    p.previous = lists.block_previous;
    p.current = lists.block_current;
    p.cache_row = lists.block_row;
    p.rope_position = lists.block_position;
    p.cache = view.cache;
    p.norm = weights.norm;
    p.epsilon = epsilon;
    p.rope = rope;
    p.hadamard = compressor == Compressor::lid && memory.options().hadamard;
    p.rounding = !memory.options().rounding      ? kernels::Rounding::none
                 : compressor == Compressor::lid ? kernels::Rounding::fp4
                                                 : kernels::Rounding::fp8;
    p.state_rows = view.state_rows;
    p.ratio = geometry.block;
    p.width = width;
    p.pooled = memory.pooled(compressor);
    p.overlap = geometry.overlap;
    p.blocks = lists.blocks;
    launcher.launch(p.blocks, kernels::Compress{}, p);
  }
  if (lists.snapshots > 0) {
    kernels::GatherParams p;
    p.state_kv = view.kv;
    p.state_score = view.score;
    p.fresh_kv = fresh_kv;
    p.fresh_score = fresh_score;
    p.source = lists.snapshot_source;
    p.destination = lists.snapshot_destination;
    p.state_rows = view.state_rows;
    p.width = width;
    p.n = std::int64_t{lists.snapshots} * geometry.rows;
    launcher.launch(p.n, kernels::Gather{}, p);
  }
  kernels::PersistParams p;
  p.fresh_kv = fresh_kv;
  p.fresh_score = fresh_score;
  p.source = lists.persist_source;
  p.destination = lists.persist_destination;
  p.state_kv = view.kv;
  p.state_score = view.score;
  p.width = width;
  p.n = chunk.rows;
  launcher.launch(p.n, kernels::Persist{}, p);
}

/// Runs the compressors of a layer of ratio 4 (CSA and, with `indexer`, LID) or 128 (HCA) over a chunk, after the
/// chunk's `restore` and before attention reads the caches: the row that a token completes is visible to that token.
///
/// @param indexer  the weights of LID in a layer of ratio 4; null in one of ratio 128
template <class Launcher>
void compress_layer(Launcher const& launcher, Memory& memory, Chunk const& chunk, int layer,
                    CompressorWeights const& attention, CompressorWeights const* indexer, kernels::Rope const& rope,
                    float epsilon, float const* x, std::int64_t inputs) {
  bool const overlap = memory.shape().ratios[static_cast<std::size_t>(layer)] == csa_ratio;
  compress(launcher, memory, chunk, overlap ? Compressor::csa : Compressor::hca, layer, attention, rope, epsilon, x,
           inputs);
  if (indexer != nullptr) {
    compress(launcher, memory, chunk, Compressor::lid, layer, *indexer, rope, epsilon, x, inputs);
  }
}

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback
