// Writes small GGUF files for tests, right ones and wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The fixed-size value as the bytes of a little-endian file.
template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

inline std::string counted(std::string_view text) { return raw<std::uint64_t>(text.size()) + std::string(text); }

template <class T>
std::string raw_all(std::vector<T> const& values) {
  std::string out;
  for (auto value : values) out += raw(static_cast<T>(value));
  return out;
}

// Type codes of metadata values.
namespace gguf_type {
inline constexpr std::uint32_t u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8,
                               array = 9, u64 = 10, i64 = 11, f64 = 12;
}

/// Collects keys and tensors; every field of the header can be made to lie.
class GgufBuilder {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> said_keys;     // instead of the true number
  std::optional<std::uint64_t> said_tensors;  // likewise
  std::size_t alignment = 32;

  /// A key whose value has these bytes, whatever they are.
  GgufBuilder& key(std::string_view name, std::uint32_t type, std::string_view value) {
    keys_ += counted(name) + raw(type) + std::string(value);
    ++key_count_;
    return *this;
  }
  /// Keys as they stand in another file.
  GgufBuilder& keys(std::string_view bytes, std::uint64_t count) {
    keys_ += bytes;
    key_count_ += count;
    return *this;
  }
  GgufBuilder& u32(std::string_view name, std::uint32_t value) { return key(name, gguf_type::u32, raw(value)); }
  GgufBuilder& text(std::string_view name, std::string_view value) {
    return key(name, gguf_type::string, counted(value));
  }
  /// An array whose elements have these bytes.
  GgufBuilder& array(std::string_view name, std::uint32_t element, std::uint64_t count, std::string_view elements) {
    return key(name, gguf_type::array, raw(element) + raw(count) + std::string(elements));
  }
  GgufBuilder& texts(std::string_view name, std::vector<std::string> const& values) {
    std::string all;
    for (auto const& value : values) all += counted(value);
    return array(name, gguf_type::string, values.size(), all);
  }
  GgufBuilder& i32s(std::string_view name, std::vector<std::int32_t> const& values) {
    return array(name, gguf_type::i32, values.size(), raw_all(values));
  }

  /// A tensor with its data behind that of the tensor before it.
  GgufBuilder& tensor(std::string_view name, std::vector<std::int64_t> const& shape, std::uint32_t type,
                      std::string_view data) {
    entry(name, static_cast<std::uint32_t>(shape.size()), shape, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\x3e');
    return *this;
  }
  /// An entry of the list of tensors that adds no data.
  GgufBuilder& entry(std::string_view name, std::uint32_t rank, std::vector<std::int64_t> const& shape,
                     std::uint32_t type, std::uint64_t offset) {
    tensors_ += counted(name) + raw(rank) + raw_all(shape) + raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    auto all = magic + raw(version) + raw(said_tensors.value_or(tensor_count_)) + raw(said_keys.value_or(key_count_)) +
               keys_ + tensors_;
    if (tensor_count_ != 0) all.resize((all.size() + alignment - 1) / alignment * alignment, '\x3e');
    all += data_;
    std::vector<std::byte> out(all.size());
    std::memcpy(out.data(), all.data(), all.size());
    return out;
  }

 private:
  std::string keys_;
  std::string tensors_;
  std::string data_;
  std::uint64_t key_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};
