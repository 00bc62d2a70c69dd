// Must not compile: a plane without `state_bytes`.
#include <rollback/ring.hpp>

#include <cstddef>
#include <cstdint>

struct Plane {
  void copy(std::int32_t, std::int32_t) noexcept {}
  void clear(std::int32_t) noexcept {}
  std::int64_t states() const { return 64; }
};

int main() {
  rollback::RollbackRing<Plane, 4, 2> ring(Plane{}, rollback::RingOptions{});
  return static_cast<int>(ring.tip(ring.slot(0)));
}
