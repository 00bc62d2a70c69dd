// A small model of gated delta rule layers, as hybrid models have them: a short causal convolution and a matrix a head.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace gated_delta {

/// Sizes of a model. The defaults are small enough to run in no time.
struct Shape {
  std::size_t layers = 3;
  std::size_t heads = 2;
  std::size_t key_width = 8;     // d_k
  std::size_t value_width = 12;  // d_v
  std::size_t model_width = 24;
  std::size_t vocabulary = 64;

  static constexpr std::size_t taps = 4;  // of the convolution: the row itself and the three before it
  /// Values of one input row of the convolution: queries, keys and values of all heads.
  [[nodiscard]] std::size_t channels() const { return heads * (2 * key_width + value_width); }
  /// Values of one convolution state: the last taps - 1 input rows, oldest first.
  [[nodiscard]] std::size_t convolution_values() const { return (taps - 1) * channels(); }
  /// Values of one matrix state: [heads, value_width, key_width].
  [[nodiscard]] std::size_t matrix_values() const { return heads * value_width * key_width; }
};

/// The state of one layer, advanced in place. The empty state is all zero.
struct LayerState {
  float* convolution;  // [taps - 1, channels]
  float* matrix;       // [heads, value_width, key_width]
};

/// Seeded weights and one deterministic step, F32, token by token.
///
/// S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T and o_t = S_t q_t, with unit keys and queries, after
/// Yang, Kautz, Hatamizadeh: "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024, equation 10.
class Model {
 public:
  Model(Shape const& shape, std::uint32_t seed) : shape_(shape) {
    std::mt19937 random(seed);
    auto const fill = [&random](std::size_t count, float scale) {
      std::vector<float> values(count);
      for (float& v : values) v = scale * (static_cast<float>(random()) / 2147483648.0f - 1.0f);
      return values;
    };
    float const scale = 1.7f / std::sqrt(static_cast<float>(shape.model_width));
    embedding_ = fill(shape.vocabulary * shape.model_width, 1.0f);
    layers_.resize(shape.layers);
    for (Weights& w : layers_) {
      w.project = fill(shape.channels() * shape.model_width, scale);
      w.taps = fill(shape.channels() * Shape::taps, 1.0f);
      w.decay = fill(shape.heads * shape.model_width, scale);
      w.write = fill(shape.heads * shape.model_width, scale);
      w.out = fill(shape.model_width * shape.heads * shape.value_width, scale);
    }
  }

  [[nodiscard]] Shape const& shape() const { return shape_; }

  /// Advances the states of all layers by one token and returns the logits, [vocabulary].
  /// @param states  one a layer
  [[nodiscard]] std::vector<float> advance(std::vector<LayerState> const& states, int token) const {
    std::size_t const width = shape_.model_width;
    float const* const row = &embedding_[static_cast<std::size_t>(token) * width];
    std::vector<float> x(row, row + width);
    for (std::size_t l = 0; l < layers_.size(); ++l) advance(layers_[l], states[l], x);
    return times(embedding_, normed(x));
  }

 private:
  struct Weights {
    std::vector<float> project;  // [channels, model_width]: queries, then keys, then values
    std::vector<float> taps;     // [channels, taps], oldest row first
    std::vector<float> decay;    // [heads, model_width]
    std::vector<float> write;    // [heads, model_width]
    std::vector<float> out;      // [model_width, heads * value_width]
  };

  static std::vector<float> times(std::vector<float> const& matrix, std::vector<float> const& x) {
    std::vector<float> y(matrix.size() / x.size(), 0.0f);
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += matrix[r * x.size() + c] * x[c];
    }
    return y;
  }

  static float length(float const* x, std::size_t n) {
    float squares = 0.0f;
    for (std::size_t i = 0; i < n; ++i) squares += x[i] * x[i];
    return std::sqrt(squares + 1e-6f);
  }

  static std::vector<float> normed(std::vector<float> x) {
    float const scale = std::sqrt(static_cast<float>(x.size())) / length(x.data(), x.size());
    for (float& v : x) v *= scale;
    return x;
  }

  static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

  // The convolution of the new row and the rows before it, per channel, through x * sigmoid(x); then the rows move up.
  [[nodiscard]] std::vector<float> convolve(Weights const& w, float* rows, std::vector<float> const& fresh) const {
    std::size_t const channels = shape_.channels();
    std::vector<float> out(channels);
    for (std::size_t c = 0; c < channels; ++c) {
      float const* const taps = &w.taps[c * Shape::taps];
      float sum = taps[Shape::taps - 1] * fresh[c];
      for (std::size_t t = 0; t + 1 < Shape::taps; ++t) sum += taps[t] * rows[t * channels + c];
      out[c] = sum * sigmoid(sum);
    }
    std::copy(rows + channels, rows + (Shape::taps - 1) * channels, rows);
    std::copy(fresh.begin(), fresh.end(), rows + (Shape::taps - 2) * channels);
    return out;
  }

  // One head: forgets, takes back what the key read before, writes the value; returns nothing, adds S q to `out`.
  void delta_rule(float* s, float alpha, float beta, float const* q, float const* k, float const* v, float* out) const {
    std::size_t const width = shape_.key_width;
    float const q_scale = 1.0f / length(q, width);
    float const k_scale = 1.0f / length(k, width);
    for (std::size_t r = 0; r < shape_.value_width; ++r) {
      float* const row = s + r * width;
      float read = 0.0f;
      for (std::size_t c = 0; c < width; ++c) {
        row[c] *= alpha;
        read += row[c] * k[c] * k_scale;
      }
      float sum = 0.0f;
      for (std::size_t c = 0; c < width; ++c) {
        row[c] += beta * (v[r] - read) * k[c] * k_scale;
        sum += row[c] * q[c] * q_scale;
      }
      out[r] = sum;
    }
  }

  void advance(Weights const& w, LayerState const& state, std::vector<float>& x) const {
    std::vector<float> const input = normed(x);
    std::vector<float> const mixed = convolve(w, state.convolution, times(w.project, input));
    std::vector<float> const decay = times(w.decay, input);
    std::vector<float> const write = times(w.write, input);
    std::size_t const keys = shape_.heads * shape_.key_width;
    std::vector<float> out(shape_.heads * shape_.value_width);
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      float const alpha = std::exp(-0.02f * std::log1p(std::exp(decay[h])));  // forgets slowly
      delta_rule(state.matrix + h * shape_.value_width * shape_.key_width, alpha, sigmoid(write[h]),
                 &mixed[h * shape_.key_width], &mixed[keys + h * shape_.key_width],
                 &mixed[2 * keys + h * shape_.value_width], &out[h * shape_.value_width]);
    }
    std::vector<float> const added = times(w.out, normed(out));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += added[i];
  }

  Shape shape_;
  std::vector<float> embedding_;  // [vocabulary, model_width], input and output
  std::vector<Weights> layers_;
};

}  // namespace gated_delta
