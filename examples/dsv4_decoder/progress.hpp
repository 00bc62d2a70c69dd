// A progress bar on standard error, where that is a terminal; nothing elsewhere.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace dsv4_decoder {

/// Drawn at most ten times a second; wiped when it goes out of scope, so results stand alone on the terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label) : label_(std::move(label)), shown_(isatty(STDERR_FILENO) == 1) {}
  ProgressBar(ProgressBar const&) = delete;
  ProgressBar& operator=(ProgressBar const&) = delete;
  ~ProgressBar() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }

  void label(std::string text) { label_ = std::move(text); }

  void show(std::int64_t done, std::int64_t all) {
    auto const now = std::chrono::steady_clock::now();
    if (!shown_ || (done < all && now - last_ < std::chrono::milliseconds(100))) return;
    last_ = now;
    drawn_ = true;
    constexpr std::int64_t width = 32;
    std::int64_t const filled = all > 0 ? std::min(width, width * done / all) : 0;
    std::string const bar =
        std::string(static_cast<std::size_t>(filled), '#') + std::string(static_cast<std::size_t>(width - filled), '.');
    std::fprintf(stderr, "\r\033[K%s [%s] %lld / %lld", label_.c_str(), bar.c_str(), static_cast<long long>(done),
                 static_cast<long long>(all));
    std::fflush(stderr);
  }

 private:
  std::string label_;
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace dsv4_decoder
