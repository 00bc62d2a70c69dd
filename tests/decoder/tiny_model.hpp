// The fixture dsv4-tiny, read once, and sessions of it for tests of the whole decoder.
#pragma once

#include "gguf.hpp"
#include "input_files.hpp"
#include "session.hpp"

#include <cstdint>
#include <string>
#include <vector>

inline std::string const tiny_directory = std::string(ROLLBACK_TEST_DATA) + "/dsv4-tiny";

inline dsv4_decoder::Gguf const& tiny_file() {
  static dsv4_decoder::Gguf const file = dsv4_decoder::Gguf::open(tiny_directory + "/model.gguf");
  return file;
}

/// The 700 tokens whose logits are recorded.
inline std::vector<std::int32_t> const& tiny_tokens() {
  static std::vector<std::int32_t> const tokens = dsv4_decoder::read_ids(tiny_directory + "/tokens.txt");
  return tokens;
}

inline dsv4_decoder::ModelOptions tiny_options(std::int32_t max_rows = 512) {
  dsv4_decoder::ModelOptions options;
  options.max_rows = max_rows;
  options.max_positions = 8192;
  return options;
}

/// One for all tests that change nothing of it. Its scratch is shared, so one `forward` at a time.
inline dsv4_decoder::Model& tiny_model() {
  static dsv4_decoder::Model model(tiny_file(), tiny_options());
  return model;
}

/// `count` tokens that the seed decides.
inline std::vector<std::int32_t> other_tokens(std::size_t count, std::uint32_t seed) {
  std::vector<std::int32_t> tokens(count);
  std::uint32_t x = seed * 2654435761u + 12345u;
  for (std::int32_t& token : tokens) {
    x = x * 1664525u + 1013904223u;
    token = static_cast<std::int32_t>((x >> 10) % 256);
  }
  return tokens;
}
/// The first `keep` tokens of `head`, then `tail`.
inline std::vector<std::int32_t> joined(std::vector<std::int32_t> const& head, std::int64_t keep,
                                        std::vector<std::int32_t> const& tail) {
  std::vector<std::int32_t> tokens(head.begin(), head.begin() + keep);
  tokens.insert(tokens.end(), tail.begin(), tail.end());
  return tokens;
}
