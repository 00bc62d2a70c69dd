#include "command.hpp"
#include "input_files.hpp"
#include "progress.hpp"
#include "sampler.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace dsv4_decoder {
namespace {

struct VerifyFlags {
  std::string oracle;
  std::string model;  // empty: the oracle's model.gguf
  std::int32_t chunk = 1;
  double tolerance = 0;  // 0: as the oracle's index says
  bool all_rows = false;
  bool json = false;
};

struct Oracle {
  std::int64_t vocabulary = 0;
  double tolerance = 1e-3;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> greedy;  // continuation of the tokens; may be empty
  std::vector<float> logits;         // [positions, vocabulary]
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(logits.size()) / vocabulary; }
};

Oracle read_oracle(VerifyFlags const& flags) {
  std::string const index_path = flags.oracle + "/index.json";
  nlohmann::json index;
  Oracle oracle;
  try {
    index = nlohmann::json::parse(read_text(index_path));
    nlohmann::json const& vocabulary = index.at("vocab");
    if (!vocabulary.is_number_integer()) throw FileError(index_path, "vocab is not a whole number");
    oracle.vocabulary = vocabulary.get<std::int64_t>();
    oracle.tolerance = index.at("tolerance").at("suggested_abs_f32").get<double>();
  } catch (nlohmann::json::exception const& e) { throw FileError(index_path, "not the index of an oracle", e.what()); }
  if (oracle.vocabulary < 1 || oracle.vocabulary > (1 << 24)) throw FileError(index_path, "vocab is out of range");
  if (!(oracle.tolerance > 0) || !(oracle.tolerance <= 1)) {
    throw FileError(index_path, "tolerance.suggested_abs_f32 is not in (0, 1]");
  }
  oracle.tokens = read_ids(flags.oracle + "/tokens.txt");
  if (oracle.tokens.empty()) throw FileError(flags.oracle + "/tokens.txt", "holds no token id");
  std::string const logits_path = flags.oracle + (flags.all_rows ? "/logits-topk-all.f32" : "/logits.f32");
  oracle.logits = read_floats(logits_path, oracle.vocabulary);
  if (!flags.all_rows) oracle.greedy = read_ids(flags.oracle + "/greedy.txt");
  auto const expected = static_cast<std::int64_t>(oracle.tokens.size() + oracle.greedy.size());
  if (oracle.rows() != expected) {
    throw FileError(logits_path, fmt::format("has {} rows, the tokens need {}", oracle.rows(), expected));
  }
  return oracle;
}

// The largest difference in rows [first, last), and the row where it is.
std::pair<double, std::int64_t> largest_difference(std::vector<float> const& ours, std::vector<float> const& theirs,
                                                   std::int64_t vocabulary, std::int64_t first, std::int64_t last) {
  std::pair<double, std::int64_t> worst{0.0, first};
  for (std::int64_t i = first * vocabulary; i < last * vocabulary; ++i) {
    auto const at = static_cast<std::size_t>(i);
    double const difference = std::abs(static_cast<double>(ours[at]) - static_cast<double>(theirs[at]));
    if (!(difference <= worst.first)) worst = {std::isnan(difference) ? INFINITY : difference, i / vocabulary};
  }
  return worst;
}

int verify(VerifyFlags const& flags) {
  Oracle const oracle = read_oracle(flags);
  Gguf const file = Gguf::open(flags.model.empty() ? flags.oracle + "/model.gguf" : flags.model);
  ModelOptions options;
  options.max_rows = flags.chunk;
  options.max_positions = oracle.rows();
  if (flags.all_rows) options.top_k = 1024;
  Model model(file, options);
  std::int64_t const vocabulary = model.hyper().vocabulary;
  if (vocabulary != oracle.vocabulary) {
    throw FileError(flags.oracle,
                    fmt::format("recorded with a vocabulary of {}, the model has {}", oracle.vocabulary, vocabulary));
  }
  SessionOptions session_options;
  session_options.per_token = session_options.aligned = 0;
  session_options.chunk = flags.chunk;
  session_options.batch = std::max(512, flags.chunk);
  session_options.max_context = oracle.rows();
  Session session(model, session_options);

  auto const count = static_cast<std::int64_t>(oracle.tokens.size());
  std::vector<float> logits(oracle.logits.size());
  {
    ProgressBar bar("verifying");
    session.feed(oracle.tokens.data(), count, logits.data(),
                 [&bar](std::int64_t done, std::int64_t all) { bar.show(done, all); });
  }
  std::int64_t agreeing = 0;  // ids of the greedy continuation, from its first
  for (std::size_t i = 0; i < oracle.greedy.size(); ++i) {
    std::int32_t const token = greedy(session.logits().data(), vocabulary);
    if (token == oracle.greedy[i] && agreeing == static_cast<std::int64_t>(i)) ++agreeing;
    session.feed(&oracle.greedy[i], 1, logits.data() + (count + static_cast<std::int64_t>(i)) * vocabulary);
  }

  double const tolerance = flags.tolerance > 0 ? flags.tolerance : oracle.tolerance;
  auto const worst = largest_difference(logits, oracle.logits, vocabulary, 0, oracle.rows());
  bool const same_greedy = agreeing == static_cast<std::int64_t>(oracle.greedy.size());
  bool const passed = worst.first <= tolerance && same_greedy;
  nlohmann::ordered_json ranges = nlohmann::ordered_json::array();
  for (std::int64_t first = 0; first < oracle.rows(); first += 128) {
    std::int64_t const last = std::min(first + 128, oracle.rows());
    auto const [difference, row] = largest_difference(logits, oracle.logits, vocabulary, first, last);
    ranges.push_back({{"first", first}, {"last", last - 1}, {"largest_difference", difference}, {"at", row}});
  }
  if (flags.json) {
    nlohmann::ordered_json const out = {
        {"positions", oracle.rows()},        {"chunk", flags.chunk}, {"tolerance", tolerance},
        {"largest_difference", worst.first}, {"at", worst.second},   {"greedy_agreeing", agreeing},
        {"greedy", oracle.greedy.size()},    {"passed", passed},     {"ranges", ranges}};
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print("{:>11} {:>22} {:>10}\n", "positions", "largest |difference|", "at");
    for (auto const& range : ranges) {
      fmt::print("{:>5}..{:<5} {:>21.3e} {:>10}\n", range["first"].get<std::int64_t>(),
                 range["last"].get<std::int64_t>(), range["largest_difference"].get<double>(),
                 range["at"].get<std::int64_t>());
    }
    if (!oracle.greedy.empty()) {
      fmt::print("greedy continuation: {} of {} ids agree\n", agreeing, oracle.greedy.size());
    }
    fmt::print("chunks of {}: largest |logit difference| {:.3e} over {} positions, tolerance {:g}: {}\n", flags.chunk,
               worst.first, oracle.rows(), tolerance, passed ? "passed" : "FAILED");
  }
  return passed ? exit_ok : exit_differs;
}

}  // namespace

void add_verify(CLI::App& program, int& exit_code) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App& command =
      *program.add_subcommand("verify", "compare logits with those another engine recorded, position by position");
  command.add_option("--oracle", flags->oracle, "directory with index.json, tokens.txt, logits.f32 and greedy.txt")
      ->required();
  command.add_option("-m,--model", flags->model, "GGUF file (default: model.gguf of the oracle)");
  command.add_option("--chunk", flags->chunk, "rows that run at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command.add_option("--tolerance", flags->tolerance, "largest difference allowed (default: as index.json says)")
      ->check(finite())
      ->check(CLI::PositiveNumber);
  command.add_flag("--all-rows", flags->all_rows,
                   "attend to every ratio-4 row, against logits-topk-all.f32, so that no selection can flip");
  command.add_flag("--json", flags->json, "print a JSON object");
  command.callback([flags, &exit_code] { exit_code = verify(*flags); });
}

}  // namespace dsv4_decoder
