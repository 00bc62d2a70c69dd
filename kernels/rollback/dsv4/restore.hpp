// Carries out a chunk's restores: one launch a compressor over all its layers, before anything else of the chunk.
#pragma once

#include <rollback/dsv4/memory.hpp>
#include <rollback/kernels/restore.hpp>

#include <cstdint>

namespace rollback {
inline namespace v0_1 {
namespace dsv4 {

/// Copies the kept states that the chunk's plan lists back over the live ones, and empties those of new sequences.
///
/// Must run before the first `compress_layer` of the chunk, once. Sequences that the plan does not list are not
/// touched.
/// @par Cost  a launch a compressor, none where nothing is listed
template <class Launcher>
void restore(Launcher const& launcher, Memory& memory, Chunk const& chunk) {
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    Lists const& lists = chunk.lists[static_cast<int>(compressor)];
    if (lists.restores == 0) continue;
    std::vector<PlaneTensor> const& tensors = memory.state_tensors(compressor);
    kernels::RestoreParams p;
    p.tensors = tensors.data();
    p.source = lists.restore_source;
    p.destination = lists.restore_destination;
    p.rows_per_plane = Memory::geometry(compressor).rows;
    p.n = lists.restores;
    p.tensor_count = static_cast<std::int64_t>(tensors.size());
    launcher.launch(p.n * p.tensor_count, kernels::Restore{}, p);
  }
}

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback
