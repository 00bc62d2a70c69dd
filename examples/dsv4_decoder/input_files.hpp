// Reads the plain files that commands take: text, token ids, recorded logits.
#pragma once

#include "gguf.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dsv4_decoder {

/// A whole file, of at most 1 GiB. @throws FileError
[[nodiscard]] std::string read_text(std::string const& path);

/// Token ids, decimal, separated by white space. @throws FileError; names the word that is not a number
[[nodiscard]] std::vector<std::int32_t> read_ids(std::string const& path);

/// Little-endian float32 values. @throws FileError, also where the size is not a multiple of `row` values
[[nodiscard]] std::vector<float> read_floats(std::string const& path, std::int64_t row);

}  // namespace dsv4_decoder
