#include "chat.hpp"

#include "bpe_vocabulary.hpp"
#include "catch.hpp"
#include "file_refusal.hpp"
#include "gguf_builder.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <random>

using Catch::Matchers::ContainsSubstring;
using dsv4_decoder::ChatRequest;
using dsv4_decoder::Gguf;
using dsv4_decoder::Mark;
using dsv4_decoder::Message;
using dsv4_decoder::parse_chats;
using dsv4_decoder::read_chats;
using dsv4_decoder::render;
using dsv4_decoder::Role;
using dsv4_decoder::Token;
using dsv4_decoder::Tokenizer;

namespace {

using Tokens = std::vector<Token>;

Tokenizer bytes_tokenizer() { return Tokenizer(Gguf::open(std::string(ROLLBACK_TEST_DATA) + "/dsv4-tiny/model.gguf")); }

std::string refused(std::string const& text) {
  return refusal([&] { (void)parse_chats(text, "chat.jsonl"); });
}

// A request whose one message is this, or which has this beside its one message.
std::string with_message(std::string const& message) { return R"({"messages":[)" + message + "]}"; }
std::string with_field(std::string const& field) {
  return R"({"messages":[{"role":"user","content":"x"}],)" + field + "}";
}

std::vector<ChatRequest> shipped(char const* name) { return read_chats(std::string(ROLLBACK_CHATS) + "/" + name); }

// How consecutive prompts relate: what the second shares with the first, and what the first has beyond that.
struct Step {
  std::size_t length = 0;  // of the second
  std::size_t shared = 0;
  std::size_t back = 0;
};

std::vector<Step> steps_of(std::vector<ChatRequest> const& requests, Tokenizer const& tokenizer) {
  std::vector<Step> steps;
  auto before = render(requests.front(), tokenizer);
  for (std::size_t i = 1; i < requests.size(); ++i) {
    auto const prompt = render(requests[i], tokenizer);
    auto const parted = std::mismatch(before.begin(), before.end(), prompt.begin(), prompt.end()).first;
    auto const shared = static_cast<std::size_t>(parted - before.begin());
    steps.push_back({prompt.size(), shared, before.size() - shared});
    before = prompt;
  }
  return steps;
}

// Builds the expected tokens by hand.
struct Expected {
  Tokens tokens;
  Expected& mark(int index) {
    tokens.push_back(256 + index);
    return *this;
  }
  Expected& text(std::string const& text) {
    for (char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return *this;
  }
};
constexpr int begin = 0, end = 1, system_role = 2, user = 3, assistant = 4, tool = 5, think = 6, end_think = 7,
              tools = 8, call = 9, end_call = 10;

}  // namespace

TEST_CASE("a request is read with all that matters") {
  auto const requests =
      parse_chats(R"({"model":"m","stream":true,"max_tokens":12,"temperature":0.5,"seed":-3,"messages":[)"
                  R"({"role":"system","content":"S","name":"ignored"},)"
                  R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
                  R"({"role":"assistant","content":null,"reasoning_content":"R","tool_calls":[)"
                  R"({"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},)"
                  R"({"role":"tool","tool_call_id":"c1","content":"T"},)"
                  R"({"role":"assistant","reasoning_content":null,"tool_calls":null}],)"
                  R"("tools":[{"type":"function","function":{"name":"f","description":"D","parameters":{}}}]})",
                  "chat.jsonl");
  REQUIRE(requests.size() == 1);
  auto const& r = requests[0];
  CHECK(r.line == 1);
  CHECK(r.max_tokens == 12);
  CHECK(r.temperature == 0.5);
  CHECK(r.seed == -3);
  CHECK(r.tools == std::vector<std::string>{R"({"name":"f","description":"D","parameters":{}})"});
  REQUIRE(r.messages.size() == 5);
  CHECK(r.messages[0].role == Role::system);
  CHECK(r.messages[0].content == "S");
  CHECK(r.messages[1].content == "ab");
  CHECK(r.messages[2].content.empty());
  CHECK(r.messages[2].reasoning == std::string("R"));
  REQUIRE(r.messages[2].tool_calls.size() == 1);
  CHECK(r.messages[2].tool_calls[0].name == "f");
  CHECK(r.messages[2].tool_calls[0].arguments == "{\"x\": 1}");
  CHECK(r.messages[3].role == Role::tool);
  CHECK_FALSE(r.messages[4].reasoning);
  CHECK(r.messages[4].tool_calls.empty());
}

TEST_CASE("lines are counted with the blank ones and what is optional may be missing") {
  auto const one = with_message(R"({"role":"user","content":"x"})");
  auto const requests = parse_chats("\n  \t\r\n" + one + "\r\n\n" + one, "chat.jsonl");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].line == 3);
  CHECK(requests[1].line == 5);
  CHECK_FALSE(requests[0].max_tokens);
  CHECK_FALSE(requests[0].temperature);
  CHECK_FALSE(requests[0].seed);
  auto const nulls = parse_chats(with_field(R"("max_tokens":null,"temperature":null,"seed":null,"tools":null)"), "c");
  CHECK_FALSE(nulls[0].max_tokens);
}

TEST_CASE("what is not JSON is refused with line and column") {
  auto const one = with_message(R"({"role":"user","content":"x"})");
  CHECK_THAT(refused("\n{\"messages\": [}"), ContainsSubstring("chat.jsonl: is not JSON") &&
                                                 ContainsSubstring("unexpected '}'") &&
                                                 ContainsSubstring("(line 2, column 15)"));
  CHECK_THAT(refused(one + "\n" + one + " x"), ContainsSubstring("(line 2, column 46)"));
  CHECK_THAT(refused("{\"messages\":"), ContainsSubstring("unexpected end of input"));
  CHECK_THAT(refused(with_message("{\"role\":\"user\",\"content\":\"\xff\"}")),
             ContainsSubstring("ill-formed UTF-8 byte"));
  CHECK_THAT(refused(with_message("{\"role\":\"user\",\"content\":\"\xc3\"}")),
             ContainsSubstring("ill-formed UTF-8 byte"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":"\ud800"})")), ContainsSubstring("is not JSON"));
  CHECK_THAT(refused(with_field("\"n\":1e999")), ContainsSubstring("a number that is out of range (line 1)"));
  CHECK_THAT(refused(std::string(100000, '[')), ContainsSubstring("nested more than 64"));
  CHECK_THAT(refused("[]"), ContainsSubstring("an object is needed, not array (line 1)"));
  CHECK(refused("") == "chat.jsonl: holds no request");
  CHECK(refused("\n \n") == "chat.jsonl: holds no request");
}

TEST_CASE("messages of the wrong form are refused with their place") {
  CHECK(refused("{}") == "chat.jsonl: messages: an array is needed, not nothing (line 1)");
  CHECK_THAT(refused(R"({"messages":{}})"), ContainsSubstring("messages: an array is needed, not object"));
  CHECK_THAT(refused(R"({"messages":[]})"), ContainsSubstring("messages: at least one message is needed"));
  CHECK_THAT(refused(with_message("3")), ContainsSubstring("messages[0]: an object is needed, not number"));
  CHECK_THAT(refused(with_message("{}")), ContainsSubstring("messages[0].role: a string is needed, not nothing"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":"x"},{"role":"boss"})")),
             ContainsSubstring("messages[1].role: \"boss\" is none of"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":5})")),
             ContainsSubstring("messages[0].content: a string, null or an array of text parts is needed, not number"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":["x"]})")),
             ContainsSubstring("messages[0].content[0]: an object"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":[{"type":"image_url"}]})")),
             ContainsSubstring("content[0].type: \"image_url\" is not supported"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":[{"type":"text"}]})")),
             ContainsSubstring("content[0].text: a string is needed, not nothing"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":"x","reasoning_content":"y"})")),
             ContainsSubstring("messages[0].reasoning_content: only an assistant's"));
  CHECK_THAT(refused(with_message(R"({"role":"user","content":"x","tool_calls":[]})")),
             ContainsSubstring("messages[0].tool_calls: only an assistant's"));
  CHECK_THAT(refused(with_message(R"({"role":"tool","content":"x","tool_call_id":1})")),
             ContainsSubstring("messages[0].tool_call_id: a string is needed"));
}

TEST_CASE("tools and calls of the wrong form are refused with their place") {
  auto const calls = [](std::string const& c) {
    return refused(with_message(R"({"role":"assistant","tool_calls":)" + c + "}"));
  };
  CHECK_THAT(calls("{}"), ContainsSubstring("messages[0].tool_calls: an array is needed"));
  CHECK_THAT(calls("[1]"), ContainsSubstring("tool_calls[0]: an object is needed"));
  CHECK_THAT(calls("[{}]"), ContainsSubstring("tool_calls[0].function: an object is needed, not nothing"));
  CHECK_THAT(calls(R"([{"type":"web","function":{}}])"),
             ContainsSubstring("tool_calls[0].type: \"web\" is not supported"));
  CHECK_THAT(calls(R"([{"function":{"name":"f","arguments":{}}}])"),
             ContainsSubstring("tool_calls[0].function.arguments: a string is needed, not object"));
  CHECK_THAT(calls(R"([{"function":{"arguments":""}}])"), ContainsSubstring("function.name: a string"));
  CHECK_THAT(calls(R"([{"id":7,"function":{"name":"f","arguments":""}}])"), ContainsSubstring("tool_calls[0].id"));
  CHECK_THAT(refused(with_field(R"("tools":1)")), ContainsSubstring("tools: an array is needed"));
  CHECK_THAT(refused(with_field(R"("tools":[{"type":"function"}])")),
             ContainsSubstring("tools[0].function: an object"));
  CHECK_THAT(refused(with_field(R"("tools":[{"function":{}}])")), ContainsSubstring("tools[0].function.name"));
}

TEST_CASE("numbers out of range are refused") {
  for (auto const* n : {"0", "-1", "1048577", "18446744073709551615", "9223372036854775808"}) {
    CHECK_THAT(refused(with_field(std::string("\"max_tokens\":") + n)),
               ContainsSubstring(std::string("max_tokens: is ") + n + "; 1 to 1048576 is allowed (line 1)"));
  }
  CHECK(refused(with_field("\"max_tokens\":1")).empty());
  CHECK(refused(with_field("\"max_tokens\":1048576")).empty());
  CHECK_THAT(refused(with_field("\"max_tokens\":1.5")), ContainsSubstring("max_tokens: an integer is needed"));
  CHECK_THAT(refused(with_field("\"max_tokens\":\"4\"")),
             ContainsSubstring("max_tokens: an integer is needed, not string"));
  CHECK_THAT(refused(with_field("\"temperature\":-0.1")), ContainsSubstring("temperature: is -0.1; 0 to 2"));
  CHECK_THAT(refused(with_field("\"temperature\":2.1")), ContainsSubstring("temperature: is 2.1; 0 to 2"));
  CHECK_THAT(refused(with_field("\"temperature\":true")), ContainsSubstring("temperature: a number is needed"));
  CHECK_THAT(refused(with_field("\"seed\":9223372036854775808")), ContainsSubstring("seed: is 9223372036854775808"));
  CHECK_THAT(refused(with_field("\"seed\":1.0")), ContainsSubstring("seed: an integer is needed"));
  auto const least = parse_chats(with_field("\"seed\":-9223372036854775808"), "c");
  CHECK(least[0].seed == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a path that is no request file is refused with the reason") {
  auto const read = [](std::string const& path) { return refusal([&] { (void)read_chats(path); }); };
  auto const folder = std::filesystem::temp_directory_path().string();
  CHECK(read("/no/such/chat.jsonl") == "/no/such/chat.jsonl: does not exist");
  CHECK(read(folder) == folder + ": is a directory, not a file");
  CHECK(read("/dev/null") == "/dev/null: holds no request");
}

TEST_CASE("a prompt is laid out turn by turn") {
  auto const requests =
      parse_chats(R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"},)"
                  R"({"role":"assistant","content":"A","reasoning_content":"R","tool_calls":[)"
                  R"({"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"1"}}]},)"
                  R"({"role":"tool","content":"T"},{"role":"system","content":"L"}],)"
                  R"("tools":[{"function":{"name":"f"}},{"function":{"name":"g"}}]})",
                  "chat.jsonl");
  Expected e;
  e.mark(begin).mark(system_role).text("S").mark(end);
  e.mark(tools).text("{\"name\":\"f\"}\n{\"name\":\"g\"}\n").mark(end);
  e.mark(user).text("U").mark(end);
  e.mark(assistant).mark(think).text("R").mark(end_think).text("A");
  e.mark(call).text("f\n{}").mark(end_call).mark(call).text("g\n1").mark(end_call).mark(end);
  e.mark(tool).text("T").mark(end).mark(system_role).text("L").mark(end).mark(assistant);
  CHECK(render(requests[0], bytes_tokenizer()) == e.tokens);

  auto const bare = parse_chats(with_message(R"({"role":"user","content":"<|end|>"})"), "chat.jsonl");
  CHECK(render(bare[0], bytes_tokenizer()) ==
        Expected().mark(begin).mark(user).text("<|end|>").mark(end).mark(assistant).tokens);
}

TEST_CASE("a prompt uses the special tokens of the vocabulary") {
  BpeVocabulary v;
  v.merge("h", "i");
  auto const user_token = v.add("<｜User｜>", 3);
  auto const assistant_token = v.add("<｜Assistant｜>", 3);
  auto const eos = v.add("<｜end▁of▁sentence｜>", 3);
  auto b = v.builder("joyai-llm");
  b.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(eos));
  Tokenizer const tokenizer(Gguf::parse(b.bytes(), "made.gguf"));
  auto const requests = parse_chats(with_message(R"({"role":"user","content":"hi"})"), "chat.jsonl");
  CHECK(render(requests[0], tokenizer) == Tokens{user_token, v.id("hi"), eos, assistant_token});
}

TEST_CASE("damaged request files are read or refused") {
  std::string const sample =
      R"({"messages":[{"role":"assistant","content":[{"type":"text","text":"é"}],"reasoning_content":"r",)"
      R"("tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}],)"
      R"("tools":[{"type":"function","function":{"name":"f"}}],"max_tokens":4,"temperature":0.5,"seed":7})";
  auto const tokenizer = bytes_tokenizer();
  std::mt19937 random(3);
  auto const below = [&random](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    auto text = sample;
    for (auto n = 1 + below(2); n > 0; --n) {
      auto const at = below(text.size());
      auto const kind = below(4);
      if (kind == 0) text[at] = static_cast<char>(random());
      if (kind == 1) text.erase(at, below(30));
      if (kind == 2) text.insert(at, text.substr(below(text.size()), below(30)));
      if (kind == 3) text.insert(at, 1, "{}[]\",:0-\n"[below(10)]);
    }
    INFO(text);
    if (refusal([&] {
          for (auto const& request : parse_chats(text, "damaged")) (void)render(request, tokenizer);
        }).empty()) {
      ++read;
    }
  }
  CHECK(read > 100);
  CHECK(read < 2900);
}

TEST_CASE("the agent loop grows and drops its reasoning when the user writes again") {
  auto const tokenizer = bytes_tokenizer();
  auto const requests = shipped("agent_tool_loop.jsonl");
  CHECK(requests.size() == 17);
  auto const steps = steps_of(requests, tokenizer);
  CHECK(steps.back().length == 4608);
  std::size_t users = 1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO("request " << i + 2);
    auto const& messages = requests[i + 1].messages;
    auto const reasoning =
        std::count_if(messages.begin(), messages.end(), [](Message const& m) { return m.reasoning; });
    if (messages.back().role == Role::user) {
      ++users;
      CHECK(reasoning == 0);
      CHECK(steps[i].back > 1000);
    } else {
      CHECK(reasoning > 0);
      CHECK(steps[i].back == 0);
      CHECK(steps[i].length > steps[i].shared + 100);
    }
  }
  CHECK(users == 3);
  CHECK(requests.front().tools.size() == 4);
}

TEST_CASE("the planning chat goes back three times") {
  auto const requests = shipped("edit_early_message.jsonl");
  CHECK(requests.size() == 20);
  auto const steps = steps_of(requests, bytes_tokenizer());
  CHECK(steps.back().length == 4285);
  std::vector<std::size_t> edits;
  for (auto const& step : steps) {
    if (step.back != 0) edits.push_back(step.back);
  }
  CHECK(edits == std::vector<std::size_t>{553, 3135, 1033});
}

TEST_CASE("the regenerated answers are asked for with the very same prompt") {
  auto const requests = shipped("regenerate_answer.jsonl");
  CHECK(requests.size() == 18);
  auto const steps = steps_of(requests, bytes_tokenizer());
  CHECK(steps.back().length == 4655);
  std::size_t again = 0;
  std::size_t other_seed = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO("request " << i + 2);
    CHECK(steps[i].back == 0);
    if (steps[i].length != steps[i].shared) continue;
    ++again;
    CHECK(requests[i + 1].max_tokens == requests[i].max_tokens);
    if (requests[i + 1].seed != requests[i].seed) ++other_seed;
  }
  CHECK(again == 10);
  CHECK(other_seed == 6);
}

TEST_CASE("every shipped request asks for few tokens") {
  std::size_t files = 0;
  for (auto const& entry : std::filesystem::directory_iterator(ROLLBACK_CHATS)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    for (auto const& request : read_chats(entry.path().string())) {
      INFO(entry.path() << " line " << request.line);
      REQUIRE(request.max_tokens);
      CHECK(*request.max_tokens >= 4);
      CHECK(*request.max_tokens <= 120);
    }
  }
  CHECK(files >= 3);
}
