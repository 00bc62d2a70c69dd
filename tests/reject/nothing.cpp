// Compiles: a plane and a ring with nothing wrong, the control of the sources beside this one.
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
  rollback::RollbackRing<Plane, 4, 2> ring(Plane{}, rollback::RingOptions{});
  return static_cast<int>(ring.tip(ring.slot(0)));
}
