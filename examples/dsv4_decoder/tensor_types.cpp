#include "tensor_types.hpp"

#include <cstring>
#include <Eigen/Core>
#include <limits>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bytes of a tensor are read as they stand");

namespace dsv4_decoder {
namespace {

constexpr std::size_t q8_0_values = 32;  // of a block, which is an F16 scale and as many signed bytes
constexpr std::size_t q8_0_bytes = 2 + 32;

template <class T>
T load(std::byte const* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float half(std::byte const* from) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(load<std::uint16_t>(from)));
}

float bfloat(std::byte const* from) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(load<std::uint16_t>(from)));
}

}  // namespace

std::optional<std::string> name_of(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return "F32";
    case TensorType::f16:
      return "F16";
    case TensorType::q8_0:
      return "Q8_0";
    case TensorType::i32:
      return "I32";
    case TensorType::bf16:
      return "BF16";
  }
  return std::nullopt;
}

std::int64_t block_values(TensorType type) {
  return type == TensorType::q8_0 ? static_cast<std::int64_t>(q8_0_values) : 1;
}

std::size_t bytes_of(TensorType type, std::int64_t values) {
  std::size_t units = static_cast<std::size_t>(values / block_values(type));
  std::size_t unit = 0;
  switch (type) {
    case TensorType::f32:
    case TensorType::i32:
      unit = 4;
      break;
    case TensorType::f16:
    case TensorType::bf16:
      unit = 2;
      break;
    case TensorType::q8_0:
      unit = q8_0_bytes;
      break;
  }
  auto const limit = std::numeric_limits<std::size_t>::max();
  return unit != 0 && units > limit / unit ? limit : units * unit;
}

bool is_float(TensorType type) { return type != TensorType::i32 && name_of(type).has_value(); }

std::vector<float> to_floats(TensorType type, std::byte const* from, std::size_t count) {
  std::vector<float> out(count);
  if (type == TensorType::f32) {
    std::memcpy(out.data(), from, count * sizeof(float));
  } else if (type == TensorType::f16) {
    for (std::size_t i = 0; i < count; ++i) out[i] = half(from + 2 * i);
  } else if (type == TensorType::bf16) {
    for (std::size_t i = 0; i < count; ++i) out[i] = bfloat(from + 2 * i);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      auto const* block = from + i / q8_0_values * q8_0_bytes;
      out[i] = half(block) * static_cast<float>(load<std::int8_t>(block + 2 + i % q8_0_values));
    }
  }
  return out;
}

}  // namespace dsv4_decoder
