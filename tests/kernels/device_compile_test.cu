// Compiles every kernel for a device, over the smallest team that a thread block can be: proof that the one source is
// enough. Nothing here is run.
#include <rollback/kernels/compress.hpp>
#include <rollback/kernels/gather.hpp>
#include <rollback/kernels/persist.hpp>
#include <rollback/kernels/project.hpp>
#include <rollback/kernels/restore.hpp>

#include <cstdint>

namespace {

namespace kernels = rollback::kernels;

// A thread block, as plain as can be: the sum goes through one thread.
struct BlockTeam {
  std::int64_t index;
  float* shared;

  static constexpr int lanes = 1;

  template <class Body>
  __device__ void for_each(std::int64_t n, Body const& body) const {
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) body(i);
    barrier();
  }

  template <class Term>
  __device__ float sum(std::int64_t n, Term const& term) const {
    if (threadIdx.x == 0) {
      float total = 0;
      for (std::int64_t i = 0; i < n; ++i) total += term(i);
      *shared = total;
    }
    barrier();
    float const total = *shared;
    barrier();
    return total;
  }

  __device__ void barrier() const { __syncthreads(); }
};

template <class Kernel, class Params>
__global__ void run(Kernel kernel, Params params) {
  __shared__ float shared;
  kernel(BlockTeam{static_cast<std::int64_t>(blockIdx.x), &shared}, params);
}

// What an engine calls by itself, on rows that no kernel of ours makes: queries, raw rows, attention outputs.
struct OneRowParams {
  float* row;  // [width]
  std::int64_t width;
  kernels::Rope rope;
  rollback::Position position;
};
struct OneRow {
  template <class Team>
  ROLLBACK_HD void operator()(Team const& team, OneRowParams const& p) const {
    if (threadIdx.x == 0) p.rope.rotate(p.row, p.width, p.position, true);
    team.barrier();
    kernels::hadamard(team, p.row, p.width);
    kernels::round_fp8_64(team, p.row, p.width);
    kernels::round_fp4_32(team, p.row, p.width);
  }
};

template __global__ void run(kernels::Project, kernels::ProjectParams);
template __global__ void run(kernels::Compress, kernels::CompressParams);
template __global__ void run(kernels::Persist, kernels::PersistParams);
template __global__ void run(kernels::Gather, kernels::GatherParams);
template __global__ void run(kernels::Restore, kernels::RestoreParams);
template __global__ void run(OneRow, OneRowParams);

}  // namespace
