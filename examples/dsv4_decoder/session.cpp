#include "session.hpp"

#include <rollback/dsv4/restore.hpp>
#include <rollback/kernels/launch_host.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace dsv4_decoder {
namespace {

using rollback::Position;
using rollback::text;
using rollback::Verdict;

rollback::dsv4::MemoryOptions memory_options(Model const& model, SessionOptions const& o) {
  if (o.chunk < 1) throw std::invalid_argument("Session: chunk must be at least 1");
  if (o.batch < o.chunk) throw std::invalid_argument("Session: batch must be at least chunk");
  if (model.options().max_rows < o.chunk || model.options().max_positions < o.max_context) {
    throw std::invalid_argument("Session: the model was made for fewer rows or positions");
  }
  rollback::dsv4::MemoryOptions m;
  m.per_token = o.per_token;
  m.aligned = o.aligned;
  m.max_context = o.max_context;
  m.max_rows = o.batch;
  m.max_chunk_rows = o.chunk;
  m.max_chunks = o.batch;
  m.entry_copy = o.entry_copy;
  m.hadamard = model.options().hadamard;
  m.rounding = model.options().rounding;
  return m;
}

// Adds the time that passed in a scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(Stopwatch const&) = delete;
  Stopwatch& operator=(Stopwatch const&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_;
};

}  // namespace

Session::Session(Model& model, SessionOptions const& options)
    : model_(&model),
      options_(options),
      memory_(model.hyper().shape(), memory_options(model, options)),
      feed_(memory_.books(), options.batch, options.chunk),
      slot_(memory_.books().slot(0)),
      logits_(static_cast<std::size_t>(model.hyper().vocabulary)),
      wants_(static_cast<std::size_t>(options.chunk)) {}

Extension Session::extend(std::vector<std::int32_t> const& prompt, Progress const& progress) {
  auto const n = static_cast<std::int64_t>(prompt.size());
  if (n == 0) throw SessionError("the prompt is empty");
  if (n > options_.max_context) {
    throw SessionError(fmt::format("the prompt has {} tokens, the context holds {}", n, options_.max_context));
  }
  check_tokens(prompt.data(), n);
  Extension e;
  e.prompt = n;
  e.held = static_cast<std::int64_t>(held_.size());
  auto const shared = static_cast<std::ptrdiff_t>(std::min(n, e.held));
  e.divergence = std::mismatch(prompt.begin(), prompt.begin() + shared, held_.begin()).first - prompt.begin();
  {
    Stopwatch const watch(profile_.books);
    e.reach = memory_.books().reach(slot_);
    e.landing = memory_.books().nearest(slot_, std::min(e.divergence, n - 1));
    static_cast<void>(memory_.books().roll_back(slot_, e.landing.position));
  }
  held_.resize(static_cast<std::size_t>(e.landing.position));
  e.fed = n - e.landing.position;
  feed(prompt.data() + e.landing.position, e.fed, nullptr, progress);
  return e;
}

void Session::check_tokens(std::int32_t const* tokens, std::int64_t count) const {
  for (std::int64_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= model_->hyper().vocabulary) {
      throw SessionError(
          fmt::format("token {} is outside the vocabulary of {}", tokens[i], model_->hyper().vocabulary));
    }
  }
}

// Whatever became of a feed, also of one that an exception ended: what is held is what the books say is in.
class Session::HeldGuard {
 public:
  explicit HeldGuard(Session& session) : session_(session) {}
  ~HeldGuard() { session_.held_.resize(static_cast<std::size_t>(session_.books().tip(session_.slot_))); }
  HeldGuard(HeldGuard const&) = delete;
  HeldGuard& operator=(HeldGuard const&) = delete;

 private:
  Session& session_;
};

void Session::feed(std::int32_t const* tokens, std::int64_t count, float* all_logits, Progress const& progress) {
  std::int64_t const start = static_cast<std::int64_t>(held_.size());
  if (start + count > options_.max_context) {
    throw SessionError(fmt::format("{} tokens do not fit in a context of {}", start + count, options_.max_context));
  }
  check_tokens(tokens, count);
  for (std::int64_t done = 0; done < count;) {
    auto const rows = static_cast<std::int32_t>(std::min<std::int64_t>(count - done, options_.batch));
    std::int32_t const* const piece = tokens + done;
    float* const piece_logits = all_logits == nullptr ? nullptr : all_logits + done * model_->hyper().vocabulary;
    double const inside = profile_.forward + profile_.copies;
    double all = 0;
    double reporting = 0;
    Verdict verdict = Verdict::accepted;
    held_.insert(held_.end(), piece, piece + rows);
    {
      HeldGuard const guard(*this);
      Stopwatch const watch(all);
      verdict = feed_.run(slot_, rows, [&](rollback::FeedChunk const& chunk) {
        bool const ran = run_chunk(chunk, piece, piece_logits);
        Stopwatch const report(reporting);
        if (progress) progress(chunk.end - start, count);
        return ran;
      });
    }
    profile_.books += all - reporting - (profile_.forward + profile_.copies - inside);
    if (verdict != Verdict::accepted) throw SessionError(fmt::format("feeding failed: {}", text(verdict)));
    done += rows;
  }
}

// Runs one chunk: plan, restore what is armed, then the model. `tokens` and `all_logits` are the batch's.
bool Session::run_chunk(rollback::FeedChunk const& chunk, std::int32_t const* tokens, float* all_logits) {
  rollback::dsv4::Chunk planned;
  if (memory_.plan(chunk.ticket, chunk.index, *chunk.batch, planned) != Verdict::accepted) return false;
  {
    Stopwatch const watch(profile_.copies);
    rollback::dsv4::restore(rollback::kernels::HostLoop{}, memory_, planned);
  }
  Stopwatch const watch(profile_.forward);
  Position const row = chunk.begin - chunk.batch->positions[0];
  if (all_logits != nullptr) {
    std::fill_n(wants_.begin(), planned.rows, std::uint8_t{1});
    float* const out = all_logits + row * model_->hyper().vocabulary;
    model_->forward(memory_, planned, tokens + row, wants_.data(), out);
    std::copy_n(out + (planned.rows - 1) * model_->hyper().vocabulary, logits_.size(), logits_.begin());
  } else {
    std::fill_n(wants_.begin(), planned.rows, std::uint8_t{0});
    wants_[static_cast<std::size_t>(planned.rows - 1)] = row + planned.rows == chunk.batch->rows ? 1 : 0;
    model_->forward(memory_, planned, tokens + row, wants_.data(), logits_.data());
  }
  return true;
}

Verdict Session::roll_back(Position p) {
  Verdict const verdict = memory_.books().roll_back(slot_, p);
  if (verdict == Verdict::accepted) held_.resize(static_cast<std::size_t>(p));
  return verdict;
}

void Session::clear() {
  static_cast<void>(memory_.books().clear(slot_));
  held_.clear();
}

}  // namespace dsv4_decoder
