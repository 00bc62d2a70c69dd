// Reads model files in the GGUF format: metadata, the list of tensors, and tensor values as plain numbers.
#pragma once

#include "tensor_types.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dsv4_decoder {

/// An input file that cannot be used. Reads "<file>: <what is wrong> (<where: key, tensor, line or byte offset>)".
struct FileError : std::runtime_error {
  FileError(std::string const& file, std::string const& wrong, std::string const& where = {});
};

/// Text out of a file, fit for a message: bytes outside printable ASCII as \xNN, and cut where it is long.
[[nodiscard]] std::string printable(std::string_view text);

/// One entry of a file's list of tensors.
struct TensorInfo {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;  // fastest first, as GGUF lists them: a matrix is [inputs, outputs]; each at least 1
  std::size_t offset = 0;           // of the first value, in bytes from the start of the file
  std::size_t bytes = 0;            // all values; 0 where the type is none of TensorType

  /// The product of the shape.
  [[nodiscard]] std::int64_t values() const;
};

/// A GGUF file of version 2 or 3, little-endian. The bytes stay where they are (mapped or owned) until the last copy of
/// the object is gone; values are decoded when they are asked for.
///
/// The file is not trusted: every count, length, size and offset is checked against the bytes that are there before it
/// is used, nothing is allocated beyond a small multiple of the file's size, and whatever is wrong is a `FileError`.
class Gguf {
 public:
  /// Maps a file. The file must not shrink while it is open.
  /// @throws FileError  missing, not a regular file, empty, not GGUF, truncated, or inconsistent in any way
  [[nodiscard]] static Gguf open(std::string const& path);

  /// The same from memory. `name` stands for the path in messages.
  [[nodiscard]] static Gguf parse(std::vector<std::byte> bytes, std::string name);

  [[nodiscard]] std::string const& name() const { return name_; }
  /// XXH3-64 of the whole file.
  [[nodiscard]] std::uint64_t checksum() const;

  // Metadata. Each of these, but `has`, throws a FileError that names the key where it is missing or of another type.
  [[nodiscard]] bool has(std::string const& key) const;
  [[nodiscard]] std::int64_t integer(std::string const& key) const;     ///< any integer type, if the value fits
  [[nodiscard]] double real(std::string const& key) const;              ///< F32 or F64; integers are accepted
  [[nodiscard]] bool flag(std::string const& key) const;                ///< a bool
  [[nodiscard]] std::string const& text(std::string const& key) const;  ///< a string: bytes, in any encoding
  [[nodiscard]] std::vector<std::int64_t> integers(std::string const& key) const;  ///< array of any integer type
  [[nodiscard]] std::vector<double> reals(std::string const& key) const;           ///< array; a scalar gives one value
  [[nodiscard]] std::vector<std::string> const& texts(std::string const& key) const;  ///< array of strings

  /// In the order of the file. Names differ, data ranges lie inside the file and do not overlap.
  [[nodiscard]] std::vector<TensorInfo> const& tensors() const { return tensors_; }
  /// @return nullptr where there is no such tensor
  [[nodiscard]] TensorInfo const* find(std::string const& tensor) const;
  /// @throws FileError where there is no such tensor
  [[nodiscard]] TensorInfo const& tensor(std::string const& tensor) const;

  /// All values of a tensor of this file in the order of its bytes (`shape`, fastest first); F32, F16, BF16 or Q8_0.
  /// @throws FileError  the tensor has another type, or is not of this file
  [[nodiscard]] std::vector<float> floats(TensorInfo const& tensor) const;
  /// The same for I32.
  [[nodiscard]] std::vector<std::int32_t> integers(TensorInfo const& tensor) const;

 private:
  // Codes of the format.
  enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

  // A metadata value: numbers stay in the file's bytes, strings are copied out (callers get references).
  struct Value {
    ValueType type = ValueType::u8;
    ValueType element = ValueType::u8;  // of an array; otherwise equal to type
    std::size_t offset = 0;             // of the first number, in bytes from the start of the file
    std::size_t count = 0;              // of an array's elements; otherwise 1
    std::vector<std::string> strings;   // of a string or an array of strings
  };
  class Reader;

  Gguf(std::shared_ptr<std::byte const> bytes, std::size_t size, std::string name);

  void read_metadata(Reader& reader, std::uint64_t count);
  void read_tensors(Reader& reader, std::uint64_t count);
  void place_tensors(std::size_t end_of_list);

  [[nodiscard]] static bool is_number(ValueType type);
  [[nodiscard]] static bool is_integer(ValueType type);
  [[nodiscard]] Value const& value(std::string const& key) const;
  [[nodiscard]] std::int64_t integer_at(std::string const& key, Value const& value, std::size_t index) const;
  [[nodiscard]] double real_at(std::string const& key, Value const& value, std::size_t index) const;
  [[noreturn]] void refuse_type(std::string const& key, Value const& value, char const* wanted) const;
  [[nodiscard]] std::byte const* data_of(TensorInfo const& tensor) const;
  [[noreturn]] void refuse_type(TensorInfo const& tensor, char const* wanted) const;

  std::shared_ptr<std::byte const> bytes_;
  std::size_t size_ = 0;
  std::string name_;
  std::unordered_map<std::string, Value> values_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> index_;  // of a tensor's name in tensors_
};

}  // namespace dsv4_decoder
