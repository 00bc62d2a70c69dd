// Every number of a DeepSeek-V4 model that decides what its state looks like, and the two released models.
#pragma once

#include <rollback/config.hpp>

#include <vector>

namespace rollback {
inline namespace v0_1 {
namespace dsv4 {

inline constexpr int csa_ratio = 4;    // compressed sparse attention: a row every 4 tokens, pooled over 8 (overlap)
inline constexpr int hca_ratio = 128;  // heavily compressed attention: a row every 128 tokens, no overlap

/// What of a DSV4 model decides the bytes of its state. Widths are in values, the window in tokens.
struct ModelShape {
  std::vector<int> ratios;  // one a layer, from the model's metadata: 0 (window only), 4 (CSA + LID) or 128 (HCA)
  int head_width = 512;     // of the one row that serves as key and value; also the pooled width of CSA and HCA
  int rotary_width = 64;    // trailing values of a row that are rotated
  int indexer_width = 128;  // pooled width of LID, the lightning indexer's rows
  int window = 128;         // raw rows a query sees, itself included

  [[nodiscard]] int layers() const noexcept { return static_cast<int>(ratios.size()); }
  [[nodiscard]] int layers_of(int ratio) const noexcept {
    int n = 0;
    for (int r : ratios) n += r == ratio ? 1 : 0;
    return n;
  }
};

/// DeepSeek-V4-Flash: 43 layers; ratios 0, 0, then 4 and 128 in turn, ending with 4.
struct Flash {
  [[nodiscard]] static ModelShape shape() {
    ModelShape s;
    s.ratios = {0, 0};
    for (int layer = 2; layer < 43; ++layer) s.ratios.push_back(layer % 2 == 0 ? csa_ratio : hca_ratio);
    return s;
  }
};

/// DeepSeek-V4-Pro: 61 layers; ratios 128, 128, then 4 and 128 in turn, ending with 4.
struct Pro {
  [[nodiscard]] static ModelShape shape() {
    ModelShape s;
    s.ratios = {hca_ratio, hca_ratio};
    for (int layer = 2; layer < 61; ++layer) s.ratios.push_back(layer % 2 == 0 ? csa_ratio : hca_ratio);
    return s;
  }
};

}  // namespace dsv4
}  // namespace v0_1
}  // namespace rollback
