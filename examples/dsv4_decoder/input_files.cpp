#include "input_files.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace dsv4_decoder {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 30;

}  // namespace

std::string read_text(std::string const& path) {
  std::error_code error;
  auto const status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) throw FileError(path, "is a directory, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw FileError(path, std::filesystem::exists(status) ? "cannot be opened" : "does not exist");
  std::string text;
  std::vector<char> part(std::size_t{1} << 20);
  while (in) {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_bytes) throw FileError(path, "is larger than 1 GiB");  // a device may never end
  }
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
  std::size_t const count = bytes.size() / sizeof(float);
  if (row < 1 || count == 0 || bytes.size() % sizeof(float) != 0 || count % static_cast<std::size_t>(row) != 0) {
    throw FileError(path, fmt::format("{} bytes are not rows of {} float32 values", bytes.size(), row));
  }
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace dsv4_decoder
