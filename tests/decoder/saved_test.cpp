// States of the whole decoder, saved and loaded: what goes on from them has the bits of a fresh run. Sessions in files:
// as if they had never been gone, or refused with nothing changed.
#include "flights.hpp"
#include "refusal.hpp"
#include "session.hpp"

#include <rollback/dsv4/state.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

namespace fs = std::filesystem;
using namespace flights;
using dsv4_decoder::Extension;
using dsv4_decoder::FileError;
using dsv4_decoder::Session;
using dsv4_decoder::SessionOptions;
using rollback::LoadAs;
using rollback::Position;
using rollback::Slot;
using rollback::Verdict;
using rollback::dsv4::MemoryLayout;

constexpr std::size_t longest = 100;  // rows of a batch
Tokens const tail = other_tokens(141, 51);

rollback::dsv4::MemoryOptions options_of(std::int32_t slots, std::int32_t per_token, std::int32_t aligned) {
  rollback::dsv4::MemoryOptions options;
  options.slots = slots;
  options.per_token = per_token;
  options.aligned = aligned;
  options.max_context = 1024;
  options.max_rows = static_cast<std::int32_t>(longest);
  return options;
}

std::string saved(Flights& engine, Slot slot, Position p) {
  std::string bytes;
  MemoryLayout const layout(engine.memory);
  REQUIRE(rollback::dsv4::save(engine.memory, slot, p, layout, {}, [&bytes](void const* data, std::size_t size) {
            bytes.append(static_cast<char const*>(data), size);
            return true;
          }) == Verdict::accepted);
  REQUIRE(bytes.size() == rollback::saved_bytes(engine.books(), slot, p, layout.state_layout()));
  return bytes;
}

void load(Flights& engine, Slot& slot, std::string const& bytes, LoadAs as) {
  std::size_t at = 0;
  auto const read = [&](void* data, std::size_t size) {
    at += bytes.copy(static_cast<char*>(data), size, at);
    return true;
  };
  REQUIRE(rollback::dsv4::load(engine.memory, slot, MemoryLayout(engine.memory), as, read) == Verdict::accepted);
  REQUIRE(at == bytes.size());
}

// A folder of this process, gone with it.
struct Scratch {
  fs::path path;
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "dsv4_saved_test_XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(path); }
  [[nodiscard]] std::string file(std::string const& name) const { return (path / name).string(); }
  [[nodiscard]] std::string file(std::string const& name, std::string const& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }
};
Scratch const scratch;

std::string content_of(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

SessionOptions session_options(std::int32_t per_token = 4, std::int32_t aligned = 2) {
  SessionOptions options;
  options.per_token = per_token;
  options.aligned = aligned;
  options.chunk = 100;
  options.max_context = 800;
  return options;
}

Tokens first(std::int64_t count) { return joined(tiny_tokens(), count, {}); }

// Below the tip: an armed one is a landing, the same tip loaded is live.
std::vector<Position> landings(Session const& session) {
  std::vector<rollback::Landing> list(64);
  list.resize(static_cast<std::size_t>(session.books().landings(session.slot(), list.data(), 64)));
  std::vector<Position> positions;
  for (rollback::Landing const& landing : list) {
    if (landing.position < session.books().tip(session.slot())) positions.push_back(landing.position);
  }
  return positions;
}

}  // namespace

TEST_CASE("a conversation saved in the middle goes on elsewhere with the bits of a fresh run", "[decoder]") {
  for (float filling : fillings()) {
    Flights source(options_of(2, 3, 2));
    fill_all(source.memory, filling);
    Slot const slot = source.slot(1);
    source.feed(source.slot(0), other_tokens(77, 52), longest);
    source.feed(slot, first(519), longest);
    for (Position p : {Position{519}, Position{517}, Position{512}, Position{384}, Position{0}}) {
      for (LoadAs as : {LoadAs::state, LoadAs::landing}) {
        INFO("saved at " << p << (as == LoadAs::landing ? ", loaded as a landing" : ""));
        rollback::dsv4::MemoryOptions options = options_of(3, 5, 4);
        options.pins = 1;  // a landing between boundaries needs one
        Flights other(options);
        fill_all(other.memory, filling);
        other.feed(other.slot(0), other_tokens(200, 53), longest);
        Slot to = other.slot(2);
        load(other, to, saved(source, slot, p), as);
        check_equal(other, to, first(p), tail, other.feed(to, tail, longest));
        check_equal(other, other.slot(0), other_tokens(200, 53), tail, other.feed(other.slot(0), tail, longest));
      }
    }
    check_equal(source, slot, first(519), tail, source.feed(slot, tail, longest));
  }
}

TEST_CASE("what is saved while a rollback is armed goes on elsewhere with the bits of a fresh run", "[decoder]") {
  for (float filling : fillings()) {
    for (Position p : {Position{517}, Position{512}, Position{384}}) {
      INFO("went back to " << p);
      Flights source(options_of(1, 3, 2));
      fill_all(source.memory, filling);
      source.feed(source.slot(0), first(519), longest);
      REQUIRE(source.books().roll_back(source.slot(0), p) == Verdict::accepted);
      REQUIRE(source.books().is_armed(source.slot(0)));
      poison_unreadable(source.memory, 0, filling);
      Flights other(options_of(1, 2, 2));
      fill_all(other.memory, filling);
      Slot slot = other.slot(0);
      load(other, slot, saved(source, source.slot(0), p), LoadAs::state);
      REQUIRE_FALSE(other.books().is_armed(slot));
      check_equal(other, slot, first(p), tail, other.feed(slot, tail, longest));
    }
  }
}

TEST_CASE("landings that were loaded continue with the bits of a fresh run", "[decoder]") {
  for (Position p : {Position{518}, Position{516}, Position{512}, Position{384}}) {
    INFO("back to " << p);
    Flights source(options_of(1, 3, 2));
    fill_all(source.memory, fillings()[0]);
    source.feed(source.slot(0), first(519), longest);
    Flights other(options_of(2, 3, 2));
    fill_all(other.memory, fillings()[0]);
    Slot slot = other.slot(1);
    load(other, slot, saved(source, source.slot(0), 519), LoadAs::state);
    REQUIRE(other.books().roll_back(slot, p) == Verdict::accepted);
    poison_unreadable(other.memory, 1, fillings()[0]);
    check_equal(other, slot, first(p), tail, other.feed(slot, tail, longest));
  }
}

TEST_CASE("a session that was saved and loaded serves prompts as if it had never been gone", "[decoder]") {
  std::string const path = scratch.file("session");
  for (std::int64_t back : {0, 2, 100}) {  // the last two: with a rollback armed, of either tier
    Session session(tiny_model(), session_options());
    session.feed(tiny_tokens().data(), 519);
    if (back > 0)
      REQUIRE(session.roll_back(session.books().nearest(session.slot(), 519 - back).position) == Verdict::accepted);
    session.save(path);
    for (std::int64_t shared : {300, 513, 517, 519}) {
      INFO("back " << back << ", shared " << shared);
      Session other(tiny_model(), session_options());
      other.feed(tail.data(), 100);
      other.load(path);
      REQUIRE(other.held() == session.held());
      REQUIRE(landings(other) == landings(session));
      Tokens const prompt = joined(first(519), shared, tail);
      Session fresh(tiny_model(), session_options(0, 0));
      fresh.feed(prompt.data(), static_cast<std::int64_t>(prompt.size()));
      Extension const e = other.extend(prompt);
      CHECK(e.held == static_cast<std::int64_t>(session.held().size()));
      CHECK(e.landing.position == session.books().nearest(session.slot(), e.divergence).position);
      CHECK(same_bits(other.logits(), fresh.logits()));
      CHECK(same_bits(readable_state(other.memory(), 0), readable_state(fresh.memory(), 0)));
    }
  }
}

TEST_CASE("a session is loaded into other depths and chunks, and saved again as the same bytes", "[decoder]") {
  Session session(tiny_model(), session_options(4, 3));
  session.feed(tiny_tokens().data(), 519);
  session.save(scratch.file("whole"));
  SessionOptions options = session_options(8, 6);
  options.chunk = 7;
  options.max_context = 600;
  options.entry_copy = true;
  Session deeper(tiny_model(), options);
  deeper.load(scratch.file("whole"));
  CHECK(landings(deeper) == landings(session));
  deeper.save(scratch.file("again"));
  CHECK(content_of(scratch.file("again")) == content_of(scratch.file("whole")));
  Session none(tiny_model(), session_options(0, 0));
  none.load(scratch.file("whole"));
  CHECK(landings(none).empty());
  for (Session* s : {&session, &deeper, &none}) s->feed(tail.data(), 60);
  CHECK(same_bits(deeper.logits(), session.logits()));
  CHECK(same_bits(none.logits(), session.logits()));
  CHECK(Session::saved_tokens(scratch.file("whole")) == 519);
  session.clear();
  session.save(scratch.file("whole"));  // nothing held, over what was there
  deeper.load(scratch.file("whole"));
  CHECK(deeper.held().empty());
  CHECK(deeper.books().tip(deeper.slot()) == 0);
}

TEST_CASE("a file that cannot be loaded is named with the reason and nothing is lost", "[decoder]") {
  Session session(tiny_model(), session_options());
  session.feed(tiny_tokens().data(), 519);
  session.save(scratch.file("good"));
  session.feed(tail.data(), 100);
  std::string const good = content_of(scratch.file("good"));
  Tokens const held = session.held();
  std::vector<float> const state = readable_state(session.memory(), 0);
  std::vector<Position> const before = landings(session);
  auto const refused = [&](Session& into, std::string const& path, std::string const& why) {
    std::string const refusal = refusal_with<FileError>([&] { into.load(path); });
    INFO(refusal);
    CHECK(refusal.find(path + ": ") == 0);
    CHECK(refusal.find(why) != std::string::npos);
  };
  for (std::size_t i = 0; i < 40; ++i) {
    std::size_t const at = i < 20 ? i * 7 : good.size() - 1 - (i - 20) * (i - 20) * good.size() / 401;
    INFO("byte " << at);
    refused(session, scratch.file("bad", good.substr(0, at)), at < 8 ? "is not a saved session" : "truncated");
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    refused(session, scratch.file("bad", flipped), "");
  }
  std::string newer = good;
  newer[8] = 2;
  refused(session, scratch.file("bad", newer), "is of version 2");
  refused(session, scratch.file("bad", good + "x"), "goes on after its state");
  refused(session, scratch.file("bad", good.substr(20 + 519 * 4 + 8)), "is not a saved session");
  refused(session, scratch.file("bad", content_of(tiny_directory + "/tokens.txt")), "is not a saved session");
  refused(session, scratch.file("none"), "cannot be opened");
  refused(session, scratch.path.string(), "is not a regular file");
  Session longer(tiny_model(), session_options());
  longer.feed(tiny_tokens().data(), 520);
  longer.save(scratch.file("longer"));
  std::string const other_state = content_of(scratch.file("longer")).substr(20 + 520 * 4 + 8);
  refused(session, scratch.file("bad", good.substr(0, 20 + 519 * 4 + 8) + other_state), "its state is of other tokens");
  CHECK(session.held() == held);
  CHECK(same_bits(readable_state(session.memory(), 0), state));
  CHECK(landings(session) == before);

  SessionOptions options = session_options();
  options.max_context = 518;
  Session small(tiny_model(), options);
  refused(small, scratch.file("good"), "past the largest context");
  std::string const weights = content_of(tiny_directory + "/model.gguf");
  std::vector<std::byte> changed(weights.size());
  std::transform(weights.begin(), weights.end(), changed.begin(), [](char c) { return static_cast<std::byte>(c); });
  changed.back() ^= std::byte{1};
  dsv4_decoder::Model model(dsv4_decoder::Gguf::parse(changed, "changed"), tiny_options());
  Session of_other(model, session_options());
  refused(of_other, scratch.file("good"), "another model");
}

TEST_CASE("a session that cannot be saved leaves the file that was there and none beside it", "[decoder]") {
  Session session(tiny_model(), session_options());
  session.feed(tiny_tokens().data(), 200);
  fs::path const folder = scratch.path / "folder";
  fs::create_directory(folder);
  std::string const path = (folder / "session").string();
  session.save(path);
  std::string const good = content_of(path);
  session.feed(tail.data(), 10);
  auto const save_inside = [&](std::int64_t done, std::int64_t) {  // a batch is open: the tip is not to be had
    if (done > 5) session.save(path);
  };
  CHECK_THROWS_AS(session.feed(tail.data(), 10, nullptr, save_inside), dsv4_decoder::SessionError);
  CHECK(content_of(path) == good);
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
  CHECK_THROWS_AS(session.save((folder / "none" / "session").string()), FileError);
  CHECK_THROWS_AS(session.save(folder.string()), FileError);
  CHECK(content_of(path) == good);
}
