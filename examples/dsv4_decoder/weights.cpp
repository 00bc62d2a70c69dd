#include "weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <string>

namespace dsv4_decoder {
namespace {

// Reads tensors of one file, each with the shape that it must have, fastest first as the file states it.
class Tensors {
 public:
  explicit Tensors(Gguf const& file) : file_(file) {}

  [[nodiscard]] std::vector<float> floats(std::string const& name, std::vector<std::int64_t> const& shape) const {
    return file_.floats(checked(name, shape));
  }

  [[nodiscard]] Matrix matrix(std::string const& name, std::int64_t inputs, std::int64_t outputs) const {
    return {floats(name, {inputs, outputs}), outputs, inputs};
  }

  // `count` matrices of the same shape, one below the other.
  [[nodiscard]] Matrix stack(std::string const& name, std::int64_t inputs, std::int64_t outputs,
                             std::int64_t count) const {
    return {floats(name, {inputs, outputs, count}), outputs * count, inputs};
  }

  // Indices in [0, limit).
  [[nodiscard]] std::vector<std::int32_t> indices(std::string const& name, std::vector<std::int64_t> const& shape,
                                                  std::int64_t limit) const {
    std::vector<std::int32_t> values = file_.integers(checked(name, shape));
    for (std::int32_t const v : values) {
      if (v < 0 || v >= limit) {
        throw FileError(file_.name(), fmt::format("index {} is not in [0, {})", v, limit), where(name));
      }
    }
    return values;
  }

  [[nodiscard]] StreamWeights sublayer_streams(std::string const& prefix, std::int64_t width) const {
    return {matrix(prefix + "_fn.weight", streams * width, stream_logits), floats(prefix + "_scale.weight", {3}),
            floats(prefix + "_base.weight", {stream_logits})};
  }

  [[nodiscard]] CompressorTensors compressor(std::string const& prefix, std::int64_t inputs, std::int64_t pooled,
                                             int ratio) const {
    std::int64_t const width = ratio == rollback::dsv4::csa_ratio ? 2 * pooled : pooled;
    return {floats(prefix + "_kv.weight", {inputs, width}), floats(prefix + "_gate.weight", {inputs, width}),
            floats(prefix + "_ape.weight", {width, ratio}), floats(prefix + "_norm.weight", {pooled})};
  }

 private:
  [[nodiscard]] static std::string where(std::string const& name) {
    return fmt::format("tensor \"{}\"", printable(name));
  }

  [[nodiscard]] TensorInfo const& checked(std::string const& name, std::vector<std::int64_t> const& shape) const {
    TensorInfo const& info = file_.tensor(name);
    if (info.shape != shape) {
      throw FileError(file_.name(),
                      fmt::format("shape is {}, not {}", fmt::join(info.shape, " x "), fmt::join(shape, " x ")),
                      where(name));
    }
    return info;
  }

  Gguf const& file_;
};

LayerWeights read_layer(Tensors const& tensors, HyperParameters const& h, std::int64_t layer) {
  std::string const prefix = fmt::format("blk.{}.", layer);
  auto const name = [&](char const* rest) { return prefix + rest; };
  int const ratio = h.ratios[static_cast<std::size_t>(layer)];
  LayerWeights w;

  w.attention_streams = tensors.sublayer_streams(name("hc_attn"), h.width);
  w.feed_forward_streams = tensors.sublayer_streams(name("hc_ffn"), h.width);

  std::int64_t const all_heads = h.heads * h.head_width;
  w.attention_norm = tensors.floats(name("attn_norm.weight"), {h.width});
  w.query_a = tensors.matrix(name("attn_q_a.weight"), h.width, h.query_rank);
  w.query_norm = tensors.floats(name("attn_q_a_norm.weight"), {h.query_rank});
  w.query_b = tensors.matrix(name("attn_q_b.weight"), h.query_rank, all_heads);
  w.kv = tensors.matrix(name("attn_kv.weight"), h.width, h.head_width);
  w.kv_norm = tensors.floats(name("attn_kv_a_norm.weight"), {h.head_width});
  w.sinks = tensors.floats(name("attn_sinks.weight"), {h.heads});
  std::int64_t const ranks = h.output_groups * h.output_rank;
  w.output_a = tensors.matrix(name("attn_output_a.weight"), all_heads / h.output_groups, ranks);
  w.output_b = tensors.matrix(name("attn_output_b.weight"), ranks, h.width);

  if (ratio != 0) w.compressor = tensors.compressor(name("attn_compressor"), h.width, h.head_width, ratio);
  if (ratio == rollback::dsv4::csa_ratio) {
    w.indexer_compressor = tensors.compressor(name("indexer_compressor"), h.width, h.indexer_width, ratio);
    w.indexer_query = tensors.matrix(name("indexer.attn_q_b.weight"), h.query_rank, h.indexer_heads * h.indexer_width);
    w.indexer_weights = tensors.matrix(name("indexer.proj.weight"), h.width, h.indexer_heads);
  }

  w.feed_forward_norm = tensors.floats(name("ffn_norm.weight"), {h.width});
  w.router = tensors.matrix(name("ffn_gate_inp.weight"), h.width, h.experts);
  if (layer < h.hash_layers) {
    w.expert_of_token = tensors.indices(name("ffn_gate_tid2eid.weight"), {h.experts_used, h.vocabulary}, h.experts);
  } else {
    w.expert_bias = tensors.floats(name("exp_probs_b.bias"), {h.experts});
  }
  w.expert_gate = tensors.stack(name("ffn_gate_exps.weight"), h.width, h.expert_width, h.experts);
  w.expert_up = tensors.stack(name("ffn_up_exps.weight"), h.width, h.expert_width, h.experts);
  w.expert_down = tensors.stack(name("ffn_down_exps.weight"), h.expert_width, h.width, h.experts);
  w.shared_gate = tensors.matrix(name("ffn_gate_shexp.weight"), h.width, h.expert_width);
  w.shared_up = tensors.matrix(name("ffn_up_shexp.weight"), h.width, h.expert_width);
  w.shared_down = tensors.matrix(name("ffn_down_shexp.weight"), h.expert_width, h.width);
  return w;
}

}  // namespace

Weights Weights::read(Gguf const& file, HyperParameters const& hyper) {
  Tensors const tensors(file);
  Weights w;
  w.token_embedding = tensors.matrix("token_embd.weight", hyper.width, hyper.vocabulary);
  for (std::int64_t layer = 0; layer < hyper.layers; ++layer) w.layers.push_back(read_layer(tensors, hyper, layer));
  w.output_streams = {tensors.matrix("output_hc_fn.weight", streams * hyper.width, streams),
                      tensors.floats("output_hc_scale.weight", {1}),
                      tensors.floats("output_hc_base.weight", {streams})};
  w.output_norm = tensors.floats("output_norm.weight", {hyper.width});
  w.output = tensors.matrix("output.weight", hyper.width, hyper.vocabulary);
  return w;
}

}  // namespace dsv4_decoder
