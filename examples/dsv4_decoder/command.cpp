#include "command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace dsv4_decoder {

void ModelFlags::add(CLI::App& command) {
  command.add_option("-m,--model", model, "GGUF file of architecture deepseek4")->required();
  command.add_option("--chunk", chunk, "rows that run at once")->capture_default_str()->check(CLI::Range(1, 4096));
  command.add_option("--batch", batch, "rows that are fed as one transaction; at least the chunk")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command.add_option("--context", context, "positions that the state has room for (default: what is needed)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--threads", threads, "workers that share a chunk's rows (default: two a hardware thread)")
      ->check(CLI::Range(1, 1024));
}

ModelOptions ModelFlags::model_options(std::int64_t needed_context) const {
  if (context > 0 && context < needed_context) {
    throw SessionError(
        fmt::format("{} tokens, prompt and answer, do not fit in a --context of {}", needed_context, context));
  }
  ModelOptions o;
  o.max_rows = chunk;
  o.max_positions = context > 0 ? context : needed_context;
  o.workers = threads;
  return o;
}

SessionOptions ModelFlags::session_options(std::int64_t needed_context) const {
  SessionOptions o;
  o.per_token = 0;
  o.aligned = 0;
  o.chunk = chunk;
  o.batch = std::max(batch, chunk);
  o.max_context = context > 0 ? context : needed_context;
  return o;
}

void TierFlags::add(CLI::App& command) {
  command.add_option("--rs-seq", per_token, "per-token tier: states kept below the tip, one a token; 0 = off")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  command.add_option("--rs-aligned", aligned, "aligned tier: states kept, one every 128 tokens; 0 = off")
      ->capture_default_str()
      ->check(CLI::Range(0, 65536));
}

CLI::Validator finite() {
  return {[](std::string& text) {
            return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string() : "must be finite: " + text;
          },
          ""};
}

nlohmann::ordered_json as_json(SessionProfile const& profile) {
  return {{"model", profile.forward}, {"books", profile.books}, {"restores", profile.copies}};
}

}  // namespace dsv4_decoder
