// Replaces the program's operator new by one that counts, and fills what it hands out with 0x3e, so that forgotten
// bytes show. For one source file of a program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace counted_new {

inline std::size_t allocations = 0;      // ever
inline std::size_t allocated_bytes = 0;  // ever
inline std::size_t live_bytes = 0;       // handed out and not yet given back

// Blocks have their size in front of them. Null where there is no memory.
inline void* allocate(std::size_t bytes, std::size_t alignment = 1) noexcept {
  std::size_t const head = std::max(alignment, alignof(std::max_align_t));
  void* const block = std::aligned_alloc(head, (head + bytes + head - 1) / head * head);
  if (block == nullptr) return nullptr;
  std::memcpy(block, &bytes, sizeof bytes);
  ++allocations;
  allocated_bytes += bytes;
  live_bytes += bytes;
  return std::memset(static_cast<std::byte*>(block) + head, 0x3e, bytes);
}

inline void* allocate_or_throw(std::size_t bytes, std::size_t alignment = 1) {
  void* const data = allocate(bytes, alignment);
  if (data == nullptr) throw std::bad_alloc{};
  return data;
}

inline void release(void* data, std::size_t alignment = 1) noexcept {
  if (data == nullptr) return;
  void* const block = static_cast<std::byte*>(data) - std::max(alignment, alignof(std::max_align_t));
  std::size_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  live_bytes -= bytes;
  std::free(block);
}

}  // namespace counted_new

// All forms: a sanitizer replaces each that is left out by its own, which knows nothing of this one's blocks.
void* operator new(std::size_t bytes) { return counted_new::allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept { return counted_new::allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted_new::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, std::nothrow_t const&) noexcept {
  return counted_new::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes) { return counted_new::allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept { return counted_new::allocate(bytes); }
void operator delete(void* data) noexcept { counted_new::release(data); }
void operator delete(void* data, std::size_t) noexcept { counted_new::release(data); }
void operator delete(void* data, std::nothrow_t const&) noexcept { counted_new::release(data); }
void operator delete(void* data, std::align_val_t alignment) noexcept {
  counted_new::release(data, static_cast<std::size_t>(alignment));
}
void operator delete(void* data, std::size_t, std::align_val_t alignment) noexcept {
  counted_new::release(data, static_cast<std::size_t>(alignment));
}
void operator delete[](void* data) noexcept { counted_new::release(data); }
void operator delete[](void* data, std::size_t) noexcept { counted_new::release(data); }
void operator delete[](void* data, std::nothrow_t const&) noexcept { counted_new::release(data); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted_new::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void operator delete[](void* data, std::align_val_t alignment) noexcept {
  counted_new::release(data, static_cast<std::size_t>(alignment));
}
void operator delete[](void* data, std::size_t, std::align_val_t alignment) noexcept {
  counted_new::release(data, static_cast<std::size_t>(alignment));
}
