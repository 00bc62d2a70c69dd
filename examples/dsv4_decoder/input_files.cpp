#include "input_files.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace dsv4_decoder {

std::string read_text(std::string const& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw FileError(path, "is a directory");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw FileError(path, "cannot be opened");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw FileError(path, "cannot be read");
  return text;
}

std::vector<std::int32_t> read_ids(std::string const& path) {
  std::istringstream in(read_text(path));
  std::vector<std::int32_t> ids;
  for (std::string word; in >> word;) {
    std::int32_t id = 0;
    auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc{} || end != word.data() + word.size()) {
      throw FileError(path, "not a token id: " + printable(word), fmt::format("word {}", ids.size() + 1));
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<float> read_floats(std::string const& path, std::int64_t row) {
  std::string const bytes = read_text(path);
  std::size_t const row_bytes = static_cast<std::size_t>(row) * sizeof(float);
  if (bytes.empty() || bytes.size() % row_bytes != 0) {
    throw FileError(path, fmt::format("{} bytes are not rows of {} float32 values", bytes.size(), row));
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace dsv4_decoder
