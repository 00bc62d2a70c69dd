#include "gguf.hpp"

#include <rollback/checksum.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bytes of a GGUF file are read as they stand");
static_assert(sizeof(std::size_t) == 8, "lengths and offsets of a GGUF file have 64 bits");

namespace dsv4_decoder {
namespace {

constexpr std::size_t longest_key = 65535;                // a rule of the format
constexpr std::size_t longest_tensor_name = 64;           // likewise
constexpr std::uint32_t most_dimensions = 4;              // likewise
constexpr std::size_t most_items = std::size_t{1} << 24;  // keys, tensors, strings of an array: far above any model
constexpr int deepest_array = 4;  // arrays in arrays; the format sets no limit, the call stack does
constexpr std::size_t smallest_entry = 8 + 1 + 4 + 1;           // key length, key, type, value
constexpr std::size_t smallest_tensor = 8 + 1 + 4 + 8 + 4 + 8;  // name length, name, rank, dimension, type, offset

// By type code: what messages call it, and the bytes of one value where all values have the same.
constexpr std::array<char const*, 13> value_names = {"U8",   "I8",     "U16",   "I16", "U32", "I32", "F32",
                                                     "bool", "string", "array", "U64", "I64", "F64"};
constexpr std::array<std::size_t, 13> value_sizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class Enum>
constexpr std::size_t code(Enum e) {
  return static_cast<std::size_t>(e);
}

std::string at_byte(std::size_t offset) { return fmt::format("byte {}", offset); }
std::string at_key(std::string const& key) { return fmt::format("key \"{}\"", printable(key)); }
std::string at_tensor(std::string const& name) { return fmt::format("tensor \"{}\"", printable(name)); }

template <class T>
T load(std::byte const* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

struct Descriptor {
  int number = -1;
  explicit Descriptor(int n) : number(n) {}
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::string system_text(int error) { return std::generic_category().message(error); }

}  // namespace

FileError::FileError(std::string const& file, std::string const& wrong, std::string const& where)
    : std::runtime_error(where.empty() ? fmt::format("{}: {}", file, wrong)
                                       : fmt::format("{}: {} ({})", file, wrong, where)) {}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 160;
  std::string out;
  for (char c : text.substr(0, longest)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > longest ? out + "..." : out;
}

std::int64_t TensorInfo::values() const {
  std::int64_t product = 1;
  for (auto n : shape) product *= n;
  return product;
}

// Walks over the bytes of a file and lets nothing be read past their end.
class Gguf::Reader {
 public:
  explicit Reader(Gguf const& file) : file_(file) {}

  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t left() const { return file_.size_ - position_; }

  [[noreturn]] void refuse(std::string const& wrong) const { throw FileError(file_.name_, wrong, at_byte(position_)); }

  void skip(std::uint64_t bytes, char const* what) {
    if (bytes > left()) refuse(fmt::format("truncated: {} needs {} bytes, {} are left", what, bytes, left()));
    position_ += static_cast<std::size_t>(bytes);
  }

  template <class T>
  T number(char const* what) {
    auto const* from = here();
    skip(sizeof(T), what);
    return load<T>(from);
  }

  std::string string(char const* what, std::size_t longest = std::numeric_limits<std::size_t>::max()) {
    auto const length = number<std::uint64_t>(what);
    if (length > longest) refuse(fmt::format("{} of {} bytes; at most {} are allowed", what, length, longest));
    auto const* from = reinterpret_cast<char const*>(here());
    skip(length, what);
    return std::string(from, static_cast<std::size_t>(length));
  }

  // A number of things of which each takes at least `smallest` bytes.
  std::size_t count(std::uint64_t n, std::size_t smallest, char const* what, std::uint64_t most = most_items) const {
    if (n > left() / smallest) refuse(fmt::format("counts {} {}, more than {} bytes can hold", n, what, left()));
    if (n > most) refuse(fmt::format("counts {} {}; at most {} are allowed", n, what, most));
    return static_cast<std::size_t>(n);
  }

  ValueType value_type() {
    auto const type = number<std::uint32_t>("the type of a value");
    if (type >= value_names.size()) refuse(fmt::format("a value of unknown type {}", type));
    return ValueType{type};
  }

  Value value() {
    Value result;
    result.type = value_type();
    result.element = result.type;
    result.count = 1;
    if (result.type == ValueType::array) {
      result.element = value_type();
      result.count = array_count(result.element);
    }
    result.offset = position_;
    if (result.element == ValueType::string) {
      result.strings.reserve(result.count);
      for (std::size_t i = 0; i < result.count; ++i) result.strings.push_back(string("a string"));
    } else {
      skip_elements(result.element, result.count, 1);
    }
    return result;
  }

 private:
  [[nodiscard]] std::byte const* here() const { return file_.bytes_.get() + position_; }

  std::size_t array_count(ValueType element) {
    auto const n = number<std::uint64_t>("the length of an array");
    if (element == ValueType::array) return count(n, 4 + 8, "arrays");
    if (element == ValueType::string) return count(n, 8, "strings");
    return count(n, value_sizes[code(element)], "values", n);
  }

  void skip_elements(ValueType element, std::size_t n, int depth) {
    if (element == ValueType::array) {
      if (depth > deepest_array) refuse(fmt::format("arrays nested more than {} deep", deepest_array));
      for (std::size_t i = 0; i < n; ++i) {
        auto const inner = value_type();
        auto const inner_count = array_count(inner);
        skip_elements(inner, inner_count, depth + 1);
      }
    } else if (element == ValueType::string) {
      for (std::size_t i = 0; i < n; ++i) skip(number<std::uint64_t>("a string"), "a string");
    } else if (element == ValueType::boolean) {
      for (std::size_t i = 0; i < n; ++i) {
        if (number<std::uint8_t>("a bool") > 1) refuse("a bool that is neither 0 nor 1");
      }
    } else {
      skip(n * value_sizes[code(element)], "a value");  // cannot overflow: n was checked against the bytes left
    }
  }

  Gguf const& file_;
  std::size_t position_ = 0;
};

Gguf Gguf::open(std::string const& path) {
  Descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  if (file.number < 0) throw FileError(path, "cannot be opened: " + system_text(errno));
  struct stat status {};
  if (::fstat(file.number, &status) != 0) throw FileError(path, "cannot be examined: " + system_text(errno));
  if (S_ISDIR(status.st_mode)) throw FileError(path, "is a directory, not a file");
  if (!S_ISREG(status.st_mode)) throw FileError(path, "is not a regular file");
  if (status.st_size == 0) throw FileError(path, "is empty");
  auto const size = static_cast<std::size_t>(status.st_size);
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapped == MAP_FAILED) throw FileError(path, "cannot be mapped: " + system_text(errno));
  std::shared_ptr<std::byte const> bytes(static_cast<std::byte const*>(mapped),
                                         [mapped, size](std::byte const*) { ::munmap(mapped, size); });
  return Gguf(std::move(bytes), size, path);
}

Gguf Gguf::parse(std::vector<std::byte> bytes, std::string name) {
  if (bytes.empty()) throw FileError(name, "is empty");
  auto const owner = std::make_shared<std::vector<std::byte> const>(std::move(bytes));
  return Gguf(std::shared_ptr<std::byte const>(owner, owner->data()), owner->size(), std::move(name));
}

Gguf::Gguf(std::shared_ptr<std::byte const> bytes, std::size_t size, std::string name)
    : bytes_(std::move(bytes)), size_(size), name_(std::move(name)) {
  if (size_ < 4 || std::memcmp(bytes_.get(), "GGUF", 4) != 0) {
    throw FileError(name_, "is not a GGUF file: it does not start with \"GGUF\"", at_byte(0));
  }
  Reader reader(*this);
  reader.skip(4, "the magic");
  auto const version = reader.number<std::uint32_t>("the version");
  if (version != 2 && version != 3) {
    bool const swapped = version == 0x02000000 || version == 0x03000000;
    throw FileError(name_,
                    swapped ? "is a big-endian GGUF file; only little-endian ones are supported"
                            : fmt::format("is GGUF version {}; versions 2 and 3 are supported", version),
                    at_byte(4));
  }
  auto const tensors = reader.number<std::uint64_t>("the number of tensors");
  auto const entries = reader.number<std::uint64_t>("the number of keys");
  read_metadata(reader, entries);
  read_tensors(reader, tensors);
  place_tensors(reader.position());
}

void Gguf::read_metadata(Reader& reader, std::uint64_t count) {
  auto const entries = reader.count(count, smallest_entry, "keys");
  values_.reserve(entries);
  for (std::size_t i = 0; i < entries; ++i) {
    auto key = reader.string("a key", longest_key);
    if (key.empty()) reader.refuse("an empty key");
    auto const [entry, fresh] = values_.emplace(std::move(key), Value{});
    if (!fresh) throw FileError(name_, "the key appears twice", at_key(entry->first));
    entry->second = reader.value();
  }
}

void Gguf::read_tensors(Reader& reader, std::uint64_t count) {
  auto const tensors = reader.count(count, smallest_tensor, "tensors");
  tensors_.reserve(tensors);
  index_.reserve(tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    TensorInfo info;
    info.name = reader.string("a tensor's name", longest_tensor_name);
    if (info.name.empty()) reader.refuse("a tensor without a name");
    auto const refuse = [&](std::string const& wrong) { throw FileError(name_, wrong, at_tensor(info.name)); };
    if (!index_.emplace(info.name, i).second) refuse("the tensor appears twice");
    auto const rank = reader.number<std::uint32_t>("a tensor's rank");
    if (rank < 1 || rank > most_dimensions) {
      refuse(fmt::format("has {} dimensions; 1 to {} are allowed", rank, most_dimensions));
    }
    std::int64_t values = 1;
    for (std::uint32_t d = 0; d < rank; ++d) {
      auto const n = reader.number<std::int64_t>("a dimension");
      if (n < 1) refuse(fmt::format("dimension {} is {}; it must be at least 1", d, n));
      if (n > std::numeric_limits<std::int64_t>::max() / values) refuse("the product of its dimensions overflows");
      values *= n;
      info.shape.push_back(n);
    }
    info.type = TensorType{reader.number<std::uint32_t>("a tensor's type")};
    if (auto const block = block_values(info.type); info.shape[0] % block != 0) {
      refuse(
          fmt::format("has rows of {} values; {} needs a multiple of {}", info.shape[0], *name_of(info.type), block));
    }
    info.offset = reader.number<std::size_t>("a tensor's offset");
    info.bytes = bytes_of(info.type, values);
    tensors_.push_back(std::move(info));
  }
}

// Turns offsets in the data section into offsets in the file, and checks that every range is there for one tensor only.
void Gguf::place_tensors(std::size_t end_of_list) {
  constexpr char const* alignment_key = "general.alignment";
  auto const alignment_value = has(alignment_key) ? integer(alignment_key) : 32;  // the default of the format
  if (alignment_value < 8 || (alignment_value & (alignment_value - 1)) != 0) {
    throw FileError(name_, fmt::format("is {}; a power of two from 8 on is needed", alignment_value),
                    at_key(alignment_key));
  }
  if (tensors_.empty()) return;
  auto const alignment = static_cast<std::size_t>(alignment_value);
  auto const padding = (alignment - end_of_list % alignment) % alignment;
  if (padding > size_ - end_of_list) {
    throw FileError(name_, "truncated: ends before the tensor data", at_byte(size_));
  }
  auto const start = end_of_list + padding;
  std::vector<std::size_t> order(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    auto& info = tensors_[i];
    order[i] = i;
    if (info.offset % alignment != 0) {
      throw FileError(name_, fmt::format("its offset {} is not a multiple of {}", info.offset, alignment),
                      at_tensor(info.name));
    }
    if (info.offset > size_ - start || info.bytes > size_ - start - info.offset) {
      throw FileError(name_,
                      fmt::format("truncated: {} bytes from {} on in the data section, which has {}", info.bytes,
                                  info.offset, size_ - start),
                      at_tensor(info.name));
    }
    info.offset += start;
  }
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return std::pair(tensors_[a].offset, tensors_[a].bytes) < std::pair(tensors_[b].offset, tensors_[b].bytes);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    auto const& before = tensors_[order[i - 1]];
    auto const& after = tensors_[order[i]];
    if (before.offset + before.bytes > after.offset) {
      throw FileError(name_, fmt::format("shares bytes with tensor \"{}\"", printable(before.name)),
                      at_tensor(after.name));
    }
  }
}

std::uint64_t Gguf::checksum() const {
  rollback::Checksum checksum;
  checksum.update(bytes_.get(), size_);
  return checksum.digest();
}

bool Gguf::is_number(ValueType type) {
  return type != ValueType::boolean && type != ValueType::string && type != ValueType::array;
}

bool Gguf::is_integer(ValueType type) { return is_number(type) && type != ValueType::f32 && type != ValueType::f64; }

bool Gguf::has(std::string const& key) const { return values_.count(key) != 0; }

Gguf::Value const& Gguf::value(std::string const& key) const {
  auto const found = values_.find(key);
  if (found == values_.end()) throw FileError(name_, "the key is missing", at_key(key));
  return found->second;
}

void Gguf::refuse_type(std::string const& key, Value const& value, char const* wanted) const {
  auto const have = value.type == ValueType::array
                        ? fmt::format("an array of {} ({})", value_names[code(value.element)], value.count)
                        : std::string(value_names[code(value.type)]);
  throw FileError(name_, fmt::format("{} is needed, not {}", wanted, have), at_key(key));
}

std::int64_t Gguf::integer_at(std::string const& key, Value const& value, std::size_t index) const {
  auto const* from = bytes_.get() + value.offset + index * value_sizes[code(value.element)];
  switch (value.element) {
    case ValueType::u8:
      return load<std::uint8_t>(from);
    case ValueType::i8:
      return load<std::int8_t>(from);
    case ValueType::u16:
      return load<std::uint16_t>(from);
    case ValueType::i16:
      return load<std::int16_t>(from);
    case ValueType::u32:
      return load<std::uint32_t>(from);
    case ValueType::i32:
      return load<std::int32_t>(from);
    case ValueType::i64:
      return load<std::int64_t>(from);
    default: {  // U64: callers have made sure that it is an integer
      auto const n = load<std::uint64_t>(from);
      if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw FileError(name_, fmt::format("{} does not fit in 63 bits", n), at_key(key));
      }
      return static_cast<std::int64_t>(n);
    }
  }
}

double Gguf::real_at(std::string const& key, Value const& value, std::size_t index) const {
  auto const* from = bytes_.get() + value.offset + index * value_sizes[code(value.element)];
  switch (value.element) {
    case ValueType::f32:
      return static_cast<double>(load<float>(from));
    case ValueType::f64:
      return load<double>(from);
    default:
      return static_cast<double>(integer_at(key, value, index));
  }
}

std::int64_t Gguf::integer(std::string const& key) const {
  auto const& v = value(key);
  if (!is_integer(v.type)) refuse_type(key, v, "an integer");
  return integer_at(key, v, 0);
}

double Gguf::real(std::string const& key) const {
  auto const& v = value(key);
  if (!is_number(v.type)) refuse_type(key, v, "a number");
  return real_at(key, v, 0);
}

bool Gguf::flag(std::string const& key) const {
  auto const& v = value(key);
  if (v.type != ValueType::boolean) refuse_type(key, v, "a bool");
  return load<std::uint8_t>(bytes_.get() + v.offset) != 0;
}

std::string const& Gguf::text(std::string const& key) const {
  auto const& v = value(key);
  if (v.type != ValueType::string) refuse_type(key, v, "a string");
  return v.strings.front();
}

std::vector<std::int64_t> Gguf::integers(std::string const& key) const {
  auto const& v = value(key);
  if (v.type != ValueType::array || !is_integer(v.element)) refuse_type(key, v, "an array of integers");
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < v.count; ++i) out.push_back(integer_at(key, v, i));
  return out;
}

std::vector<double> Gguf::reals(std::string const& key) const {
  auto const& v = value(key);
  if (!is_number(v.element)) refuse_type(key, v, "a number or an array of them");
  std::vector<double> out;
  for (std::size_t i = 0; i < v.count; ++i) out.push_back(real_at(key, v, i));
  return out;
}

std::vector<std::string> const& Gguf::texts(std::string const& key) const {
  auto const& v = value(key);
  if (v.type != ValueType::array || v.element != ValueType::string) refuse_type(key, v, "an array of strings");
  return v.strings;
}

TensorInfo const* Gguf::find(std::string const& tensor) const {
  auto const found = index_.find(tensor);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

TensorInfo const& Gguf::tensor(std::string const& tensor) const {
  auto const* info = find(tensor);
  if (info == nullptr) throw FileError(name_, "the tensor is missing", at_tensor(tensor));
  return *info;
}

// Entries are public structs: one that was changed, or is of another file, must not lead outside the bytes.
std::byte const* Gguf::data_of(TensorInfo const& tensor) const {
  auto const* own = find(tensor.name);
  if (own == nullptr || own->type != tensor.type || own->shape != tensor.shape || own->offset != tensor.offset) {
    throw FileError(name_, "the tensor is not of this file", at_tensor(tensor.name));
  }
  return bytes_.get() + own->offset;
}

void Gguf::refuse_type(TensorInfo const& tensor, char const* wanted) const {
  auto const have = name_of(tensor.type).value_or(fmt::format("type {}", code(tensor.type)));
  throw FileError(name_, fmt::format("{} cannot be read here; {}", have, wanted), at_tensor(tensor.name));
}

std::vector<float> Gguf::floats(TensorInfo const& tensor) const {
  auto const* from = data_of(tensor);
  if (!is_float(tensor.type)) refuse_type(tensor, "F32, F16, BF16 and Q8_0 can");
  return to_floats(tensor.type, from, static_cast<std::size_t>(tensor.values()));
}

std::vector<std::int32_t> Gguf::integers(TensorInfo const& tensor) const {
  auto const* from = data_of(tensor);
  if (tensor.type != TensorType::i32) refuse_type(tensor, "I32 can");
  std::vector<std::int32_t> out(static_cast<std::size_t>(tensor.values()));
  std::memcpy(out.data(), from, out.size() * sizeof(std::int32_t));
  return out;
}

}  // namespace dsv4_decoder
