#include "tokenizer.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace dsv4_decoder {
namespace {

constexpr char const* model_key = "tokenizer.ggml.model";
constexpr char const* split_key = "tokenizer.ggml.pre";
constexpr char const* tokens_key = "tokenizer.ggml.tokens";
constexpr char const* merges_key = "tokenizer.ggml.merges";
constexpr char const* types_key = "tokenizer.ggml.token_type";
constexpr char const* bos_key = "tokenizer.ggml.bos_token_id";
constexpr char const* eos_key = "tokenizer.ggml.eos_token_id";

std::string at_key(char const* key) { return fmt::format("key \"{}\"", key); }

// Values of tokenizer.ggml.token_type that make a difference here.
constexpr std::int64_t type_normal = 1;
constexpr std::int64_t type_control = 3;
constexpr std::int64_t type_user_defined = 4;
constexpr std::int64_t highest_type = 6;

struct MarkName {
  Mark mark;
  char const* spelled;   // the name here, and the text where the vocabulary has no such token
  char const* deepseek;  // the name in the vocabularies of DeepSeek models, where they have one
};

// In the order of Mark.
constexpr std::array<MarkName, marks> mark_names = {{
    {Mark::begin, "<|begin|>", "<｜begin▁of▁sentence｜>"},
    {Mark::end_of_turn, "<|end|>", "<｜end▁of▁sentence｜>"},
    {Mark::system, "<|system|>", ""},
    {Mark::user, "<|user|>", "<｜User｜>"},
    {Mark::assistant, "<|assistant|>", "<｜Assistant｜>"},
    {Mark::tool, "<|tool|>", "<｜tool▁output▁begin｜>"},
    {Mark::think, "<think>", ""},
    {Mark::end_of_think, "</think>", ""},
    {Mark::tools, "<|tools|>", ""},
    {Mark::call, "<|call|>", "<｜tool▁call▁begin｜>"},
    {Mark::end_of_call, "<|end_call|>", "<｜tool▁call▁end｜>"},
}};

// How a text is cut before BPE, by the values of tokenizer.ggml.pre. Each pattern is applied to the pieces that the one
// before it left: what it matches becomes a piece, and so does what lies between two matches. The patterns are those
// of the models' own tokenizers.
struct Split {
  std::vector<std::string_view> names;
  std::vector<char const*> patterns;
};

// The cased letters as the tokenizer of DeepSeek LLM lists them: fewer than Unicode's Lu, Ll and Lt.
constexpr char const* cased_words =
    "\\s?["
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}"
    "\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}"
    "\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}"
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}"
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}"
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"
    "\\x{1E900}-\\x{1E943}"
    "]+";

constexpr char const* gpt2_words = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

std::vector<Split> const& splits() {
  static std::vector<Split> const table = {
      {{"joyai-llm", "deepseek-v3"},
       {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
        "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\\r\\n]*"
        "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
      {{"deepseek-llm"},
       {"[\\r\\n]", cased_words,
        "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+", "(?<!\\s)\\s++$",
        "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+", "\\p{N}+"}},
      {{"gpt-2"}, {gpt2_words}},
      {{"default"}, {"[\\p{P}$+<=>^~|]+", gpt2_words, "\\p{N}+", "[0-9][0-9][0-9]"}},
  };
  return table;
}

// Byte-level BPE writes each byte as a character: the printable ones of Latin-1 as themselves, the others as U+0100 and
// on, in order. (The mapping of GPT-2.)
bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

std::array<int, 0x144> bytes_by_character() {
  std::array<int, 0x144> table{};
  table.fill(-1);
  std::size_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) table[stands_for_itself(byte) ? byte : next++] = static_cast<int>(byte);
  return table;
}

// The bytes behind a token's text, or nothing where the text is not of that form. All its characters have one or two
// bytes in UTF-8.
std::optional<std::string> to_bytes(std::string_view text) {
  static auto const table = bytes_by_character();
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto character = static_cast<unsigned>(static_cast<unsigned char>(text[i]));
    if (character >= 0x80) {
      if (++i == text.size() || (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80) return std::nullopt;
      if (character < 0xC2 || character > 0xDF) return std::nullopt;
      character = (character & 0x1FU) << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    if (character >= table.size() || table[character] < 0) return std::nullopt;
    out += static_cast<char>(table[character]);
  }
  return out;
}

constexpr std::size_t index_of(Mark mark) { return static_cast<std::size_t>(mark); }

std::uint64_t pair_of(Token left, Token right) {
  return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint64_t>(right);
}

}  // namespace

class Tokenizer::Splitter {
 public:
  explicit Splitter(std::vector<char const*> const& patterns) {
    // No pattern takes more than linear time, but a long run of spaces takes more steps than the default allows.
    pcre2_set_match_limit(context_.get(), std::numeric_limits<std::uint32_t>::max());
    for (auto const* pattern : patterns) {
      int error = 0;
      PCRE2_SIZE at = 0;
      codes_.emplace_back(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                                        PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
      if (!codes_.back()) throw std::logic_error(fmt::format("a split pattern is wrong at {}: {}", at, pattern));
    }
  }

  [[nodiscard]] std::vector<std::string_view> pieces(std::string_view text) const {
    std::vector<std::string_view> all;
    while (!text.empty()) {
      auto const valid = valid_prefix(text);
      if (valid > 0) split(text.substr(0, valid), all);
      text.remove_prefix(valid);
      if (!text.empty()) {  // a byte that is not UTF-8 is a piece of its own
        all.push_back(text.substr(0, 1));
        text.remove_prefix(1);
      }
    }
    return all;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };
  using Code = std::unique_ptr<pcre2_code, Free>;
  using Match = std::unique_ptr<pcre2_match_data, Free>;

  [[nodiscard]] int match(Code const& code, std::string_view subject, std::size_t from, std::uint32_t options,
                          Match const& match) const {
    return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from, options,
                       match.get(), context_.get());
  }

  static Match match_data() { return Match(pcre2_match_data_create(1, nullptr)); }

  [[nodiscard]] std::size_t valid_prefix(std::string_view text) const {
    auto const found = match_data();
    auto const result = match(codes_.front(), text, 0, PCRE2_ANCHORED, found);
    bool const broken = result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21;
    return broken ? pcre2_get_startchar(found.get()) : text.size();
  }

  void split(std::string_view text, std::vector<std::string_view>& all) const {
    auto const found = match_data();
    std::vector<std::string_view> pieces = {text};
    for (auto const& code : codes_) {
      std::vector<std::string_view> finer;
      for (auto piece : pieces) {
        std::size_t done = 0;
        // The text was checked once; to check it again for every match would take quadratic time.
        for (int result; (result = match(code, piece, done, PCRE2_NO_UTF_CHECK, found)) != PCRE2_ERROR_NOMATCH;) {
          if (result < 0) throw std::runtime_error(fmt::format("splitting a text failed: PCRE2 error {}", result));
          auto const* range = pcre2_get_ovector_pointer(found.get());
          if (range[0] > done) finer.push_back(piece.substr(done, range[0] - done));
          finer.push_back(piece.substr(range[0], range[1] - range[0]));
          done = range[1];
        }
        if (done < piece.size()) finer.push_back(piece.substr(done));
      }
      pieces = std::move(finer);
    }
    all.insert(all.end(), pieces.begin(), pieces.end());
  }

  std::vector<Code> codes_;
  std::unique_ptr<pcre2_match_context, Free> context_{pcre2_match_context_create(nullptr)};
};

Tokenizer::Tokenizer(Gguf const& file) {
  auto const model = file.has(model_key) ? file.text(model_key) : "none";
  if (model == "none") {
    load_bytes(file);
  } else if (model == "gpt2") {
    load_bpe(file);
  } else {
    throw FileError(file.name(),
                    fmt::format("the tokenizer model \"{}\" is not supported; \"gpt2\" (byte-level BPE) and \"none\" "
                                "(bytes) are",
                                printable(model)),
                    at_key(model_key));
  }
}

void Tokenizer::load_bytes(Gguf const& file) {
  constexpr int first_mark = 256;
  bool const listed = file.has(tokens_key);
  auto const size_key = (file.has("general.architecture") ? file.text("general.architecture") : "") + ".vocab_size";
  if (!listed && !file.has(size_key)) {
    throw FileError(file.name(), "nothing says how many tokens there are",
                    fmt::format("keys \"{}\" and \"{}\"", tokens_key, printable(size_key)));
  }
  auto const size = listed ? static_cast<std::int64_t>(file.texts(tokens_key).size()) : file.integer(size_key);
  if (size < first_mark || size > std::numeric_limits<Token>::max()) {
    throw FileError(file.name(),
                    fmt::format("{} tokens; without a tokenizer at least {} are needed, one a byte", size, first_mark),
                    fmt::format("key \"{}\"", printable(listed ? tokens_key : size_key)));
  }
  vocabulary_ = static_cast<Token>(size);
  for (int byte = 0; byte < first_mark; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
  for (auto const& name : mark_names) {
    auto const token = static_cast<Token>(first_mark) + static_cast<Token>(name.mark);
    if (token < vocabulary_) {
      names_.emplace_back(name.spelled, token);
      marks_[index_of(name.mark)] = {token};
    } else {
      encode_text(name.spelled, marks_[index_of(name.mark)]);
    }
  }
  sort_names();
  auto const only = [this](Mark m) {
    return mark(m).size() == 1 ? std::optional<Token>(mark(m).front()) : std::nullopt;
  };
  bos_ = only(Mark::begin);
  eos_ = only(Mark::end_of_turn);
}

void Tokenizer::load_bpe(Gguf const& file) {
  auto const name = file.has(split_key) ? file.text(split_key) : "default";
  auto const& table = splits();
  auto const split = std::find_if(table.begin(), table.end(), [&name](Split const& s) {
    return std::find(s.names.begin(), s.names.end(), name) != s.names.end();
  });
  if (split == table.end()) {
    std::string known;
    for (auto const& s : table) {
      for (auto n : s.names) known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", n);
    }
    throw FileError(file.name(),
                    fmt::format("the split \"{}\" is not supported; these are: {}", printable(name), known),
                    at_key(split_key));
  }
  splitter_ = std::make_shared<Splitter const>(split->patterns);
  load_tokens(file);
  load_merges(file);
  sort_names();
  bos_ = special_id(file, bos_key);
  eos_ = special_id(file, eos_key);
  for (auto const& mark_name : mark_names) {
    auto& mark = marks_[index_of(mark_name.mark)];
    auto const known = std::find_if(names_.begin(), names_.end(), [&mark_name](auto const& special) {
      return special.first == mark_name.spelled || special.first == mark_name.deepseek;
    });
    if (mark_name.mark == Mark::begin && bos_) {
      mark = {*bos_};
    } else if (mark_name.mark == Mark::end_of_turn && eos_) {
      mark = {*eos_};
    } else if (known != names_.end()) {
      mark = {known->second};
    } else if (mark_name.mark != Mark::begin) {
      encode_text(mark_name.spelled, mark);
    }
  }
}

// Fills bytes_, names_, ids_ and byte_tokens_.
void Tokenizer::load_tokens(Gguf const& file) {
  auto const& texts = file.texts(tokens_key);
  if (texts.size() > static_cast<std::size_t>(std::numeric_limits<Token>::max())) {
    throw FileError(file.name(), fmt::format("{} tokens are too many", texts.size()), at_key(tokens_key));
  }
  auto types = std::vector<std::int64_t>(texts.size(), type_normal);
  if (file.has(types_key)) {
    types = file.integers(types_key);
    if (types.size() != texts.size()) {
      throw FileError(file.name(), fmt::format("{} types for {} tokens", types.size(), texts.size()),
                      at_key(types_key));
    }
  }
  vocabulary_ = static_cast<Token>(texts.size());
  bytes_.resize(texts.size());
  for (Token token = 0; token < vocabulary_; ++token) {
    auto const i = static_cast<std::size_t>(token);
    auto const refuse = [&](char const* key, std::string const& wrong) {
      throw FileError(file.name(), fmt::format("token {} \"{}\" {}", token, printable(texts[i]), wrong), at_key(key));
    };
    if (types[i] < 1 || types[i] > highest_type) refuse(types_key, fmt::format("has the unknown type {}", types[i]));
    if (types[i] == type_normal) {
      auto const bytes = to_bytes(texts[i]);
      if (!bytes || bytes->empty()) refuse(tokens_key, "is not byte-level text");
      if (!ids_.emplace(*bytes, token).second) refuse(tokens_key, "appears twice");
      bytes_[i] = *bytes;
    } else if (types[i] == type_control || types[i] == type_user_defined) {
      if (texts[i].empty()) refuse(tokens_key, "is a special token without a name");
      names_.emplace_back(texts[i], token);
      if (types[i] == type_user_defined) bytes_[i] = texts[i];
    }
  }
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    auto const found = ids_.find(std::string(1, static_cast<char>(byte)));
    if (found == ids_.end()) {
      throw FileError(file.name(), fmt::format("no token stands for the byte 0x{:02x}", byte), at_key(tokens_key));
    }
    byte_tokens_[byte] = found->second;
  }
}

void Tokenizer::load_merges(Gguf const& file) {
  auto const& texts = file.texts(merges_key);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    auto const& text = texts[rank];
    auto const refuse = [&](char const* wrong) {
      throw FileError(file.name(), fmt::format("merge {} \"{}\" {}", rank, printable(text), wrong), at_key(merges_key));
    };
    auto const space = text.find(' ');
    if (space == std::string::npos) refuse("is not two tokens with a space between them");
    auto const left = to_bytes(std::string_view(text).substr(0, space));
    auto const right = to_bytes(std::string_view(text).substr(space + 1));
    if (!left || !right) refuse("is not byte-level text");
    auto const left_id = ids_.find(*left);
    auto const right_id = ids_.find(*right);
    auto const result = ids_.find(*left + *right);
    if (left_id == ids_.end() || right_id == ids_.end() || result == ids_.end()) {
      refuse("joins or makes something that is no token");
    }
    Merge const merge{static_cast<std::uint32_t>(rank), result->second};
    if (!merges_.emplace(pair_of(left_id->second, right_id->second), merge).second) refuse("appears twice");
  }
}

std::optional<Token> Tokenizer::special_id(Gguf const& file, char const* key) const {
  if (!file.has(key)) return std::nullopt;
  auto const id = file.integer(key);
  if (id < 0 || id >= vocabulary_) {
    throw FileError(file.name(), fmt::format("{} is not one of the {} tokens", id, vocabulary_), at_key(key));
  }
  return static_cast<Token>(id);
}

void Tokenizer::sort_names() {
  std::stable_sort(names_.begin(), names_.end(),
                   [](auto const& a, auto const& b) { return a.first.size() > b.first.size(); });
}

std::vector<Token> Tokenizer::encode(std::string_view text, Names names) const {
  std::vector<Token> out;
  if (names == Names::as_text) {
    encode_text(text, out);
    return out;
  }
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    auto const named = std::find_if(names_.begin(), names_.end(), [&](auto const& name) {
      return text.compare(at, name.first.size(), name.first) == 0;
    });
    if (named == names_.end()) {
      ++at;
      continue;
    }
    encode_text(text.substr(done, at - done), out);
    out.push_back(named->second);
    at += named->first.size();
    done = at;
  }
  encode_text(text.substr(done), out);
  return out;
}

void Tokenizer::encode_text(std::string_view text, std::vector<Token>& out) const {
  if (splitter_) {
    for (auto piece : splitter_->pieces(text)) encode_piece(piece, out);
  } else {
    for (char c : text) out.push_back(static_cast<unsigned char>(c));
  }
}

// Joins neighbours, the merge of the lowest rank first and the leftmost of those, until no merge applies.
void Tokenizer::encode_piece(std::string_view piece, std::vector<Token>& out) const {
  struct Part {
    Token token;
    std::size_t before;  // the neighbours' indices; piece.size() where there is none
    std::size_t after;
    bool joined;  // into the part before it
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t left;
    std::uint64_t pair;  // what the two were; if they are no more, the candidate is void
    Token result;
    bool operator<(Candidate const& other) const {  // priority_queue puts the largest first
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };
  auto const none = piece.size();
  std::vector<Part> parts;
  parts.reserve(piece.size());
  for (std::size_t i = 0; i < piece.size(); ++i) {
    parts.push_back({byte_tokens_[static_cast<unsigned char>(piece[i])], i == 0 ? none : i - 1, i + 1, false});
  }
  std::priority_queue<Candidate> queue;
  auto const consider = [&](std::size_t left) {
    if (left == none || parts[left].after == none) return;
    auto const pair = pair_of(parts[left].token, parts[parts[left].after].token);
    auto const found = merges_.find(pair);
    if (found != merges_.end()) queue.push({found->second.rank, left, pair, found->second.result});
  };
  for (std::size_t i = 0; i < parts.size(); ++i) consider(i);
  while (!queue.empty()) {
    auto const next = queue.top();
    queue.pop();
    auto& left = parts[next.left];
    if (left.joined || left.after == none) continue;
    auto& right = parts[left.after];
    if (pair_of(left.token, right.token) != next.pair) continue;
    right.joined = true;
    left.token = next.result;
    left.after = right.after;
    if (left.after != none) parts[left.after].before = next.left;
    consider(left.before);
    consider(next.left);
  }
  for (auto const& part : parts) {
    if (!part.joined) out.push_back(part.token);
  }
}

std::string const& Tokenizer::decode(Token token) const {
  static std::string const nothing;
  if (token < 0 || token >= vocabulary_) {
    throw std::out_of_range(fmt::format("token {} is outside the vocabulary of {}", token, vocabulary_));
  }
  auto const i = static_cast<std::size_t>(token);
  return i < bytes_.size() ? bytes_[i] : nothing;
}

std::string Tokenizer::decode(std::vector<Token> const& tokens) const {
  std::string out;
  for (auto token : tokens) out += decode(token);
  return out;
}

}  // namespace dsv4_decoder
