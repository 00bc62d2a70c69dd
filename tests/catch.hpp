// One include for the tests, whichever Catch2 is installed: 2.13 or 3.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)  // 3
#  include <catch2/catch_approx.hpp>
#  include <catch2/catch_template_test_macros.hpp>
#  include <catch2/catch_test_macros.hpp>
#  include <catch2/generators/catch_generators_all.hpp>
#  include <catch2/matchers/catch_matchers_all.hpp>
using Catch::Approx;
#else  // 2
#  include <catch2/catch.hpp>
namespace Catch::Matchers {
inline auto ContainsSubstring(std::string const& part) { return Contains(part); }
}  // namespace Catch::Matchers
#  define SKIP(...)                  \
    do {                             \
      WARN("skipped: " __VA_ARGS__); \
      return;                        \
    } while (false)
#endif
