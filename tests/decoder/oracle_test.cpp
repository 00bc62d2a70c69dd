// The whole decoder against logits that an independent engine recorded: every position, in every cut into chunks.
#include "sampler.hpp"

#include "catch.hpp"
#include "readable_state.hpp"
#include "tiny_model.hpp"

#include <algorithm>
#include <cmath>

namespace {

using dsv4_decoder::Session;
using dsv4_decoder::SessionOptions;

constexpr double tolerance = 1e-3;  // as the data set's README says; the engine itself is 6.7e-5 from float64

struct Fed {
  std::vector<float> logits;         // [tokens + greedy, vocabulary]
  std::vector<std::int32_t> greedy;  // what the decoder would say where the recorded continuation is fed
};

Fed feed_recorded(std::int32_t chunk) {
  std::vector<std::int32_t> const greedy = dsv4_decoder::read_ids(tiny_directory + "/greedy.txt");
  std::int64_t const vocabulary = tiny_model().hyper().vocabulary;
  SessionOptions options;
  options.per_token = options.aligned = 0;
  options.chunk = chunk;
  options.max_context = 764;
  Session session(tiny_model(), options);
  Fed fed;
  fed.logits.resize((tiny_tokens().size() + greedy.size()) * static_cast<std::size_t>(vocabulary));
  session.feed(tiny_tokens().data(), 700, fed.logits.data());
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    fed.greedy.push_back(dsv4_decoder::greedy(session.logits().data(), vocabulary));
    session.feed(&greedy[i], 1, fed.logits.data() + (700 + static_cast<std::int64_t>(i)) * vocabulary);
  }
  return fed;
}

double largest_difference(std::vector<float> const& a, std::vector<float> const& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

}  // namespace

TEST_CASE("logits and greedy ids equal the recorded ones in every cut into chunks", "[decoder]") {
  std::int64_t const vocabulary = tiny_model().hyper().vocabulary;
  std::vector<float> const recorded = dsv4_decoder::read_floats(tiny_directory + "/logits.f32", vocabulary);
  std::vector<std::int32_t> const greedy = dsv4_decoder::read_ids(tiny_directory + "/greedy.txt");
  REQUIRE(recorded.size() == static_cast<std::size_t>(764 * vocabulary));
  REQUIRE(greedy.size() == 64);
  Fed const one = feed_recorded(1);
  CHECK(largest_difference(one.logits, recorded) < tolerance);
  CHECK(one.greedy == greedy);
  for (std::int32_t chunk : {3, 7, 64, 128, 200, 512}) {
    INFO("chunks of " << chunk);
    Fed const fed = feed_recorded(chunk);
    CHECK(same_bits(fed.logits, one.logits));  // the same arithmetic for a row, whatever the chunk
    CHECK(fed.greedy == greedy);
  }
}

TEST_CASE("logits equal the recorded ones where every compressed row is attended to", "[decoder]") {
  dsv4_decoder::ModelOptions model_options = tiny_options(128);
  model_options.top_k = 1024;
  dsv4_decoder::Model model(tiny_file(), model_options);
  std::int64_t const vocabulary = model.hyper().vocabulary;
  std::vector<float> const recorded = dsv4_decoder::read_floats(tiny_directory + "/logits-topk-all.f32", vocabulary);
  SessionOptions options;
  options.max_context = 700;
  Session session(model, options);
  std::vector<float> logits(recorded.size());
  session.feed(tiny_tokens().data(), 700, logits.data());
  CHECK(largest_difference(logits, recorded) < tolerance);

  std::vector<float> const selecting = feed_recorded(128).logits;
  std::vector<float> const late(selecting.begin() + 400 * vocabulary, selecting.begin() + 700 * vocabulary);
  std::vector<float> const late_all(logits.begin() + 400 * vocabulary, logits.end());
  CHECK(largest_difference(late, late_all) > 0.5);  // the selection matters
}
