// All weights of a DeepSeek-V4 model, read from a GGUF file.
//
// They are converted to F32 at load and kept that way, which is the scale of an example: an engine would keep the
// file's types and multiply by those. A model takes four bytes a parameter here, whatever its file takes.
#pragma once

#include "gguf.hpp"
#include "hyper_connections.hpp"
#include "hyper_parameters.hpp"
#include "matrix.hpp"

#include <cstdint>
#include <vector>

namespace dsv4_decoder {

/// One compressor: `width` is twice the pooled width where blocks overlap (ratio 4), else the pooled width.
struct CompressorTensors {
  std::vector<float> kv;    // [width, model width]
  std::vector<float> gate;  // [width, model width]
  std::vector<float> ape;   // [ratio, width] added to a position's scores
  std::vector<float> norm;  // [pooled width]
};

struct LayerWeights {
  StreamWeights attention_streams;
  StreamWeights feed_forward_streams;

  std::vector<float> attention_norm;  // [width]
  Matrix query_a;                     // [query_rank, width]
  std::vector<float> query_norm;      // [query_rank]
  Matrix query_b;                     // [heads * head_width, query_rank]
  Matrix kv;                          // [head_width, width]
  std::vector<float> kv_norm;         // [head_width]
  std::vector<float> sinks;           // [heads]
  Matrix output_a;                    // [output_groups * output_rank, heads / output_groups * head_width]
  Matrix output_b;                    // [width, output_groups * output_rank]

  CompressorTensors compressor;          // ratio 4 and 128
  CompressorTensors indexer_compressor;  // ratio 4
  Matrix indexer_query;                  // ratio 4: [indexer_heads * indexer_width, query_rank]
  Matrix indexer_weights;                // ratio 4: [indexer_heads, width]

  std::vector<float> feed_forward_norm;       // [width]
  Matrix router;                              // [experts, width]
  std::vector<float> expert_bias;             // [experts]; layers that choose by score
  std::vector<std::int32_t> expert_of_token;  // [vocabulary, experts_used]; layers that choose by token id
  Matrix expert_gate;                         // [experts * expert_width, width]
  Matrix expert_up;                           // [experts * expert_width, width]
  Matrix expert_down;                         // [experts * width, expert_width]
  Matrix shared_gate;                         // [expert_width, width]
  Matrix shared_up;                           // [expert_width, width]
  Matrix shared_down;                         // [width, expert_width]
};

struct Weights {
  Matrix token_embedding;            // [vocabulary, width]
  std::vector<LayerWeights> layers;  // the main layers
  StreamWeights output_streams;
  std::vector<float> output_norm;  // [width]
  Matrix output;                   // [vocabulary, width]

  /// Reads every tensor that the main layers use; others, such as an MTP block's, are left alone.
  /// @throws FileError  a tensor is missing, or its shape or type is not the one that `hyper` asks for (names the
  /// tensor,
  ///                    the shape found and the shape expected), or a token's expert does not exist
  [[nodiscard]] static Weights read(Gguf const& file, HyperParameters const& hyper);
};

}  // namespace dsv4_decoder
