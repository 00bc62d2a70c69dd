#include "gguf.hpp"

#include "catch.hpp"
#include "file_refusal.hpp"
#include "gguf_builder.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

using Catch::Matchers::ContainsSubstring;
using dsv4_decoder::Gguf;
using dsv4_decoder::printable;
using dsv4_decoder::TensorInfo;
using dsv4_decoder::TensorType;

namespace {

std::string const tiny = std::string(ROLLBACK_TEST_DATA) + "/dsv4-tiny/model.gguf";

constexpr std::uint32_t f32 = 0, f16 = 1, q2_k = 10, q8_0 = 8, i32 = 26, bf16 = 30;

Gguf parse(GgufBuilder const& builder) { return Gguf::parse(builder.bytes(), "made.gguf"); }

std::string refused(GgufBuilder const& builder) {
  return refusal([&] { (void)parse(builder); });
}

// A file in the temporary folder for as long as it is in scope.
struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "rollback_gguf_test.gguf").string();
  explicit TemporaryFile(std::vector<std::byte> const& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
};

std::string floats(std::vector<float> const& values) { return raw_all(values); }

}  // namespace

TEST_CASE("the tiny model opens with all keys and tensors") {
  auto const file = Gguf::open(tiny);
  CHECK(file.name() == tiny);
  CHECK(file.text("general.architecture") == "deepseek4");
  CHECK(file.integer("deepseek4.block_count") == 6);
  CHECK(file.integer("deepseek4.context_length") == 1048576);
  CHECK(file.real("deepseek4.rope.freq_base") == 10000.0);
  CHECK(file.real("deepseek4.attention.layer_norm_rms_epsilon") == Approx(1e-6));
  CHECK(file.flag("deepseek4.expert_weights_norm"));
  CHECK(file.integers("deepseek4.attention.compress_ratios") == std::vector<std::int64_t>{0, 0, 4, 128, 4, 128});
  CHECK(file.reals("deepseek4.swiglu_clamp_exp") == std::vector<double>(6, 10.0));
  CHECK(file.texts("tokenizer.ggml.tokens").size() == 384);
  CHECK_FALSE(file.has("deepseek4.no_such_key"));

  CHECK(file.tensors().size() == 178);
  auto const& embedding = file.tensor("token_embd.weight");
  CHECK(embedding.shape == std::vector<std::int64_t>{128, 384});
  CHECK(embedding.type == TensorType::f32);
  CHECK(embedding.values() == 128 * 384);
  CHECK(embedding.bytes == 128 * 384 * 4);
  CHECK(file.find("token_embd.weight") == &embedding);
  CHECK(file.find("blk.6.attn_norm.weight") == nullptr);
}

TEST_CASE("tensor values are the bytes at the offset in the file") {
  auto const file = Gguf::open(tiny);
  std::ifstream stream(tiny, std::ios::binary);
  std::size_t total = 0;
  for (auto const& info : file.tensors()) {
    INFO(info.name);
    total += info.bytes;
    std::string bytes(info.bytes, '\x3e');
    stream.seekg(static_cast<std::streamoff>(info.offset));
    REQUIRE(stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
    if (info.type == TensorType::i32) {
      auto const values = file.integers(info);
      CHECK(raw_all(values) == bytes);
      CHECK(std::all_of(values.begin(), values.end(), [](int expert) { return expert >= 0 && expert < 8; }));
    } else {
      CHECK(raw_all(file.floats(info)) == bytes);
    }
  }
  CHECK(total > 9'000'000);
}

TEST_CASE("numbers of every type are read at their extremes") {
  GgufBuilder b;
  b.key("u8", gguf_type::u8, raw<std::uint8_t>(255)).key("i8", gguf_type::i8, raw<std::int8_t>(-128));
  b.key("u16", gguf_type::u16, raw<std::uint16_t>(65535)).key("i16", gguf_type::i16, raw<std::int16_t>(-32768));
  b.key("u32", gguf_type::u32, raw<std::uint32_t>(4294967295U));
  b.key("i32", gguf_type::i32, raw<std::int32_t>(std::numeric_limits<std::int32_t>::min()));
  b.key("u64", gguf_type::u64, raw<std::uint64_t>((std::uint64_t{1} << 63U) - 1));
  b.key("i64", gguf_type::i64, raw<std::int64_t>(std::numeric_limits<std::int64_t>::min()));
  b.key("f32", gguf_type::f32, raw(-0.5F)).key("f64", gguf_type::f64, raw(1e300));
  b.key("yes", gguf_type::boolean, "\x01").key("no", gguf_type::boolean, std::string(1, '\0'));
  b.text("text", std::string("a\0\xff", 3));
  auto const file = parse(b);
  CHECK(file.integer("u8") == 255);
  CHECK(file.integer("i8") == -128);
  CHECK(file.integer("u16") == 65535);
  CHECK(file.integer("i16") == -32768);
  CHECK(file.integer("u32") == 4294967295);
  CHECK(file.integer("i32") == std::numeric_limits<std::int32_t>::min());
  CHECK(file.integer("u64") == std::numeric_limits<std::int64_t>::max());
  CHECK(file.integer("i64") == std::numeric_limits<std::int64_t>::min());
  CHECK(file.real("f32") == -0.5);
  CHECK(file.real("f64") == 1e300);
  CHECK(file.real("u16") == 65535.0);
  CHECK(file.flag("yes"));
  CHECK_FALSE(file.flag("no"));
  CHECK(file.text("text") == std::string("a\0\xff", 3));
}

TEST_CASE("arrays of any number type are read as integers or reals") {
  GgufBuilder b;
  b.array("u8", gguf_type::u8, 3, std::string("\x01\x02\xff", 3));
  b.array("i16", gguf_type::i16, 2, raw<std::int16_t>(-5) + raw<std::int16_t>(7));
  b.array("u64", gguf_type::u64, 2, raw<std::uint64_t>(3) + raw(std::numeric_limits<std::uint64_t>::max()));
  b.array("f32", gguf_type::f32, 2, raw(0.25F) + raw(-4.0F));
  b.array("none", gguf_type::i32, 0, "").key("one", gguf_type::f64, raw(2.5));
  auto const file = parse(b);
  CHECK(file.integers("u8") == std::vector<std::int64_t>{1, 2, 255});
  CHECK(file.integers("i16") == std::vector<std::int64_t>{-5, 7});
  CHECK(file.reals("i16") == std::vector<double>{-5, 7});
  CHECK(file.reals("f32") == std::vector<double>{0.25, -4});
  CHECK(file.reals("one") == std::vector<double>{2.5});
  CHECK(file.integers("none").empty());
  CHECK_THAT(refusal([&] { (void)file.integers("u64"); }),
             ContainsSubstring("does not fit") && ContainsSubstring("\"u64\""));
  CHECK_THAT(refusal([&] { (void)file.integers("f32"); }), ContainsSubstring("an array of F32 (2)"));
}

TEST_CASE("a missing key and a key of another type are refused by name") {
  GgufBuilder b;
  b.u32("number", 1).text("text", "x").texts("texts", {"a"}).key("real", gguf_type::f32, raw(1.5F));
  b.array("numbers", gguf_type::u8, 1, "\x01").key("flag", gguf_type::boolean, "\x01");
  b.array("flags", gguf_type::boolean, 1, "\x01").array("empty", gguf_type::string, 0, "");
  auto const file = parse(b);
  auto const integer = [&](char const* key) { return refusal([&] { (void)file.integer(key); }); };
  CHECK(integer("absent") == "made.gguf: the key is missing (key \"absent\")");
  CHECK(integer("text") == "made.gguf: an integer is needed, not string (key \"text\")");
  CHECK_THAT(integer("real"), ContainsSubstring("not F32"));
  CHECK_THAT(integer("flag"), ContainsSubstring("not bool"));
  CHECK_THAT(integer("numbers"), ContainsSubstring("not an array of U8 (1)"));
  CHECK_THAT(refusal([&] { (void)file.real("text"); }), ContainsSubstring("a number is needed, not string"));
  CHECK_THAT(refusal([&] { (void)file.real("numbers"); }), ContainsSubstring("a number is needed"));
  CHECK_THAT(refusal([&] { (void)file.flag("number"); }), ContainsSubstring("a bool is needed, not U32"));
  CHECK_THAT(refusal([&] { (void)file.text("texts"); }), ContainsSubstring("a string is needed"));
  CHECK_THAT(refusal([&] { (void)file.texts("text"); }), ContainsSubstring("an array of strings is needed"));
  CHECK_THAT(refusal([&] { (void)file.texts("numbers"); }), ContainsSubstring("an array of strings is needed"));
  CHECK_THAT(refusal([&] { (void)file.integers("number"); }), ContainsSubstring("an array of integers is needed"));
  CHECK_THAT(refusal([&] { (void)file.integers("flags"); }), ContainsSubstring("an array of integers is needed"));
  CHECK_THAT(refusal([&] { (void)file.integers("empty"); }), ContainsSubstring("an array of integers is needed"));
  CHECK_THAT(refusal([&] { (void)file.reals("texts"); }), ContainsSubstring("a number or an array"));
  CHECK_THAT(refusal([&] { (void)file.tensor("absent"); }),
             ContainsSubstring("the tensor is missing (tensor \"absent\")"));
}

TEST_CASE("a path that is no GGUF file is refused with the reason") {
  auto const folder = std::filesystem::temp_directory_path().string();
  auto const open = [](std::string const& path) { return refusal([&] { (void)Gguf::open(path); }); };
  CHECK_THAT(open("/no/such/model.gguf"), ContainsSubstring("/no/such/model.gguf: cannot be opened: No such file"));
  CHECK(open(folder) == folder + ": is a directory, not a file");
  CHECK(open("/dev/null") == "/dev/null: is not a regular file");
  CHECK_THAT(open(TemporaryFile({}).path), ContainsSubstring("is empty"));
  CHECK_THAT(open(TemporaryFile({std::byte{'G'}, std::byte{'G'}}).path), ContainsSubstring("not a GGUF file"));
  GgufBuilder b;
  b.u32("k", 7).tensor("t", {1}, f32, floats({1}));
  TemporaryFile const good(b.bytes());
  CHECK(Gguf::open(good.path).integer("k") == 7);
}

TEST_CASE("foreign magic and versions and byte orders are refused") {
  GgufBuilder b;
  b.magic = "GGML";
  CHECK_THAT(refused(b), ContainsSubstring("is not a GGUF file"));
  b.magic = "GGUF";
  for (std::uint32_t version : {2U, 3U}) {
    b.version = version;
    CHECK(refused(b).empty());
  }
  for (std::uint32_t version : {0U, 1U, 4U, 0x03000001U}) {
    b.version = version;
    CHECK_THAT(refused(b), ContainsSubstring("is GGUF version " + std::to_string(version)));
  }
  for (std::uint32_t version : {0x02000000U, 0x03000000U}) {
    b.version = version;
    CHECK_THAT(refused(b), ContainsSubstring("big-endian"));
  }
  CHECK_THAT(refusal([] { (void)Gguf::parse({}, "none"); }), ContainsSubstring("none: is empty"));
}

TEST_CASE("every truncation is refused") {
  GgufBuilder b;
  b.u32("number", 1).text("text", "some text").texts("texts", {"", "b"});
  b.array("nested", gguf_type::array, 1, raw(gguf_type::u8) + raw<std::uint64_t>(2) + "ab");
  b.array("flags", gguf_type::boolean, 2, std::string("\x01\0", 2));
  b.tensor("t", {8}, f32, floats(std::vector<float>(8)));
  auto const whole = b.bytes();
  REQUIRE_NOTHROW(Gguf::parse(whole, "whole"));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO(n);
    std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK_FALSE(refusal([&] { (void)Gguf::parse(std::move(part), "part"); }).empty());
  }
}

TEST_CASE("counts and lengths beyond the file are refused before anything is allocated") {
  auto const huge = GENERATE(as<std::uint64_t>(), 1000, std::uint64_t{1} << 32, std::uint64_t{1} << 61,
                             std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max());
  auto const with = [](auto&& change) {
    GgufBuilder b;
    b.u32("k", 1).tensor("t", {1}, f32, floats({1}));
    change(b);
    return refused(b);
  };
  CHECK_THAT(with([&](auto& b) { b.said_keys = huge; }), ContainsSubstring(std::to_string(huge) + " keys"));
  CHECK_THAT(with([&](auto& b) { b.said_tensors = huge; }), ContainsSubstring(std::to_string(huge) + " tensors"));
  CHECK_FALSE(with([&](auto& b) { b.key("s", gguf_type::string, raw(huge) + "x"); }).empty());
  for (std::uint32_t element = 0; element <= gguf_type::f64; ++element) {
    CHECK_FALSE(with([&](auto& b) { b.array("a", element, huge, "xxxxxxxxxxxx"); }).empty());
  }
  CHECK_FALSE(with([&](auto& b) { b.key(std::string(70000, 'k'), gguf_type::u8, "x"); }).empty());
}

TEST_CASE("duplicate and empty names are refused") {
  GgufBuilder b;
  b.u32("k", 1).u32("k", 2);
  CHECK(refused(b) == "made.gguf: the key appears twice (key \"k\")");
  CHECK_THAT(refused(GgufBuilder().u32("", 1)), ContainsSubstring("an empty key"));
  GgufBuilder t;
  t.tensor("t", {1}, f32, floats({1})).tensor("t", {1}, f32, floats({1}));
  CHECK(refused(t) == "made.gguf: the tensor appears twice (tensor \"t\")");
  CHECK_THAT(refused(GgufBuilder().tensor("", {1}, f32, floats({1}))), ContainsSubstring("without a name"));
  auto const longest = std::string(64, 'n');
  CHECK(refused(GgufBuilder().tensor(longest, {1}, f32, floats({1}))).empty());
  CHECK_THAT(refused(GgufBuilder().tensor(longest + "n", {1}, f32, floats({1}))), ContainsSubstring("at most 64"));
}

TEST_CASE("values of unknown types and impossible bools and deep nests are refused") {
  CHECK_THAT(refused(GgufBuilder().key("k", 13, "xxxxxxxx")), ContainsSubstring("unknown type 13"));
  CHECK_THAT(refused(GgufBuilder().array("k", 13, 1, "xxxxxxxx")), ContainsSubstring("unknown type 13"));
  CHECK_THAT(refused(GgufBuilder().key("k", gguf_type::boolean, "\x02")), ContainsSubstring("neither 0 nor 1"));
  CHECK_THAT(refused(GgufBuilder().array("k", gguf_type::boolean, 2, "\x01\x02")),
             ContainsSubstring("neither 0 nor 1"));
  auto const nest = [](int depth) {
    std::string inner = raw(gguf_type::u8) + raw<std::uint64_t>(1) + "x";
    for (int i = 1; i < depth; ++i) inner = raw(gguf_type::array) + raw<std::uint64_t>(1) + inner;
    return GgufBuilder().key("k", gguf_type::array, inner);
  };
  CHECK(refused(nest(5)).empty());
  CHECK_THAT(refused(nest(6)), ContainsSubstring("nested more than 4 deep"));
  CHECK_THAT(refused(nest(50000)), ContainsSubstring("nested more than 4 deep"));
}

TEST_CASE("tensors with impossible shapes are refused by name") {
  auto const entry = [](std::uint32_t rank, std::vector<std::int64_t> const& shape, std::uint32_t type = f32) {
    GgufBuilder b;
    b.tensor("good", {64}, f32, floats(std::vector<float>(64))).entry("odd", rank, shape, type, 0);
    return refused(b);
  };
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK_THAT(entry(0, {}), ContainsSubstring("has 0 dimensions") && ContainsSubstring("\"odd\""));
  CHECK_THAT(entry(5, {1, 1, 1, 1, 1}), ContainsSubstring("has 5 dimensions"));
  CHECK_THAT(entry(2, {1, 0}), ContainsSubstring("dimension 1 is 0"));
  CHECK_THAT(entry(1, {-1}), ContainsSubstring("dimension 0 is -1"));
  CHECK_THAT(entry(2, {most, 2}), ContainsSubstring("overflows"));
  CHECK_THAT(entry(4, {1 << 16, 1 << 16, 1 << 16, 1 << 16}), ContainsSubstring("overflows"));
  CHECK_THAT(entry(1, {most}), ContainsSubstring("truncated"));
  CHECK_THAT(entry(1, {most / 4 + 1}), ContainsSubstring("truncated"));
  CHECK_THAT(entry(1, {std::int64_t{1} << 62}), ContainsSubstring("truncated"));
  CHECK_THAT(entry(2, {48, 2}, q8_0), ContainsSubstring("multiple of 32"));
}

TEST_CASE("tensor data must lie aligned in the file and belong to one tensor only") {
  auto const at = [](std::uint64_t offset, std::int64_t values) {
    GgufBuilder b;
    b.tensor("good", {16}, f32, floats(std::vector<float>(16)));
    b.entry("odd", 1, {values}, f32, offset);
    return refused(b);
  };
  CHECK_THAT(at(0, 1), ContainsSubstring("shares bytes with tensor"));
  CHECK_THAT(at(32, 8), ContainsSubstring("shares bytes with tensor"));
  CHECK_THAT(at(33, 1), ContainsSubstring("not a multiple of 32"));
  CHECK_THAT(at(64, 1), ContainsSubstring("truncated"));
  CHECK_THAT(at(96, 1), ContainsSubstring("truncated"));
  CHECK_THAT(at(std::numeric_limits<std::uint64_t>::max() - 31, 8), ContainsSubstring("truncated"));
}

TEST_CASE("the alignment is the file's own and must make sense") {
  GgufBuilder b;
  b.alignment = 128;
  b.u32("general.alignment", 128).tensor("a", {1}, f32, floats({1})).tensor("b", {1}, f32, floats({2}));
  auto const file = parse(b);
  CHECK(file.tensor("a").offset % 128 == 0);
  CHECK(file.floats(file.tensor("b")) == std::vector<float>{2});
  for (std::uint32_t wrong : {0U, 4U, 24U, 33U}) {
    CHECK_THAT(refused(GgufBuilder().u32("general.alignment", wrong)),
               ContainsSubstring("a power of two") && ContainsSubstring("general.alignment"));
  }
  CHECK_THAT(refused(GgufBuilder().text("general.alignment", "32")), ContainsSubstring("an integer is needed"));
  GgufBuilder far;
  far.key("general.alignment", gguf_type::u64, raw<std::uint64_t>(std::uint64_t{1} << 62))
      .tensor("t", {1}, f32, floats({1}));
  CHECK_THAT(refused(far), ContainsSubstring("ends before the tensor data"));
}

TEST_CASE("half precision and quantised tensors become the right floats") {
  GgufBuilder b;
  b.tensor("f16", {6}, f16, raw_all<std::uint16_t>({0x3C00, 0xC000, 0x0001, 0x7BFF, 0x7C00, 0x8000}));
  b.tensor("bf16", {3}, bf16, raw_all<std::uint16_t>({0x3F80, 0xC040, 0x0001}));
  std::string blocks = raw<std::uint16_t>(0x3800);  // 0.5
  for (int i = 0; i < 32; ++i) blocks += static_cast<char>(i - 16);
  blocks += raw<std::uint16_t>(0x4000);  // 2
  for (int i = 0; i < 32; ++i) blocks += static_cast<char>(i == 31 ? -128 : 127);
  b.tensor("q8_0", {32, 2}, q8_0, blocks);
  b.tensor("i32", {2, 1}, i32, raw_all<std::int32_t>({-7, std::numeric_limits<std::int32_t>::max()}));
  auto const file = parse(b);
  auto const f16_values = file.floats(file.tensor("f16"));
  CHECK(f16_values == std::vector<float>{1, -2, 0x1p-24F, 65504, std::numeric_limits<float>::infinity(), 0});
  CHECK(std::signbit(f16_values[5]));
  CHECK(file.floats(file.tensor("bf16")) == std::vector<float>{1, -3, 0x1p-133F});
  auto const q = file.floats(file.tensor("q8_0"));
  CHECK(file.tensor("q8_0").bytes == 68);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(q[i] == 0.5F * (static_cast<float>(i) - 16));
    CHECK(q[32 + i] == (i == 31 ? -256.0F : 254.0F));
  }
  CHECK(file.integers(file.tensor("i32")) == std::vector<std::int32_t>{-7, std::numeric_limits<std::int32_t>::max()});
  CHECK_THAT(refusal([&] { (void)file.floats(file.tensor("i32")); }),
             ContainsSubstring("I32 cannot be read here; F32"));
  CHECK_THAT(refusal([&] { (void)file.integers(file.tensor("f16")); }),
             ContainsSubstring("F16 cannot be read here; I32"));
}

TEST_CASE("a tensor of an unknown type is listed and refused when it is read") {
  GgufBuilder b;
  b.tensor("odd", {256}, q2_k, std::string(84, 'x')).tensor("good", {1}, f32, floats({3}));
  auto const file = parse(b);
  CHECK(file.floats(file.tensor("good")) == std::vector<float>{3});
  CHECK(file.tensor("odd").bytes == 0);
  CHECK_THAT(refusal([&] { (void)file.floats(file.tensor("odd")); }),
             ContainsSubstring("type 10 cannot be read here") && ContainsSubstring("tensor \"odd\""));
  CHECK_THAT(refusal([&] { (void)file.integers(file.tensor("odd")); }), ContainsSubstring("type 10"));
}

TEST_CASE("an entry that is not of the file is refused") {
  GgufBuilder b;
  b.tensor("t", {2}, f32, floats({1, 2}));
  auto const file = parse(b);
  auto changed = file.tensor("t");
  changed.shape = {1 << 20};
  CHECK_THAT(refusal([&] { (void)file.floats(changed); }), ContainsSubstring("is not of this file"));
  changed = file.tensor("t");
  changed.offset += 1 << 20;
  CHECK_THAT(refusal([&] { (void)file.floats(changed); }), ContainsSubstring("is not of this file"));
  TensorInfo foreign;
  foreign.name = "foreign";
  CHECK_THAT(refusal([&] { (void)file.floats(foreign); }), ContainsSubstring("is not of this file"));
}

TEST_CASE("a file can be moved and copied and closed in any order") {
  std::vector<float> values;
  auto copy = [&] {
    auto first = Gguf::open(tiny);
    auto second = std::move(first);
    auto third = second;
    values = second.floats(second.tensor("output_norm.weight"));
    return third;
  }();
  CHECK(copy.floats(copy.tensor("output_norm.weight")) == values);
  CHECK(values.size() == 128);
}

TEST_CASE("names from a file are printable in messages") {
  CHECK(printable("plain text") == "plain text");
  CHECK(printable("a\nb\x1b[0m\xff") == "a\\x0ab\\x1b[0m\\xff");
  CHECK(printable(std::string(1000, 'x')).size() == 163);
  CHECK_THAT(refused(GgufBuilder().u32("bad\x1b key", 1).u32("bad\x1b key", 1)), ContainsSubstring("bad\\x1b key"));
}
