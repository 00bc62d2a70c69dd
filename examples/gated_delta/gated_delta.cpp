// Runs a small gated delta model through speculative decoding and edited prompts, and compares it with fresh runs.
#include "gated_delta/gated_delta.hpp"
#include "gated_delta/session.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <random>
#include <string>
#include <vector>

using gated_delta::Model;
using gated_delta::Session;
using rollback::Landing;
using rollback::Position;
using rollback::Verdict;

namespace {

// The largest difference between the logits after any token and those of a fresh run; infinite where one is no number.
float difference(Model const& model, Session const& session) {
  std::vector<gated_delta::Logits> const fresh = fresh_run(model, session.tokens());
  float most = 0.0f;
  for (std::size_t p = 0; p < fresh.size(); ++p) {
    for (std::size_t i = 0; i < fresh[p].size(); ++i) {
      float const d = std::abs(fresh[p][i] - session.logits(p)[i]);
      most = d <= most ? most : std::isnan(d) ? std::numeric_limits<float>::infinity() : d;
    }
  }
  return most;
}

class Table {
 public:
  Table() {
    fmt::print("{:<34} {:>6} {:>9} {:<10} {:>7} {:>8} {:>16}\n", "", "tokens", "landing", "tier", "replay", "fed",
               "max |difference|");
  }
  void add(std::string const& what, Session const& session, Landing const& landing, std::size_t fed, float d) {
    fmt::print("{:<34} {:>6} {:>9} {:<10} {:>7} {:>8} {:>16g}\n", what, session.tokens().size(), landing.position,
               text(landing.tier), landing.replay, fed, d);
    all_equal_ = all_equal_ && d == 0.0f;
  }
  [[nodiscard]] bool all_equal() const { return all_equal_; }

 private:
  bool all_equal_ = true;
};

bool run(Model const& model, rollback::RingOptions const& options, std::size_t prompt_tokens, std::uint32_t seed) {
  std::mt19937 random(seed);
  auto const token = [&] { return static_cast<int>(random() % model.shape().vocabulary); };
  std::vector<int> prompt(prompt_tokens);
  for (int& t : prompt) t = token();

  Session session(model, options);
  Table table;
  if (session.feed(prompt) != Verdict::accepted) return false;
  table.add("prompt", session, {0, 0, 0, rollback::Tier::start}, prompt.size(), difference(model, session));

  // A draft that is right up to some token, and wrong from there on.
  auto const drafts = static_cast<std::size_t>(options.per_token);
  for (std::size_t right = 0; right <= drafts; ++right) {
    int const next = gated_delta::greedy(session.logits(session.tokens().size() - 1));
    std::vector<int> with_next = session.tokens();
    with_next.push_back(next);
    std::vector<int> draft = continuation(model, with_next, drafts);
    if (right < drafts) draft[right] = (draft[right] + 1) % static_cast<int>(model.shape().vocabulary);
    if (session.verify(next, draft) != Verdict::accepted) return false;
    Position const tip = session.ring().tip(session.slot());
    Landing const landing = session.ring().nearest(session.slot(), tip);
    table.add(fmt::format("draft of {}, {} accepted", drafts, session.tokens().size() - with_next.size()), session,
              landing, 1 + draft.size(), difference(model, session));
  }

  // The prompt, edited further and further back: its end, a recent message, an early one, the very first token.
  for (std::size_t back : {std::size_t{2}, std::size_t{9}, std::size_t{30}, prompt_tokens / 2, prompt_tokens}) {
    std::vector<int> edited = session.tokens();
    std::size_t const at = edited.size() - std::min(back, edited.size());
    edited[at] = (edited[at] + 1) % static_cast<int>(model.shape().vocabulary);
    edited.push_back(token());
    Landing const landing = session.replace(edited);
    table.add(fmt::format("edit at position {}", at), session, landing,
              edited.size() - static_cast<std::size_t>(landing.position), difference(model, session));
  }
  return table.all_equal();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A small gated delta model that takes tokens back, compared with fresh runs"};
  rollback::RingOptions options;
  options.depth = 4;
  options.per_token = 4;
  std::size_t tokens = 100;
  std::uint32_t seed = 1;
  app.add_option("--depth", options.depth, "boundaries kept, one every 16 tokens")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--per-token", options.per_token, "last tokens whose states are kept; also the length of a draft")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--tokens", tokens, "tokens of the prompt")->check(CLI::Range(32, 4096))->capture_default_str();
  app.add_option("--seed", seed, "of the weights and the tokens")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.max_rows = static_cast<std::int32_t>(tokens) + 65 * 65;  // prompt, drafts and edits in one feed

  try {
    Model const model({}, seed);
    bool const equal = run(model, options, tokens, seed);
    fmt::print("{}\n", equal ? "every logit equals that of a fresh run" : "NOT equal to a fresh run");
    return equal ? 0 : 1;
  } catch (std::exception const& e) {
    fmt::print(stderr, "gated_delta: {}\n", e.what());
    return 1;
  }
}
