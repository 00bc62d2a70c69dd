// Properties of the compressors that their states rest on: what a state is made of, what a ring gives for free, and
// that a softmax may be pooled in parts.
#include "catch.hpp"
#include "ring_compressor.hpp"
#include "values.hpp"

#include <rollback/kernels/launch_host.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace kernel_tests;
using kernels::HostLoop;

namespace {

CompressorShape const overlapping{4, true, 8, 12, 4};
CompressorShape const apart{8, false, 8, 12, 4};
CompressorShape const long_blocks{128, false, 8, 6, 4};

void feed(RingCompressor& compressor, Position first, Position end, std::int32_t timeline = 0) {
  std::vector<Token> chunk;
  for (Position p = first; p < end; ++p) chunk.push_back({0, p, timeline});
  if (!chunk.empty()) compressor.feed(HostLoop{}, chunk);
}

RingCompressor fed(CompressorShape const& shape, Position rows, Position end) {
  RingCompressor compressor(shape, 1, rows);
  feed(compressor, 0, end);
  return compressor;
}

// Half a state row: what a token gives to its own block or, with overlap, to the next one.
struct Part {
  Position position;
  bool own_block;
};

// What a state at `tip` is made of.
std::vector<Part> parts_at(CompressorShape const& shape, Position tip) {
  Position const block = tip / shape.ratio * shape.ratio;
  std::vector<Part> parts;
  for (Position p = std::max<Position>(0, block - shape.ratio); p < tip; ++p) {
    if (shape.overlap) parts.push_back({p, false});
    if (p >= block) parts.push_back({p, true});
  }
  return parts;
}

// Calls `body` with every value of the part in one plane.
void each_value(RingCompressor const& c, Part part, std::function<void(std::size_t)> const& body) {
  std::int64_t const first = part.own_block && c.shape.overlap ? c.shape.pooled : 0;
  std::int64_t const row = c.ring_row({0, part.position}) * c.shape.width();
  for (std::int64_t i = 0; i < c.shape.pooled; ++i) body(static_cast<std::size_t>(row + first + i));
}

bool holds_nan(std::vector<float> const& values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

// A softmax-weighted mean in parts: the logarithm of the sum of the weights, and the mean.
struct Partial {
  double log_sum = -INFINITY;
  double mean = 0;
};

double exponential(double x) { return std::isinf(x) ? 0 : std::exp(x); }

Partial merged(Partial a, Partial b) {
  double const most = std::max(a.log_sum, b.log_sum);
  double const of_a = exponential(a.log_sum - most), of_b = exponential(b.log_sum - most);
  return {most + std::log(of_a + of_b), (of_a * a.mean + of_b * b.mean) / (of_a + of_b)};
}

// The positions [first, first + 4) of the known example, one stored column.
double example_key(int p, int c) { return std::sin(0.7 * p + 1.3 * c); }
double example_score(int p, int c) { return std::cos(0.9 * p - 0.4 * c) + 0.1 * (p % 4 + 1) * (c % 2 == 0 ? 1 : -1); }
Partial pooled(int first, int c) {
  double sum = 0, weighted = 0;
  for (int p = first; p < first + 4; ++p) {
    sum += std::exp(example_score(p, c));
    weighted += std::exp(example_score(p, c)) * example_key(p, c);
  }
  return {std::log(sum), weighted / sum};
}

}  // namespace

TEST_CASE("the known block pools in two parts that merge to its row", "[kernels]") {
  struct Known {
    double previous_log_sum, previous_mean, current_log_sum, current_mean, row;
  };
  Known const known[] = {{2.0845669, -0.7957727, 1.8856424, 0.4902364, -0.2165128},
                         {1.2449245, -0.4511735, 1.6702535, -0.4728134, -0.4642604}};
  for (int channel = 0; channel < 2; ++channel) {
    Partial const previous = pooled(4, channel);     // the first half of the block before
    Partial const current = pooled(8, 2 + channel);  // the second half of the block itself
    CHECK(previous.log_sum == Approx(known[channel].previous_log_sum).margin(5e-8));
    CHECK(previous.mean == Approx(known[channel].previous_mean).margin(5e-8));
    CHECK(current.log_sum == Approx(known[channel].current_log_sum).margin(5e-8));
    CHECK(current.mean == Approx(known[channel].current_mean).margin(5e-8));
    CHECK(merged(previous, current).mean == Approx(known[channel].row).margin(5e-8));
    CHECK(merged(current, previous).mean == Approx(known[channel].row).margin(5e-8));

    Partial online;  // one token at a time
    for (int p = 4; p < 8; ++p) online = merged(online, {example_score(p, channel), example_key(p, channel)});
    CHECK(online.log_sum == Approx(previous.log_sum).margin(1e-14));
    CHECK(online.mean == Approx(previous.mean).margin(1e-14));
    for (int p = 8; p < 12; ++p) online = merged(online, {example_score(p, 2 + channel), example_key(p, 2 + channel)});
    CHECK(online.mean == Approx(known[channel].row).margin(5e-8));
  }
}

TEST_CASE("the first known block is its own part alone", "[kernels]") {
  double const known[] = {-0.2478907, -0.7908138};
  for (int channel = 0; channel < 2; ++channel) {
    CHECK(merged(Partial{}, pooled(0, 2 + channel)).mean == Approx(known[channel]).margin(5e-8));
  }
}

TEST_CASE("all tokens in one chunk give the bytes of one token at a time", "[kernels]") {
  for (CompressorShape const& shape : {overlapping, apart, long_blocks}) {
    Position const end = 3 * shape.ratio + 2;
    RingCompressor single(shape, 1, 3);
    for (Position p = 0; p < end; ++p) feed(single, p, p + 1);
    RingCompressor const at_once = fed(shape, 3, end);
    CHECK(same_bytes(at_once.cache, single.cache));
    CHECK(same_bytes(at_once.state_kv, single.state_kv));
    CHECK(same_bytes(at_once.state_score, single.state_score));
  }
}

TEST_CASE("a state is made of its listed parts and the rest is never read", "[kernels]") {
  for (CompressorShape const& shape : {overlapping, apart, long_blocks}) {
    Position const last = shape.ratio == 128 ? 260 : 41;
    for (Position tip = 0; tip <= last; tip += shape.ratio == 128 ? 13 : 1) {
      Position const end = tip + 3 * shape.ratio;
      RingCompressor whole = fed(shape, end / shape.ratio, tip);
      RingCompressor poisoned = whole;
      std::fill(poisoned.state_kv.begin(), poisoned.state_kv.end(), std::nanf(""));
      std::fill(poisoned.state_score.begin(), poisoned.state_score.end(), std::nanf(""));
      for (Part part : parts_at(shape, tip)) {
        each_value(whole, part, [&](std::size_t i) {
          poisoned.state_kv[i] = whole.state_kv[i];
          poisoned.state_score[i] = whole.state_score[i];
        });
      }
      feed(whole, tip, end);
      feed(poisoned, tip, end);
      INFO("ratio " << shape.ratio << " tip " << tip);
      CHECK_FALSE(holds_nan(whole.cache));
      CHECK(same_bytes(whole.cache, poisoned.cache));
    }
  }
}

TEST_CASE("every listed part of a state is read", "[kernels]") {
  for (CompressorShape const& shape : {overlapping, apart}) {
    for (Position tip = 0; tip <= 21; ++tip) {
      Position const end = tip + 3 * shape.ratio;
      for (Part part : parts_at(shape, tip)) {
        for (bool scores : {false, true}) {
          RingCompressor poisoned = fed(shape, end / shape.ratio, tip);
          auto& plane = scores ? poisoned.state_score : poisoned.state_kv;
          each_value(poisoned, part, [&](std::size_t i) { plane[i] = std::nanf(""); });
          feed(poisoned, tip, end);
          INFO("ratio " << shape.ratio << " tip " << tip << " position " << part.position);
          CHECK(holds_nan(poisoned.cache));
        }
      }
    }
  }
}

// Fed up to a tip, taken back by some tokens, and fed with others: against a run that never saw the ones taken back.
TEST_CASE("a ring with extra rows takes back one token more than it has of them at every tip", "[kernels]") {
  struct Case {
    CompressorShape shape;
    std::int32_t extra;
    Position last, step;
  };
  for (Case c : {Case{overlapping, 0, 30, 1},
                 {overlapping, 1, 30, 1},
                 {overlapping, 5, 30, 1},
                 {overlapping, 8, 30, 1},
                 {apart, 0, 30, 1},
                 {apart, 3, 30, 1},
                 {apart, 9, 40, 1},
                 {long_blocks, 2, 300, 43}}) {
    c.shape.extra_rows = c.extra;
    for (Position tip = 1; tip <= c.last; tip += c.step) {
      Position const end = tip + 2 * c.shape.ratio;
      RingCompressor const at_tip = fed(c.shape, end / c.shape.ratio, tip);
      for (Position dropped = 0; dropped <= std::min<Position>(tip, c.extra + 1); ++dropped) {
        RingCompressor back = at_tip;
        feed(back, tip - dropped, end, 1);
        RingCompressor fresh = fed(c.shape, end / c.shape.ratio, tip - dropped);
        feed(fresh, tip - dropped, end, 1);
        INFO("ratio " << c.shape.ratio << " extra " << c.extra << " tip " << tip << " dropped " << dropped);
        CHECK(same_bytes(back.cache, fresh.cache));
      }
    }
  }
}

TEST_CASE("a ring with extra rows cannot take back two tokens more than it has of them at some tip", "[kernels]") {
  for (CompressorShape shape : {overlapping, apart}) {
    for (std::int32_t extra : {0, 1, 5}) {
      shape.extra_rows = extra;
      int wrong = 0;
      int tips = 0;
      for (Position tip = 20; tip < 20 + 2 * shape.ratio; ++tip, ++tips) {
        Position const landing = tip - (extra + 2);
        Position const end = tip + 2 * shape.ratio;
        RingCompressor back = fed(shape, end / shape.ratio, tip);
        feed(back, landing, end, 1);
        RingCompressor fresh = fed(shape, end / shape.ratio, landing);
        feed(fresh, landing, end, 1);
        wrong += same_bytes(back.cache, fresh.cache) ? 0 : 1;
      }
      INFO("ratio " << shape.ratio << " extra " << extra);
      CHECK(wrong > 0);
      CHECK(wrong < tips);  // where the block begins late enough it still works
    }
  }
}

TEST_CASE("without extra rows what is dropped of the open block alone is free", "[kernels]") {
  for (Position tip = 8; tip < 24; ++tip) {
    for (Position landing = std::max<Position>(tip - 8, 4); landing <= tip; ++landing) {
      Position const end = tip + 12;
      RingCompressor back = fed(overlapping, end / 4, tip);
      feed(back, landing, end, 1);
      RingCompressor fresh = fed(overlapping, end / 4, landing);
      feed(fresh, landing, end, 1);
      INFO("tip " << tip << " landing " << landing);
      CHECK(same_bytes(back.cache, fresh.cache) == (tip - 1 <= 4 * (landing / 4) + 3));
    }
  }
}
