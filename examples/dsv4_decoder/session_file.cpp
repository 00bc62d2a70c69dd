// A session in a file: "dsv4held", the version (u32), the number of tokens (u64), the tokens (i32 each), the XXH3-64 of
// all this (u64), and the state of the tokens with all landings (docs/state-format.md).
#include "gguf.hpp"
#include "session.hpp"

#include <rollback/dsv4/state.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace dsv4_decoder {
namespace {

using rollback::LoadAs;
using rollback::Verdict;
using rollback::dsv4::MemoryLayout;
using Tokens = std::vector<std::int32_t>;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the numbers of a session's file are written as they stand");

constexpr char magic[8] = {'d', 's', 'v', '4', 'h', 'e', 'l', 'd'};
constexpr std::uint32_t version = 1;

std::string system_text() { return std::generic_category().message(errno); }

std::uint64_t checksum_of(Tokens const& tokens) {
  std::uint64_t const count = tokens.size();
  rollback::Checksum checksum;
  checksum.update(magic, sizeof magic);
  checksum.update(&version, sizeof version);
  checksum.update(&count, sizeof count);
  checksum.update(tokens.data(), tokens.size() * sizeof(std::int32_t));
  return checksum.digest();
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

/// A file that is written beside `path` and takes its place at the end; gone where it does not come to that.
class NewFile {
 public:
  explicit NewFile(std::string const& path) : path_(path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) throw FileError(path, "is not a regular file");
    std::string name = path + ".XXXXXX";
    int const descriptor = ::mkstemp(name.data());
    if (descriptor < 0) fail();
    name_ = name;
    file_.reset(::fdopen(descriptor, "wb"));
    if (file_ == nullptr) ::close(descriptor);
  }
  ~NewFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  NewFile(NewFile const&) = delete;
  NewFile& operator=(NewFile const&) = delete;

  [[nodiscard]] bool write(void const* data, std::size_t size) {
    return file_ != nullptr && std::fwrite(data, 1, size, file_.get()) == size;
  }
  /// The file takes its place once its bytes are on the disk.
  void finish() {
    bool const on_disk = std::fflush(file_.get()) == 0 && ::fsync(::fileno(file_.get())) == 0;
    if (!on_disk || std::fclose(file_.release()) != 0) fail();
    if (std::rename(name_.c_str(), path_.c_str()) != 0) fail();
    name_.clear();
  }
  [[noreturn]] void fail() const { throw FileError(path_, "cannot be written", system_text()); }

 private:
  std::string path_;
  std::string name_;  // while it has a place of its own
  File file_;
};

/// A saved session, read as far as its tokens.
class SavedFile {
 public:
  explicit SavedFile(std::string const& path) : path_(path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) throw FileError(path, "cannot be opened", system_text());
    if (!S_ISREG(info.st_mode)) throw FileError(path, "is not a regular file");
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (file_ == nullptr) throw FileError(path, "cannot be opened", system_text());
    char found[sizeof magic] = {};
    if (!read(found, sizeof found) || std::memcmp(found, magic, sizeof magic) != 0) fail("is not a saved session");
    if (auto const v = number<std::uint32_t>(); v != version) fail(fmt::format("is of version {}, not {}", v, version));
    auto const count = number<std::uint64_t>();
    if (count > static_cast<std::uint64_t>(info.st_size) / sizeof(std::int32_t))
      fail("truncated: counts more tokens than it has");
    tokens_.resize(static_cast<std::size_t>(count));
    if (!read(tokens_.data(), tokens_.size() * sizeof(std::int32_t))) fail("truncated");
    if (number<std::uint64_t>() != checksum_of(tokens_)) fail("damaged: the checksum of its tokens is another");
    state_ = std::ftell(file_.get());
  }

  [[nodiscard]] Tokens const& tokens() const { return tokens_; }
  [[nodiscard]] bool read(void* data, std::size_t size) { return std::fread(data, 1, size, file_.get()) == size; }
  [[nodiscard]] bool at_end() { return std::fgetc(file_.get()) == EOF; }
  void rewind_to_state() {
    if (std::fseek(file_.get(), state_, SEEK_SET) != 0) fail("cannot be read");
  }
  [[noreturn]] void fail(std::string const& wrong) const { throw FileError(path_, wrong); }

 private:
  template <class T>
  [[nodiscard]] T number() {
    T value{};
    if (!read(&value, sizeof value)) fail("truncated");
    return value;
  }

  std::string path_;
  File file_;
  Tokens tokens_;
  long state_ = 0;  // its first byte
};

/// Reads a state and puts its rows nowhere.
struct Rehearsal {
  SavedFile& file;
  [[nodiscard]] bool bytes(void* data, std::size_t size) { return file.read(data, size); }
  [[nodiscard]] bool rows(rollback::StateRows const& rows, rollback::Checksum& checksum) {
    char part[4096];
    for (std::uint64_t left = static_cast<std::uint64_t>(rows.count) * rows.row_bytes; left > 0;) {
      std::size_t const size = static_cast<std::size_t>(std::min<std::uint64_t>(left, sizeof part));
      if (!file.read(part, size)) return false;
      checksum.update(part, size);
      left -= size;
    }
    return true;
  }
};

}  // namespace

void Session::save(std::string const& path) const {
  NewFile file(path);
  std::uint64_t const count = held_.size();
  std::uint64_t const sum = checksum_of(held_);
  auto const write = [&file](void const* data, std::size_t size) { return file.write(data, size); };
  Verdict verdict = Verdict::io_failed;
  if (write(magic, sizeof magic) && write(&version, sizeof version) && write(&count, sizeof count) &&
      write(held_.data(), held_.size() * sizeof(std::int32_t)) && write(&sum, sizeof sum)) {
    MemoryLayout const layout(memory_, model_->file_checksum());
    verdict = rollback::dsv4::save(memory_, slot_, books().tip(slot_), layout, {}, write);
  }
  if (verdict == Verdict::io_failed) file.fail();
  if (verdict != Verdict::accepted) throw SessionError(fmt::format("saving failed: {}", text(verdict)));
  file.finish();
}

void Session::load(std::string const& path) {
  SavedFile file(path);
  Tokens tokens = file.tokens();
  MemoryLayout const layout(memory_, model_->file_checksum());
  auto const require = [&file](Verdict verdict) {
    if (verdict == Verdict::io_failed) file.fail("truncated, or cannot be read");
    if (verdict != Verdict::accepted) file.fail(text(verdict));
  };
  {
    rollback::Books books = memory_.books();  // the state goes to a copy first: whatever is wrong with it shows there
    rollback::Slot slot = slot_;
    require(rollback::load(books, slot, layout.state_layout(), LoadAs::state, Rehearsal{file}));
    if (books.tip(slot) != static_cast<rollback::Position>(tokens.size())) file.fail("its state is of other tokens");
    if (!file.at_end()) file.fail("goes on after its state");
  }
  file.rewind_to_state();
  held_.clear();  // should the file fail from here on, nothing is held
  auto const read = [&file](void* data, std::size_t size) { return file.read(data, size); };
  require(rollback::dsv4::load(memory_, slot_, layout, LoadAs::state, read));
  held_ = std::move(tokens);
}

std::int64_t Session::saved_tokens(std::string const& path) {
  return static_cast<std::int64_t>(SavedFile(path).tokens().size());
}

}  // namespace dsv4_decoder
