// A byte-level BPE vocabulary in the making, as the metadata of a GGUF file.
#pragma once

#include "gguf_builder.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

/// Starts with the 256 bytes as tokens 0 to 255, in order of value; what is added gets the next ids.
class BpeVocabulary {
 public:
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;

  BpeVocabulary() {
    for (int byte = 0; byte < 256; ++byte) add(written(std::string(1, static_cast<char>(byte))), 1);
  }

  /// How byte-level BPE writes bytes: printable Latin-1 as it is, the others from U+0100 on.
  static std::string written(std::string_view bytes) {
    std::string out;
    for (char c : bytes) {
      auto const byte = static_cast<unsigned char>(c);
      auto const itself = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
      int character = byte;
      if (!itself(byte)) {
        character = 256;
        for (int b = 0; b < byte; ++b) character += itself(b) ? 0 : 1;
      }
      if (character < 0x80) {
        out += static_cast<char>(character);
      } else {
        out += static_cast<char>(0xC0 | character >> 6);
        out += static_cast<char>(0x80 | (character & 0x3F));
      }
    }
    return out;
  }

  std::int32_t add(std::string const& text, std::int32_t type) {
    tokens.push_back(text);
    types.push_back(type);
    return static_cast<std::int32_t>(tokens.size()) - 1;
  }

  /// The id of an ordinary token, added if it is not there.
  std::int32_t id(std::string_view bytes) {
    auto const text = written(bytes);
    auto const found = std::find(tokens.begin(), tokens.end(), text);
    return found == tokens.end() ? add(text, 1) : static_cast<std::int32_t>(found - tokens.begin());
  }

  /// The next merge; does nothing where it is there already.
  void merge(std::string_view left, std::string_view right) {
    auto const text = written(left) + " " + written(right);
    if (std::find(merges.begin(), merges.end(), text) != merges.end()) return;
    id(left);
    id(right);
    id(std::string(left) + std::string(right));
    merges.push_back(text);
  }

  [[nodiscard]] GgufBuilder builder(std::string_view split = "gpt-2") const {
    GgufBuilder b;
    b.text("general.architecture", "deepseek4").text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", split);
    b.texts("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
    b.texts("tokenizer.ggml.merges", merges);
    return b;
  }
};
