// A complete DeepSeek-V4 file in miniature, with every width different from every other, for tests to take parts out of
// or to change: three layers of ratio 0, 4 and 128, the first of which chooses experts by token id.
#pragma once

#include "gguf.hpp"

#include "gguf_builder.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct SmallModel {
  struct Value {
    std::uint32_t type;
    std::string bytes;
  };
  struct Tensor {
    std::vector<std::int64_t> shape;  // fastest first
    bool indices = false;             // I32, otherwise F32
    float first = 0;                  // value i is first + i; no two tensors share a value
    std::int32_t first_index = 3;     // value 0 where these are indices; value i behind it is (3 + i) % experts
  };

  std::map<std::string, Value> keys;
  std::map<std::string, Tensor> tensors;

  static constexpr std::int64_t width = 12, heads = 6, head_width = 10, query_rank = 7, groups = 3, output_rank = 5,
                                indexer_heads = 14, indexer_width = 8, experts = 5, used = 2, expert_width = 9,
                                vocabulary = 11;

  SmallModel() {
    text("general.architecture", "deepseek4");
    u32("block_count", 3);
    u32("context_length", 1000);
    u32("vocab_size", vocabulary);
    u32("embedding_length", width);
    u32("attention.head_count", heads);
    u32("attention.head_count_kv", 1);
    u32("attention.key_length", head_width);
    u32("attention.value_length", head_width);
    f32("attention.layer_norm_rms_epsilon", 1e-6f);
    u32("attention.q_lora_rank", query_rank);
    u32("attention.output_lora_rank", output_rank);
    u32("attention.output_group_count", groups);
    i32s("attention.compress_ratios", {0, 4, 128});
    f32("attention.compress_rope_freq_base", 160000.0f);
    u32("attention.sliding_window", 128);
    u32("attention.indexer.head_count", indexer_heads);
    u32("attention.indexer.key_length", indexer_width);
    u32("attention.indexer.top_k", 3);
    u32("rope.dimension_count", 4);
    f32("rope.freq_base", 10000.0f);
    text("deepseek4.rope.scaling.type", "yarn");
    f32("rope.scaling.factor", 16.0f);
    u32("rope.scaling.original_context_length", 65536);
    f32("rope.scaling.yarn_beta_fast", 32.0f);
    f32("rope.scaling.yarn_beta_slow", 1.0f);
    u32("expert_count", experts);
    u32("expert_used_count", used);
    u32("expert_shared_count", 1);
    u32("expert_feed_forward_length", expert_width);
    u32("expert_gating_func", 4);
    f32("expert_weights_scale", 1.5f);
    keys["deepseek4.expert_weights_norm"] = {gguf_type::boolean, raw(std::uint8_t{1})};
    f32s("swiglu_clamp_exp", {10.0f, 11.0f, 12.0f});
    f32s("swiglu_clamp_shexp", {20.0f, 21.0f, 22.0f});
    u32("hash_layer_count", 1);
    u32("hyper_connection.count", 4);
    u32("hyper_connection.sinkhorn_iterations", 20);
    f32("hyper_connection.epsilon", 1e-6f);

    tensor("token_embd.weight", {width, vocabulary});
    tensor("output_norm.weight", {width});
    tensor("output.weight", {width, vocabulary});
    tensor("output_hc_fn.weight", {4 * width, 4});
    tensor("output_hc_base.weight", {4});
    tensor("output_hc_scale.weight", {1});
    for (int layer = 0; layer < 3; ++layer) add_layer("blk." + std::to_string(layer) + ".", layer);
  }

  // Numbers, under the architecture's prefix.
  void u32(std::string const& key, std::uint32_t value) { keys["deepseek4." + key] = {gguf_type::u32, raw(value)}; }
  void f32(std::string const& key, float value) { keys["deepseek4." + key] = {gguf_type::f32, raw(value)}; }
  void i32s(std::string const& key, std::vector<std::int32_t> const& values) {
    keys["deepseek4." + key] = {gguf_type::array,
                                raw(gguf_type::i32) + raw<std::uint64_t>(values.size()) + raw_all(values)};
  }
  void f32s(std::string const& key, std::vector<float> const& values) {
    keys["deepseek4." + key] = {gguf_type::array,
                                raw(gguf_type::f32) + raw<std::uint64_t>(values.size()) + raw_all(values)};
  }
  // Under its whole name.
  void text(std::string const& key, std::string const& value) { keys[key] = {gguf_type::string, counted(value)}; }

  void tensor(std::string const& name, std::vector<std::int64_t> const& shape) {
    tensors[name] = {shape, false, 4096.0f * static_cast<float>(tensors.size())};
  }

  [[nodiscard]] GgufBuilder builder() const {
    GgufBuilder file;
    for (auto const& [name, value] : keys) file.key(name, value.type, value.bytes);
    for (auto const& [name, t] : tensors) {
      std::int64_t count = 1;
      for (std::int64_t n : t.shape) count *= n;
      std::string data;
      for (std::int64_t i = 0; i < count; ++i) {
        auto const index = i == 0 ? t.first_index : static_cast<std::int32_t>((3 + i) % experts);
        data += t.indices ? raw(index) : raw(t.first + static_cast<float>(i));
      }
      file.tensor(name, t.shape, t.indices ? 26 : 0, data);
    }
    return file;
  }
  [[nodiscard]] dsv4_decoder::Gguf parse() const { return dsv4_decoder::Gguf::parse(builder().bytes(), "small.gguf"); }

 private:
  void add_compressor(std::string const& prefix, std::int64_t pooled, std::int64_t ratio) {
    std::int64_t const row = ratio == 4 ? 2 * pooled : pooled;
    tensor(prefix + "_kv.weight", {width, row});
    tensor(prefix + "_gate.weight", {width, row});
    tensor(prefix + "_ape.weight", {row, ratio});
    tensor(prefix + "_norm.weight", {pooled});
  }

  void add_layer(std::string const& prefix, int layer) {
    for (char const* const sublayer : {"hc_attn", "hc_ffn"}) {
      tensor(prefix + sublayer + "_fn.weight", {4 * width, 24});
      tensor(prefix + sublayer + "_base.weight", {24});
      tensor(prefix + sublayer + "_scale.weight", {3});
    }
    tensor(prefix + "attn_norm.weight", {width});
    tensor(prefix + "attn_q_a.weight", {width, query_rank});
    tensor(prefix + "attn_q_a_norm.weight", {query_rank});
    tensor(prefix + "attn_q_b.weight", {query_rank, heads * head_width});
    tensor(prefix + "attn_kv.weight", {width, head_width});
    tensor(prefix + "attn_kv_a_norm.weight", {head_width});
    tensor(prefix + "attn_sinks.weight", {heads});
    tensor(prefix + "attn_output_a.weight", {heads / groups * head_width, groups * output_rank});
    tensor(prefix + "attn_output_b.weight", {groups * output_rank, width});
    if (layer == 1) {
      add_compressor(prefix + "attn_compressor", head_width, 4);
      add_compressor(prefix + "indexer_compressor", indexer_width, 4);
      tensor(prefix + "indexer.proj.weight", {width, indexer_heads});
      tensor(prefix + "indexer.attn_q_b.weight", {query_rank, indexer_heads * indexer_width});
    }
    if (layer == 2) add_compressor(prefix + "attn_compressor", head_width, 128);
    tensor(prefix + "ffn_norm.weight", {width});
    tensor(prefix + "ffn_gate_inp.weight", {width, experts});
    if (layer == 0) {
      tensors[prefix + "ffn_gate_tid2eid.weight"] = {{used, vocabulary}, true};
    } else {
      tensor(prefix + "exp_probs_b.bias", {experts});
    }
    tensor(prefix + "ffn_gate_exps.weight", {width, expert_width, experts});
    tensor(prefix + "ffn_up_exps.weight", {width, expert_width, experts});
    tensor(prefix + "ffn_down_exps.weight", {expert_width, width, experts});
    tensor(prefix + "ffn_gate_shexp.weight", {width, expert_width});
    tensor(prefix + "ffn_up_shexp.weight", {width, expert_width});
    tensor(prefix + "ffn_down_shexp.weight", {expert_width, width});
  }
};
