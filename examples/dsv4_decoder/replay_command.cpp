#include "chat.hpp"
#include "command.hpp"
#include "progress.hpp"
#include "sampler.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dsv4_decoder {
namespace {

using Clock = std::chrono::steady_clock;
using rollback::Tier;

struct ReplayFlags {
  ModelFlags model;
  TierFlags tiers;
  std::string chat;
  std::string load;             // empty: starts with nothing held
  std::string save;             // empty: what is held at the end is lost
  std::int32_t max_tokens = 0;  // 0: as the request says
  bool entry_copy = false;
  bool check = false;
  bool json = false;
};

constexpr int default_max_tokens = 16;

// One request, as it was served.
struct Turn {
  int line = 0;  // of the chat file
  Extension extension;
  std::vector<std::int32_t> answer;
  double seconds = 0;                // until the first token of the answer could be drawn
  std::optional<double> difference;  // from a fresh run, over every row the answer was drawn from
  double fresh_seconds = 0;          // the fresh run, for the same rows
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What brought the sequence to where feeding started.
std::string kind(Turn const& turn) {
  Extension const& e = turn.extension;
  if (e.held == 0) return "new";
  if (e.landing.tier == Tier::start) return e.divergence == 0 ? "new" : "start over";
  return text(e.landing.tier);
}

double percent(std::int64_t part, std::int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Feeds prompt and answer to an empty session and compares the logits of every row that a token was drawn from.
void check(Turn& turn, std::vector<std::int32_t> const& prompt, std::vector<float> const& logits, Session& fresh,
           Session::Progress const& progress) {
  auto const start = Clock::now();
  std::vector<std::int32_t> tokens(prompt.end() - 1, prompt.end());
  tokens.insert(tokens.end(), turn.answer.begin(), turn.answer.end() - 1);
  fresh.clear();
  fresh.feed(prompt.data(), static_cast<std::int64_t>(prompt.size()) - 1, nullptr, progress);
  std::vector<float> expected(logits.size());
  fresh.feed(tokens.data(), static_cast<std::int64_t>(tokens.size()), expected.data());
  turn.fresh_seconds = seconds_since(start);
  double largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double const difference = std::abs(static_cast<double>(logits[i]) - static_cast<double>(expected[i]));
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  turn.difference = largest;
}

// Serves one request: brings the prompt in, then draws the answer.
Turn serve(ChatRequest const& request, std::vector<std::int32_t> const& prompt, std::int64_t max_tokens,
           Tokenizer const& tokenizer, Session& session, Session* fresh, ProgressBar& bar) {
  Session::Progress const progress = [&bar](std::int64_t done, std::int64_t all) { bar.show(done, all); };
  Turn turn;
  turn.line = request.line;
  auto const start = Clock::now();
  turn.extension = session.extend(prompt, progress);
  turn.seconds = seconds_since(start);

  SamplerOptions options;
  options.temperature = request.temperature.value_or(0.0);
  options.seed = static_cast<std::uint64_t>(request.seed.value_or(0));
  auto const vocabulary = static_cast<std::int64_t>(session.logits().size());
  Sampler sampler(options, vocabulary);
  std::vector<Token> const& end_of_turn = tokenizer.mark(Mark::end_of_turn);
  std::vector<float> logits;
  while (true) {
    logits.insert(logits.end(), session.logits().begin(), session.logits().end());
    std::int32_t const token = sampler.sample(session.logits().data());
    turn.answer.push_back(token);
    bool const ended =
        (tokenizer.eos() && token == *tokenizer.eos()) || (end_of_turn.size() == 1 && token == end_of_turn.front());
    if (ended || static_cast<std::int64_t>(turn.answer.size()) >= max_tokens) break;
    session.feed(&token, 1);
  }
  if (fresh != nullptr) check(turn, prompt, logits, *fresh, progress);
  return turn;
}

void print_header(bool checked) {
  fmt::print("{:>4} {:>7} {:>8} {:>10} {:>8} {:>10} {:>7} {:>8} {:>7} {:>7} {:>8}", "turn", "prompt", "held",
             "divergence", "landing", "tier", "replay", "% prompt", "new", "fed", "time s");
  if (checked) fmt::print(" {:>8} {:>15}", "full s", "max |logit diff|");
  fmt::print("\n");
}

void print_row(std::size_t number, Turn const& turn) {
  Extension const& e = turn.extension;
  fmt::print("{:>4} {:>7} {:>8} {:>10} {:>8} {:>10} {:>7} {:>8.1f} {:>7} {:>7} {:>8.3f}", number, e.prompt, e.held,
             e.divergence, e.landing.position, kind(turn), e.replayed(), percent(e.replayed(), e.prompt),
             e.prompt - e.divergence, e.fed, turn.seconds);
  if (turn.difference) fmt::print(" {:>8.3f} {:>16g}", turn.fresh_seconds, *turn.difference);
  fmt::print("\n");
  std::fflush(stdout);
}

struct Summary {
  std::int64_t fed = 0;
  std::int64_t full = 0;
  std::int64_t diverged = 0;       // requests that dropped something held
  std::int64_t short_replays = 0;  // of these, replayed less than a tenth of the prompt
  double largest = 0;
  std::map<std::string, int> kinds;
};

Summary summarise(std::vector<Turn> const& turns) {
  Summary s;
  for (Turn const& turn : turns) {
    Extension const& e = turn.extension;
    s.fed += e.fed;
    s.full += e.prompt;
    if (e.held > 0 && e.divergence < e.held) {
      ++s.diverged;
      if (10 * e.replayed() < e.prompt) ++s.short_replays;
    }
    s.largest = std::max(s.largest, turn.difference.value_or(0.0));
    ++s.kinds[kind(turn)];
  }
  return s;
}

void print_summary(Summary const& s, std::size_t turns, SessionProfile const& profile, bool checked) {
  fmt::print("\n{} requests:", turns);
  for (auto const& [name, count] : s.kinds) fmt::print(" {} {},", count, name);
  fmt::print(" {} of {} divergences replayed less than 10 % of the prompt\n", s.short_replays, s.diverged);
  fmt::print("tokens fed {}, a full re-read every turn would feed {}: {:.1f} %\n", s.fed, s.full,
             percent(s.fed, s.full));
  double const all = profile.forward + profile.books + profile.copies;
  fmt::print("time: model {:.3f} s, books {:.4f} s ({:.2f} %), restores {:.4f} s\n", profile.forward, profile.books,
             100.0 * profile.books / all, profile.copies);
  if (checked) fmt::print("max |logit difference| from fresh runs: {:g}\n", s.largest);
}

nlohmann::ordered_json as_json(Turn const& turn, Tokenizer const& tokenizer) {
  Extension const& e = turn.extension;
  nlohmann::ordered_json out = {{"line", turn.line},
                                {"prompt", e.prompt},
                                {"held", e.held},
                                {"divergence", e.divergence},
                                {"landing", e.landing.position},
                                {"tier", kind(turn)},
                                {"why", text(e.landing.why)},
                                {"replayed", e.replayed()},
                                {"fed", e.fed},
                                {"full", e.prompt},
                                {"seconds", turn.seconds},
                                {"answer", turn.answer},
                                {"text", tokenizer.decode(turn.answer)}};
  if (turn.difference) {
    out["full_seconds"] = turn.fresh_seconds;
    out["largest_difference"] = *turn.difference;
  }
  return out;
}

int replay(ReplayFlags const& flags) {
  std::vector<ChatRequest> const requests = read_chats(flags.chat);
  Gguf const file = Gguf::open(flags.model.model);
  Tokenizer const tokenizer(file);
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::int64_t> max_tokens;
  std::int64_t needed = flags.load.empty() ? 1 : std::max<std::int64_t>(1, Session::saved_tokens(flags.load));
  for (ChatRequest const& request : requests) {
    prompts.push_back(render(request, tokenizer));
    max_tokens.push_back(flags.max_tokens > 0 ? flags.max_tokens : request.max_tokens.value_or(default_max_tokens));
    needed = std::max(needed, static_cast<std::int64_t>(prompts.back().size()) + max_tokens.back());
  }
  Model model(file, flags.model.model_options(needed));
  SessionOptions options = flags.model.session_options(needed);
  std::optional<Session> fresh;
  if (flags.check) fresh.emplace(model, options);  // no tier at all
  options.per_token = flags.tiers.per_token;
  options.aligned = flags.tiers.aligned;
  options.entry_copy = flags.entry_copy;
  Session session(model, options);
  if (!flags.load.empty()) session.load(flags.load);

  if (!flags.json) {
    fmt::print("{}: {} requests; per-token depth {}, {} boundaries of 128, chunks of {}\n", flags.chat, requests.size(),
               options.per_token, options.aligned, options.chunk);
    print_header(flags.check);
  }
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    {
      ProgressBar bar(fmt::format("request {} of {}", i + 1, requests.size()));
      turns.push_back(
          serve(requests[i], prompts[i], max_tokens[i], tokenizer, session, fresh ? &*fresh : nullptr, bar));
    }
    if (flags.json) continue;
    print_row(i + 1, turns.back());
    if (kind(turns.back()) == "start over") {
      Extension const& e = turns.back().extension;
      std::string const kept =
          e.reach < e.held ? fmt::format("the oldest landing was {}", e.reach) : "nothing below the tip was kept";
      fmt::print("     position {} could not be reached, {}; started over\n", std::min(e.divergence, e.prompt - 1),
                 kept);
    }
  }
  Summary const summary = summarise(turns);
  if (flags.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (Turn const& turn : turns) list.push_back(as_json(turn, tokenizer));
    nlohmann::ordered_json out = {{"chat", flags.chat},
                                  {"requests", list},
                                  {"tokens_fed", summary.fed},
                                  {"tokens_full", summary.full},
                                  {"diverged", summary.diverged},
                                  {"short_replays", summary.short_replays},
                                  {"seconds", as_json(session.profile())}};
    if (flags.check) out["largest_difference"] = summary.largest;
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print_summary(summary, turns.size(), session.profile(), flags.check);
  }
  if (!flags.save.empty()) session.save(flags.save);
  return summary.largest > 0 ? exit_differs : exit_ok;
}

}  // namespace

void add_replay(CLI::App& program, int& exit_code) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App& command = *program.add_subcommand(
      "replay", "serve the requests of a chat file, going back where a prompt diverges from what is held");
  flags->model.add(command);
  flags->tiers.add(command);
  command.add_option("--chat", flags->chat, "JSON Lines: the body of one chat-completion request a line")->required();
  command.add_option("--load", flags->load, "go on from what an earlier run saved");
  command.add_option("--save", flags->save, "file for what is held at the end, with everything to go back to");
  command.add_option("--max-tokens", flags->max_tokens, "of every answer (default: as the request says, or 16)")
      ->check(CLI::Range(1, 1 << 20));
  command.add_flag("--entry-copy", flags->entry_copy,
                   "one more live plane, so that a failed batch leaves the tip where it was");
  command.add_flag("--check", flags->check,
                   "compare every answer's logits with a fresh run's; exit code 1 if any differ");
  command.add_flag("--json", flags->json, "print a JSON object");
  command.callback([flags, &exit_code] { exit_code = replay(*flags); });
}

}  // namespace dsv4_decoder
