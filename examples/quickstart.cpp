// The quick start: an engine's own recurrent state, updated in place, that can go back when a prompt is edited.
#include <rollback/rollback.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int layer_count = 3;
constexpr int width = 64;
constexpr int state_bytes = width * sizeof(float);

using Tokens = std::vector<int>;
using Layers = std::vector<std::vector<float>>;  // a tensor a layer: [states, width]

float* state_of(std::vector<float>& layer, std::int32_t state) { return layer.data() + state * width; }

// The engine's model: a recurrence that overwrites its state. The layers differ in how fast they forget.
void advance(float* state, std::size_t layer, int token) {
  float const keep = 0.9f + 0.03f * static_cast<float>(layer);
  for (int i = 0; i < width; ++i) {
    float const neighbour = state[(i + 1) % width];
    state[i] = keep * state[i] + std::sin(0.1f * neighbour + static_cast<float>(token) * static_cast<float>(i + 1));
  }
}

// Runs the tokens at positions [begin, end).
bool run_model(Layers& layers, std::int32_t state, Tokens const& tokens, std::int64_t begin, std::int64_t end) {
  for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
    for (std::size_t l = 0; l < layers.size(); ++l) advance(state_of(layers[l], state), l, tokens[p]);
  }
  return true;
}

std::int32_t rows_from(Tokens const& tokens, std::int64_t position) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(tokens.size()) - position);
}

std::int64_t first_difference(Tokens const& a, Tokens const& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

void require(rollback::Verdict verdict) {
  if (verdict == rollback::Verdict::accepted) return;
  std::printf("refused: %s\n", text(verdict));
  std::exit(1);
}

// Whether the state equals, byte for byte, that of a fresh run over the tokens.
bool equals_fresh_run(Layers& layers, std::int32_t state, Tokens const& tokens) {
  Layers fresh(layer_count, std::vector<float>(width));
  run_model(fresh, 0, tokens, 0, rows_from(tokens, 0));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (std::memcmp(fresh[l].data(), state_of(layers[l], state), state_bytes) != 0) return false;
  }
  return true;
}

}  // namespace

int main() {
  Tokens tokens(1000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * i % 251);
  Tokens edited = tokens;
  edited[900] = 77;
  std::int64_t const same = first_difference(tokens, edited);

  // [readme]
  using Ring = rollback::RollbackRing<rollback::WholePlane, 128, rollback::dynamic_depth>;
  rollback::RingOptions options;
  options.depth = 4;        // keep the states at the last 4 multiples of 128 tokens
  options.per_token = 8;    // and those of the last 8 tokens, for speculative decoding
  options.max_rows = 1024;  // the most tokens of one feed

  // Your state: a tensor a layer, in memory that stays yours, with room for as many states as the ring asks for.
  auto const states = static_cast<std::size_t>(Ring::states(options));
  std::vector<std::vector<float>> layers(layer_count, std::vector<float>(states * width));
  std::vector<rollback::PlaneTensor> tensors;
  for (auto& layer : layers) tensors.push_back({reinterpret_cast<std::byte*>(layer.data()), state_bytes});
  Ring ring(rollback::WholePlane(tensors.data(), layer_count, Ring::states(options)), options);

  // Your model: advances one state in place, as it always did.
  auto const decode = [&](std::int32_t state, rollback::Position begin, rollback::Position end) {
    return run_model(layers, state, tokens, begin, end);
  };
  rollback::Slot const slot = ring.slot(0);
  require(ring.feed(slot, rows_from(tokens, 0), decode));

  // The prompt was edited: go back to the nearest landing before the first difference, and feed the rest. The last
  // token is always fed, even if nothing differs: its logits are wanted.
  std::int64_t const last = static_cast<std::int64_t>(edited.size()) - 1;
  rollback::Landing const landing = ring.nearest(slot, std::min(first_difference(tokens, edited), last));
  require(ring.roll_back(slot, landing.position));
  tokens = edited;
  require(ring.feed(slot, rows_from(tokens, landing.position), decode));
  // [/readme]

  bool const equal = equals_fresh_run(layers, ring.live(slot), tokens);
  std::printf("first difference at %lld, landing at %lld (%s): %d of %zu tokens fed again\n",
              static_cast<long long>(same), static_cast<long long>(landing.position), text(landing.tier),
              static_cast<int>(rows_from(tokens, landing.position)), tokens.size());
  std::printf("kept: %zu states, %zu bytes\n", states, Ring::bytes(options, ring.plane().state_bytes()));
  std::printf("equal to a fresh run of all %zu tokens: %s\n", tokens.size(), equal ? "yes" : "NO");
  return equal && landing.position == 896 ? 0 : 1;
}
