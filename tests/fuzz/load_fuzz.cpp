// libFuzzer target: whatever bytes are loaded, nothing crashes, nothing is written outside the engine's rows, and a
// refusal leaves the slot as it was or empty. `scripts/test fuzz` builds and runs it.
#include <rollback/state_io.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace rollback;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// The input, and after its end nothing; or zeros without end, so that long sections are read too.
struct Source {
  std::uint8_t const* data;
  std::size_t size;
  std::uint64_t zeros;
  Books const& books;

  bool bytes(void* to, std::size_t n) {
    std::size_t const given = std::min(n, size);
    if (given > 0) std::memcpy(to, data, given);
    data += given;
    size -= given;
    if (n - given > zeros) return false;
    zeros -= n - given;
    std::memset(static_cast<unsigned char*>(to) + given, 0, n - given);
    return true;
  }
  bool rows(StateRows const& rows, Checksum& checksum) {
    require(rows.count > 0 && rows.copies >= 1 && rows.copies <= 4);
    for (std::int32_t i = 0; i < rows.copies; ++i) {
      require(rows.first[i] >= 0);
      if (rows.store == StateRows::Store::state) {
        Places const places = books.places(rows.index);
        std::int64_t const all =
            std::int64_t{books.slots()} * places.total() * books.component(rows.index).geometry.rows;
        require(rows.first[i] + rows.count <= all);
      } else if (rows.store == StateRows::Store::window) {
        require(rows.first[i] + rows.count <= books.slots() * books.window(rows.index).rows);
      } else if (rows.first[i] + rows.count > 4096) {
        return false;  // an engine's cache has an end
      }
    }
    std::vector<unsigned char> row(rows.row_bytes);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      if (!bytes(row.data(), row.size())) return false;
      checksum.update(row.data(), row.size());
    }
    return true;
  }
};

Books make_books(unsigned kind) {
  BooksOptions o;
  o.slots = 2;
  o.max_rows = 8;
  o.max_chunks = 8;
  o.pins = kind % 3;
  o.max_context = kind % 2 == 0 ? 4000 : 0;
  Component fold;
  fold.per_token = 2;
  fold.quantum = 8;
  fold.aligned = 3;
  Component ring = fold;
  ring.geometry = {8, 4, true};
  ring.states_inside_chunk = true;
  Component empty = ring;
  empty.geometry = {16, 16, false};
  empty.empty_at = 16;
  o.components = {fold, ring, empty};
  o.windows = {{"raw", 5, 40}};
  return Books(o);
}

/// A header that agrees with the books, its numbers taken from the input; its checksum is right, so that what comes
/// after it is looked at.
std::vector<std::uint8_t> composed(Books const& books, StateLayout const& layout, std::uint8_t const*& data,
                                   std::size_t& size) {
  std::vector<std::uint8_t> blob;
  auto const put = [&blob](void const* bytes, std::size_t n) {
    auto const* const first = static_cast<std::uint8_t const*>(bytes);
    blob.insert(blob.end(), first, first + n);
  };
  auto const take = [&data, &size](std::size_t n) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < n && size > 0; ++i, ++data, --size) number |= std::uint64_t{*data} << (8 * i);
    return number;
  };
  detail::LittleEndian<decltype(put)> out{put};
  put(detail::state_magic, sizeof detail::state_magic);
  out.u32(detail::state_version);
  std::uint64_t const mode = take(1);
  out.u32(static_cast<std::uint32_t>(mode & 1));
  detail::write_geometry(books, layout, put);
  std::size_t const total_at = blob.size();
  out.u64(0);
  auto const p = static_cast<Position>(take((mode & 2) != 0 ? 8 : 2));
  out.i64(p);
  std::uint64_t const count = take(1) % 8;
  std::vector<Position> landings;
  Position lowest = p;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t const below = take((mode & 4) != 0 ? 8 : 1);
    lowest = static_cast<Position>(static_cast<std::uint64_t>(lowest) - below);
    landings.push_back(lowest);
  }
  Position const oldest = (mode & 8) != 0 ? static_cast<Position>(take(8)) : std::max(lowest, Position{4}) - 4;
  out.i64(oldest);
  out.u64((mode & 16) != 0 ? take(8) : count);
  for (Position landing : landings) {
    out.i64(landing);
    out.u32(static_cast<std::uint32_t>(take(1) & 1));
  }
  std::uint64_t total = blob.size() + 8;
  auto const add = [&](detail::StateSection const& section) {
    total += static_cast<std::uint64_t>(section.count) * section.row_bytes + ((mode & 1) != 0 ? 8 : 0);
    return Verdict::accepted;
  };
  Position oldest_of[max_windows] = {oldest};
  if (p >= 0 && p < (Position{1} << 40) && oldest >= 0 && oldest <= p) {
    static_cast<void>(detail::for_each_state(books, layout, p, add));
    static_cast<void>(detail::for_each_history(books, layout, p, oldest_of, add));
    for (Position landing : landings) {
      if (landing > 0 && landing < p) static_cast<void>(detail::for_each_state(books, layout, landing, add));
    }
  }
  for (std::size_t i = 0; i < 8; ++i) blob[total_at + i] = static_cast<std::uint8_t>(total >> (8 * i));
  Checksum checksum;
  checksum.reset(0);
  checksum.update(blob.data(), blob.size());
  out.u64(checksum.digest());
  return blob;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size < 2) return 0;
  unsigned const kind = data[0];
  bool const raw = data[1] % 8 == 0;
  data += 2;
  size -= 2;
  Books books = make_books(kind);
  static constexpr std::uint64_t row_bytes[] = {4, 12};
  StateLayout layout;
  for (std::int32_t c = 0; c < books.components(); ++c) {
    layout.states[c] = {2, row_bytes};
    if (books.component(c).geometry.block > 0) layout.caches[c] = {1, row_bytes};
    layout.maps[c] = RowMap::packed(books.component(c).geometry, books.places(c), books.slots(), 1000);
  }
  layout.windows[0] = {2, row_bytes};
  std::vector<std::uint8_t> blob;
  if (!raw) blob = composed(books, layout, data, size);
  blob.insert(blob.end(), data, data + size);

  LoadAs const as = kind % 5 < 3 ? LoadAs::state : LoadAs::landing;
  std::uint64_t const zeros = kind % 7 == 0 ? 0 : 100000;
  Source checked{blob.data(), blob.size(), zeros, books};
  Verdict const would = check(books, layout, as, checked);
  Slot slot = books.slot(0);
  Slot const before = slot;
  Source source{blob.data(), blob.size(), zeros, books};
  Verdict const verdict = load(books, slot, layout, as, source);
  require(books.slot(0) == slot);
  if (would != Verdict::accepted) require(verdict == would || verdict == Verdict::io_failed);
  if (verdict != Verdict::accepted) {
    require(books.tip(slot) == 0 && books.landings(slot, nullptr, 0) == 0);
    return 0;
  }
  require(slot != before);
  require(would == Verdict::accepted);
  Position const p = books.tip(slot);
  require(books.can_land(slot, p) == Verdict::accepted);
  for (Position q = p; q > 0; q = books.landing_before(slot, q)) {
    StatePlaces places;
    for (std::int32_t c = 0; c < books.components(); ++c) {
      require(books.state_at(slot, q, c, layout.maps[c], places) == Verdict::accepted);
    }
  }
  return 0;
}
