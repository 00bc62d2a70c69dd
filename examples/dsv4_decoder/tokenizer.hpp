// Turns text into token ids and back, as the metadata of a GGUF file says: plain bytes, or byte-level BPE.
#pragma once

#include "gguf.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dsv4_decoder {

using Token = std::int32_t;

/// The signs between the texts of a chat. What each looks like depends on the vocabulary: `Tokenizer::mark`.
enum class Mark {
  begin,
  end_of_turn,
  system,
  user,
  assistant,
  tool,
  think,
  end_of_think,
  tools,
  call,
  end_of_call,
};
inline constexpr std::size_t marks = 11;  // how many there are

/// Whether the names of special tokens inside a text stand for those tokens, or are text like any other.
enum class Names { as_text, as_tokens };

/// `tokenizer.ggml.model` decides:
/// - missing or "none": a byte is a token, id = value of the byte. Marks take the ids from 256 on as far as the
///   vocabulary has room; the others are spelled out.
/// - "gpt2": byte-level BPE with the file's tokens and merges, the text split beforehand as `tokenizer.ggml.pre` says.
///   Marks are the vocabulary's special tokens where it has one of a known name; the others are spelled out.
///
/// Copies share their tables; all calls are const and may run at the same time.
class Tokenizer {
 public:
  /// Copies what it needs; `file` may go away.
  /// @throws FileError  metadata missing, malformed, or of a kind that is not supported
  explicit Tokenizer(Gguf const& file);

  /// Token ids of any bytes; UTF-8 is expected but not demanded. No token is added at either end.
  /// O(n log n) in the length of the text.
  [[nodiscard]] std::vector<Token> encode(std::string_view text, Names names = Names::as_text) const;

  /// The bytes that one token stands for; none for a special token that is not text (control, unused, mark). A
  /// character may be spread over several tokens, so what is shown should be cut at whole characters only.
  /// @throws std::out_of_range  the id is outside the vocabulary
  [[nodiscard]] std::string const& decode(Token token) const;
  [[nodiscard]] std::string decode(std::vector<Token> const& tokens) const;

  /// The tokens of a mark: one where the vocabulary has it, several where it is spelled out, none for `begin` where a
  /// "gpt2" file names no such token.
  [[nodiscard]] std::vector<Token> const& mark(Mark mark) const { return marks_[static_cast<std::size_t>(mark)]; }

  [[nodiscard]] std::optional<Token> bos() const { return bos_; }  ///< begins every sequence, where there is one
  [[nodiscard]] std::optional<Token> eos() const { return eos_; }  ///< ends an answer, where there is one
  [[nodiscard]] Token vocabulary() const { return vocabulary_; }   ///< ids are below this

 private:
  struct Merge {
    std::uint32_t rank = 0;  // lower goes first
    Token result = 0;
  };
  class Splitter;  // cuts a text into the pieces that BPE works on

  void load_bytes(Gguf const& file);
  void load_bpe(Gguf const& file);
  void load_tokens(Gguf const& file);
  void load_merges(Gguf const& file);
  [[nodiscard]] std::optional<Token> special_id(Gguf const& file, char const* key) const;
  void sort_names();

  void encode_text(std::string_view text, std::vector<Token>& out) const;
  void encode_piece(std::string_view piece, std::vector<Token>& out) const;

  Token vocabulary_ = 0;
  std::vector<std::string> bytes_;                    // by id: what it decodes to; nothing from its end on
  std::vector<std::pair<std::string, Token>> names_;  // of special tokens, longest first
  std::array<std::vector<Token>, marks> marks_;
  std::optional<Token> bos_;
  std::optional<Token> eos_;
  // Of BPE only.
  std::array<Token, 256> byte_tokens_{};             // by value of the byte
  std::unordered_map<std::string, Token> ids_;       // of the ordinary tokens, by their bytes
  std::unordered_map<std::uint64_t, Merge> merges_;  // by left id << 32 | right id
  std::shared_ptr<Splitter const> splitter_;         // nullptr where bytes are tokens
};

}  // namespace dsv4_decoder
