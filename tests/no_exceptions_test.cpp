// Built without exceptions and run-time types: a ring works, and an impossible set-up prints its reason and aborts.
#include <rollback/dsv4/memory.hpp>
#include <rollback/rollback.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

using rollback::Verdict;

namespace {

// The state is the number of tokens fed.
bool rolls_back() {
  std::int64_t counts[16];
  rollback::PlaneTensor const tensor{reinterpret_cast<std::byte*>(counts), sizeof counts[0]};
  rollback::RingOptions options;
  options.max_rows = 32;
  rollback::RollbackRing<rollback::WholePlane, 4, 3> ring(rollback::WholePlane(&tensor, 1, 16), options);
  rollback::Slot const slot = ring.slot(0);
  auto const step = [&](std::int32_t state, rollback::Position begin, rollback::Position end) {
    counts[state] += end - begin;
    return true;
  };
  return ring.feed(slot, 11, step) == Verdict::accepted && ring.roll_back(slot, 8) == Verdict::accepted &&
         ring.feed(slot, 1, step) == Verdict::accepted && counts[ring.live(slot)] == 9;
}

bool budgets() {
  rollback::dsv4::MemoryOptions options;
  options.max_context = 4096;
  return rollback::dsv4::Memory::budget(rollback::dsv4::Flash::shape(), options).total() > 0;
}

}  // namespace

int main(int arguments, char**) {
  if (!rolls_back() || !budgets()) return 1;
  if (arguments > 1) {
    rollback::RingOptions impossible;
    impossible.slots = 0;
    std::printf("went on with %lld states\n",
                static_cast<long long>(rollback::RollbackRing<rollback::WholePlane, 4, 3>::states(impossible)));
  }
  return 0;
}
