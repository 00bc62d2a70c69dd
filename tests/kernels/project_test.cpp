#include "catch.hpp"
#include "values.hpp"

#include <rollback/kernels/launch_host.hpp>
#include <rollback/kernels/project.hpp>

#include <cmath>

using namespace kernel_tests;
using rollback::Position;
using rollback::kernels::HostLoop;
using rollback::kernels::Project;
using rollback::kernels::ProjectParams;

namespace {

struct Projection {
  std::int32_t ratio;
  std::int64_t inputs;
  std::int64_t width;
  std::vector<float> kv_weight, gate_weight, ape;
  std::vector<float> kv, score;

  Projection(std::int32_t ratio_, std::int64_t inputs_, std::int64_t width_)
      : ratio(ratio_),
        inputs(inputs_),
        width(width_),
        kv_weight(random_values(width_ * inputs_, 1)),
        gate_weight(random_values(width_ * inputs_, 2)),
        ape(random_values(ratio_ * width_, 3)) {}

  // One team for every position; the last ones may be more than there are rows.
  void run(std::vector<float> const& x, std::vector<Position> const& positions, std::int64_t teams_past_rows = 0) {
    auto const teams = static_cast<std::int64_t>(positions.size());
    std::int64_t const rows = teams - teams_past_rows;
    kv = stale_values(teams * width);
    score = stale_values(teams * width);
    HostLoop{}.launch(teams, Project{},
                      ProjectParams{x.data(), kv_weight.data(), gate_weight.data(), ape.data(), positions.data(), ratio,
                                    rows, inputs, width, kv.data(), score.data()});
  }
};

double exact_dot(float const* a, float const* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

TEST_CASE("a row is projected to its key and to its score with the bias of its place in the block", "[kernels]") {
  struct Sizes {
    std::int32_t ratio;
    std::int64_t inputs, width;
  };
  for (Sizes sizes : {Sizes{4, 128, 64}, {4, 1, 1}, {4, 15, 3}, {4, 16, 5}, {4, 17, 33}, {128, 100, 32}}) {
    Projection projection(sizes.ratio, sizes.inputs, sizes.width);
    std::vector<Position> const positions = {0, 1, 2, 3, 4, 127, 128, 1000003};
    auto const x = random_values(static_cast<std::int64_t>(positions.size()) * sizes.inputs, 4);
    projection.run(x, positions);
    for (std::size_t row = 0; row < positions.size(); ++row) {
      for (std::int64_t column = 0; column < sizes.width; ++column) {
        float const* const input = x.data() + static_cast<std::int64_t>(row) * sizes.inputs;
        auto const at = row * static_cast<std::size_t>(sizes.width) + static_cast<std::size_t>(column);
        double const key = exact_dot(projection.kv_weight.data() + column * sizes.inputs, input, sizes.inputs);
        double const gate = exact_dot(projection.gate_weight.data() + column * sizes.inputs, input, sizes.inputs);
        auto const bias = static_cast<std::size_t>(positions[row] % sizes.ratio * sizes.width + column);
        INFO("inputs " << sizes.inputs << " width " << sizes.width << " row " << row << " column " << column);
        CHECK(projection.kv[at] == Approx(key).margin(1e-5));
        CHECK(projection.score[at] == Approx(gate + projection.ape[bias]).margin(1e-5));
      }
    }
  }
}

TEST_CASE("a row has the same bytes in every batch", "[kernels]") {
  Projection projection(4, 77, 30);
  std::vector<Position> positions;
  for (Position p = 0; p < 23; ++p) positions.push_back(p);
  auto const x = random_values(23 * 77, 5);
  projection.run(x, positions);
  auto const kv = projection.kv;
  auto const score = projection.score;
  for (std::int64_t row = 0; row < 23; ++row) {
    projection.run({x.begin() + row * 77, x.begin() + (row + 1) * 77}, {row});
    CHECK(same_bytes(projection.kv.data(), kv.data() + row * 30, 30));
    CHECK(same_bytes(projection.score.data(), score.data() + row * 30, 30));
  }
}

TEST_CASE("of a padded row and past the last row nothing is written", "[kernels]") {
  Projection projection(4, 20, 9);
  projection.run(random_values(4 * 20, 6), {5, -1, 6, 7}, 1);
  for (auto const* plane : {&projection.kv, &projection.score}) {
    CHECK_FALSE(is_stale(plane->data(), 9));
    CHECK(is_stale(plane->data() + 9, 9));
    CHECK_FALSE(is_stale(plane->data() + 18, 9));
    CHECK(is_stale(plane->data() + 27, 9));
  }
}
