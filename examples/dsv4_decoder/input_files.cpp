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
  try {
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  } catch (std::ios_base::failure const& e) {  // the iterators pass the stream's own state by
    throw FileError(path, "cannot be read", e.what());
  }
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
  std::size_t const count = bytes.size() / sizeof(float);
  if (row < 1 || count == 0 || bytes.size() % sizeof(float) != 0 || count % static_cast<std::size_t>(row) != 0) {
    throw FileError(path, fmt::format("{} bytes are not rows of {} float32 values", bytes.size(), row));
  }
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace dsv4_decoder
