// One sequence that a model continues: what a server does with a slot. Here the library is wired into an engine.
#pragma once

#include "model.hpp"

#include <rollback/dsv4/memory.hpp>
#include <rollback/feed.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace dsv4_decoder {

struct SessionOptions {
  std::int32_t per_token = 8;  // depth of the per-token tier; 0: off
  std::int32_t aligned = 8;    // depth of the aligned tier; 0: off
  std::int32_t chunk = 128;    // rows that run at once
  std::int32_t batch = 512;    // rows that are fed as one transaction
  std::int64_t max_context = 8192;
  bool entry_copy = false;
};

/// A prompt does not fit, or a token is outside the vocabulary.
struct SessionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a prompt was brought in.
struct Extension {
  std::int64_t prompt = 0;       // tokens of the prompt
  std::int64_t held = 0;         // tokens the session held before
  std::int64_t divergence = 0;   // first position at which the two differ
  rollback::Position reach = 0;  // the oldest landing there was
  rollback::Landing landing;     // where it went back to: feeding starts at its position
  std::int64_t fed = 0;          // tokens fed: prompt - landing.position
  [[nodiscard]] std::int64_t replayed() const { return divergence - landing.position; }  // of these, held before
};

/// Where the time went since the session was made, in seconds.
struct SessionProfile {
  double books = 0;    // begin, shape, plan, settle, commit, nearest, roll_back
  double copies = 0;   // restores; snapshots are part of `forward`
  double forward = 0;  // the model
};

/// A model, a memory of one slot and the tokens that are in it.
class Session {
 public:
  /// Called after every chunk with the tokens fed so far and those to feed in all.
  using Progress = std::function<void(std::int64_t done, std::int64_t all)>;

  /// @param model  must outlive the session; its max_rows at least `chunk`, its max_positions at least `max_context`
  /// @throws std::invalid_argument naming the option and its allowed range
  Session(Model& model, SessionOptions const& options);

  /// Makes the session hold exactly `prompt`: keeps the prefix it shares with what is held as far as a landing allows,
  /// and feeds the rest. At least the last token is fed, so that there are logits to sample from.
  /// @return what it took; `logits` are then those of the last token
  /// @throws SessionError  the prompt is empty, longer than the context, or has a token outside the vocabulary
  Extension extend(std::vector<std::int32_t> const& prompt, Progress const& progress = {});

  /// Feeds tokens after what is held. @param all_logits  where not null: [tokens, vocabulary], every row's logits
  /// @throws SessionError  as `extend`; and whatever `progress` throws: `held` is then as far as the books could keep
  /// it
  void feed(std::int32_t const* tokens, std::int64_t count, float* all_logits = nullptr, Progress const& progress = {});

  /// Writes what is held, its state and its landings to a file, which takes the place of one that is there once it is
  /// complete. @throws FileError  it cannot be written: `path` is as it was
  void save(std::string const& path) const;
  /// Holds what was saved instead of what is held. Landings that the depths here have no place for are left out, and
  /// there are no logits until a token is fed.
  /// @throws FileError  the file is missing, damaged, foreign, of another model, or longer than the context: nothing
  /// has changed, unless the file fails only when it is read a second time
  void load(std::string const& path);
  /// How many tokens `load` would hold. @throws FileError as `load`, as far as the tokens go
  [[nodiscard]] static std::int64_t saved_tokens(std::string const& path);

  /// Goes back to a position. @return the books' verdict; on a refusal nothing has changed
  [[nodiscard]] rollback::Verdict roll_back(rollback::Position p);
  /// Forgets everything.
  void clear();

  /// Of the last token that was fed, [vocabulary].
  [[nodiscard]] std::vector<float> const& logits() const noexcept { return logits_; }
  [[nodiscard]] std::vector<std::int32_t> const& held() const noexcept { return held_; }
  [[nodiscard]] rollback::dsv4::Memory& memory() noexcept { return memory_; }
  [[nodiscard]] rollback::Books const& books() const noexcept { return memory_.books(); }
  [[nodiscard]] rollback::Slot slot() const noexcept { return slot_; }
  [[nodiscard]] SessionProfile const& profile() const noexcept { return profile_; }

 private:
  class HeldGuard;
  void check_tokens(std::int32_t const* tokens, std::int64_t count) const;
  [[nodiscard]] bool run_chunk(rollback::FeedChunk const& chunk, std::int32_t const* tokens, float* all_logits);

  Model* model_;
  SessionOptions options_;
  rollback::dsv4::Memory memory_;
  rollback::Feed feed_;
  rollback::Slot slot_;
  std::vector<std::int32_t> held_;
  std::vector<float> logits_;
  std::vector<std::uint8_t> wants_;  // [chunk]
  SessionProfile profile_;
};

}  // namespace dsv4_decoder
