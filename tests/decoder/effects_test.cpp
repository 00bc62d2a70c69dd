// Equality would be empty if nothing depended on the past: an early token moves late logits through CSA and HCA.
#include "catch.hpp"
#include "tiny_model.hpp"

#include <algorithm>
#include <cmath>

namespace {

using dsv4_decoder::Model;
using dsv4_decoder::Session;

std::vector<float> logits_of(bool csa, bool hca, std::vector<std::int32_t> const& tokens) {
  dsv4_decoder::ModelOptions options = tiny_options(128);
  options.attend_csa_rows = csa;
  options.attend_hca_rows = hca;
  Model model(tiny_file(), options);
  dsv4_decoder::SessionOptions session_options;
  session_options.max_context = 700;
  Session session(model, session_options);
  std::vector<float> logits(tokens.size() * static_cast<std::size_t>(model.hyper().vocabulary));
  session.feed(tokens.data(), static_cast<std::int64_t>(tokens.size()), logits.data());
  return logits;
}

// The largest change of a logit at positions [640, 700) when the token at position 5 is another one: there the raw
// windows of six layers reach no further back than position 640 - 6 * 127 would, and what they carry has faded.
double late_change(bool csa, bool hca) {
  std::vector<std::int32_t> tokens = tiny_tokens();
  std::vector<float> const before = logits_of(csa, hca, tokens);
  REQUIRE(tokens[5] == 377);
  tokens[5] = 94;
  std::vector<float> const after = logits_of(csa, hca, tokens);
  auto const first = 640 * static_cast<std::size_t>(tiny_model().hyper().vocabulary);
  double largest = 0;
  for (std::size_t i = first; i < before.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i])));
  }
  return largest;
}

}  // namespace

TEST_CASE("an early token moves late logits through CSA and through HCA and hardly without either", "[decoder]") {
  CHECK(late_change(true, true) > 1e-2);
  CHECK(late_change(true, false) > 1e-2);
  CHECK(late_change(false, true) > 1e-2);
  CHECK(late_change(false, false) < 1e-3);
}
