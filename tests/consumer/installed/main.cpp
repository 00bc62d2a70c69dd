// An engine's first lines with the installed package: a budget from the headers, a restore from the kernels,
// a check of the suite.
#include <rollback/dsv4/memory.hpp>
#include <rollback/dsv4/restore.hpp>
#include <rollback/kernels/launch_host.hpp>
#include <rollback/rollback.hpp>
#include <rollback/testing/conformance.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

int main() {
  rollback::dsv4::MemoryOptions options;
  options.max_context = 1024;
  auto const budget = rollback::dsv4::Memory::budget(rollback::dsv4::Flash::shape(), options);
  if (budget.total() == 0) return 1;

  float rows[4][4] = {{1, 2, 3, 4}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  rollback::PlaneTensor const tensor{reinterpret_cast<std::byte*>(rows), sizeof rows[0]};
  std::int32_t const source = 0;
  std::int32_t const destination = 2;
  rollback::kernels::RestoreParams p;
  p.tensors = &tensor;
  p.source = &source;
  p.destination = &destination;
  p.rows_per_plane = 1;
  p.n = 1;
  p.tensor_count = 1;
  rollback::kernels::HostLoop{}.launch(1, rollback::kernels::Restore{}, p);
  if (rows[2][3] != 4.0f) return 1;
  // The conformance suite: a memory that lacks its functions is told so.
  rollback::testing::Options only_one;
  only_one.only = {"BR-01"};
  if (rollback::testing::run([] { return rollback::testing::Memory(); }, only_one).ok()) return 1;
  std::printf("rollback %d.%d installed\n", ROLLBACK_VERSION_MAJOR, ROLLBACK_VERSION_MINOR);
  return 0;
}
