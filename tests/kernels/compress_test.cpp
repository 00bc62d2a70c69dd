#include "catch.hpp"
#include "ring_compressor.hpp"
#include "values.hpp"

#include <rollback/kernels/compress.hpp>
#include <rollback/kernels/gather.hpp>
#include <rollback/kernels/launch_host.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

using namespace kernel_tests;
using kernels::Compress;
using kernels::CompressParams;
using kernels::HostLoop;
using kernels::Rounding;

namespace {

// Rows and lists of one launch. The norm undoes itself: next to an epsilon of 1e12 the squares of a row vanish, so
// the root is 1e6, and so is the weight; what is left is the pooled row, within rounding.
struct Pooling {
  std::int32_t ratio;
  std::int64_t pooled;
  bool overlap;
  std::vector<float> state_kv, state_score, fresh_kv, fresh_score;
  std::vector<std::int32_t> previous, current;
  std::vector<std::int64_t> cache_row;
  std::vector<Position> rope_position;
  std::vector<float> cache;
  std::vector<float> norm = std::vector<float>(static_cast<std::size_t>(pooled), 1e6f);
  float epsilon = 1e12f;
  kernels::Rope rope = {};

  std::int64_t width() const { return overlap ? 2 * pooled : pooled; }

  void run(std::int64_t teams, std::int64_t blocks) {
    rope_position.resize(cache_row.size());
    HostLoop{}.launch(teams, Compress{},
                      CompressParams{state_kv.data(),
                                     state_score.data(),
                                     fresh_kv.data(),
                                     fresh_score.data(),
                                     previous.data(),
                                     current.data(),
                                     cache_row.data(),
                                     rope_position.data(),
                                     cache.data(),
                                     norm.data(),
                                     epsilon,
                                     rope,
                                     false,
                                     Rounding::none,
                                     static_cast<std::int64_t>(state_kv.size()) / width(),
                                     ratio,
                                     width(),
                                     pooled,
                                     overlap,
                                     blocks});
  }
  void run() { run(static_cast<std::int64_t>(cache_row.size()), static_cast<std::int64_t>(cache_row.size())); }
};

std::vector<std::int32_t> counted(std::int32_t first, std::int32_t n) {
  std::vector<std::int32_t> list(static_cast<std::size_t>(n));
  std::iota(list.begin(), list.end(), first);
  return list;
}

// The row that a compressor should write, from the inputs of its tokens, in double.
std::vector<double> exact_row(RingCompressor const& c, std::int32_t slot, std::int64_t block) {
  auto const& shape = c.shape;
  std::vector<double> row;
  for (std::int64_t channel = 0; channel < shape.pooled; ++channel) {
    double weights = 0;
    double weighted = 0;
    auto const take = [&](Position p, std::int64_t column) {
      if (p < 0) return;
      auto const x = input_of({slot, p}, shape.inputs);
      double key = 0;
      double score = c.ape[static_cast<std::size_t>(p % shape.ratio * shape.width() + column)];
      for (std::int64_t i = 0; i < shape.inputs; ++i) {
        auto const at = static_cast<std::size_t>(column * shape.inputs + i);
        key += static_cast<double>(c.kv_weight[at]) * x[static_cast<std::size_t>(i)];
        score += static_cast<double>(c.gate_weight[at]) * x[static_cast<std::size_t>(i)];
      }
      weights += std::exp(score);
      weighted += std::exp(score) * key;
    };
    for (Position p = shape.ratio * block; p < shape.ratio * (block + 1); ++p) {
      if (shape.overlap) take(p - shape.ratio, channel);
      take(p, shape.overlap ? shape.pooled + channel : channel);
    }
    row.push_back(weighted / weights);
  }

  double squares = 0;
  for (double value : row) squares += value * value;
  double const scale = 1 / std::sqrt(squares / static_cast<double>(shape.pooled) + 1e-6);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] *= scale * c.norm[i];

  auto const rope = shape.rope();
  for (int i = 0; i < rope.pairs; ++i) {
    double const angle = static_cast<double>(shape.ratio * block) * rope.frequency[i];
    auto const at = row.size() - 2 * static_cast<std::size_t>(rope.pairs) + 2 * static_cast<std::size_t>(i);
    double const x = row[at];
    double const y = row[at + 1];
    row[at] = x * std::cos(angle) - y * std::sin(angle);
    row[at + 1] = x * std::sin(angle) + y * std::cos(angle);
  }
  return row;
}

std::vector<Token> tokens(std::int32_t slot, Position first, Position end) {
  std::vector<Token> list;
  for (Position p = first; p < end; ++p) list.push_back({slot, p});
  return list;
}

}  // namespace

TEST_CASE("overlapping blocks are pooled to their known values", "[kernels]") {
  Pooling pooling{4, 2, true, {}, {}, {}, {}, {}, {}, {0, 1, 2, 3}, {}, stale_values(4 * 2)};
  for (int p = 0; p < 16; ++p) {
    for (int c = 0; c < 4; ++c) {
      double const bias = 0.1 * (p % 4 + 1) * (c % 2 == 0 ? 1 : -1);
      // Positions 0 .. 7 stand in the state and the rest in the chunk, so that a position is its own index.
      (p < 8 ? pooling.state_kv : pooling.fresh_kv).push_back(static_cast<float>(std::sin(0.7 * p + 1.3 * c)));
      (p < 8 ? pooling.state_score : pooling.fresh_score)
          .push_back(static_cast<float>(std::cos(0.9 * p - 0.4 * c) + bias));
    }
  }
  pooling.previous = {-1, -1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  pooling.current = counted(0, 16);
  pooling.run();
  double const known[] = {-0.2478907, -0.7908138, 0.4985625, 0.7505028, -0.2165128, -0.4642604, -0.0033458, 0.7300484};
  for (std::size_t i = 0; i < 8; ++i) CHECK(pooling.cache[i] == Approx(known[i]).margin(5e-7));
}

TEST_CASE("blocks without overlap are pooled to their known values", "[kernels]") {
  Pooling pooling{128, 2, false, {}, {}, {}, {}, {}, counted(0, 256), {0, 1}, {}, stale_values(2 * 2)};
  for (int p = 0; p < 256; ++p) {
    for (int c = 0; c < 2; ++c) {
      double const bias = 0.001 * (p % 128) * (c == 0 ? 1 : -1);
      (p < 128 ? pooling.state_kv : pooling.fresh_kv).push_back(static_cast<float>(std::sin(0.7 * p + 1.3 * c)));
      (p < 128 ? pooling.state_score : pooling.fresh_score)
          .push_back(static_cast<float>(std::cos(0.9 * p - 0.4 * c) + bias));
    }
  }
  pooling.run();
  double const known[] = {0.0106412, 0.0298253, 0.0079917, -0.0027633};
  for (std::size_t i = 0; i < 4; ++i) CHECK(pooling.cache[i] == Approx(known[i]).margin(5e-7));
}

TEST_CASE("the first block pools four tokens whatever the ring holds", "[kernels]") {
  auto const fresh_kv = random_values(4 * 40, 1);
  auto const fresh_score = random_values(4 * 40, 2);
  std::vector<float> first;
  for (float garbage : {0.0f, 1e30f, std::nanf(""), std::numeric_limits<float>::infinity(), stale_values(1)[0]}) {
    std::vector<float> const ring(8 * 40, garbage);
    Pooling pooling{
        4, 20, true, ring, ring, fresh_kv, fresh_score, {-1, -1, -1, -1}, {8, 9, 10, 11}, {0}, {}, stale_values(20)};
    pooling.run();
    INFO(garbage);
    for (std::size_t c = 0; c < 20; ++c) {
      double weights = 0;
      double weighted = 0;
      for (std::size_t j = 0; j < 4; ++j) {
        weights += std::exp(static_cast<double>(fresh_score[j * 40 + 20 + c]));
        weighted += std::exp(static_cast<double>(fresh_score[j * 40 + 20 + c])) * fresh_kv[j * 40 + 20 + c];
      }
      CHECK(pooling.cache[c] == Approx(weighted / weights).margin(1e-6));
    }
    if (first.empty()) first = pooling.cache;
    CHECK(same_bytes(pooling.cache, first));
  }
}

TEST_CASE("of the previous block only the first half is read and of the current one only the second", "[kernels]") {
  auto kv = random_values(8 * 36, 3);
  auto score = random_values(8 * 36, 4);
  Pooling pooling{4, 18, true, {}, {}, kv, score, {0, 1, 2, 3}, {4, 5, 6, 7}, {0}, {}, stale_values(18)};
  pooling.run();
  auto const expected = pooling.cache;
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t c = 0; c < 18; ++c) {
      pooling.fresh_kv[row * 36 + (row < 4 ? 18 + c : c)] = std::nanf("");
      pooling.fresh_score[row * 36 + (row < 4 ? 18 + c : c)] = std::nanf("");
    }
  }
  pooling.run();
  CHECK(same_bytes(pooling.cache, expected));
  CHECK_FALSE(is_stale(expected.data(), 18));
}

TEST_CASE("scores far apart and far from zero do not overflow", "[kernels]") {
  Pooling pooling{2,
                  1,
                  false,
                  {},
                  {},
                  {3, 5, 7, 9, 11, 13},
                  {-300, 2000, 500, 500, -1e30f, 1e30f},
                  {},
                  counted(0, 6),
                  {0, 1, 2},
                  {},
                  stale_values(3)};
  pooling.run();
  CHECK(pooling.cache[0] == Approx(5));
  CHECK(pooling.cache[1] == Approx(8));
  CHECK(pooling.cache[2] == Approx(13));
}

TEST_CASE("what is no number shows in the row of its block and in no other", "[kernels]") {
  Pooling pooling{
      2,      3,  false,          {}, {}, random_values(4 * 3, 5), random_values(4 * 3, 6), {}, counted(0, 4),
      {0, 1}, {}, stale_values(6)};
  pooling.fresh_score[1] = std::nanf("");
  pooling.epsilon = 1e-6f;
  pooling.run();
  CHECK(std::isnan(pooling.cache[1]));
  for (std::size_t i = 3; i < 6; ++i) CHECK(std::isfinite(pooling.cache[i]));
}

TEST_CASE("unused entries and teams past the blocks write nothing", "[kernels]") {
  Pooling pooling{4,
                  20,
                  false,
                  {},
                  {},
                  random_values(4 * 20, 7),
                  random_values(4 * 20, 8),
                  {},
                  {},
                  {2, -1, 1},
                  {},
                  stale_values(4 * 20)};
  pooling.current = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  pooling.run(3, 2);
  CHECK(is_stale(pooling.cache.data(), 2 * 20));
  CHECK_FALSE(is_stale(pooling.cache.data() + 2 * 20, 20));
  CHECK(is_stale(pooling.cache.data() + 3 * 20, 20));
}

TEST_CASE("compressed rows of every shape agree with the formulas in double", "[kernels]") {
  std::vector<CompressorShape> shapes(7);
  shapes[1].pooled = 64;
  shapes[2] = {4, true, 512, 64, 64};
  shapes[3] = {128, false, 512, 32, 64};
  shapes[4] = {128, false, 64, 48, 16};
  shapes[5] = {4, true, 33, 19, 8};  // nothing is a whole vector
  shapes[6] = {3, true, 7, 5, 0};    // and no rotation
  for (auto const& shape : shapes) {
    std::int64_t const blocks = shape.ratio == 128 ? 2 : 5;
    RingCompressor compressor(shape, 1, blocks);
    compressor.feed(HostLoop{}, tokens(0, 0, blocks * shape.ratio));
    for (std::int64_t block = 0; block < blocks; ++block) {
      auto const exact = exact_row(compressor, 0, block);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        INFO("ratio " << shape.ratio << " pooled " << shape.pooled << " block " << block << " value " << i);
        auto const at = static_cast<std::size_t>(block) * exact.size() + i;
        CHECK(compressor.cache[at] == Approx(exact[i]).margin(2e-5));
      }
    }
  }
}

TEST_CASE("the transform and the roundings come after the rotation", "[kernels]") {
  for (Rounding rounding : {Rounding::none, Rounding::fp8, Rounding::fp4}) {
    for (bool hadamard : {false, true}) {
      CompressorShape shape{4, true, 128, 40, 64};
      RingCompressor plain(shape, 1, 3);
      plain.feed(HostLoop{}, tokens(0, 0, 12));
      shape.hadamard = hadamard;
      shape.rounding = rounding;
      RingCompressor finished(shape, 1, 3);
      finished.feed(HostLoop{}, tokens(0, 0, 12));
      for (std::int64_t row = 0; row < 3; ++row) {
        float* const values = plain.cache.data() + row * 128;
        kernels::HostTeam const team{0};
        if (hadamard) kernels::hadamard(team, values, 128);
        if (rounding == Rounding::fp8) kernels::round_fp8_64(team, values, 64);  // the other 64 are rotated
        if (rounding == Rounding::fp4) kernels::round_fp4_32(team, values, 128);
        CHECK(same_bytes(values, finished.cache.data() + row * 128, 128));
      }
    }
  }
}

// A chunk of positions 5 .. 12 with 0 .. 4 in the ring, lists written by hand, against the same tokens one at a time.
TEST_CASE("lists of a chunk over two blocks give what one token at a time gives", "[kernels]") {
  CompressorShape const shape;
  RingCompressor single(shape, 1, 4);
  RingCompressor chunked(shape, 1, 4);
  for (Position p = 0; p < 5; ++p) {
    single.feed(HostLoop{}, {{0, p}});
    chunked.feed(HostLoop{}, {{0, p}});
  }
  for (Position p = 5; p < 13; ++p) single.feed(HostLoop{}, {{0, p}});

  std::vector<float> fresh_kv, fresh_score;
  {
    RingCompressor projected(shape, 1, 4);
    projected.feed(HostLoop{}, tokens(0, 5, 13));
    fresh_kv = projected.fresh_kv;
    fresh_score = projected.fresh_score;
  }
  std::vector<std::int32_t> const previous = {0, 1, 2, 3, 4, 8, 9, 10};
  std::vector<std::int32_t> const current = {4, 8, 9, 10, 11, 12, 13, 14};
  std::vector<std::int64_t> const cache_row = {1, 2};
  std::vector<Position> const rope_position = {4, 8};
  HostLoop{}.launch(2, Compress{},
                    CompressParams{chunked.state_kv.data(),
                                   chunked.state_score.data(),
                                   fresh_kv.data(),
                                   fresh_score.data(),
                                   previous.data(),
                                   current.data(),
                                   cache_row.data(),
                                   rope_position.data(),
                                   chunked.cache.data(),
                                   chunked.norm.data(),
                                   1e-6f,
                                   shape.rope(),
                                   false,
                                   Rounding::none,
                                   8,
                                   4,
                                   shape.width(),
                                   shape.pooled,
                                   true,
                                   2});
  std::vector<std::int32_t> const source = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<std::int32_t> const destination = {5, 6, 7, 0, 1, 2, 3, 4};
  HostLoop{}.launch(8, kernels::Persist{},
                    kernels::PersistParams{fresh_kv.data(), fresh_score.data(), source.data(), destination.data(),
                                           chunked.state_kv.data(), chunked.state_score.data(), shape.width(), 8});

  CHECK(same_bytes(chunked.cache, single.cache));
  CHECK(same_bytes(chunked.state_kv, single.state_kv));
  CHECK(same_bytes(chunked.state_score, single.state_score));
  CHECK_FALSE(is_stale(single.cache.data() + 2 * shape.pooled, shape.pooled));
  CHECK(is_stale(single.cache.data() + 3 * shape.pooled, shape.pooled));
}

TEST_CASE("every cut into chunks gives the same bytes", "[kernels]") {
  std::vector<CompressorShape> shapes(4);
  shapes[1] = {8, false, 33, 21, 16};
  shapes[2] = {128, false, 24, 16, 16};
  shapes[3] = {4, true, 32, 48, 16, true, Rounding::fp4};
  for (auto const& shape : shapes) {
    Position const end = shape.ratio == 128 ? 400 : 90;
    std::int32_t const slots = 3;
    RingCompressor single(shape, slots, end / shape.ratio);
    for (Position p = 0; p < end; ++p) {
      for (std::int32_t slot = 0; slot < slots; ++slot) single.feed(HostLoop{}, {{slot, p}});
    }
    for (unsigned seed = 0; seed < 6; ++seed) {
      std::mt19937 random(seed);
      RingCompressor chunked(shape, slots, end / shape.ratio);
      std::vector<Position> heads(slots, 0);
      while (std::any_of(heads.begin(), heads.end(), [end](Position head) { return head < end; })) {
        std::vector<Token> chunk;  // up to 19 tokens of random slots, interleaved, and some padded rows
        for (auto rows = 1 + random() % (shape.ratio == 128 ? 150 : 19); rows > 0; --rows) {
          auto const slot = static_cast<std::int32_t>(random() % (slots + 1));
          Position* const head = slot < slots ? &heads[static_cast<std::size_t>(slot)] : nullptr;
          if (head != nullptr && *head < end) {
            chunk.push_back({slot, (*head)++});
          } else {
            chunk.push_back({-1, 0});
          }
        }
        chunked.feed(HostLoop{}, chunk);
      }
      INFO("ratio " << shape.ratio << " pooled " << shape.pooled << " seed " << seed);
      CHECK(same_bytes(chunked.cache, single.cache));
      CHECK(same_bytes(chunked.state_kv, single.state_kv));
      CHECK(same_bytes(chunked.state_score, single.state_score));
    }
  }
}

// Four rows for the block before, four for the current one; a finished block moves over.
TEST_CASE("a ring gives the same bytes as a state that shifts", "[kernels]") {
  CompressorShape const shape;
  std::int64_t const width = shape.width();
  RingCompressor ring(shape, 1, 12);
  RingCompressor shift(shape, 1, 12);
  for (Position p = 0; p < 48; ++p) {
    ring.feed(HostLoop{}, {{0, p}});

    std::int32_t const source = 0;
    std::int32_t const destination = 4 + static_cast<std::int32_t>(p % 4);
    HostLoop{}.launch(1, kernels::Persist{},
                      kernels::PersistParams{ring.fresh_kv.data(), ring.fresh_score.data(), &source, &destination,
                                             shift.state_kv.data(), shift.state_score.data(), width, 1});
    if (p % 4 != 3) continue;
    std::vector<std::int32_t> const previous = p == 3 ? std::vector<std::int32_t>(4, -1) : counted(0, 4);
    auto const current = counted(4, 4);
    std::int64_t const cache_row = p / 4;
    Position const rope_position = p - 3;
    HostLoop{}.launch(1, Compress{},
                      CompressParams{shift.state_kv.data(),
                                     shift.state_score.data(),
                                     nullptr,
                                     nullptr,
                                     previous.data(),
                                     current.data(),
                                     &cache_row,
                                     &rope_position,
                                     shift.cache.data(),
                                     shift.norm.data(),
                                     1e-6f,
                                     shape.rope(),
                                     false,
                                     Rounding::none,
                                     8,
                                     4,
                                     width,
                                     shape.pooled,
                                     true,
                                     1});
    auto const moved = counted(0, 4);
    HostLoop{}.launch(4, kernels::Gather{},
                      kernels::GatherParams{shift.state_kv.data(), shift.state_score.data(), nullptr, nullptr,
                                            current.data(), moved.data(), 8, width, 4});
  }
  CHECK(same_bytes(ring.cache, shift.cache));
  CHECK_FALSE(is_stale(ring.cache.data() + 11 * shape.pooled, shape.pooled));
}
