// Several batches in flight over the whole decoder: what was planned before anything ran, late answers about drafts and
// late failures leave the bits of a fresh run.
#include "flights.hpp"

namespace {

using namespace flights;
using rollback::BadChunk;
using rollback::Outcome;
using rollback::Outcomes;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;

constexpr Position entry = 506;       // the batches cross the boundary 512, where HCA emits
constexpr std::int32_t longest = 16;  // rows of a batch
Tokens const tail = other_tokens(141, 21);

rollback::dsv4::MemoryOptions options_of(std::int32_t steps, bool entry_copy) {
  rollback::dsv4::MemoryOptions options;
  options.slots = 2;
  options.per_token = 12;
  options.aligned = 2;
  options.max_context = 1024;
  options.max_rows = longest;
  options.entry_copy = entry_copy;
  options.steps_in_flight = steps;
  return options;
}

}  // namespace

TEST_CASE("batches planned before the one before them ran have the bits of a fresh run", "[decoder]") {
  for (bool entry_copy : {false, true}) {
    for (std::int32_t steps : {2, 3}) {
      INFO(steps << " batches in flight" << (entry_copy ? ", with entry copies" : ""));
      Flights engine(options_of(steps, entry_copy));
      fill_all(engine.memory, fillings()[0]);
      Slot const slot = engine.slot(1);
      std::vector<float> logits;
      std::vector<Flight> open;
      std::size_t at = 0;
      Tokens const tokens = joined(tiny_tokens(), 300, {});
      auto const retire = [&] {
        engine.run(open.front());
        engine.settle(open.front());
        engine.commit(open.front(), slot, open.front().positions.back() + 1);
        logits.insert(logits.end(), open.front().logits.begin(), open.front().logits.end());
        open.erase(open.begin());
      };
      for (std::size_t step = 0; at < tokens.size(); ++step) {
        std::size_t const rows = std::min<std::size_t>(1 + step * 5 % longest, tokens.size() - at);
        auto const first = tokens.begin() + static_cast<std::ptrdiff_t>(at);
        open.push_back(engine.begin({{slot, Tokens(first, first + static_cast<std::ptrdiff_t>(rows))}}));
        at += rows;
        if (open.size() == static_cast<std::size_t>(steps)) retire();
      }
      while (!open.empty()) retire();
      check_equal(engine, slot, {}, tokens, logits);
    }
  }
}

TEST_CASE("a draft rejected while younger batches had run takes them back with the bits of a fresh run", "[decoder]") {
  Tokens const draft = other_tokens(5, 22);
  Tokens const second = other_tokens(3, 23);
  Tokens const third = other_tokens(2, 24);
  for (float filling : fillings()) {
    for (bool entry_copy : {false, true}) {
      for (std::int32_t accepted = 0; accepted <= 5; ++accepted) {
        INFO(accepted << " of 5 drafted tokens accepted" << (entry_copy ? ", with entry copies" : ""));
        Flights engine(options_of(3, entry_copy));
        fill_all(engine.memory, filling);
        Slot const slot = engine.slot(0);
        engine.feed(slot, joined(tiny_tokens(), entry, {}), longest);
        Flight a = engine.begin({{slot, draft, 5}});
        Flight b = engine.begin({{slot, second}});
        Flight c = engine.begin({{slot, third}});
        for (Flight* f : {&a, &b, &c}) {
          engine.run(*f);
          engine.settle(*f);
        }
        engine.commit(a, slot, entry + accepted);
        Tokens held = joined(joined(tiny_tokens(), entry, draft), entry + accepted, {});
        if (accepted < 5) {
          REQUIRE(engine.books().commit(b.ticket, slot, entry + 8) == Verdict::unknown_ticket);
          REQUIRE(engine.books().tip(slot) == entry + accepted);
          if (engine.books().is_armed(slot)) poison_unreadable(engine.memory, 0, filling);
        } else {
          engine.commit(b, slot, entry + 8);
          engine.commit(c, slot, entry + 10);
          held = joined(held, entry + 5, joined(second, 3, third));
        }
        check_equal(engine, slot, held, tail, engine.feed(slot, tail, longest));
      }
    }
  }
}

TEST_CASE("rows of a slot that fell out of an open batch are padding to the slots that go on", "[decoder]") {
  Tokens const draft = other_tokens(4, 25);
  Tokens const other = other_tokens(6, 26);
  Tokens const others_next = other_tokens(5, 27);
  Flights engine(options_of(2, false));
  fill_all(engine.memory, fillings()[0]);
  Slot const x = engine.slot(0);
  Slot const y = engine.slot(1);
  engine.feed(x, joined(tiny_tokens(), entry, {}), longest);
  engine.feed(y, joined(tiny_tokens(), 125, {}), longest);
  Flight a = engine.begin({{x, draft, 3}, {y, other}});
  Flight b = engine.begin({{y, others_next}, {x, other_tokens(3, 28)}});
  engine.run(a);
  engine.settle(a);
  engine.commit(a, x, entry + 2);  // while the younger batch has yet to run
  engine.commit(a, y, 131);
  engine.plan(b);
  engine.run(b);
  engine.settle(b);
  engine.commit(b, y, 136);
  poison_unreadable(engine.memory, x.index, fillings()[0]);
  check_equal(engine, x, joined(joined(tiny_tokens(), entry, draft), entry + 2, {}), tail,
              engine.feed(x, tail, longest));
  check_equal(engine, y, joined(joined(tiny_tokens(), 125, other), 131, others_next), tail,
              engine.feed(y, tail, longest));
}

TEST_CASE("a late failure of the oldest batch goes back to its entry with the bits of a fresh run", "[decoder]") {
  for (float filling : fillings()) {
    for (bool entry_copy : {false, true}) {
      INFO((entry_copy ? "with entry copies" : "in place"));
      Flights engine(options_of(3, entry_copy));
      fill_all(engine.memory, filling);
      Slot const slot = engine.slot(0);
      engine.feed(slot, joined(tiny_tokens(), entry, {}), longest);
      std::vector<Flight> open;
      for (std::uint32_t seed : {31u, 32u, 33u}) {
        open.push_back(engine.begin({{slot, other_tokens(longest, seed)}}));
      }
      for (Flight& f : open) engine.run(f);
      Outcome outcome;
      Outcomes outcomes{&outcome, 1, 0};
      REQUIRE(engine.books().fail(open[0].ticket, 0, BadChunk::may_have_run, outcomes) == Verdict::accepted);
      REQUIRE(outcomes.count == 1);
      CHECK(outcome.armed != entry_copy);
      // in place: 384 is the oldest boundary, whose place these batches left alone
      CHECK(outcome.tip == (entry_copy ? entry : 384));
      if (outcome.armed) poison_unreadable(engine.memory, 0, filling);
      check_equal(engine, slot, joined(tiny_tokens(), outcome.tip, {}), tail, engine.feed(slot, tail, longest));
    }
  }
}
