// Must not compile: states kept every 0 tokens.
#include <rollback/ring.hpp>

#include <cstddef>
#include <cstdint>

struct Plane {
  void copy(std::int32_t, std::int32_t) noexcept {}
  void clear(std::int32_t) noexcept {}
  std::int64_t states() const { return 64; }
  std::size_t state_bytes() const { return 8; }
};

int main() {
  rollback::RollbackRing<Plane, 0, 2> ring(Plane{}, rollback::RingOptions{});
  return static_cast<int>(ring.tip(ring.slot(0)));
}
