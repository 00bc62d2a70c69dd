#include "hyper_parameters.hpp"

#include "hyper_connections.hpp"

#include <fmt/format.h>

#include <string>

namespace dsv4_decoder {
namespace {

// Far above any released model, and small enough that no product of two of them overflows.
constexpr std::int64_t most_layers = 1024;
constexpr std::int64_t most_width = 1 << 17;
constexpr std::int64_t most_heads = 1 << 12;
constexpr std::int64_t most_experts = 1 << 16;
constexpr std::int64_t most_tokens = std::int64_t{1} << 31;  // vocabulary and positions
constexpr double tiny = 1e-30;
constexpr double huge = 1e30;

// Reads keys under the architecture's prefix and checks each against a range.
class Keys {
 public:
  explicit Keys(Gguf const& file) : file_(file) {}

  [[nodiscard]] static std::string full(char const* key) { return std::string("deepseek4.") + key; }

  [[nodiscard]] bool has(char const* key) const { return file_.has(full(key)); }

  [[nodiscard]] std::int64_t integer(char const* key, std::int64_t least, std::int64_t most) const {
    std::int64_t const value = file_.integer(full(key));
    if (value < least || value > most) { refuse(key, fmt::format("{} is not in [{}, {}]", value, least, most)); }
    return value;
  }

  [[nodiscard]] double real(char const* key, double least, double most) const {
    double const value = file_.real(full(key));
    check_real(key, value, least, most);
    return value;
  }

  // An integer with one possible value.
  void insist(char const* key, std::int64_t wanted) const {
    std::int64_t const value = file_.integer(full(key));
    if (value != wanted) refuse(key, fmt::format("{} is not supported, only {}", value, wanted));
  }

  // A value a layer; one value stands for all layers.
  [[nodiscard]] std::vector<float> by_layer(char const* key, std::int64_t layers) const {
    std::vector<double> const values = file_.reals(full(key));
    if (values.size() != 1 && values.size() < static_cast<std::size_t>(layers)) {
      refuse(key, fmt::format("{} values for {} layers", values.size(), layers));
    }
    std::vector<float> result;
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers); ++layer) {
      double const value = values[values.size() == 1 ? 0 : layer];
      check_real(key, value, tiny, huge);
      result.push_back(static_cast<float>(value));
    }
    return result;
  }

  // The ratios of all blocks of the file.
  [[nodiscard]] std::vector<int> ratios(char const* key, std::int64_t blocks) const {
    std::vector<std::int64_t> const values = file_.integers(full(key));
    if (values.size() < static_cast<std::size_t>(blocks)) {
      refuse(key, fmt::format("{} ratios for {} blocks", values.size(), blocks));
    }
    std::vector<int> result;
    for (std::size_t block = 0; block < static_cast<std::size_t>(blocks); ++block) {
      std::int64_t const ratio = values[block];
      if (ratio != 0 && ratio != rollback::dsv4::csa_ratio && ratio != rollback::dsv4::hca_ratio) {
        refuse(key, fmt::format("ratio {} of block {} is not 0, 4 or 128", ratio, block));
      }
      result.push_back(static_cast<int>(ratio));
    }
    return result;
  }

  void require(bool holds, char const* key, char const* otherwise) const {
    if (!holds) refuse(key, otherwise);
  }

  [[noreturn]] void refuse(char const* key, std::string const& wrong) const {
    throw FileError(file_.name(), wrong, fmt::format("key \"{}\"", full(key)));
  }

 private:
  void check_real(char const* key, double value, double least, double most) const {
    if (!(value >= least && value <= most)) {  // NaN fails too
      refuse(key, fmt::format("{} is not in [{}, {}]", value, least, most));
    }
  }

  Gguf const& file_;
};

// How many of the file's blocks are main layers.
std::int64_t main_layers(Gguf const& file, Keys const& keys, std::int64_t blocks) {
  if (!keys.has("nextn_predict_layers")) return blocks;
  std::int64_t const appended = keys.integer("nextn_predict_layers", 0, blocks - 1);
  if (appended == 0) return blocks;
  bool const is_there = file.find(fmt::format("blk.{}.nextn.eh_proj.weight", blocks - appended)) != nullptr;
  return is_there ? blocks - appended : blocks;
}

std::int64_t count_tokens(Gguf const& file, Keys const& keys) {
  char const* const tokens = "tokenizer.ggml.tokens";
  if (keys.has("vocab_size") || !file.has(tokens)) return keys.integer("vocab_size", 1, most_tokens);
  auto const count = static_cast<std::int64_t>(file.texts(tokens).size());
  if (count < 1 || count > most_tokens)
    throw FileError(file.name(), "no usable number of tokens", fmt::format("key \"{}\"", tokens));
  return count;
}

}  // namespace

HyperParameters HyperParameters::read(Gguf const& file) {
  char const* const architecture = "general.architecture";
  if (file.text(architecture) != "deepseek4") {
    throw FileError(file.name(), printable(file.text(architecture)) + " is not deepseek4",
                    fmt::format("key \"{}\"", architecture));
  }
  Keys const keys(file);
  HyperParameters h;

  std::int64_t const blocks = keys.integer("block_count", 1, most_layers);
  h.layers = main_layers(file, keys, blocks);
  h.context = keys.integer("context_length", 1, most_tokens);
  h.vocabulary = count_tokens(file, keys);
  h.width = keys.integer("embedding_length", 1, most_width);

  h.heads = keys.integer("attention.head_count", 1, most_heads);
  keys.insist("attention.head_count_kv", 1);
  h.head_width = keys.integer("attention.key_length", 1, most_width);
  keys.insist("attention.value_length", h.head_width);
  h.query_rank = keys.integer("attention.q_lora_rank", 1, most_width);
  h.output_groups = keys.integer("attention.output_group_count", 1, most_heads);
  keys.require(h.heads % h.output_groups == 0, "attention.output_group_count", "does not divide attention.head_count");
  h.output_rank = keys.integer("attention.output_lora_rank", 1, most_width);
  h.window = keys.integer("attention.sliding_window", 1, most_width);
  h.ratios = keys.ratios("attention.compress_ratios", blocks);
  h.ratios.resize(static_cast<std::size_t>(h.layers));
  h.indexer_heads = keys.integer("attention.indexer.head_count", 1, most_heads);
  h.indexer_width = keys.integer("attention.indexer.key_length", 1, most_width);
  keys.require((h.indexer_width & (h.indexer_width - 1)) == 0, "attention.indexer.key_length",
               "is not a power of two, which the Hadamard transform needs");
  h.indexer_top_k = keys.integer("attention.indexer.top_k", 1, most_tokens);

  h.rotary_width = keys.integer("rope.dimension_count", 2, 2 * rollback::kernels::Rope::max_pairs);
  keys.require(h.rotary_width % 2 == 0, "rope.dimension_count", "is odd");
  keys.require(h.rotary_width <= h.head_width, "rope.dimension_count", "exceeds attention.key_length");
  keys.require(h.rotary_width <= h.indexer_width, "rope.dimension_count", "exceeds attention.indexer.key_length");
  double const above_one = 1.0 + 1e-6;  // YaRN divides by the logarithm of the base
  h.rope_base = keys.real("rope.freq_base", above_one, huge);
  h.compressed_rope_base = keys.real("attention.compress_rope_freq_base", above_one, huge);
  if (file.text(Keys::full("rope.scaling.type")) != "yarn") {
    keys.refuse("rope.scaling.type", printable(file.text(Keys::full("rope.scaling.type"))) + " is not yarn");
  }
  h.yarn.factor = keys.real("rope.scaling.factor", 1.0, huge);
  h.yarn.original_context = static_cast<double>(keys.integer("rope.scaling.original_context_length", 1, most_tokens));
  h.yarn.beta_slow = keys.real("rope.scaling.yarn_beta_slow", tiny, huge);
  h.yarn.beta_fast = keys.real("rope.scaling.yarn_beta_fast", h.yarn.beta_slow, huge);
  h.rms_epsilon = static_cast<float>(keys.real("attention.layer_norm_rms_epsilon", tiny, 1.0));

  h.experts = keys.integer("expert_count", 1, most_experts);
  h.experts_used = keys.integer("expert_used_count", 1, h.experts);
  keys.insist("expert_shared_count", 1);
  h.expert_width = keys.integer("expert_feed_forward_length", 1, most_width);
  keys.insist("expert_gating_func", 4);  // sqrt(softplus)
  h.expert_scale = static_cast<float>(keys.real("expert_weights_scale", tiny, huge));
  h.normalise_experts = file.flag(Keys::full("expert_weights_norm"));
  h.hash_layers = keys.integer("hash_layer_count", 0, h.layers);
  h.expert_limit = keys.by_layer("swiglu_clamp_exp", h.layers);
  h.shared_expert_limit =
      keys.has("swiglu_clamp_shexp") ? keys.by_layer("swiglu_clamp_shexp", h.layers) : h.expert_limit;

  keys.insist("hyper_connection.count", streams);
  h.sinkhorn_iterations = static_cast<int>(keys.integer("hyper_connection.sinkhorn_iterations", 1, 1000));
  h.stream_epsilon = static_cast<float>(keys.real("hyper_connection.epsilon", tiny, 1.0));
  return h;
}

rollback::dsv4::ModelShape HyperParameters::shape() const {
  rollback::dsv4::ModelShape s;
  s.ratios = ratios;
  s.head_width = static_cast<int>(head_width);
  s.rotary_width = static_cast<int>(rotary_width);
  s.indexer_width = static_cast<int>(indexer_width);
  s.window = static_cast<int>(window);
  return s;
}

}  // namespace dsv4_decoder
