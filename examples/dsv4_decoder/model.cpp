#include "model.hpp"

#include "attention.hpp"
#include "indexer.hpp"
#include "mixture_of_experts.hpp"
#include "norm.hpp"

#include <rollback/dsv4/compress_layer.hpp>
#include <rollback/dsv4/restore.hpp>
#include <rollback/kernels/hadamard.hpp>
#include <rollback/kernels/launch_host.hpp>
#include <rollback/kernels/launch_thrust.hpp>
#include <rollback/kernels/quantize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

namespace dsv4_decoder {
namespace {

using rollback::Position;
using rollback::dsv4::Chunk;
using rollback::dsv4::CompressorWeights;
using rollback::dsv4::csa_ratio;
using rollback::dsv4::hca_ratio;
using rollback::dsv4::Memory;
using rollback::kernels::HostLoop;
using rollback::kernels::HostTeam;
using rollback::kernels::Rope;
using rollback::kernels::ThrustTbb;

constexpr HostTeam one_thread{0};  // for kernel bodies that are called within a row

[[nodiscard]] std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

// Calls `body` with what launches `rows` rows best: for a single one, waking a scheduler would cost more than it gains.
template <class Body>
void with_launcher(std::int32_t rows, Body const& body) {
  if (rows <= 1) {
    body(HostLoop());
  } else {
    body(ThrustTbb());
  }
}

ModelOptions resolved(ModelOptions options, HyperParameters const& h) {
  if (options.max_rows < 1) throw std::invalid_argument("ModelOptions: max_rows must be at least 1");
  if (options.max_positions < 1 || options.max_positions > h.context) {
    throw std::invalid_argument(
        fmt::format("ModelOptions: max_positions is {}; it must be in [1, {}], the model's context length",
                    options.max_positions, h.context));
  }
  if (options.top_k < 0) throw std::invalid_argument("ModelOptions: top_k must be 0 or more");
  if (options.workers < 0) throw std::invalid_argument("ModelOptions: workers must be 0 or more");
  if (options.top_k == 0) options.top_k = h.indexer_top_k;
  if (options.workers == 0) {
    auto const threads = static_cast<std::int32_t>(std::thread::hardware_concurrency());
    options.workers = std::max(1, 2 * threads);  // two, so that a thread that is held up does not hold up the chunk
  }
  options.workers = std::min(options.workers, options.max_rows);
  return options;
}

[[nodiscard]] CompressorWeights view(CompressorTensors const& t) {
  return {t.kv.data(), t.gate.data(), t.ape.data(), t.norm.data()};
}

}  // namespace

Model::Model(Gguf const& file, ModelOptions const& options)
    : file_checksum_(file.checksum()),
      hyper_(HyperParameters::read(file)),
      weights_(Weights::read(file, hyper_)),
      plain_rope_(Rope::plain(static_cast<int>(hyper_.rotary_width), hyper_.rope_base)),
      compressed_rope_(Rope::yarn(static_cast<int>(hyper_.rotary_width), hyper_.compressed_rope_base, hyper_.yarn)) {
  HyperParameters const& h = hyper_;
  options_ = resolved(options, h);

  std::int64_t const rows = options_.max_rows;
  rows_.streams.resize(size(rows * streams * h.width));
  rows_.mix.resize(size(rows));
  rows_.input.resize(size(rows * h.width));
  rows_.queries.resize(size(rows * h.heads * h.head_width));
  if (std::find(h.ratios.begin(), h.ratios.end(), csa_ratio) != h.ratios.end()) {
    rows_.indexer_queries.resize(size(rows * h.indexer_heads * h.indexer_width));
    rows_.indexer_weights.resize(size(rows * h.indexer_heads));
  }
  rows_.wanted.resize(size(rows));

  Position const last = options_.max_positions - 1;
  std::int64_t const visible = rows_at(last, csa_ratio);
  std::int64_t const selected = std::min(options_.top_k, visible);
  std::int64_t const window = window_at(last, h.window).count;
  Worker worker;
  worker.input.resize(size(h.width));
  worker.latent.resize(size(h.query_rank));
  worker.window.resize(size(window * h.head_width));
  worker.selected.resize(size(selected * h.head_width));
  worker.weights.resize(size(window + std::max(selected, rows_at(last, hca_ratio))));
  worker.attended.resize(size(h.heads * h.head_width));
  worker.groups.resize(size(h.output_groups * h.output_rank));
  worker.result.resize(size(h.width));
  worker.dots.resize(size(visible));
  worker.scores.resize(size(visible));
  worker.rows.resize(size(selected));
  worker.expert_scores.resize(size(h.experts));
  worker.biased.resize(size(h.experts));
  worker.chosen.resize(size(h.experts_used));
  worker.expert_weights.resize(size(h.experts_used));
  worker.hidden.resize(size(2 * h.expert_width));
  worker.expert_result.resize(size(h.width));
  worker.ordering.resize(size(std::max(visible, h.experts)));
  workers_.assign(size(options_.workers), worker);
}

Rope const& Model::rope(int layer) const { return hyper_.ratios[size(layer)] == 0 ? plain_rope_ : compressed_rope_; }

template <class Body>
void Model::spread(std::int32_t count, Body const& body) {
  std::int32_t const teams = std::min(count, options_.workers);
  auto const share = [&](HostTeam const& team, std::int32_t stride) {
    for (auto i = static_cast<std::int32_t>(team.index); i < count; i += stride) body(i, workers_[size(team.index)]);
  };
  with_launcher(teams, [&](auto const& launcher) { launcher.launch(teams, share, teams); });
}

void Model::check(Memory const& memory, Chunk const& chunk, std::int32_t const* tokens) const {
  rollback::dsv4::ModelShape const& shape = memory.shape();
  if (shape.ratios != hyper_.ratios || shape.head_width != hyper_.head_width ||
      shape.indexer_width != hyper_.indexer_width || shape.window != hyper_.window) {
    throw std::invalid_argument("Model::forward: the memory is of another model's shape");
  }
  if (memory.options().hadamard != options_.hadamard || memory.options().rounding != options_.rounding) {
    throw std::invalid_argument("Model::forward: the memory and the model differ in hadamard or rounding");
  }
  if (chunk.rows > options_.max_rows) throw std::invalid_argument("Model::forward: more rows than max_rows");
  for (std::int32_t row = 0; row < chunk.rows; ++row) {
    if (chunk.slots[row].index < 0) continue;
    if (tokens[row] < 0 || tokens[row] >= hyper_.vocabulary) {
      throw std::invalid_argument("Model::forward: a token is outside the vocabulary");
    }
    if (chunk.positions[row] < 0 || chunk.positions[row] >= options_.max_positions) {
      throw std::invalid_argument("Model::forward: a position is outside [0, max_positions)");
    }
  }
}

void Model::forward(Memory& memory, Chunk const& chunk, std::int32_t const* tokens, std::uint8_t const* wants_logits,
                    float* logits) {
  check(memory, chunk, tokens);
  auto const each_row = [&](auto const& step) {
    spread(chunk.rows, [&](std::int32_t row, Worker& worker) {
      if (chunk.slots[row].index >= 0) step(row, worker);
    });
  };

  with_launcher(chunk.rows, [&](auto const& launcher) { restore(launcher, memory, chunk); });
  each_row([&](std::int32_t row, Worker&) { embed(row, tokens[row]); });
  for (int layer = 0; layer < static_cast<int>(hyper_.layers); ++layer) {
    each_row([&](std::int32_t row, Worker& worker) { project(memory, chunk, layer, row, worker); });

    LayerWeights const& w = weights_.layers[size(layer)];
    int const ratio = hyper_.ratios[size(layer)];
    if (ratio != 0) {
      CompressorWeights const attention = view(w.compressor);
      CompressorWeights const indexer = view(w.indexer_compressor);
      with_launcher(chunk.rows, [&](auto const& launcher) {
        compress_layer(launcher, memory, chunk, layer, attention, ratio == csa_ratio ? &indexer : nullptr, rope(layer),
                       hyper_.rms_epsilon, rows_.input.data(), hyper_.width);
      });
    }

    each_row([&](std::int32_t row, Worker& worker) { attend(memory, chunk, layer, row, worker); });
    each_row([&](std::int32_t row, Worker& worker) { feed_forward(layer, row, tokens[row], worker); });
  }

  std::int32_t wanted = 0;
  for (std::int32_t row = 0; row < chunk.rows; ++row) {
    if (chunk.slots[row].index >= 0 && wants_logits[row] != 0) rows_.wanted[size(wanted++)] = row;
  }
  spread(wanted,
         [&](std::int32_t i, Worker& worker) { head(rows_.wanted[size(i)], worker, logits + i * hyper_.vocabulary); });
}

void Model::embed(std::int32_t row, std::int32_t token) {
  float const* embedding = weights_.token_embedding.values.data() + token * hyper_.width;
  float* x = rows_.streams.data() + row * streams * hyper_.width;
  for (std::int64_t s = 0; s < streams; ++s) std::copy_n(embedding, hyper_.width, x + s * hyper_.width);
}

// From the streams to queries, the raw row, and what the indexer asks.
void Model::project(Memory& memory, Chunk const& chunk, int layer, std::int32_t row, Worker& worker) {
  HyperParameters const& h = hyper_;
  LayerWeights const& w = weights_.layers[size(layer)];
  Position const p = chunk.positions[row];
  Rotation const rotation(rope(layer), p);

  float* x = rows_.input.data() + row * h.width;
  rows_.mix[size(row)] =
      hyper_connections::read(w.attention_streams, rows_.streams.data() + row * streams * h.width,
                              h.sinkhorn_iterations, h.rms_epsilon, h.stream_epsilon, worker.input.data());
  rms_norm(worker.input.data(), w.attention_norm.data(), h.width, h.rms_epsilon, x);

  float* latent = worker.latent.data();
  multiply(w.query_a.view(), x, latent);
  rms_norm(latent, w.query_norm.data(), h.query_rank, h.rms_epsilon, latent);
  float* queries = rows_.queries.data() + row * h.heads * h.head_width;
  multiply(w.query_b.view(), latent, queries);
  for (std::int64_t head = 0; head < h.heads; ++head) {
    float* query = queries + head * h.head_width;
    rms_norm(query, nullptr, h.head_width, h.rms_epsilon, query);
    rotation.rotate(query, h.head_width);
  }

  float* raw = memory.raw_row(layer, chunk.slots[row].index, p);
  multiply(w.kv.view(), x, raw);
  rms_norm(raw, w.kv_norm.data(), h.head_width, h.rms_epsilon, raw);
  rotation.rotate(raw, h.head_width);
  if (options_.rounding) rollback::kernels::round_fp8_64(one_thread, raw, h.head_width - h.rotary_width);

  if (h.ratios[size(layer)] != csa_ratio) return;
  float* asked = rows_.indexer_queries.data() + row * h.indexer_heads * h.indexer_width;
  multiply(w.indexer_query.view(), latent, asked);
  for (std::int64_t head = 0; head < h.indexer_heads; ++head) {
    float* query = asked + head * h.indexer_width;
    rotation.rotate(query, h.indexer_width);
    if (options_.hadamard) rollback::kernels::hadamard(one_thread, query, h.indexer_width);
    if (options_.rounding) rollback::kernels::round_fp4_32(one_thread, query, h.indexer_width);
  }
  float* weights = rows_.indexer_weights.data() + row * h.indexer_heads;
  multiply(w.indexer_weights.view(), x, weights);
  float const scale = 1.0f / std::sqrt(static_cast<float>(h.indexer_heads * h.indexer_width));
  for (std::int64_t head = 0; head < h.indexer_heads; ++head) weights[head] *= scale;
}

// The compressed rows of ratio 4 that a token attends to: all visible ones, or the indexer's choice, copied together.
MatrixView Model::select(Memory const& memory, int layer, std::int32_t slot, std::int64_t visible, std::int32_t row,
                         Worker& worker) const {
  HyperParameters const& h = hyper_;
  float const* rows = memory.compressed_rows(layer, slot);
  if (visible <= options_.top_k) return {rows, visible, h.head_width};

  score_rows(rows_.indexer_queries.data() + row * h.indexer_heads * h.indexer_width,
             rows_.indexer_weights.data() + row * h.indexer_heads, h.indexer_heads,
             {memory.indexer_rows(layer, slot), visible, h.indexer_width}, worker.dots.data(), worker.scores.data());
  std::int64_t const count =
      select_rows(worker.scores.data(), visible, options_.top_k, worker.ordering.data(), worker.rows.data());
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(rows + worker.rows[size(i)] * h.head_width, h.head_width, worker.selected.data() + i * h.head_width);
  }
  return {worker.selected.data(), count, h.head_width};
}

// From queries to the streams.
void Model::attend(Memory& memory, Chunk const& chunk, int layer, std::int32_t row, Worker& worker) {
  HyperParameters const& h = hyper_;
  LayerWeights const& w = weights_.layers[size(layer)];
  int const ratio = h.ratios[size(layer)];
  std::int32_t const slot = chunk.slots[row].index;
  Position const p = chunk.positions[row];

  // The ring wraps where its size says so; copied, the rows come in one block whatever that size.
  Window const window = window_at(p, h.window);
  for (std::int64_t i = 0; i < window.count; ++i) {
    std::copy_n(memory.raw_row(layer, slot, window.first + i), h.head_width, worker.window.data() + i * h.head_width);
  }
  MatrixView compressed{nullptr, 0, h.head_width};
  std::int64_t const visible = rows_at(p, ratio);
  if (ratio == csa_ratio && options_.attend_csa_rows) {
    compressed = select(memory, layer, slot, visible, row, worker);
  } else if (ratio == hca_ratio && options_.attend_hca_rows) {
    compressed = {memory.compressed_rows(layer, slot), visible, h.head_width};
  }

  float* attended = worker.attended.data();
  dsv4_decoder::attend(rows_.queries.data() + row * h.heads * h.head_width,
                       {worker.window.data(), window.count, h.head_width}, compressed, w.sinks.data(), h.heads,
                       worker.weights.data(), attended);
  Rotation const rotation(rope(layer), p);
  for (std::int64_t head = 0; head < h.heads; ++head) {
    rotation.rotate(attended + head * h.head_width, h.head_width, true);
  }

  std::int64_t const group_width = h.heads / h.output_groups * h.head_width;
  for (std::int64_t group = 0; group < h.output_groups; ++group) {
    multiply(w.output_a.view().part(group * h.output_rank, h.output_rank), attended + group * group_width,
             worker.groups.data() + group * h.output_rank);
  }
  multiply(w.output_b.view(), worker.groups.data(), worker.result.data());
  hyper_connections::write(rows_.mix[size(row)], worker.result.data(), h.width,
                           rows_.streams.data() + row * streams * h.width);
}

void Model::feed_forward(int layer, std::int32_t row, std::int32_t token, Worker& worker) {
  HyperParameters const& h = hyper_;
  LayerWeights const& w = weights_.layers[size(layer)];
  float* x = worker.input.data();
  float* all_streams = rows_.streams.data() + row * streams * h.width;
  StreamMix const mix = hyper_connections::read(w.feed_forward_streams, all_streams, h.sinkhorn_iterations,
                                                h.rms_epsilon, h.stream_epsilon, x);
  rms_norm(x, w.feed_forward_norm.data(), h.width, h.rms_epsilon, x);

  float* scores = worker.expert_scores.data();
  multiply(w.router.view(), x, scores);
  for (std::int64_t e = 0; e < h.experts; ++e) scores[e] = router_score(scores[e]);
  std::int32_t const* chosen = worker.chosen.data();
  if (layer < h.hash_layers) {
    chosen = w.expert_of_token.data() + token * h.experts_used;
  } else {
    choose_experts(scores, w.expert_bias.data(), h.experts, h.experts_used, worker.biased.data(),
                   worker.ordering.data(), worker.chosen.data());
  }
  weigh_experts(scores, chosen, h.experts_used, h.normalise_experts, h.expert_scale, worker.expert_weights.data());

  float* result = worker.result.data();
  Expert const shared{w.shared_gate.view(), w.shared_up.view(), w.shared_down.view()};
  run_expert(shared, x, h.shared_expert_limit[size(layer)], worker.hidden.data(), result);
  for (std::int64_t k = 0; k < h.experts_used; ++k) {
    Expert const expert{w.expert_gate.view().part(chosen[k] * h.expert_width, h.expert_width),
                        w.expert_up.view().part(chosen[k] * h.expert_width, h.expert_width),
                        w.expert_down.view().part(chosen[k] * h.width, h.width)};
    run_expert(expert, x, h.expert_limit[size(layer)], worker.hidden.data(), worker.expert_result.data());
    for (std::int64_t i = 0; i < h.width; ++i) {
      result[i] += worker.expert_weights[size(k)] * worker.expert_result[size(i)];
    }
  }
  hyper_connections::write(mix, result, h.width, all_streams);
}

void Model::head(std::int32_t row, Worker& worker, float* logits) {
  float* x = worker.input.data();
  hyper_connections::read_head(weights_.output_streams, rows_.streams.data() + row * streams * hyper_.width,
                               hyper_.rms_epsilon, hyper_.stream_epsilon, x);
  rms_norm(x, weights_.output_norm.data(), hyper_.width, hyper_.rms_epsilon, x);
  multiply(weights_.output.view(), x, logits);
}

}  // namespace dsv4_decoder
