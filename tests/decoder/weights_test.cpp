#include "weights.hpp"

#include "catch.hpp"
#include "file_refusal.hpp"
#include "small_model.hpp"

#include <string>
#include <vector>

using dsv4_decoder::HyperParameters;
using dsv4_decoder::Matrix;
using dsv4_decoder::Weights;
using M = SmallModel;

namespace {

// Reading the small model's weights with the numbers that belong to it.
std::string complaint(SmallModel const& model) {
  dsv4_decoder::Gguf const file = model.parse();
  HyperParameters const hyper = HyperParameters::read(file);
  return refusal([&] { (void)Weights::read(file, hyper); });
}

void check_named(SmallModel const& model, std::string const& tensor) {
  INFO(tensor);
  CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring("\"" + tensor + "\""));
}

struct Loaded {
  SmallModel model;
  Weights weights;
  Loaded() {
    dsv4_decoder::Gguf const file = model.parse();
    weights = Weights::read(file, HyperParameters::read(file));
  }

  // The values of a tensor are a range of its own: first, first + 1, ...
  void check(std::string const& tensor, std::vector<float> const& values, std::int64_t count) const {
    INFO(tensor);
    float const first = model.tensors.at(tensor).first;
    REQUIRE(static_cast<std::int64_t>(values.size()) == count);
    CHECK(values.front() == first);
    CHECK(values.back() == first + static_cast<float>(count - 1));
  }
  void check(std::string const& tensor, Matrix const& matrix, std::int64_t outputs, std::int64_t inputs) const {
    check(tensor, matrix.values, outputs * inputs);
    CHECK(matrix.outputs == outputs);
    CHECK(matrix.inputs == inputs);
  }
};

}  // namespace

TEST_CASE("every weight comes from its tensor and has its shape", "[weights]") {
  Loaded const l;
  Weights const& w = l.weights;
  l.check("token_embd.weight", w.token_embedding, M::vocabulary, M::width);
  l.check("output_norm.weight", w.output_norm, M::width);
  l.check("output.weight", w.output, M::vocabulary, M::width);
  l.check("output_hc_fn.weight", w.output_streams.projection, 4, 4 * M::width);
  l.check("output_hc_scale.weight", w.output_streams.scale, 1);
  l.check("output_hc_base.weight", w.output_streams.base, 4);
  REQUIRE(w.layers.size() == 3);

  for (std::size_t layer = 0; layer < 3; ++layer) {
    std::string const prefix = "blk." + std::to_string(layer) + ".";
    dsv4_decoder::LayerWeights const& v = w.layers[layer];
    l.check(prefix + "hc_attn_fn.weight", v.attention_streams.projection, 24, 4 * M::width);
    l.check(prefix + "hc_attn_scale.weight", v.attention_streams.scale, 3);
    l.check(prefix + "hc_attn_base.weight", v.attention_streams.base, 24);
    l.check(prefix + "hc_ffn_fn.weight", v.feed_forward_streams.projection, 24, 4 * M::width);
    l.check(prefix + "hc_ffn_scale.weight", v.feed_forward_streams.scale, 3);
    l.check(prefix + "hc_ffn_base.weight", v.feed_forward_streams.base, 24);

    l.check(prefix + "attn_norm.weight", v.attention_norm, M::width);
    l.check(prefix + "attn_q_a.weight", v.query_a, M::query_rank, M::width);
    l.check(prefix + "attn_q_a_norm.weight", v.query_norm, M::query_rank);
    l.check(prefix + "attn_q_b.weight", v.query_b, M::heads * M::head_width, M::query_rank);
    l.check(prefix + "attn_kv.weight", v.kv, M::head_width, M::width);
    l.check(prefix + "attn_kv_a_norm.weight", v.kv_norm, M::head_width);
    l.check(prefix + "attn_sinks.weight", v.sinks, M::heads);
    l.check(prefix + "attn_output_a.weight", v.output_a, M::groups * M::output_rank,
            M::heads / M::groups * M::head_width);
    l.check(prefix + "attn_output_b.weight", v.output_b, M::width, M::groups * M::output_rank);

    l.check(prefix + "ffn_norm.weight", v.feed_forward_norm, M::width);
    l.check(prefix + "ffn_gate_inp.weight", v.router, M::experts, M::width);
    l.check(prefix + "ffn_gate_exps.weight", v.expert_gate, M::experts * M::expert_width, M::width);
    l.check(prefix + "ffn_up_exps.weight", v.expert_up, M::experts * M::expert_width, M::width);
    l.check(prefix + "ffn_down_exps.weight", v.expert_down, M::experts * M::width, M::expert_width);
    l.check(prefix + "ffn_gate_shexp.weight", v.shared_gate, M::expert_width, M::width);
    l.check(prefix + "ffn_up_shexp.weight", v.shared_up, M::expert_width, M::width);
    l.check(prefix + "ffn_down_shexp.weight", v.shared_down, M::width, M::expert_width);
  }
}

TEST_CASE("the compressors of a layer are those of its ratio", "[weights]") {
  Loaded const l;
  auto const check = [&](std::string const& prefix, dsv4_decoder::CompressorTensors const& c, std::int64_t row,
                         std::int64_t pooled, std::int64_t ratio) {
    l.check(prefix + "_kv.weight", c.kv, row * M::width);
    l.check(prefix + "_gate.weight", c.gate, row * M::width);
    l.check(prefix + "_ape.weight", c.ape, ratio * row);
    l.check(prefix + "_norm.weight", c.norm, pooled);
  };
  check("blk.1.attn_compressor", l.weights.layers[1].compressor, 2 * M::head_width, M::head_width, 4);
  check("blk.1.indexer_compressor", l.weights.layers[1].indexer_compressor, 2 * M::indexer_width, M::indexer_width, 4);
  check("blk.2.attn_compressor", l.weights.layers[2].compressor, M::head_width, M::head_width, 128);
  l.check("blk.1.indexer.attn_q_b.weight", l.weights.layers[1].indexer_query, M::indexer_heads * M::indexer_width,
          M::query_rank);
  l.check("blk.1.indexer.proj.weight", l.weights.layers[1].indexer_weights, M::indexer_heads, M::width);
  CHECK(l.weights.layers[0].compressor.kv.empty());
  CHECK(l.weights.layers[0].indexer_compressor.kv.empty());
  CHECK(l.weights.layers[2].indexer_compressor.kv.empty());
}

TEST_CASE("the first layers choose experts by token and the others by score", "[weights]") {
  Loaded const l;
  std::vector<std::int32_t> const& table = l.weights.layers[0].expert_of_token;
  REQUIRE(table.size() == static_cast<std::size_t>(M::used * M::vocabulary));
  for (std::size_t i = 0; i < table.size(); ++i) CHECK(table[i] == static_cast<std::int32_t>((3 + i) % M::experts));
  CHECK(l.weights.layers[0].expert_bias.empty());
  for (std::size_t layer = 1; layer < 3; ++layer) {
    l.check("blk." + std::to_string(layer) + ".exp_probs_b.bias", l.weights.layers[layer].expert_bias, M::experts);
    CHECK(l.weights.layers[layer].expert_of_token.empty());
  }
}

TEST_CASE("each missing tensor is named", "[weights]") {
  for (auto const& entry : SmallModel().tensors) {
    SmallModel model;
    model.tensors.erase(entry.first);
    check_named(model, entry.first);
  }
}

TEST_CASE("a tensor of another shape is refused with both shapes", "[weights]") {
  for (auto const& entry : SmallModel().tensors) {
    std::string const& name = entry.first;
    INFO(name);
    for (std::size_t d = 0; d < entry.second.shape.size(); ++d) {
      SmallModel model;
      std::int64_t& dimension = model.tensors[name].shape[d];
      std::string const expected = "not " + [&] {
        std::string all;
        for (std::int64_t n : entry.second.shape) all += (all.empty() ? "" : " x ") + std::to_string(n);
        return all;
      }();
      dimension += 1;
      check_named(model, name);
      CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring(expected));
      CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring(std::to_string(dimension)));
    }
    SmallModel model;
    model.tensors[name].shape.push_back(2);
    check_named(model, name);
  }
}

TEST_CASE("a matrix with its dimensions exchanged is refused", "[weights]") {
  SmallModel model;
  model.tensors["blk.1.attn_q_a.weight"].shape = {M::query_rank, M::width};
  CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring("shape is 7 x 12, not 12 x 7"));
}

TEST_CASE("a tensor of another type is refused", "[weights]") {
  for (char const* const name : {"blk.1.attn_q_a.weight", "blk.2.exp_probs_b.bias", "blk.0.ffn_gate_tid2eid.weight"}) {
    SmallModel model;
    model.tensors[name].indices = !model.tensors[name].indices;
    check_named(model, name);
  }
}

TEST_CASE("a token whose expert does not exist is refused", "[weights]") {
  std::string const name = "blk.0.ffn_gate_tid2eid.weight";
  for (std::int32_t const index : {-1, 5}) {
    SmallModel model;
    model.tensors[name].first_index = index;
    check_named(model, name);
    CHECK_THAT(complaint(model), Catch::Matchers::ContainsSubstring("index " + std::to_string(index)));
  }
}

TEST_CASE("tensors that the main layers do not use are left alone", "[weights]") {
  SmallModel model;
  model.tensor("blk.0.something.weight", {3});
  model.tensor("blk.9.attn_norm.weight", {1});
  CHECK_THAT(complaint(model), Catch::Matchers::Equals(""));
}
