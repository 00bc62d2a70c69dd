// Positions are not row counts: rows that repeat or skip one are refused, so that no state is kept under a wrong name.
#include "scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace scenario;

namespace {

/// Hands the books rows of slot 0 at these positions; what they answer, and the row that was refused.
struct Answer {
  Verdict verdict;
  std::int32_t bad_row = -5;
};
Answer begin_at(Engine& engine, std::vector<Position> const& positions) {
  std::vector<Slot> const slots(positions.size(), engine.slot(0));
  auto const rows = static_cast<std::int32_t>(positions.size());
  Answer answer{};
  answer.verdict =
      engine.books.begin({slots.data(), positions.data(), rows, &rows, 1, nullptr, 0}, engine.ticket, &answer.bad_row);
  return answer;
}

}  // namespace

TEST_CASE("BR-88 repeated and skipped positions are refused and boundaries are of positions") {
  on_every_engine({3, 128, 4}, 1, [](Engine const& empty) {
    Engine engine = empty;
    engine.feed(0, 100, whole);
    auto const refused = [&engine](std::vector<Position> const& positions, Verdict why, std::int32_t bad_row) {
      Engine const before = engine;
      Answer const answer = begin_at(engine, positions);
      REQUIRE(answer.verdict == why);
      REQUIRE(answer.bad_row == bad_row);
      REQUIRE(same(engine, before));
    };
    refused(std::vector<Position>(60, 100), Verdict::position_repeated, 1);
    refused({99}, Verdict::position_repeated, 0);
    refused({0}, Verdict::position_repeated, 0);
    refused({101}, Verdict::position_gap, 0);
    std::vector<Position> after_gap;
    for (Position p = 160; p <= 300; ++p) after_gap.push_back(p);
    refused(after_gap, Verdict::position_gap, 0);
    for (std::int32_t row = 1; row < 60; ++row) {  // wrong at any row, the boundary's among them
      CAPTURE(row);
      std::vector<Position> positions;
      for (Position p = 100; p < 160; ++p) positions.push_back(p);
      auto const at = static_cast<std::size_t>(row);
      std::vector<Position> repeated = positions;
      repeated[at] -= 1;
      refused(repeated, Verdict::position_repeated, row);
      std::vector<Position> skipped = positions;
      skipped[at] += 1;
      refused(skipped, Verdict::position_gap, row);
    }
    REQUIRE(listed(engine, 0) == std::vector<Position>{97, 98, 99});
    engine.feed(0, 201, whole);
    REQUIRE(listed(engine, 0) == std::vector<Position>{128, 256, 298, 299, 300});
    for (Position p : listed(engine, 0)) REQUIRE(differs_after_roll_back(engine, 0, p) == "");
  });
}
