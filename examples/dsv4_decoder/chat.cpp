#include "chat.hpp"

#include "input_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace dsv4_decoder {
namespace {

using Json = nlohmann::ordered_json;  // tool definitions keep the order the client gave them

constexpr int deepest = 64;  // levels of nesting; writing JSON out again is recursive
constexpr int most_tokens = 1 << 20;

constexpr std::array<std::pair<std::string_view, Role>, 4> roles = {{
    {"system", Role::system},
    {"user", Role::user},
    {"assistant", Role::assistant},
    {"tool", Role::tool},
}};

// A value of a request together with where it stands, so that a refusal can say so.
class Field {
 public:
  Field(std::string const& file, int line) : file_(file), line_(line) {}

  [[noreturn]] void refuse(std::string const& wrong) const {
    throw FileError(file_, path_.empty() ? wrong : fmt::format("{}: {}", path_, wrong), fmt::format("line {}", line_));
  }
  [[noreturn]] void refuse_type(char const* wanted) const {
    refuse(fmt::format("{} is needed, not {}", wanted, value_ == nullptr ? "nothing" : value_->type_name()));
  }

  // Parses the line into `into`, which must outlive this field and those made from it.
  void parse(std::string_view text, Json& into);

  [[nodiscard]] bool given() const { return value_ != nullptr && !value_->is_null(); }  // null counts as left out
  [[nodiscard]] Json const& value() const { return *value_; }

  [[nodiscard]] Field member(char const* key) const {
    auto const found = value_->find(key);
    return Field(*this, found == value_->end() ? nullptr : &*found,
                 path_.empty() ? key : fmt::format("{}.{}", path_, key));
  }

  // The elements of an array; none where it is left out.
  [[nodiscard]] std::vector<Field> elements() const {
    std::vector<Field> out;
    if (!given()) return out;
    if (!value_->is_array()) refuse_type("an array");
    for (std::size_t i = 0; i < value_->size(); ++i)
      out.push_back(Field(*this, &(*value_)[i], fmt::format("{}[{}]", path_, i)));
    return out;
  }

  void need_object() const {
    if (value_ == nullptr || !value_->is_object()) refuse_type("an object");
  }

  [[nodiscard]] std::string const& text() const {
    if (value_ == nullptr || !value_->is_string()) refuse_type("a string");
    return value_->get_ref<std::string const&>();
  }

 private:
  Field(Field const& parent, Json const* value, std::string path)
      : file_(parent.file_), line_(parent.line_), value_(value), path_(std::move(path)) {}

  std::string const& file_;
  int line_;
  Json const* value_ = nullptr;  // nullptr: not there
  std::string path_;             // "messages[2].content"; empty for the request itself
};

void Field::parse(std::string_view text, Json& into) {
  auto const shallow = [this](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest) refuse(fmt::format("is nested more than {} levels deep", deepest));
    return true;
  };
  try {
    into = Json::parse(text.begin(), text.end(), shallow);
  } catch (Json::parse_error const& error) {
    std::string_view what = error.what();
    auto const position = what.find("column ");  // the library says where first, and then what
    auto const detail = what.find(": ", position == std::string_view::npos ? 0 : position);
    if (detail != std::string_view::npos) what.remove_prefix(detail + 2);
    throw FileError(file_, "is not JSON: " + printable(what), fmt::format("line {}, column {}", line_, error.byte));
  } catch (Json::out_of_range const&) { refuse("holds a number that is out of range"); }
  value_ = &into;
}

std::string content_of(Field const& content) {
  if (!content.given()) return {};
  if (content.value().is_string()) return content.text();
  if (!content.value().is_array()) content.refuse_type("a string, null or an array of text parts");
  std::string joined;
  for (auto const& part : content.elements()) {
    part.need_object();
    auto const type = part.member("type");
    if (type.text() != "text") type.refuse(fmt::format("\"{}\" is not supported; \"text\" is", printable(type.text())));
    joined += part.member("text").text();
  }
  return joined;
}

// "type" may be left out, but must not promise something else.
void need_function(Field const& holder) {
  holder.need_object();
  auto const type = holder.member("type");
  if (type.given() && type.text() != "function") {
    type.refuse(fmt::format("\"{}\" is not supported; \"function\" is", printable(type.text())));
  }
  holder.member("function").need_object();
}

ToolCall tool_call_of(Field const& call) {
  need_function(call);
  if (auto const id = call.member("id"); id.given()) (void)id.text();
  auto const function = call.member("function");
  return {function.member("name").text(), function.member("arguments").text()};
}

Message message_of(Field const& field) {
  field.need_object();
  Message message;
  auto const role = field.member("role");
  auto const known =
      std::find_if(roles.begin(), roles.end(), [&role](auto const& r) { return r.first == role.text(); });
  if (known == roles.end()) {
    role.refuse(fmt::format("\"{}\" is none of system, user, assistant, tool", printable(role.text())));
  }
  message.role = known->second;
  message.content = content_of(field.member("content"));
  auto const reasoning = field.member("reasoning_content");
  if (reasoning.given()) message.reasoning = reasoning.text();
  auto const calls = field.member("tool_calls");
  for (auto const& call : calls.elements()) message.tool_calls.push_back(tool_call_of(call));
  if (message.role != Role::assistant) {
    if (reasoning.given()) reasoning.refuse("only an assistant's message can have it");
    if (calls.given()) calls.refuse("only an assistant's message can have them");
  }
  if (auto const id = field.member("tool_call_id"); id.given()) (void)id.text();
  return message;
}

std::int64_t integer_of(Field const& field, std::int64_t lowest, std::int64_t highest) {
  auto const& value = field.value();
  if (!value.is_number_integer()) field.refuse_type("an integer");
  bool const fits = !value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(highest);
  if (!fits || value.get<std::int64_t>() < lowest || value.get<std::int64_t>() > highest) {
    field.refuse(fmt::format("is {}; {} to {} is allowed", value.dump(), lowest, highest));
  }
  return value.get<std::int64_t>();
}

ChatRequest request_of(Field const& body) {
  body.need_object();
  ChatRequest request;
  auto const messages = body.member("messages");
  if (!messages.given()) messages.refuse_type("an array");
  for (auto const& message : messages.elements()) request.messages.push_back(message_of(message));
  if (request.messages.empty()) messages.refuse("at least one message is needed");
  for (auto const& tool : body.member("tools").elements()) {
    need_function(tool);
    (void)tool.member("function").member("name").text();
    request.tools.push_back(tool.member("function").value().dump());
  }
  if (auto const field = body.member("max_tokens"); field.given()) {
    request.max_tokens = static_cast<int>(integer_of(field, 1, most_tokens));
  }
  if (auto const field = body.member("temperature"); field.given()) {
    if (!field.value().is_number()) field.refuse_type("a number");
    request.temperature = field.value().get<double>();
    if (!(*request.temperature >= 0 && *request.temperature <= 2)) {
      field.refuse(fmt::format("is {}; 0 to 2 is allowed", field.value().dump()));
    }
  }
  if (auto const field = body.member("seed"); field.given()) {
    using Limits = std::numeric_limits<std::int64_t>;
    request.seed = integer_of(field, Limits::min(), Limits::max());
  }
  return request;
}

class Prompt {
 public:
  explicit Prompt(Tokenizer const& tokenizer) : tokenizer_(tokenizer) {}

  Prompt& mark(Mark mark) { return append(tokenizer_.mark(mark)); }
  Prompt& text(std::string_view text) { return append(tokenizer_.encode(text)); }
  [[nodiscard]] std::vector<Token> take() { return std::move(tokens_); }

 private:
  Prompt& append(std::vector<Token> const& tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    return *this;
  }

  Tokenizer const& tokenizer_;
  std::vector<Token> tokens_;
};

Mark mark_of(Role role) {
  switch (role) {
    case Role::system:
      return Mark::system;
    case Role::user:
      return Mark::user;
    case Role::assistant:
      return Mark::assistant;
    case Role::tool:
      return Mark::tool;
  }
  return Mark::user;
}

void add_turn(Prompt& prompt, Message const& message) {
  prompt.mark(mark_of(message.role));
  if (message.reasoning) prompt.mark(Mark::think).text(*message.reasoning).mark(Mark::end_of_think);
  prompt.text(message.content);
  for (auto const& call : message.tool_calls) {
    prompt.mark(Mark::call).text(call.name + "\n" + call.arguments).mark(Mark::end_of_call);
  }
  prompt.mark(Mark::end_of_turn);
}

}  // namespace

std::vector<ChatRequest> read_chats(std::string const& path) { return parse_chats(read_text(path), path); }

std::vector<ChatRequest> parse_chats(std::string_view text, std::string const& name) {
  std::vector<ChatRequest> requests;
  for (int line = 1; !text.empty(); ++line) {
    auto const length = std::min(text.find('\n'), text.size());
    auto const content = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Json json;
    Field body(name, line);
    body.parse(content, json);
    requests.push_back(request_of(body));
    requests.back().line = line;
  }
  if (requests.empty()) throw FileError(name, "holds no request");
  return requests;
}

std::vector<Token> render(ChatRequest const& request, Tokenizer const& tokenizer) {
  Prompt prompt(tokenizer);
  prompt.mark(Mark::begin);
  auto message = request.messages.begin();
  if (message != request.messages.end() && message->role == Role::system) add_turn(prompt, *message++);
  if (!request.tools.empty()) {
    prompt.mark(Mark::tools);
    for (auto const& tool : request.tools) prompt.text(tool + "\n");
    prompt.mark(Mark::end_of_turn);
  }
  for (; message != request.messages.end(); ++message) add_turn(prompt, *message);
  return prompt.mark(Mark::assistant).take();
}

}  // namespace dsv4_decoder
