// What every header needs: the language floor, the version in the namespace, the marker for code that also runs on a
// device, and the one function that refuses an impossible set-up.
#pragma once

#include <rollback/version.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#if defined(_MSVC_LANG)
#  define ROLLBACK_CPLUSPLUS _MSVC_LANG
#else
#  define ROLLBACK_CPLUSPLUS __cplusplus
#endif
static_assert(ROLLBACK_CPLUSPLUS >= 201703L, "rollback needs C++17: compile with -std=c++17 or later");
#undef ROLLBACK_CPLUSPLUS

// Marks a function that a CUDA device may call as well; nothing where no CUDA compiler is at work.
#if defined(__CUDACC__)
#  define ROLLBACK_HD __host__ __device__
#else
#  define ROLLBACK_HD
#endif

namespace rollback {
inline namespace v0_1 {  // names carry the version, so that two versions in one process never meet under one symbol
namespace detail {

/// Refuses an impossible set-up: throws `std::invalid_argument` with `what`; without exceptions it prints and aborts.
/// Only constructors and set-up functions call it, never the hot path.
[[noreturn]] inline void refuse_setup(char const* what) {
#if defined(__cpp_exceptions)
  throw std::invalid_argument(what);
#else
  std::fprintf(stderr, "rollback: %s\n", what);
  std::abort();
#endif
}

}  // namespace detail
}  // namespace v0_1
}  // namespace rollback
