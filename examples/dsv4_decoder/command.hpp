// What the commands of the program share: exit codes, options, and how they are added.
#pragma once

#include "session.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace dsv4_decoder {

/// What the program tells its caller.
enum ExitCode : int {
  exit_ok = 0,
  exit_differs = 1,    // a check ran and found a difference
  exit_usage = 2,      // the command line is wrong
  exit_bad_input = 3,  // a file is missing, truncated, foreign or does not fit, or the output cannot be written
};

/// Options of every command that runs a model.
struct ModelFlags {
  std::string model;
  std::int32_t chunk = 128;
  std::int32_t batch = 512;
  std::int64_t context = 0;  // 0: as much as the work at hand needs
  std::int32_t threads = 0;

  void add(CLI::App& command);
  /// @throws SessionError where `--context` was given and is less than what is needed
  [[nodiscard]] ModelOptions model_options(std::int64_t needed_context) const;
  [[nodiscard]] SessionOptions session_options(std::int64_t needed_context) const;
};

/// Depths of both tiers.
struct TierFlags {
  std::int32_t per_token = 8;
  std::int32_t aligned = 8;
  void add(CLI::App& command);
};

/// Refuses what is no finite number: ranges let "nan" pass.
[[nodiscard]] CLI::Validator finite();

/// {"model": s, "books": s, "restores": s}
[[nodiscard]] nlohmann::ordered_json as_json(SessionProfile const& profile);

// Each adds one command to the program; its callback sets `exit_code`.
void add_generate(CLI::App& program, int& exit_code);
void add_replay(CLI::App& program, int& exit_code);
void add_verify(CLI::App& program, int& exit_code);
void add_inspect(CLI::App& program, int& exit_code);

}  // namespace dsv4_decoder
