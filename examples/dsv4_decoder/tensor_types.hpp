// The types of tensor values that can be read here: their names, their sizes, and their values as plain numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dsv4_decoder {

/// The codes of the GGUF format for the types that can be read here. A file may hold others; they are listed, not read.
enum class TensorType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, i32 = 26, bf16 = 30 };

/// What messages call a type; nothing for a type that is none of TensorType.
[[nodiscard]] std::optional<std::string> name_of(TensorType type);

/// Rows hold a multiple of so many values; 1 but for types that are stored in blocks.
[[nodiscard]] std::int64_t block_values(TensorType type);

/// The bytes of so many values, whole blocks of them; the largest size there is where it does not fit, 0 for a type
/// that is none of TensorType.
[[nodiscard]] std::size_t bytes_of(TensorType type, std::int64_t values);

/// Whether `to_floats` reads the type: all of TensorType but I32.
[[nodiscard]] bool is_float(TensorType type);

/// The first `count` values behind `from`, which has `bytes_of(type, count)` bytes at least and any alignment. Requires
/// `is_float(type)`.
[[nodiscard]] std::vector<float> to_floats(TensorType type, std::byte const* from, std::size_t count);

}  // namespace dsv4_decoder
