// The bodies of `dsv4::Memory`: its tensors, its budget, and how a chunk is planned.
#pragma once

#include <rollback/dsv4/memory.hpp>

#include <algorithm>

namespace rollback {
inline namespace v0_1 {
namespace dsv4 {

// Rows of a slot that may be rejected: without a compressor nothing limits them.
inline Position Memory::rejectable_rows(ModelShape const& shape, MemoryOptions const& o) noexcept {
  return shape.layers_of(0) < shape.layers() ? o.per_token : o.max_rows;
}

inline Position Memory::rows_in_reach(ModelShape const& shape, MemoryOptions const& o) noexcept {
  // The oldest boundary kept lies less than aligned * quantum below the tip, and rejected rows were written above the
  // tip: no more of them with several batches in flight, since what follows unverified rows is as deep as the tier at
  // most. Below the position where the next batch starts the rows must outlast all batches that may then be open, or
  // the failure of the oldest would cost the sequence.
  Position const in_flight = Position{o.steps_in_flight} * o.max_rows;
  return shape.window - 1 + std::max(o.aligned * o.quantum, in_flight) + rejectable_rows(shape, o);
}

inline Position Memory::raw_rows(ModelShape const& shape, MemoryOptions const& options) {
  MemoryOptions o = options;
  o.raw_rows = 0;
  return resolved(shape, o).raw_rows;
}

inline MemoryOptions Memory::resolved(ModelShape const& shape, MemoryOptions o) {
  using detail::refuse_setup;
  if (shape.ratios.empty()) refuse_setup("dsv4::Memory: ratios has one entry a layer; there must be at least one");
  for (int ratio : shape.ratios) {
    if (ratio != 0 && ratio != csa_ratio && ratio != hca_ratio) {
      refuse_setup("dsv4::Memory: a layer's ratio must be 0, 4 or 128");
    }
  }
  if (shape.head_width < 4 || shape.head_width % 4 != 0 || shape.head_width > 65536) {
    refuse_setup("dsv4::Memory: head_width must be a multiple of 4 in [4, 65536]");
  }
  if (shape.indexer_width < 4 || shape.indexer_width % 4 != 0 || shape.indexer_width > 65536) {
    refuse_setup("dsv4::Memory: indexer_width must be a multiple of 4 in [4, 65536]");
  }
  if (shape.window < 1 || shape.window > 65536) refuse_setup("dsv4::Memory: window must be in [1, 65536]");
  if (o.slots < 1 || o.slots > 65536) refuse_setup("dsv4::Memory: slots must be in [1, 65536]");
  if (o.max_context < 1 || o.max_context > (Position{1} << 40)) {
    refuse_setup("dsv4::Memory: max_context is the positions of a slot; it must be in [1, 2^40]");
  }
  if (o.per_token < 0 || o.per_token > (1 << 20)) refuse_setup("dsv4::Memory: per_token must be in [0, 2^20]");
  if (o.aligned < 0 || o.aligned > (1 << 20)) refuse_setup("dsv4::Memory: aligned must be in [0, 2^20]");
  if (o.quantum < 2 || o.quantum > (Position{1} << 30)) refuse_setup("dsv4::Memory: quantum must be in [2, 2^30]");
  if (o.max_rows < 1 || o.max_rows > (1 << 24)) refuse_setup("dsv4::Memory: max_rows must be in [1, 2^24]");
  if (o.max_chunk_rows < 0 || o.max_chunk_rows > o.max_rows) {
    refuse_setup("dsv4::Memory: max_chunk_rows must be in [1, max_rows], or 0 for max_rows");
  }
  if (o.max_chunks < 0) refuse_setup("dsv4::Memory: max_chunks must be at least 1, or 0 for max_rows");
  if (o.steps_in_flight < 1 || o.steps_in_flight > 64) {
    refuse_setup("dsv4::Memory: steps_in_flight is the batches that may be open at once; it must be in [1, 64]");
  }
  if (o.pins < 0 || o.pins > 4096) refuse_setup("dsv4::Memory: pins is the pins of a slot; it must be in [0, 4096]");
  if (o.raw_rows < 0) refuse_setup("dsv4::Memory: raw_rows must be at least 1, or 0 for what the reach needs");
  if (o.max_chunk_rows == 0) o.max_chunk_rows = o.max_rows;
  if (o.max_chunks == 0) o.max_chunks = o.max_rows;
  if (o.raw_rows == 0) o.raw_rows = rows_in_reach(shape, o);
  // Unverified rows may be spread over all open batches.
  Position const unverified = std::min(rejectable_rows(shape, o), Position{o.steps_in_flight} * o.max_rows);
  if (o.raw_rows < Position{shape.window} - 1 + o.max_chunk_rows + unverified) {
    refuse_setup(
        "dsv4::Memory: raw_rows must be at least window - 1 + max_chunk_rows + per_token (without a layer that "
        "compresses: + max_rows), or 0");
  }
  return o;
}

inline Component Memory::component_of(Compressor compressor, MemoryOptions const& o) noexcept {
  Component c;
  c.name = compressor == Compressor::csa ? "CSA" : compressor == Compressor::hca ? "HCA" : "LID";
  c.geometry = geometry(compressor);
  c.per_token = o.per_token;
  c.quantum = o.aligned > 0 ? o.quantum : 0;
  c.aligned = o.aligned;
  c.states_inside_chunk = true;
  if (compressor == Compressor::hca) {
    c.empty_at = hca_ratio;
    if (o.quantum % hca_ratio == 0) {  // every boundary is empty: no place is needed
      c.aligned = 0;
      c.quantum = 0;
    }
  }
  return c;
}

inline Places Memory::places_of(Compressor compressor, MemoryOptions const& o) noexcept {
  return places(component_of(compressor, o), o.entry_copy, o.steps_in_flight, o.pins);
}

inline BooksOptions Memory::books_options(ModelShape const& shape, MemoryOptions const& o) {
  BooksOptions books;
  books.slots = o.slots;
  books.max_rows = o.max_rows;
  books.max_chunks = o.max_chunks;
  books.max_chunk_rows = o.max_chunk_rows;
  books.max_context = o.max_context;
  books.entry_copy = o.entry_copy;
  books.steps_in_flight = o.steps_in_flight;
  books.pins = o.pins;
  if (shape.layers_of(csa_ratio) > 0) books.components.push_back(component_of(Compressor::csa, o));
  if (shape.layers_of(hca_ratio) > 0) books.components.push_back(component_of(Compressor::hca, o));
  if (shape.layers_of(csa_ratio) > 0) books.components.push_back(component_of(Compressor::lid, o));
  books.windows.push_back({"window", shape.window, o.raw_rows});
  return books;
}

inline std::vector<Tensor> Memory::tensors(ModelShape const& shape, MemoryOptions const& options) {
  MemoryOptions const o = resolved(shape, options);
  std::vector<Tensor> list;
  std::size_t total = 0;
  auto const add = [&](Path path, int layer, bool scores, std::int64_t rows, std::int64_t width) {
    auto const row_bytes = static_cast<std::size_t>(width) * sizeof(float);
    auto const count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(o.slots);
    if (static_cast<std::size_t>(rows) > SIZE_MAX / static_cast<std::size_t>(o.slots) || count > SIZE_MAX / row_bytes) {
      detail::refuse_setup("dsv4::Memory: a tensor is larger than memory can be");
    }
    if (total > SIZE_MAX - count * row_bytes) {
      detail::refuse_setup("dsv4::Memory: the tensors together are larger than memory can be");
    }
    total += count * row_bytes;
    list.push_back({path, layer, scores, rows, width, count * row_bytes});
  };
  auto const add_compressor = [&](Compressor compressor, Path cache, Path state, int layer, int ratio, int pooled) {
    add(cache, layer, false, (o.max_context + ratio - 1) / ratio, pooled);
    std::int64_t const states = places_of(compressor, o).total();
    std::int64_t const rows = states * geometry(compressor).rows;
    if (rows * o.slots > max_state_rows - o.max_chunk_rows) {
      detail::refuse_setup(
          "dsv4::Memory: slots * places * rows of a state, and max_chunk_rows, must be at most 2^30 together: rows are "
          "32-bit indices");
    }
    for (bool scores : {false, true}) add(state, layer, scores, rows, width(shape, compressor));
  };
  for (int layer = 0; layer < shape.layers(); ++layer) {
    int const ratio = shape.ratios[static_cast<std::size_t>(layer)];
    add(Path::window, layer, false, o.raw_rows, shape.head_width);
    if (ratio == csa_ratio) {
      add_compressor(Compressor::csa, Path::csa_cache, Path::csa_state, layer, ratio, shape.head_width);
      add_compressor(Compressor::lid, Path::lid_cache, Path::lid_state, layer, ratio, shape.indexer_width);
    } else if (ratio == hca_ratio) {
      add_compressor(Compressor::hca, Path::hca_cache, Path::hca_state, layer, ratio, shape.head_width);
    }
  }
  return list;
}

inline MemoryBudget Memory::budget(ModelShape const& shape, MemoryOptions const& options) {
  MemoryOptions const o = resolved(shape, options);
  MemoryBudget budget;
  for (int p = 0; p < paths; ++p) budget.paths[p].path = static_cast<Path>(p);
  auto const slots = static_cast<std::size_t>(o.slots);
  std::vector<std::size_t> sizes;
  for (Tensor const& t : tensors(shape, o)) {
    sizes.push_back(t.bytes);
    PathBytes& path = budget.paths[static_cast<int>(t.path)];
    if (!t.scores) ++path.layers;
    if (t.path < Path::csa_state) {
      path.plane += t.bytes / slots;
      path.live += t.bytes;
      continue;
    }
    auto const compressor = static_cast<Compressor>(static_cast<int>(t.path) - static_cast<int>(Path::csa_state));
    Places const p = places_of(compressor, o);
    std::size_t const plane = t.bytes / slots / static_cast<std::size_t>(p.total());
    auto const of = [&](std::int32_t count) { return plane * slots * static_cast<std::size_t>(count); };
    path.plane += plane;
    path.live += of(1);
    path.per_token += of(p.per_token);
    path.aligned += of(p.aligned);
    path.spares += of(p.per_token_spares + p.aligned_spares);
    path.entry_copy += of(p.live - 1);
    path.pins += of(p.pins);
  }
  BooksOptions const books_of = books_options(shape, o);
  auto const layers = static_cast<std::size_t>(shape.layers());
  auto const compressed = static_cast<std::size_t>(2 * shape.layers_of(csa_ratio) + shape.layers_of(hca_ratio));
  budget.books = Books::bytes(books_of) - sizeof(Books) + sizeof(Memory) +
                 OwnedTensors::bookkeeping_bytes(sizes.size()) + OwnedTensors::bytes(sizes) - budget.tensors() +
                 layers * (sizeof(int) + sizeof(float*) + 2 * sizeof(LayerView)) + 2 * compressed * sizeof(PlaneTensor);
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    if (shape.layers_of(compressor == Compressor::hca ? hca_ratio : csa_ratio) == 0) continue;
    // The lists are sized by the books, whose answer depends on depths and sizes alone: one slot's books give it.
    BooksOptions one = books_of;
    one.slots = 1;
    one.steps_in_flight = 1;
    one.max_rows = o.max_chunk_rows;
    one.max_chunks = 1;
    one.components = {component_of(compressor, o)};
    one.windows.clear();
    Books const books(one);
    Lengths const n = books.lengths(0, books.worst_shape(o.max_chunk_rows, std::min(o.slots, o.max_chunk_rows)));
    budget.scratch += static_cast<std::size_t>(o.steps_in_flight) *
                      (static_cast<std::size_t>(list_rows(n)) * sizeof(std::int32_t) +
                       static_cast<std::size_t>(list_positions(n)) * sizeof(std::int64_t));
    budget.scratch += 2 * static_cast<std::size_t>(o.max_chunk_rows) *
                      static_cast<std::size_t>(width(shape, compressor)) * sizeof(float);
  }
  return budget;
}

inline Memory::Memory(ModelShape const& shape, MemoryOptions const& options)
    : shape_(shape), options_(resolved(shape, options)), books_(books_options(shape_, options_)) {
  std::vector<std::size_t> sizes;
  for (Tensor const& t : tensors(shape_, options_)) sizes.push_back(t.bytes);
  owned_ = std::make_unique<OwnedTensors>(sizes);
  std::vector<float*> data;
  for (std::size_t i = 0; i < owned_->count(); ++i) data.push_back(reinterpret_cast<float*>(owned_->data(i)));
  attach(data);
}

inline Memory::Memory(ModelShape const& shape, MemoryOptions const& options, std::vector<float*> const& data)
    : shape_(shape), options_(resolved(shape, options)), books_(books_options(shape_, options_)) {
  attach(data);
}

inline void Memory::attach(std::vector<float*> const& data) {
  std::vector<Tensor> const list = tensors(shape_, options_);
  if (data.size() != list.size()) detail::refuse_setup("dsv4::Memory: data must have one pointer a tensor");
  for (float const* pointer : data) {
    if (pointer == nullptr || reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) {
      detail::refuse_setup("dsv4::Memory: a tensor's pointer must not be null and must be 16-byte aligned");
    }
  }
  auto const layers = static_cast<std::size_t>(shape_.layers());
  raw_.resize(layers);
  layers_.resize(layers);
  indexer_layers_.resize(layers);
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    int const ratio = compressor == Compressor::hca ? hca_ratio : csa_ratio;
    state_tensors_[static_cast<int>(compressor)].reserve(2 * static_cast<std::size_t>(shape_.layers_of(ratio)));
  }
  std::int64_t cache_rows[compressors] = {};
  for (std::size_t i = 0; i < list.size(); ++i) {
    Tensor const& t = list[i];
    auto const layer = static_cast<std::size_t>(t.layer);
    bool const indexer = t.path == Path::lid_cache || t.path == Path::lid_state;
    LayerView& view = indexer ? indexer_layers_[layer] : layers_[layer];
    if (t.path == Path::window) {
      raw_[layer] = data[i];
    } else if (t.path < Path::csa_state) {
      view.cache = data[i];
      view.cache_rows = t.rows;
      cache_rows[static_cast<int>(t.path) - static_cast<int>(Path::csa_cache)] = t.rows;
    } else {
      (t.scores ? view.score : view.kv) = data[i];
      view.state_rows = t.rows * options_.slots;
      state_tensors_[static_cast<int>(t.path) - static_cast<int>(Path::csa_state)].push_back(
          {reinterpret_cast<std::byte*>(data[i]), t.width * static_cast<std::int64_t>(sizeof(float))});
    }
  }

  std::int32_t next = 0;
  for (Compressor compressor : {Compressor::csa, Compressor::hca, Compressor::lid}) {
    auto const c = static_cast<int>(compressor);
    if (state_tensors_[c].empty()) continue;
    component_of_[c] = next++;
    fresh_[c].resize(2 * static_cast<std::size_t>(options_.max_chunk_rows) *
                     static_cast<std::size_t>(width(compressor)));
    row_maps_[c] = RowMap::packed(geometry(compressor), books_.places(component_of_[c]), options_.slots, cache_rows[c]);
    Lengths const n =
        books_.lengths(component_of_[c],
                       books_.worst_shape(options_.max_chunk_rows, std::min(options_.slots, options_.max_chunk_rows)));
    auto const batches = static_cast<std::size_t>(options_.steps_in_flight);
    lists_[c].rows.resize(batches * static_cast<std::size_t>(list_rows(n)));
    lists_[c].positions.resize(batches * static_cast<std::size_t>(list_positions(n)));
  }
}

inline float* Memory::data(Tensor const& tensor) const noexcept {
  if (tensor.path == Path::window) return raw_[static_cast<std::size_t>(tensor.layer)];
  bool const indexer = tensor.path == Path::lid_cache || tensor.path == Path::lid_state;
  LayerView const& view = (indexer ? indexer_layers_ : layers_)[static_cast<std::size_t>(tensor.layer)];
  if (tensor.path < Path::csa_state) return view.cache;
  return tensor.scores ? view.score : view.kv;
}

inline Verdict Memory::plan(Ticket const& ticket, std::int32_t chunk, Batch const& batch, Chunk& out) noexcept {
  Verdict verdict = books_.shape(ticket, chunk, out.shape);
  if (verdict != Verdict::accepted) return verdict;
  std::int32_t const begin = chunk == 0 ? 0 : batch.chunk_ends[chunk - 1];
  out.rows = batch.chunk_ends[chunk] - begin;
  out.slots = batch.slots + begin;
  out.positions = batch.positions + begin;
  // A ticket of an open batch: its index is below steps_in_flight and no other open batch's.
  auto const part = [&](auto& memory) {
    return memory.data() +
           memory.size() / static_cast<std::size_t>(options_.steps_in_flight) * static_cast<std::size_t>(ticket.index);
  };
  for (int c = 0; c < compressors; ++c) {
    Lists& lists = out.lists[c];
    lists = {};
    if (component_of_[c] < 0) continue;
    Lengths const n = books_.lengths(component_of_[c], out.shape);
    std::int32_t* rows = part(lists_[c].rows);
    auto const take = [&rows](std::int32_t count) {
      std::int32_t* const list = rows;
      rows += count;
      return list;
    };
    lists.restore_source = take(n.restores);
    lists.restore_destination = take(n.restores);
    lists.snapshot_source = take(n.snapshots);
    lists.snapshot_destination = take(n.snapshots);
    lists.persist_source = take(n.rows);
    lists.persist_destination = take(n.rows);
    lists.block_previous = take(n.block_reads);
    lists.block_current = take(n.block_reads);
    lists.block_slot = take(n.blocks);
    std::int64_t* const positions = part(lists_[c].positions);
    lists.block_row = positions;
    lists.block_position = positions + n.blocks;
    lists.visible = positions + 2 * n.blocks;
    verdict = books_.plan(ticket, chunk, component_of_[c], out.shape, row_maps_[c], lists);
    if (verdict != Verdict::accepted) return verdict;
  }
  return verdict;
}

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback
