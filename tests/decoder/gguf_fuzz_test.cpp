// Damaged files: whatever is done to the bytes, a file either opens, and then everything in it can be read, or it is
// refused with a FileError. The seeds are fixed, so every failure comes back.
#include "bpe_vocabulary.hpp"
#include "catch.hpp"
#include "gguf.hpp"
#include "gguf_builder.hpp"
#include "hyper_parameters.hpp"
#include "small_model.hpp"
#include "tokenizer.hpp"
#include "weights.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

using dsv4_decoder::FileError;
using dsv4_decoder::Gguf;
using dsv4_decoder::HyperParameters;
using dsv4_decoder::Names;
using dsv4_decoder::TensorType;
using dsv4_decoder::Tokenizer;
using dsv4_decoder::Weights;

namespace {

constexpr int mutations = 10000;

std::vector<std::byte> bytes_of(std::string const& text) {
  std::vector<std::byte> out(text.size());
  if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

std::string text_of(std::vector<std::byte> const& bytes) {
  return std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size());
}

std::uint64_t number_at(std::string const& bytes, std::size_t at) {
  std::uint64_t n = 0;
  std::memcpy(&n, bytes.data() + at, sizeof n);
  return n;
}

// The bytes to damage, and the places where damage hurts most.
struct Sample {
  std::string bytes;
  std::size_t header = 0;                        // bytes up to the end of the list of tensors
  std::vector<std::size_t> fields = {4, 8, 16};  // where counts, lengths, types, dimensions and offsets stand
  std::vector<std::string> keys;

  explicit Sample(GgufBuilder const& builder) : bytes(text_of(builder.bytes())) {
    auto const file = Gguf::parse(bytes_of(bytes), "sample");
    header = file.tensors().empty() ? bytes.size() : file.tensors().front().offset;
    // Each key is a text that begins with one of the known prefixes, behind its length.
    for (std::string const prefix : {"general.", "deepseek4.", "tokenizer."}) {
      for (auto at = bytes.find(prefix); at < header; at = bytes.find(prefix, at + 1)) {
        auto const length = number_at(bytes, at - 8);
        if (length < prefix.size() || length > 100) continue;
        keys.push_back(bytes.substr(at, length));
        for (auto field : {at - 8, at + length, at + length + 4, at + length + 8}) fields.push_back(field);
      }
    }
    for (auto const& info : file.tensors()) {
      auto const entry = bytes.find(counted(info.name));
      auto const rank = entry + 8 + info.name.size();
      for (std::size_t d = 0; d <= info.shape.size(); ++d) fields.push_back(rank + 4 + 8 * d);
      for (auto field : {entry, rank, rank + 4 + 8 * info.shape.size() + 4}) fields.push_back(field);
    }
  }
};

// All metadata of the tiny model, and tensors of the same names, but with few values each and of every type that can be
// read: a parse then takes microseconds.
Sample reduced_model() {
  auto const model = Gguf::open(std::string(ROLLBACK_TEST_DATA) + "/dsv4-tiny/model.gguf");
  std::ifstream stream(model.name(), std::ios::binary);
  std::string head(64 * 1024, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  constexpr std::size_t begin = 24;
  auto const end = head.find(counted(model.tensors().front().name));
  REQUIRE(end != std::string::npos);

  struct Kind {
    TensorType type;
    std::size_t bytes;  // of a row of 32 values
  };
  constexpr std::array<Kind, 5> kinds = {{{TensorType::f32, 128},
                                          {TensorType::f16, 64},
                                          {TensorType::q8_0, 34},
                                          {TensorType::i32, 128},
                                          {TensorType::bf16, 64}}};
  GgufBuilder builder;
  builder.keys(std::string_view(head).substr(begin, end - begin), number_at(head, 16));
  for (std::size_t i = 0; i < model.tensors().size(); ++i) {
    auto const& info = model.tensors()[i];
    auto const& kind = kinds[i % kinds.size()];
    std::vector<std::int64_t> shape(info.shape.size(), 1);
    shape[0] = 32;
    builder.tensor(info.name, shape, static_cast<std::uint32_t>(kind.type), std::string(kind.bytes, '\x3e'));
  }
  return Sample(builder);
}

Sample small_bpe() {
  BpeVocabulary v;
  for (auto const* word : {"the", " the", "ing", " token", "ab"}) {
    std::string const text = word;
    for (std::size_t n = 1; n < text.size(); ++n) v.merge(text.substr(0, n), text.substr(n, 1));
  }
  v.add("<think>", 4);
  auto builder = v.builder("joyai-llm");
  builder.u32("tokenizer.ggml.bos_token_id", 0).u32("tokenizer.ggml.eos_token_id", 1);
  return Sample(builder);
}

class Damage {
 public:
  Damage(Sample const& sample, std::uint64_t seed) : sample_(sample), random_(seed), bytes_(sample.bytes) {}

  std::string apply() {
    auto const times = 1 + below(3);
    for (std::size_t i = 0; i < times && !bytes_.empty(); ++i) once();
    return std::move(bytes_);
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  std::size_t anywhere() { return below(std::min(sample_.header, bytes_.size())); }
  std::size_t field() { return sample_.fields[below(sample_.fields.size())]; }

  void write(std::size_t at, std::string const& value) {
    for (std::size_t i = 0; i < value.size() && at + i < bytes_.size(); ++i) bytes_[at + i] = value[i];
  }

  // A count or a length that is wrong in an interesting way.
  std::string number() {
    auto const size = static_cast<std::uint64_t>(bytes_.size());
    std::array<std::uint64_t, 14> const choices = {0,
                                                   1,
                                                   2,
                                                   31,
                                                   33,
                                                   size,
                                                   size - 1,
                                                   size / 8,
                                                   std::uint64_t{1} << 31,
                                                   std::uint64_t{1} << 32,
                                                   std::uint64_t{1} << 62,
                                                   std::uint64_t{1} << 63,
                                                   std::numeric_limits<std::uint64_t>::max(),
                                                   std::numeric_limits<std::uint64_t>::max() / 4 + 1};
    auto const n = choices[below(choices.size())];
    return below(2) == 0 ? raw(n) : raw(static_cast<std::uint32_t>(n));
  }

  void once() {
    switch (below(9)) {
      case 0: {  // a bit
        auto& byte = bytes_[anywhere()];
        byte = static_cast<char>(static_cast<unsigned char>(byte) ^ 1U << below(8));
        break;
      }
      case 1:
        bytes_[anywhere()] = static_cast<char>(below(256));
        break;
      case 2:
        bytes_.resize(below(4) == 0 ? below(bytes_.size() + 1) : anywhere());
        break;
      case 3:
        write(field(), number());
        break;
      case 4:
        write(field(), raw(static_cast<std::uint32_t>(below(32))));
        break;
      case 5:
        write(anywhere(), number());
        break;
      case 6: {  // two regions change places
        auto const length = 1 + below(64);
        auto const a = anywhere();
        auto const b = anywhere();
        auto const first = bytes_.substr(a, length);
        auto const second = bytes_.substr(b, length);
        write(a, second);
        write(b, first);
        break;
      }
      case 7: {  // something is put in, of here or of nowhere
        auto const part = below(2) == 0 ? bytes_.substr(anywhere(), below(200)) : std::string(below(100), '\xff');
        bytes_.insert(anywhere(), part);
        break;
      }
      default:
        bytes_.erase(anywhere(), below(100));
        break;
    }
  }

  Sample const& sample_;
  std::mt19937_64 random_;
  std::string bytes_;
};

// Whether the call went through; a FileError is the only other outcome that is allowed.
template <class Call>
bool went_through(Call&& call) {
  try {
    call();
    return true;
  } catch (FileError const&) { return false; }
}

void read_everything(Gguf const& file, std::vector<std::string> const& keys) {
  for (auto const& key : keys) {
    (void)file.has(key);
    went_through([&] { (void)file.integer(key); });
    went_through([&] { (void)file.real(key); });
    went_through([&] { (void)file.flag(key); });
    went_through([&] { (void)file.text(key); });
    went_through([&] { (void)file.integers(key); });
    went_through([&] { (void)file.reals(key); });
    went_through([&] { (void)file.texts(key); });
  }
  // One check a file: half a million of them would take longer than all the parsing.
  std::size_t bytes = 0;
  bool sound = true;
  for (auto const& info : file.tensors()) {
    bytes += info.bytes;
    std::size_t read = 0;
    went_through([&] { read = file.floats(info).size(); });
    went_through([&] { read = file.integers(info).size(); });
    sound = sound && file.find(info.name) == &info && (read == 0 || read == static_cast<std::size_t>(info.values()));
  }
  CHECK(sound);
  CHECK(bytes < 1'000'000);
}

}  // namespace

TEST_CASE("a damaged model opens and can be read or is refused") {
  auto const sample = reduced_model();
  REQUIRE(sample.keys.size() >= 40);
  int opened = 0;
  for (int seed = 0; seed < mutations; ++seed) {
    INFO("seed " << seed);
    auto bytes = bytes_of(Damage(sample, static_cast<std::uint64_t>(seed)).apply());
    opened += went_through([&] { read_everything(Gguf::parse(std::move(bytes), "damaged"), sample.keys); }) ? 1 : 0;
  }
  CHECK(opened > mutations / 20);
  CHECK(opened < mutations * 19 / 20);
}

TEST_CASE("a damaged model gives hyper-parameters and weights that fit each other or is refused") {
  Sample const sample(SmallModel().builder());
  int made = 0;
  int refused_late = 0;
  for (int seed = 0; seed < mutations; ++seed) {
    INFO("seed " << seed);
    auto bytes = bytes_of(Damage(sample, static_cast<std::uint64_t>(seed)).apply());
    bool parsed = false;
    bool const whole = went_through([&] {
      auto const file = Gguf::parse(std::move(bytes), "damaged");
      parsed = true;
      auto const hyper = HyperParameters::read(file);
      auto const weights = Weights::read(file, hyper);
      CHECK(weights.layers.size() == static_cast<std::size_t>(hyper.layers));
      CHECK(weights.output_norm.size() == static_cast<std::size_t>(hyper.width));
    });
    made += whole ? 1 : 0;
    refused_late += parsed && !whole ? 1 : 0;
  }
  CHECK(made > mutations / 200);
  CHECK(refused_late > mutations / 50);
}

TEST_CASE("a damaged vocabulary makes a tokenizer that works or is refused") {
  auto const sample = small_bpe();
  std::string const text = "the tokens\n<think> ab 123 \xff漢字";
  int made = 0;
  for (int seed = 0; seed < mutations / 5; ++seed) {
    INFO("seed " << seed);
    auto bytes = bytes_of(Damage(sample, static_cast<std::uint64_t>(seed)).apply());
    made += went_through([&] {
      Tokenizer const tokenizer(Gguf::parse(std::move(bytes), "damaged"));
      CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
      for (auto token : tokenizer.encode(text, Names::as_tokens)) CHECK(token < tokenizer.vocabulary());
    })
                ? 1
                : 0;
  }
  CHECK(made > 10);
  CHECK(made < mutations / 5);
}
