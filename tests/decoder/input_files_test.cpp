#include "input_files.hpp"

#include "catch.hpp"
#include "file_refusal.hpp"
#include "gguf_builder.hpp"

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

using Catch::Matchers::ContainsSubstring;
using dsv4_decoder::read_floats;
using dsv4_decoder::read_ids;
using dsv4_decoder::read_text;

namespace {

// A file of its own for every test, gone afterwards.
class Written {
 public:
  explicit Written(std::string const& bytes) {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("rollback-input-files-" + std::to_string(::getpid()) + "-" + std::to_string(count++)))
                .string();
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  Written(Written const&) = delete;
  Written& operator=(Written const&) = delete;
  ~Written() { std::remove(path_.c_str()); }
  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  std::string path_;
};

std::string refused_ids(std::string const& text) {
  Written const file(text);
  return refusal([&] { (void)read_ids(file.path()); });
}

using Ids = std::vector<std::int32_t>;

Ids ids(std::string const& text) { return read_ids(Written(text).path()); }

}  // namespace

TEST_CASE("a text is read byte for byte", "[input_files]") {
  std::string bytes = "a\r\n\xff\x1a z\n";
  bytes += std::string(1, '\0') + "end";
  CHECK(read_text(Written(bytes).path()) == bytes);
  CHECK(read_text(Written("").path()).empty());
  std::string const large(3'000'001, 'x');
  CHECK(read_text(Written(large).path()) == large);
}

TEST_CASE("a file that cannot be read is refused with its path and the reason", "[input_files]") {
  CHECK_THAT(refusal([] { (void)read_text("/no/such/file"); }),
             ContainsSubstring("/no/such/file") && ContainsSubstring("does not exist"));
  CHECK_THAT(refusal([] { (void)read_text(""); }), ContainsSubstring("does not exist"));
  CHECK_THAT(refusal([] { (void)read_text("/"); }), ContainsSubstring("is a directory"));
  CHECK_THAT(refusal([] { (void)read_ids("/no/such/file"); }), ContainsSubstring("does not exist"));
  CHECK_THAT(refusal([] { (void)read_floats("/no/such/file", 4); }), ContainsSubstring("does not exist"));
}

TEST_CASE("a file that fails while it is read is refused", "[input_files]") {
  std::string const path = "/proc/self/mem";  // opens, and fails at its first byte
  if (!std::ifstream(path, std::ios::binary)) SKIP("there is no such file here");
  CHECK_THAT(refusal([&] { (void)read_text(path); }), ContainsSubstring(path) && ContainsSubstring("cannot be read"));
}

TEST_CASE("ids are decimal numbers between white space", "[input_files]") {
  CHECK(ids("1 2\n3\t 4\r\n\n5") == Ids{1, 2, 3, 4, 5});
  CHECK(ids("007") == Ids{7});
  CHECK(ids("").empty());
  CHECK(ids(" \n\t\r\n").empty());
  CHECK(ids("2147483647 -2147483648") ==
        Ids{std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()});
  CHECK(ids("-1") == Ids{-1});  // whether an id is in the vocabulary only the model can say
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += std::to_string(i) + "\n";
  Ids const read = ids(many);
  REQUIRE(read.size() == 100'000);
  CHECK(read.back() == 99'999);
}

TEST_CASE("a word that is no id is refused with its number", "[input_files]") {
  for (std::string const word :
       {"x", "1x", "+1", "0x10", "1.0", "1e3", "--1", "-", "1,", "2147483648", "-2147483649", "99999999999999999999"}) {
    INFO(word);
    CHECK_THAT(refused_ids("10 20\n" + word + " 30"),
               ContainsSubstring("not a token id: " + word) && ContainsSubstring("word 3"));
  }
  CHECK_THAT(refused_ids("\xff"), ContainsSubstring("\\xff") && ContainsSubstring("word 1"));
  CHECK_THAT(refused_ids("1" + std::string(1, '\0') + "2"), ContainsSubstring("1\\x002"));
  auto const long_word = refused_ids(std::string(1'000'000, '9'));
  CHECK(long_word.size() < 500);  // cut, not echoed
}

TEST_CASE("floats are read as rows", "[input_files]") {
  std::vector<float> const values = {1.5f, -2.0f, 3e30f, 0.0f, 1e-40f, 6.0f};
  Written const file(raw_all(values));
  CHECK(read_floats(file.path(), 1) == values);
  CHECK(read_floats(file.path(), 3) == values);
  CHECK(read_floats(file.path(), 6) == values);
  CHECK_THAT(refusal([&] { (void)read_floats(file.path(), 4); }),
             ContainsSubstring(file.path()) && ContainsSubstring("24 bytes are not rows of 4 float32 values"));
  CHECK_THAT(refusal([&] { (void)read_floats(file.path(), 7); }), ContainsSubstring("not rows of 7"));
}

TEST_CASE("floats that are cut off or missing are refused", "[input_files]") {
  std::vector<float> const values = {1.0f, 2.0f};
  for (std::size_t bytes = 0; bytes < 8; ++bytes) {
    Written const file(raw_all(values).substr(0, bytes));
    INFO(bytes << " bytes");
    CHECK_THAT(refusal([&] { (void)read_floats(file.path(), 2); }),
               ContainsSubstring(std::to_string(bytes) + " bytes are not rows of 2"));
  }
}

TEST_CASE("rows of no values are refused", "[input_files]") {
  Written const file(raw(1.0f));
  for (std::int64_t row : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
                           std::int64_t{1} << 62, (std::int64_t{1} << 62) + 1}) {
    INFO(row);
    CHECK_THAT(refusal([&] { (void)read_floats(file.path(), row); }), ContainsSubstring("not rows of"));
  }
}
