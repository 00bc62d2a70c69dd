#include "hyper_parameters.hpp"

#include "catch.hpp"
#include "file_refusal.hpp"
#include "small_model.hpp"

#include <limits>
#include <string>
#include <vector>

using dsv4_decoder::HyperParameters;

namespace {

// What is wrong with the file, or nothing.
std::string complaint(SmallModel const& model) {
  dsv4_decoder::Gguf const file = model.parse();
  return refusal([&] { (void)HyperParameters::read(file); });
}

void check_named(SmallModel const& model, std::string const& key) {
  std::string const said = complaint(model);
  CHECK_THAT(said, Catch::Matchers::ContainsSubstring(key + "\""));
  CHECK_THAT(said, Catch::Matchers::ContainsSubstring("small.gguf"));
}

void check_refused(std::string const& key, std::uint32_t value) {
  INFO(key << " = " << value);
  SmallModel model;
  model.u32(key, value);
  check_named(model, key);
}

void check_refused(std::string const& key, float value) {
  INFO(key << " = " << value);
  SmallModel model;
  model.f32(key, value);
  check_named(model, key);
}

}  // namespace

TEST_CASE("the fixture has the numbers of its description", "[hyper_parameters]") {
  HyperParameters const h = HyperParameters::read(dsv4_decoder::Gguf::open(ROLLBACK_TEST_DATA "/dsv4-tiny/model.gguf"));
  CHECK(h.layers == 6);
  CHECK(h.context == 1048576);
  CHECK(h.vocabulary == 384);
  CHECK(h.width == 128);
  CHECK(h.heads == 8);
  CHECK(h.head_width == 64);
  CHECK(h.rotary_width == 16);
  CHECK(h.query_rank == 64);
  CHECK(h.output_groups == 4);
  CHECK(h.output_rank == 32);
  CHECK(h.window == 128);
  CHECK(h.ratios == std::vector<int>{0, 0, 4, 128, 4, 128});
  CHECK(h.indexer_heads == 16);
  CHECK(h.indexer_width == 32);
  CHECK(h.indexer_top_k == 32);
  CHECK(h.rope_base == 10000.0);
  CHECK(h.compressed_rope_base == 160000.0);
  CHECK(h.yarn.factor == 16.0);
  CHECK(h.yarn.original_context == 65536.0);
  CHECK(h.yarn.beta_fast == 32.0);
  CHECK(h.yarn.beta_slow == 1.0);
  CHECK(h.rms_epsilon == 1e-6f);
  CHECK(h.experts == 8);
  CHECK(h.experts_used == 3);
  CHECK(h.expert_width == 64);
  CHECK(h.hash_layers == 3);
  CHECK(h.normalise_experts);
  CHECK(h.expert_scale == 1.5f);
  CHECK(h.expert_limit == std::vector<float>(6, 10.0f));
  CHECK(h.shared_expert_limit == std::vector<float>(6, 10.0f));
  CHECK(h.sinkhorn_iterations == 20);
  CHECK(h.stream_epsilon == 1e-6f);

  rollback::dsv4::ModelShape const shape = h.shape();
  CHECK(shape.ratios == h.ratios);
  CHECK(shape.head_width == 64);
  CHECK(shape.rotary_width == 16);
  CHECK(shape.indexer_width == 32);
  CHECK(shape.window == 128);
}

TEST_CASE("each missing key is named", "[hyper_parameters]") {
  for (auto const& entry : SmallModel().keys) {
    std::string const& key = entry.first;
    if (key == "deepseek4.swiglu_clamp_shexp") continue;  // the only one with a default
    INFO(key);
    SmallModel model;
    model.keys.erase(key);
    check_named(model, key);
  }
}

TEST_CASE("a key of another type is named", "[hyper_parameters]") {
  for (auto const& entry : SmallModel().keys) {
    std::string const& key = entry.first;
    INFO(key);
    SmallModel model;
    bool const was_text = entry.second.type == gguf_type::string;
    model.keys[key] = {was_text ? gguf_type::u32 : gguf_type::string, was_text ? raw(std::uint32_t{1}) : counted("1")};
    check_named(model, key);
  }
}

TEST_CASE("the shared expert has the limit of the others unless it has its own", "[hyper_parameters]") {
  SmallModel model;
  CHECK(HyperParameters::read(model.parse()).shared_expert_limit == std::vector<float>{20.0f, 21.0f, 22.0f});
  model.keys.erase("deepseek4.swiglu_clamp_shexp");
  HyperParameters const h = HyperParameters::read(model.parse());
  CHECK(h.shared_expert_limit == h.expert_limit);
  CHECK(h.expert_limit == std::vector<float>{10.0f, 11.0f, 12.0f});
}

TEST_CASE("without vocab_size the list of tokens counts", "[hyper_parameters]") {
  SmallModel model;
  model.keys.erase("deepseek4.vocab_size");
  model.keys["tokenizer.ggml.tokens"] = {gguf_type::array,
                                         raw(gguf_type::string) + raw(std::uint64_t{2}) + counted("a") + counted("b")};
  CHECK(HyperParameters::read(model.parse()).vocabulary == 2);
  model.keys["tokenizer.ggml.tokens"].bytes = raw(gguf_type::string) + raw(std::uint64_t{0});
  check_named(model, "tokenizer.ggml.tokens");
}

TEST_CASE("a number out of range is refused by name", "[hyper_parameters]") {
  check_refused("block_count", 0u);
  check_refused("block_count", 4000000000u);
  check_refused("context_length", 0u);
  check_refused("vocab_size", 0u);
  check_refused("embedding_length", 0u);
  check_refused("embedding_length", 1u << 30);
  check_refused("attention.head_count", 0u);
  check_refused("attention.head_count_kv", 2u);
  check_refused("attention.key_length", 0u);
  check_refused("attention.q_lora_rank", 0u);
  check_refused("attention.output_group_count", 0u);
  check_refused("attention.output_lora_rank", 0u);
  check_refused("attention.sliding_window", 0u);
  check_refused("attention.indexer.head_count", 0u);
  check_refused("attention.indexer.top_k", 0u);
  check_refused("attention.layer_norm_rms_epsilon", 0.0f);
  check_refused("attention.layer_norm_rms_epsilon", -1.0f);
  check_refused("attention.compress_rope_freq_base", 1.0f);
  check_refused("rope.freq_base", std::numeric_limits<float>::quiet_NaN());
  check_refused("rope.freq_base", std::numeric_limits<float>::infinity());
  check_refused("rope.scaling.factor", 0.5f);
  check_refused("rope.scaling.original_context_length", 0u);
  check_refused("rope.scaling.yarn_beta_slow", 0.0f);
  check_refused("expert_count", 0u);
  check_refused("expert_used_count", 0u);
  check_refused("expert_shared_count", 2u);
  check_refused("expert_feed_forward_length", 0u);
  check_refused("expert_gating_func", 1u);
  check_refused("expert_weights_scale", 0.0f);
  check_refused("hyper_connection.count", 2u);
  check_refused("hyper_connection.sinkhorn_iterations", 0u);
  check_refused("hyper_connection.epsilon", 0.0f);
}

TEST_CASE("numbers that contradict each other are refused by name", "[hyper_parameters]") {
  check_refused("attention.value_length", 8u);        // keys are values
  check_refused("attention.output_group_count", 4u);  // of six heads
  check_refused("attention.indexer.key_length", 6u);  // no power of two
  check_refused("rope.dimension_count", 3u);
  check_refused("rope.dimension_count", 10u);          // of an indexer row of 8
  check_refused("rope.dimension_count", 12u);          // of a head of 10
  check_refused("expert_used_count", 6u);              // of five
  check_refused("hash_layer_count", 4u);               // of three
  check_refused("rope.scaling.yarn_beta_fast", 0.5f);  // below beta_slow
}

TEST_CASE("a rotation that is wider than what it turns is refused", "[hyper_parameters]") {
  SmallModel model;
  model.u32("attention.indexer.key_length", 16);
  model.u32("rope.dimension_count", 12);
  CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring("exceeds attention.key_length"));
  model.u32("attention.key_length", 256);
  model.u32("attention.value_length", 256);
  CHECK_THAT(complaint(model), Catch::Matchers::Equals(""));
  model.u32("attention.indexer.key_length", 256);
  model.u32("rope.dimension_count", 130);  // more than the rotation's table holds
  check_named(model, "rope.dimension_count");
}

TEST_CASE("a list by layer that is too short is refused", "[hyper_parameters]") {
  SmallModel model;
  model.i32s("attention.compress_ratios", {0, 4});
  check_named(model, "attention.compress_ratios");
  for (char const* key : {"swiglu_clamp_exp", "swiglu_clamp_shexp"}) {
    SmallModel limits;
    limits.f32s(key, {1.0f, 2.0f});
    check_named(limits, key);
  }
}

TEST_CASE("one limit stands for all layers", "[hyper_parameters]") {
  SmallModel model;
  model.f32s("swiglu_clamp_exp", {3.0f});
  model.f32("swiglu_clamp_shexp", 4.0f);
  HyperParameters const h = HyperParameters::read(model.parse());
  CHECK(h.expert_limit == std::vector<float>(3, 3.0f));
  CHECK(h.shared_expert_limit == std::vector<float>(3, 4.0f));
}

TEST_CASE("a limit that is not a positive number is refused", "[hyper_parameters]") {
  for (char const* key : {"swiglu_clamp_exp", "swiglu_clamp_shexp"}) {
    for (float const limit : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
      SmallModel model;
      model.f32s(key, {1.0f, limit, 1.0f});
      check_named(model, key);
    }
  }
}

TEST_CASE("a ratio other than 0 and 4 and 128 is refused", "[hyper_parameters]") {
  SmallModel model;
  model.i32s("attention.compress_ratios", {0, 4, 2});
  CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring("ratio 2 of block 2"));
  check_named(model, "attention.compress_ratios");
}

TEST_CASE("another architecture and another scaling are refused", "[hyper_parameters]") {
  SmallModel model;
  model.text("deepseek4.rope.scaling.type", "linear");
  check_named(model, "deepseek4.rope.scaling.type");
  model.text("general.architecture", "deepseek2");
  check_named(model, "general.architecture");
}

TEST_CASE("an appended block for multi token prediction is no main layer if it is there", "[hyper_parameters]") {
  SmallModel model;
  model.u32("nextn_predict_layers", 1);
  CHECK(HyperParameters::read(model.parse()).layers == 3);
  model.tensor("blk.2.nextn.eh_proj.weight", {2 * SmallModel::width, SmallModel::width});
  HyperParameters const h = HyperParameters::read(model.parse());
  CHECK(h.layers == 2);
  CHECK(h.ratios == std::vector<int>{0, 4});
  CHECK(h.shape().ratios == h.ratios);
  CHECK(h.expert_limit.size() == 2);

  model.u32("nextn_predict_layers", 0);
  CHECK(HyperParameters::read(model.parse()).layers == 3);
  model.u32("nextn_predict_layers", 3);  // nothing would be left
  check_named(model, "deepseek4.nextn_predict_layers");
}
