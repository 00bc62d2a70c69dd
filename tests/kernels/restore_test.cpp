#include "catch.hpp"

#include <rollback/kernels/launch_host.hpp>
#include <rollback/kernels/restore.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using rollback::PlaneTensor;
using rollback::kernels::HostLoop;
using rollback::kernels::Restore;
using rollback::kernels::RestoreParams;

namespace {

constexpr std::byte stale{0x3e};
constexpr std::int64_t tensor_rows = 12;  // six states of two rows

// A tensor whose rows have contents of their own, between two guards; `offset` bytes from an aligned address.
struct Tensor {
  std::int64_t row_bytes;
  std::int64_t offset;
  std::vector<std::max_align_t> memory;  // aligned to 16

  Tensor(std::int64_t bytes, std::int64_t shift, int seed)
      : row_bytes(bytes),
        offset(64 + shift),
        memory(static_cast<std::size_t>(tensor_rows * bytes + 128 + shift) / sizeof(std::max_align_t) + 1) {
    std::fill_n(reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(std::max_align_t), stale);
    for (std::int64_t i = 0; i < tensor_rows * row_bytes; ++i) base()[i] = static_cast<std::byte>((i * 7 + seed) % 251);
  }

  std::byte* base() { return reinterpret_cast<std::byte*>(memory.data()) + offset; }

  std::vector<std::byte> rows(std::int64_t first, std::int64_t count) {
    return {base() + first * row_bytes, base() + (first + count) * row_bytes};
  }

  bool guarded() {
    return std::all_of(base() - 64, base(), [](std::byte b) { return b == stale; }) &&
           std::all_of(base() + tensor_rows * row_bytes, base() + tensor_rows * row_bytes + 64,
                       [](std::byte b) { return b == stale; });
  }
};

}  // namespace

TEST_CASE("listed states are restored or reset in every tensor and no other row changes", "[kernels]") {
  // Rows of whole vectors, of bytes, of floats that fill no vector, and whole vectors at an address that is none's.
  std::vector<Tensor> tensors;
  tensors.emplace_back(64, 0, 1);
  tensors.emplace_back(7, 0, 2);
  tensors.emplace_back(132, 0, 3);
  tensors.emplace_back(32, 4, 4);
  auto before = tensors;
  std::vector<PlaneTensor> planes;
  for (Tensor& tensor : tensors) planes.push_back({tensor.base(), tensor.row_bytes});

  std::vector<std::int32_t> const source = {6, -1, 8, 10};
  std::vector<std::int32_t> const destination = {0, 2, -1, 4};
  HostLoop{}.launch(4 * 4, Restore{}, RestoreParams{planes.data(), source.data(), destination.data(), 2, 4, 4});

  for (std::size_t t = 0; t < tensors.size(); ++t) {
    INFO("tensor " << t);
    CHECK(tensors[t].rows(0, 2) == before[t].rows(6, 2));
    CHECK(tensors[t].rows(2, 2) == std::vector<std::byte>(static_cast<std::size_t>(2 * tensors[t].row_bytes)));
    CHECK(tensors[t].rows(4, 2) == before[t].rows(10, 2));
    CHECK(tensors[t].rows(6, 6) == before[t].rows(6, 6));
    CHECK(tensors[t].guarded());
  }
}

TEST_CASE("the smallest tensor and more teams than entries are no trouble", "[kernels]") {
  Tensor tensor(1, 0, 5);
  auto before = tensor;
  PlaneTensor const plane = {tensor.base(), 1};
  std::vector<std::int32_t> const source = {3, 4};
  std::vector<std::int32_t> const destination = {1, 2};
  HostLoop{}.launch(2, Restore{}, RestoreParams{&plane, source.data(), destination.data(), 1, 1, 1});
  CHECK(tensor.rows(1, 1) == before.rows(3, 1));
  CHECK(tensor.rows(2, 10) == before.rows(2, 10));
  CHECK(tensor.rows(0, 1) == before.rows(0, 1));
}
