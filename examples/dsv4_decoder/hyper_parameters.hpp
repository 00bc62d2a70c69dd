// Every number of a DeepSeek-V4 model that its GGUF file states and the forward pass uses.
#pragma once

#include "gguf.hpp"

#include <rollback/dsv4/shape.hpp>
#include <rollback/kernels/rope.hpp>

#include <cstdint>
#include <vector>

namespace dsv4_decoder {

/// The model as its file describes it. Widths are in values, `window` and `context` in tokens.
struct HyperParameters {
  std::int64_t layers = 0;  // main layers; an appended MTP block is not among them
  std::int64_t context = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;  // of one residual stream

  std::int64_t heads = 0;
  std::int64_t head_width = 0;    // of a query head, and of the one row that is key and value
  std::int64_t rotary_width = 0;  // trailing values that are rotated, of heads and of the indexer's rows
  std::int64_t query_rank = 0;    // between the two projections of the queries
  std::int64_t output_groups = 0;
  std::int64_t output_rank = 0;  // of each group
  std::int64_t window = 0;
  std::vector<int> ratios;  // [layers] 0, 4 or 128
  std::int64_t indexer_heads = 0;
  std::int64_t indexer_width = 0;
  std::int64_t indexer_top_k = 0;

  double rope_base = 0.0;             // layers of ratio 0, no YaRN
  double compressed_rope_base = 0.0;  // all others, with YaRN
  rollback::kernels::Yarn yarn{};
  float rms_epsilon = 0.0f;

  std::int64_t experts = 0;
  std::int64_t experts_used = 0;
  std::int64_t expert_width = 0;  // hidden width of a routed expert and of the shared one
  std::int64_t hash_layers = 0;   // the first layers, which choose experts by token id
  bool normalise_experts = false;
  float expert_scale = 0.0f;
  std::vector<float> expert_limit;         // [layers] SwiGLU clamp of the routed experts
  std::vector<float> shared_expert_limit;  // [layers] and of the shared one

  int sinkhorn_iterations = 0;
  float stream_epsilon = 0.0f;

  /// Reads and checks the metadata of a file of architecture `deepseek4`. Nothing that the result depends on is
  /// guessed: a key that is missing is an error, also where other loaders fall back to a default.
  ///
  /// `block_count` counts an appended MTP block (multi-token prediction), which is not run here. It is there when
  /// `nextn_predict_layers` says so and the first tensor of the block exists; otherwise all blocks are main layers.
  ///
  /// @throws FileError  a key is missing, of another type, out of range, or contradicts another; names the key
  [[nodiscard]] static HyperParameters read(Gguf const& file);

  /// What decides the bytes of the state: see `rollback::dsv4::Memory`.
  [[nodiscard]] rollback::dsv4::ModelShape shape() const;
};

}  // namespace dsv4_decoder
