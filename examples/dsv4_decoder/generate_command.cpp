#include "command.hpp"

#include "input_files.hpp"
#include "progress.hpp"
#include "sampler.hpp"
#include "tokenizer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace dsv4_decoder {
namespace {

struct GenerateFlags {
  ModelFlags model;
  std::string prompt;
  std::string prompt_file;
  std::vector<std::int32_t> ids;
  std::string ids_file;
  std::int64_t count = 64;
  SamplerOptions sampler;
  std::int64_t seed = 0;
  bool ignore_eos = false;
  bool json = false;
};

int generate(GenerateFlags const& flags) {
  Gguf const file = Gguf::open(flags.model.model);
  Tokenizer const tokenizer(file);
  std::vector<std::int32_t> prompt = flags.ids;
  if (!flags.ids_file.empty()) prompt = read_ids(flags.ids_file);
  if (!flags.prompt.empty() || !flags.prompt_file.empty()) {
    std::string const text = flags.prompt_file.empty() ? flags.prompt : read_text(flags.prompt_file);
    if (tokenizer.bos()) prompt.push_back(*tokenizer.bos());
    std::vector<Token> const encoded = tokenizer.encode(text);
    prompt.insert(prompt.end(), encoded.begin(), encoded.end());
  }
  if (prompt.empty()) throw SessionError("the prompt is empty");

  std::int64_t const needed = static_cast<std::int64_t>(prompt.size()) + flags.count;
  Model model(file, flags.model.model_options(needed));
  Session session(model, flags.model.session_options(needed));
  SamplerOptions drawing = flags.sampler;
  drawing.seed = static_cast<std::uint64_t>(flags.seed);
  Sampler sampler(drawing, model.hyper().vocabulary);

  {
    ProgressBar bar("reading the prompt");
    session.feed(prompt.data(), static_cast<std::int64_t>(prompt.size()), nullptr,
                 [&bar](std::int64_t done, std::int64_t all) { bar.show(done, all); });
  }
  std::vector<std::int32_t> answer;
  while (static_cast<std::int64_t>(answer.size()) < flags.count) {
    std::int32_t const token = sampler.sample(session.logits().data());
    if (!flags.ignore_eos && tokenizer.eos() && token == *tokenizer.eos()) break;
    answer.push_back(token);
    if (!flags.json) {
      std::string const& bytes = tokenizer.decode(token);
      bool const written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
      if (!written || std::fflush(stdout) != 0) throw SessionError("the output cannot be written");
    }
    if (static_cast<std::int64_t>(answer.size()) < flags.count) session.feed(&token, 1);
  }
  if (flags.json) {
    std::string const text = tokenizer.decode(answer);
    nlohmann::ordered_json const out = {
        {"prompt_tokens", prompt.size()}, {"tokens", answer}, {"text", text}, {"seconds", as_json(session.profile())}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("\n");
  }
  return exit_ok;
}

}  // namespace

void add_generate(CLI::App& program, int& exit_code) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App& command = *program.add_subcommand("generate", "continue a text or a list of token ids");
  flags->model.add(command);
  auto* prompt = command.add_option_group("prompt", "what to continue, in one of these forms");
  prompt->add_option("-p,--prompt", flags->prompt, "text");
  prompt->add_option("-f,--file", flags->prompt_file, "file of text");
  prompt->add_option("--ids", flags->ids, "token ids, separated by commas")->delimiter(',');
  prompt->add_option("--ids-file", flags->ids_file, "file of token ids, separated by white space");
  prompt->require_option(1);
  command.add_option("-n,--max-tokens", flags->count, "most tokens to generate")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--temperature", flags->sampler.temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(finite())
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--top-p", flags->sampler.top_p, "draw among the likeliest tokens of this probability together")
      ->capture_default_str()
      ->check(finite())
      ->check(CLI::Range(1e-9, 1.0));
  command.add_option("--seed", flags->seed, "of the draws")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX));
  command.add_flag("--ignore-eos", flags->ignore_eos, "go on past the end of the text");
  command.add_flag("--json", flags->json, "print a JSON object");
  command.callback([flags, &exit_code] { exit_code = generate(*flags); });
}

}  // namespace dsv4_decoder
