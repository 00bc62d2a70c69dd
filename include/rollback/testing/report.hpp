// What the conformance suite answers: a result a check, with the calls that led to a finding.
#pragma once

#include <rollback/config.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace testing {

enum class Status { passed, failed, skipped };

/// What became of one check.
struct Result {
  std::string check;  // its id
  std::string about;  // what it is about, in a line
  Status status = Status::passed;
  std::string text;                // failed: what was expected and what was seen; skipped: why
  std::vector<std::string> trace;  // failed: the calls since the memory was made, in order
};

/// The results of all checks that were asked for, in the suite's order.
struct Report {
  std::vector<Result> results;

  [[nodiscard]] std::size_t count(Status status) const {
    return static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(), [status](Result const& r) { return r.status == status; }));
  }
  /// Whether there are no findings. Skipped checks are none, but have shown nothing: look at `count(Status::skipped)`.
  [[nodiscard]] bool ok() const { return count(Status::failed) == 0; }
  /// The result of a check; null where it was not run.
  [[nodiscard]] Result const* find(std::string const& check) const {
    auto const it =
        std::find_if(results.begin(), results.end(), [&check](Result const& r) { return r.check == check; });
    return it == results.end() ? nullptr : &*it;
  }
  /// The findings with their traces, then what was skipped, then the counts; for a terminal.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (Result const& r : results) {
      if (r.status != Status::failed) continue;
      out += "FAILED  " + r.check + " (" + r.about + ")\n        " + r.text + "\n";
      for (std::string const& call : r.trace) out += "          " + call + "\n";
    }
    for (Result const& r : results) {
      if (r.status == Status::skipped) out += "skipped " + r.check + " (" + r.about + "): " + r.text + "\n";
    }
    return out + std::to_string(count(Status::passed)) + " passed, " + std::to_string(count(Status::failed)) +
           " failed, " + std::to_string(count(Status::skipped)) + " skipped\n";
  }
};

}  // namespace testing
}  // namespace v0_1
}  // namespace rollback
