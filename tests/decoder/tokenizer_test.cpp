#include "tokenizer.hpp"

#include "bpe_vocabulary.hpp"
#include "catch.hpp"
#include "file_refusal.hpp"
#include "gguf_builder.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <random>
#include <stdexcept>

using Catch::Matchers::ContainsSubstring;
using dsv4_decoder::Gguf;
using dsv4_decoder::Mark;
using dsv4_decoder::Names;
using dsv4_decoder::Token;
using dsv4_decoder::Tokenizer;

namespace {

using Tokens = std::vector<Token>;

Tokenizer made(GgufBuilder const& builder) { return Tokenizer(Gguf::parse(builder.bytes(), "made.gguf")); }

std::string refused(GgufBuilder const& builder) {
  return refusal([&] { (void)made(builder); });
}

GgufBuilder bytes_only(std::uint32_t vocabulary) {
  GgufBuilder b;
  b.text("general.architecture", "deepseek4").u32("deepseek4.vocab_size", vocabulary);
  return b;
}

Tokens ids(std::string const& text) {
  Tokens out;
  for (char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

using Merges = std::vector<std::pair<std::string, std::string>>;

// Byte-pair merging as it is defined: the lowest rank in the piece, leftmost first, again and again.
std::vector<std::string> merged_slowly(std::string const& piece, Merges const& merges) {
  std::vector<std::string> parts;
  for (char c : piece) parts.emplace_back(1, c);
  while (true) {
    auto best = merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      auto const rank = static_cast<std::size_t>(
          std::find(merges.begin(), merges.end(), std::pair(parts[i], parts[i + 1])) - merges.begin());
      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == merges.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::vector<std::string> texts_of(Tokenizer const& tokenizer, std::string const& text) {
  std::vector<std::string> out;
  for (auto token : tokenizer.encode(text)) out.push_back(tokenizer.decode(token));
  return out;
}

// Checks that a text is cut into exactly these pieces. The merges join each piece to one token, and so they do with any
// two neighbours, so a cut too many and a cut too few both show.
void check_pieces(std::string const& split, std::vector<std::string> const& pieces) {
  Merges merges;
  std::string text;
  for (auto const& piece : pieces) {
    text += piece;
    for (auto parts = merged_slowly(piece, merges); parts.size() > 1; parts = merged_slowly(piece, merges)) {
      merges.emplace_back(parts[0], parts[1]);
    }
  }
  for (std::size_t i = 1; i < pieces.size(); ++i) merges.emplace_back(pieces[i - 1], pieces[i]);
  BpeVocabulary v;
  for (auto const& [left, right] : merges) v.merge(left, right);
  INFO(split);
  CHECK(texts_of(made(v.builder(split)), text) == pieces);
}

}  // namespace

TEST_CASE("without a tokenizer a byte is a token") {
  Tokenizer const tokenizer(Gguf::open(std::string(ROLLBACK_TEST_DATA) + "/dsv4-tiny/model.gguf"));
  CHECK(tokenizer.vocabulary() == 384);
  std::string const text = "A\xC3\xA9\n\xff" + std::string(1, '\0');
  CHECK(tokenizer.encode(text) == Tokens{65, 0xC3, 0xA9, 10, 255, 0});
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.bos() == 256);
  CHECK(tokenizer.eos() == 257);
  Token next = 256;
  for (std::size_t m = 0; m < dsv4_decoder::marks; ++m) {
    CHECK(tokenizer.mark(static_cast<Mark>(m)) == Tokens{next});
    CHECK(tokenizer.decode(next).empty());
    ++next;
  }
  CHECK(tokenizer.decode(383).empty());
  CHECK_THROWS_AS(tokenizer.decode(384), std::out_of_range);
  CHECK_THROWS_AS(tokenizer.decode(-1), std::out_of_range);
}

TEST_CASE("marks without room in the vocabulary are spelled out") {
  auto const full = made(bytes_only(256));
  CHECK(full.mark(Mark::user) == ids("<|user|>"));
  CHECK(full.mark(Mark::think) == ids("<think>"));
  CHECK_FALSE(full.bos());
  CHECK_FALSE(full.eos());
  auto const some = made(bytes_only(259));
  CHECK(some.mark(Mark::begin) == Tokens{256});
  CHECK(some.mark(Mark::system) == Tokens{258});
  CHECK(some.mark(Mark::user) == ids("<|user|>"));
  CHECK(some.eos() == 257);
}

TEST_CASE("the vocabulary of bytes must be known and large enough") {
  CHECK_THAT(refused(bytes_only(255)), ContainsSubstring("255 tokens") && ContainsSubstring("deepseek4.vocab_size"));
  CHECK_THAT(refused(GgufBuilder()), ContainsSubstring("nothing says how many tokens"));
  CHECK_THAT(refused(GgufBuilder().texts("tokenizer.ggml.tokens", {"a", "b"})),
             ContainsSubstring("2 tokens") && ContainsSubstring("tokenizer.ggml.tokens"));
  CHECK_THAT(refused(bytes_only(0x80000000U)), ContainsSubstring("2147483648 tokens"));
  CHECK(made(bytes_only(0x7fffffffU)).vocabulary() == 0x7fffffff);
}

TEST_CASE("names of special tokens count only where they are asked for") {
  auto const tokenizer = made(bytes_only(384));
  std::string const text = "a<|user|>b</think>";
  CHECK(tokenizer.encode(text) == ids(text));
  CHECK(tokenizer.encode(text, Names::as_tokens) == Tokens{'a', 259, 'b', 263});
  CHECK(tokenizer.encode("<|user|", Names::as_tokens) == ids("<|user|"));
  CHECK(tokenizer.encode("<<|user|><|user|>", Names::as_tokens) == Tokens{'<', 259, 259});

  BpeVocabulary v;
  auto const shorter = v.add("<tag>", 3);
  auto const longer = v.add("<tag><tag>", 3);
  auto const text_token = v.add("[INST]", 4);
  auto const unused = v.add("<unused>", 5);
  auto const bpe = made(v.builder());
  CHECK(bpe.encode("<tag><tag><tag>", Names::as_tokens) == Tokens{longer, shorter});
  CHECK(bpe.encode("<tag>") == ids("<tag>"));
  CHECK(bpe.encode("x[INST]", Names::as_tokens) == Tokens{'x', text_token});
  CHECK(bpe.encode("<unused>", Names::as_tokens) == ids("<unused>"));
  CHECK(bpe.decode(text_token) == "[INST]");
  CHECK(bpe.decode(shorter).empty());
  CHECK(bpe.decode(unused).empty());
}

TEST_CASE("the merge of the lowest rank goes first and the leftmost of those") {
  BpeVocabulary v;
  v.merge("b", "b");
  v.merge("a", "b");
  v.merge("a", "a");
  v.merge("ab", "a");
  auto const tokenizer = made(v.builder());
  CHECK(tokenizer.encode("abb") == Tokens{'a', v.id("bb")});
  CHECK(tokenizer.encode("aba") == Tokens{v.id("aba")});
  CHECK(tokenizer.encode("aaa") == Tokens{v.id("aa"), 'a'});
  CHECK(tokenizer.encode("bbb") == Tokens{v.id("bb"), 'b'});
  CHECK(tokenizer.encode("aab") == Tokens{'a', v.id("ab")});
}

TEST_CASE("merging agrees with its definition on random vocabularies") {
  std::mt19937 random(1);
  auto const below = [&random](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 40; ++round) {
    BpeVocabulary v;
    std::vector<std::string> known = {"a", "b", "c"};
    Merges merges;
    for (int i = 0; i < 12; ++i) {
      auto const pair = std::pair(known[below(known.size())], known[below(known.size())]);
      if (std::find(merges.begin(), merges.end(), pair) != merges.end()) continue;
      merges.push_back(pair);
      v.merge(pair.first, pair.second);
      known.push_back(pair.first + pair.second);
    }
    auto const tokenizer = made(v.builder());
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (auto n = 1 + below(30); n > 0; --n) piece += "abc"[below(3)];
      CHECK(texts_of(tokenizer, piece) == merged_slowly(piece, merges));
    }
  }
}

TEST_CASE("text is cut as the tokenizer of DeepSeek V3 does it") {
  auto const split = GENERATE(as<std::string>(), "joyai-llm", "deepseek-v3");
  check_pieces(split, {"Hello", " world", "!"});
  check_pieces(split, {"123", "456", "7"});
  check_pieces(split, {"x", "42"});
  check_pieces(split, {"foo", "_bar"});
  check_pieces(split, {"(hello", ")"});
  check_pieces(split, {"a", ".\n", "b"});
  check_pieces(split, {"a", "\n\n", "b"});
  check_pieces(split, {"a", "  ", " b"});
  check_pieces(split, {"a", "  \n", " b"});
  check_pieces(split, {"end", "   "});
  check_pieces(split, {"漢字です", "abc"});  // ideographs and kana are one class
  check_pieces(split, {" Привет", " мир"});
  check_pieces(split, {"e\xCC\x81t\xC3\xA9"});  // a combining accent stays in its word
  check_pieces(split, {" ...", "\tx"});
}

TEST_CASE("text is cut as the tokenizer of DeepSeek LLM does it") {
  check_pieces("deepseek-llm", {"Hello", " world", "!?"});
  check_pieces("deepseek-llm", {"a", "\n", "\n", "b"});
  check_pieces("deepseek-llm", {"x", "12345"});
  check_pieces("deepseek-llm", {"a", " +", " b"});
  check_pieces("deepseek-llm", {"a", " ", " b"});
  check_pieces("deepseek-llm", {"a", "   "});
  check_pieces("deepseek-llm", {"漢字", "abc"});
  check_pieces("deepseek-llm", {"gr", "ü", "n"});  // its class of punctuation has the letters of ASCII in it
}

TEST_CASE("text is cut as the tokenizer of GPT 2 does it") {
  check_pieces("gpt-2", {"don", "'t", " we", "'ll"});
  check_pieces("gpt-2", {"x", "12345", " 678", "+-"});
  check_pieces("gpt-2", {"a", " ", " b"});
  check_pieces("gpt-2", {"a", "\n", "b"});
  check_pieces("gpt-2", {"a", " \n"});
}

TEST_CASE("text is cut by the default where nothing is said") {
  check_pieces("default", {"don", "'", "t", ",", " x"});
  check_pieces("default", {"a", "123", "456", "7"});
  check_pieces("default", {"a", "<=", "b"});
  BpeVocabulary v;
  v.merge("1", "2");
  v.merge("12", "3");
  v.merge("123", "4");
  GgufBuilder silent;
  silent.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", v.tokens);
  silent.texts("tokenizer.ggml.merges", v.merges);
  CHECK(made(silent).encode("1234") == Tokens{v.id("123"), '4'});
}

TEST_CASE("any bytes come back from any split") {
  std::mt19937 random(2);
  for (auto const* split : {"joyai-llm", "deepseek-llm", "gpt-2", "default"}) {
    BpeVocabulary v;
    v.merge("t", "h");
    v.merge("\xC3", "\xA9");
    auto const tokenizer = made(v.builder(split));
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (int n = 0; n < i % 40; ++n) {
        text += i % 3 == 0 ? std::string(1, static_cast<char>(random()))
                           : std::string(random() % 2 ? "th\xC3\xA9 " : "漢\xF0\x9F");
      }
      auto const tokens = tokenizer.encode(text);
      CHECK(tokenizer.decode(tokens) == text);
      std::string streamed;
      for (auto token : tokens) streamed += tokenizer.decode(token);
      CHECK(streamed == text);
    }
  }
}

TEST_CASE("long runs take no more than linear time") {
  BpeVocabulary v;
  v.merge(" ", " ");
  auto const tokenizer = made(v.builder("joyai-llm"));
  CHECK(tokenizer.encode(std::string(200'000, ' ') + "x").size() == 100'002);
  CHECK(tokenizer.encode(std::string(200'000, '\xff')).size() == 200'000);
  CHECK(made(v.builder("deepseek-llm")).encode(std::string(200'000, ' ') + "漢").size() == 100'003);
}

TEST_CASE("marks of byte level BPE are the special tokens of the vocabulary") {
  BpeVocabulary v;
  auto const bos = v.add("<｜begin▁of▁sentence｜>", 3);
  auto const eos = v.add("<｜end▁of▁sentence｜>", 3);
  auto const user = v.add("<｜User｜>", 3);
  auto const assistant = v.add("<｜Assistant｜>", 3);
  auto const think = v.add("<think>", 4);
  auto const call = v.add("<|call|>", 3);
  auto b = v.builder("joyai-llm");
  b.u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(bos));
  b.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(eos));
  auto const tokenizer = made(b);
  CHECK(tokenizer.bos() == bos);
  CHECK(tokenizer.eos() == eos);
  CHECK(tokenizer.vocabulary() == 262);
  CHECK(tokenizer.mark(Mark::begin) == Tokens{bos});
  CHECK(tokenizer.mark(Mark::end_of_turn) == Tokens{eos});
  CHECK(tokenizer.mark(Mark::user) == Tokens{user});
  CHECK(tokenizer.mark(Mark::assistant) == Tokens{assistant});
  CHECK(tokenizer.mark(Mark::think) == Tokens{think});
  CHECK(tokenizer.mark(Mark::call) == Tokens{call});
  CHECK(tokenizer.mark(Mark::tool) == ids("<|tool|>"));

  auto const plain = made(BpeVocabulary().builder());
  CHECK(plain.mark(Mark::begin).empty());
  CHECK(plain.mark(Mark::end_of_turn) == ids("<|end|>"));
  CHECK_FALSE(plain.bos());
}

TEST_CASE("malformed tokenizer metadata is refused with key and token") {
  BpeVocabulary const good;
  CHECK(refused(good.builder()).empty());
  auto const changed = [&](auto&& change) {
    BpeVocabulary v;
    change(v);
    return refused(v.builder());
  };
  CHECK_THAT(refused(GgufBuilder().text("tokenizer.ggml.model", "llama")),
             ContainsSubstring("\"llama\" is not supported; \"gpt2\"") && ContainsSubstring("tokenizer.ggml.model"));
  CHECK_THAT(refused(good.builder("llama-bpe")),
             ContainsSubstring("\"llama-bpe\" is not supported") && ContainsSubstring("\"joyai-llm\""));
  CHECK_THAT(refused(GgufBuilder().text("tokenizer.ggml.model", "gpt2")), ContainsSubstring("tokenizer.ggml.tokens"));
  CHECK_THAT(refused(GgufBuilder().text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", good.tokens)),
             ContainsSubstring("tokenizer.ggml.merges"));
  CHECK_THAT(changed([](auto& v) { v.types.pop_back(); }), ContainsSubstring("255 types for 256 tokens"));
  CHECK_THAT(changed([](auto& v) { v.types[7] = 0; }), ContainsSubstring("token 7") && ContainsSubstring("type 0"));
  CHECK_THAT(changed([](auto& v) { v.types[7] = 7; }), ContainsSubstring("unknown type 7"));
  CHECK_THAT(changed([](auto& v) { v.add("", 3); }),
             ContainsSubstring("token 256") && ContainsSubstring("without a name"));
  for (auto const* text : {"", "a b", "\n", "漢", "\xC4", "\xC4\x20", "\xC5\x84", "\xff", "\xC1\xA1"}) {
    CHECK_THAT(changed([&](auto& v) { v.add(text, 1); }), ContainsSubstring("is not byte-level text"));
  }
  CHECK_THAT(changed([](auto& v) { v.add("a", 1); }), ContainsSubstring("token 256 \"a\" appears twice"));
  CHECK_THAT(changed([](auto& v) { v.tokens['q'] = "qq"; }), ContainsSubstring("no token stands for the byte 0x71"));
  CHECK_THAT(changed([](auto& v) { v.merges = {"ab"}; }), ContainsSubstring("merge 0 \"ab\" is not two tokens"));
  CHECK_THAT(changed([](auto& v) { v.merges = {"a b"}; }), ContainsSubstring("that is no token"));
  CHECK_THAT(changed([](auto& v) { v.add("xyz", 1), v.merges = {"xy z"}; }), ContainsSubstring("that is no token"));
  CHECK_THAT(changed([](auto& v) { v.merges = {"a  b"}; }), ContainsSubstring("is not byte-level text"));
  CHECK_THAT(changed([](auto& v) { v.merge("a", "b"), v.merges.push_back("a b"); }),
             ContainsSubstring("merge 1 \"a b\" appears twice"));
  for (auto const* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) {
    CHECK_THAT(refused(good.builder().u32(key, 256)),
               ContainsSubstring("256 is not one of the 256 tokens") && ContainsSubstring(key));
    CHECK_THAT(refused(good.builder().key(key, gguf_type::i32, raw<std::int32_t>(-1))), ContainsSubstring("-1 is not"));
  }
}
