// Reads chat-completion requests as clients send them, and lays them out as the tokens of a prompt.
#pragma once

#include "tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsv4_decoder {

enum class Role { system, user, assistant, tool };

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON, as the client sent it
};

struct Message {
  Role role = Role::user;
  std::string content;                   // UTF-8; parts of text are joined
  std::optional<std::string> reasoning;  // of an assistant's message; clients decide when they drop it
  std::vector<ToolCall> tool_calls;      // of an assistant's message
};

struct ChatRequest {
  std::vector<Message> messages;      // at least one; the whole history every time
  std::vector<std::string> tools;     // definitions, as compact JSON
  std::optional<int> max_tokens;      // [1, 1048576]
  std::optional<double> temperature;  // [0, 2]
  std::optional<std::int64_t> seed;
  int line = 0;  // where it stands in its file, counted from 1
};

/// Reads a file with the body of one request per line (JSON Lines); blank lines are skipped, unknown fields ignored.
/// @throws FileError  the file cannot be read or holds no request; or with the line: not JSON (then with the column,
///                    counted in bytes from 1), not UTF-8, a field missing or of the wrong type, no message, an unknown
///                    role, a value out of range
[[nodiscard]] std::vector<ChatRequest> read_chats(std::string const& path);

/// The same from memory. `name` stands for the path in messages.
[[nodiscard]] std::vector<ChatRequest> parse_chats(std::string_view text, std::string const& name);

/// The prompt of a request: begin, a leading system message, the tool definitions, the other messages in order, and the
/// opening of the assistant's answer. Each turn is its mark, its text and an end; reasoning stands between think marks
/// in front of the text, tool calls after it. Texts never become special tokens, whatever they contain.
///
/// This is a layout of its own, made from the special tokens that the vocabulary has. Requests that share their first
/// messages share the tokens of these, and the prompt of a request is the beginning of the next one's where a client
/// only appended messages: what prefix reuse lives on.
[[nodiscard]] std::vector<Token> render(ChatRequest const& request, Tokenizer const& tokenizer);

}  // namespace dsv4_decoder
