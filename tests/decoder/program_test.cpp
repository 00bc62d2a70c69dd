// The program as its users run it: what it prints, its exit codes, and what it says about files that are no use.
#include "catch.hpp"

#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string const tiny = std::string(ROLLBACK_TEST_DATA) + "/dsv4-tiny";
std::string const model = tiny + "/model.gguf";
std::string const chats = ROLLBACK_CHATS;

// A folder of this process, gone with it.
struct Scratch {
  fs::path path;
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "dsv4_decoder_test_XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(path); }
  [[nodiscard]] std::string file(std::string const& name, std::string const& content) const {
    std::ofstream(path / name, std::ios::binary) << content;
    return (path / name).string();
  }
};
Scratch const scratch;

std::string content_of(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

struct Run {
  int exit_code;
  std::string out;
  std::string err;
  [[nodiscard]] json parsed() const { return json::parse(out); }
};

// Arguments are pasted into a shell's command line; none here needs quoting beyond what the caller writes.
Run run(std::string const& arguments) {
  std::string const out = (scratch.path / "out").string();
  std::string const err = (scratch.path / "err").string();
  std::string const command = std::string(DSV4_DECODER) + " " + arguments + " >" + out + " 2>" + err + " </dev/null";
  int const status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), content_of(out), content_of(err)};
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

double subtotal_mib(json const& inspected, std::string const& path) {
  for (json const& entry : inspected.at("bytes").at("paths")) {
    if (entry.at("path") == path) return entry.at("subtotal").get<double>() / (1024.0 * 1024.0);
  }
  FAIL("no such path: " << path);
  return 0;
}

}  // namespace

TEST_CASE("every command explains itself") {
  Run const top = run("--help");
  CHECK(top.exit_code == 0);
  for (std::string command : {"generate", "replay", "verify", "inspect"}) {
    CHECK(contains(top.out, command));
    Run const help = run(command + " --help");
    CHECK(help.exit_code == 0);
    CHECK(contains(help.out, "--json"));
    CHECK(help.err.empty());
  }
}

TEST_CASE("a wrong command line is told apart from unusable input") {
  for (std::string arguments : {"", "dance", "generate", "generate -m x", "generate -m x --prompt a --ids 1", "verify",
                                "replay -m x", "inspect", "inspect --preset huge", "inspect --preset flash --rs-seq -1",
                                "verify --oracle x --chunk 0", "generate -m x --prompt a --temperature -1",
                                "generate -m x --prompt a -n 0", "generate -m x --prompt a --temperature nan",
                                "generate -m x --prompt a --top-p nan", "generate -m x --prompt a --seed -1",
                                "verify --oracle x --tolerance nan", "verify --oracle x --tolerance inf"}) {
    INFO(arguments);
    Run const r = run(arguments);
    CHECK(r.exit_code == 2);
    CHECK(r.out.empty());
    CHECK_FALSE(r.err.empty());
  }
}

TEST_CASE("files that are missing or truncated or foreign are named with the reason") {
  std::string const whole = content_of(model);
  std::string const truncated = scratch.file("truncated.gguf", whole.substr(0, whole.size() / 2));
  std::string const head = scratch.file("head.gguf", whole.substr(0, 100));
  std::string const foreign = scratch.file("foreign.gguf", "this is no model at all, but it is long enough to look");
  std::string const empty = scratch.file("empty.gguf", "");
  for (std::string const& path :
       {truncated, head, foreign, empty, scratch.path.string(), std::string("/no/such/file")}) {
    for (std::string const& arguments :
         {"generate --prompt a -m " + path, "inspect " + path,
          "replay --chat " + chats + "/agent_tool_loop.jsonl -m " + path, "verify --oracle " + tiny + " -m " + path}) {
      INFO(arguments);
      Run const r = run(arguments);
      CHECK(r.exit_code == 3);
      CHECK(r.out.empty());
      CHECK(contains(r.err, path));
    }
  }
  std::string const chat = scratch.file("chat.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": 5}]}\n");
  for (std::string const& arguments :
       {"replay -m " + model + " --chat " + chat, "replay -m " + model + " --chat /no/such/chat",
        std::string("verify --oracle /no/such/folder"), "verify --oracle " + scratch.path.string(),
        "generate -m " + model + " --ids-file /no/such/ids", "generate -m " + model + " --file /no/such/text",
        "generate -m " + model + " --ids 384", "generate -m " + model + " --ids=-1",
        "generate -m " + model + " --prompt ''", "generate -m " + model + " --ids 1,2,3 --context 2",
        "generate -m " + model + " --prompt abc -n 20 --context 22",
        "generate -m " + model + " --prompt abc -n 1048576", "generate -m " + model + " --file /dev/zero",
        "replay -m " + model + " --context 100 --chat " + chats + "/agent_tool_loop.jsonl"}) {
    INFO(arguments);
    Run const r = run(arguments);
    CHECK(r.exit_code == 3);
    CHECK(r.out.empty());
    CHECK_FALSE(r.err.empty());
  }
}

TEST_CASE("output that cannot be written is an error") {
  if (!fs::exists("/dev/full")) SKIP("no /dev/full here");
  std::string const some = " -m " + model + " --prompt abc -n 3 --ignore-eos";
  for (std::string const& arguments :
       {"generate" + some, "generate --json" + some, "inspect " + model, std::string("inspect --json --preset flash"),
        "verify --oracle " + tiny + " --chunk 512", std::string("--help")}) {
    INFO(arguments);
    std::string const err = (scratch.path / "full").string();
    int const status = std::system((std::string(DSV4_DECODER) + " " + arguments + " >/dev/full 2>" + err).c_str());
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
    CHECK(contains(content_of(err), "output cannot be written"));
  }
}

TEST_CASE("verify passes on the fixture and fails where the tolerance is below the difference") {
  for (std::string chunk : {"1", "200"}) {
    Run const r = run("verify --json --oracle " + tiny + " --chunk " + chunk);
    CHECK(r.exit_code == 0);
    CHECK(r.err.empty());  // no progress where nobody looks
    json const verified = r.parsed();
    CHECK(verified.at("passed") == true);
    CHECK(verified.at("positions") == 764);
    CHECK(verified.at("greedy_agreeing") == 64);
    CHECK(verified.at("largest_difference").get<double>() < 1e-3);
    CHECK(verified.at("largest_difference").get<double>() > 0);
  }
  CHECK(run("verify --oracle " + tiny + " --tolerance 1e-9").exit_code == 1);
  CHECK(run("verify --oracle " + tiny + " --all-rows --chunk 64").exit_code == 0);
}

TEST_CASE("verify refuses an oracle that does not fit") {
  fs::path const copy = scratch.path / "oracle";
  fs::copy(tiny, copy);
  std::string const logits = content_of(tiny + "/logits.f32");
  std::ofstream(copy / "logits.f32", std::ios::binary) << logits.substr(0, logits.size() - 4);
  CHECK(run("verify --oracle " + copy.string()).exit_code == 3);
  std::ofstream(copy / "logits.f32", std::ios::binary) << logits.substr(0, logits.size() - 384 * 4);
  CHECK(run("verify --oracle " + copy.string()).exit_code == 3);
  std::string spoilt = logits;
  spoilt[spoilt.size() / 2 + 3] = static_cast<char>(spoilt[spoilt.size() / 2 + 3] ^ 0x40);
  std::ofstream(copy / "logits.f32", std::ios::binary) << spoilt;
  CHECK(run("verify --oracle " + copy.string()).exit_code == 1);

  json const index = json::parse(content_of(tiny + "/index.json"));
  for (char const* change :
       {R"({"vocab": 384.9})", R"({"vocab": "384"})", R"({"tolerance": {"suggested_abs_f32": 1e300}})",
        R"({"tolerance": {"suggested_abs_f32": 0}})", R"({"tolerance": 1})"}) {
    json changed = index;
    changed.merge_patch(json::parse(change));
    std::ofstream(copy / "index.json") << changed;
    CHECK(run("verify --oracle " + copy.string()).exit_code == 3);
  }
  std::ofstream(copy / "index.json") << index;
  std::ofstream(copy / "tokens.txt") << "";
  std::ofstream(copy / "greedy.txt") << "0";
  std::ofstream(copy / "logits.f32", std::ios::binary) << logits.substr(0, 384 * 4);
  CHECK(run("verify --oracle " + copy.string()).exit_code == 3);
}

TEST_CASE("generate continues as recorded and draws the same for the same seed") {
  std::ifstream in(tiny + "/greedy.txt");
  std::vector<int> recorded;
  for (int id = 0; in >> id;) recorded.push_back(id);
  REQUIRE(recorded.size() == 64);
  std::string const greedy = "generate --json -n 64 --chunk 33 -m " + model + " --ids-file " + tiny + "/tokens.txt";
  Run const all = run(greedy + " --ignore-eos");
  CHECK(all.exit_code == 0);
  CHECK(all.parsed().at("tokens") == json(recorded));
  recorded.resize(static_cast<std::size_t>(std::find(recorded.begin(), recorded.end(), 257) - recorded.begin()));
  REQUIRE(recorded.size() < 64);  // the recorded run went past the end of the text
  CHECK(run(greedy).parsed().at("tokens") == json(recorded));

  std::string const drawn = "generate --json -n 40 --temperature 1 -m " + model + " --prompt 'Take it back.' --seed ";
  Run const first = run(drawn + "7");
  CHECK(first.exit_code == 0);
  CHECK(run(drawn + "7").parsed().at("tokens") == first.parsed().at("tokens"));
  CHECK(run(drawn + "8").parsed().at("tokens") != first.parsed().at("tokens"));

  Run const text = run("generate -n 8 -m " + model + " --prompt hello");
  CHECK(text.exit_code == 0);
  CHECK(text.out.size() >= 2);
  CHECK(text.err.empty());
}

TEST_CASE("inspect shows what whole rings of rows take for both released models") {
  Run const flash = run("inspect --json --preset flash --rs-aligned 64 --rs-seq 1");
  CHECK(flash.exit_code == 0);
  CHECK(subtotal_mib(flash.parsed(), "CSA state") == 86.625);
  CHECK(subtotal_mib(flash.parsed(), "HCA state") == 20.0);
  CHECK(subtotal_mib(flash.parsed(), "LID state") == 21.65625);
  Run const pro = run("inspect --json --preset pro --rs-aligned 64 --rs-seq 1");
  CHECK(subtotal_mib(pro.parsed(), "CSA state") == 123.75);
  CHECK(subtotal_mib(pro.parsed(), "HCA state") == 31.0);
  CHECK(subtotal_mib(pro.parsed(), "LID state") == 30.9375);

  Run const table = run("inspect --preset flash --rs-aligned 64 --rs-seq 1");
  CHECK(contains(table.out, " 86.625 "));
  CHECK(contains(table.out, " 20.000 "));
  CHECK(contains(table.out, " 21.656 "));

  Run const file = run("inspect --json " + model);
  CHECK(file.parsed().at("hyper_parameters").at("ratios") == json({0, 0, 4, 128, 4, 128}));
  CHECK(file.parsed().at("hyper_parameters").at("head_width") == 64);

  CHECK_FALSE(contains(table.out, " pins "));
  std::string const in_flight = "--preset flash --rs-seq 1 --pins 3 --steps-in-flight 4 --entry-copy";
  CHECK(contains(run("inspect " + in_flight).out, " pins "));
  for (json const& path : json::parse(run("inspect --json " + in_flight).out).at("bytes").at("paths")) {
    bool const states = path.at("path").get<std::string>().find("state") != std::string::npos;
    auto const plane = path.at("plane").get<std::int64_t>();
    CHECK(path.at("pins") == (states ? 3 * plane : 0));
    CHECK(path.at("entry_copy") == (states ? 4 * plane : 0));
  }
  Run const impossible = run("inspect --preset flash --rs-aligned 65536 --slots 65536");
  CHECK(impossible.exit_code == 3);
  CHECK(impossible.out.empty());
}

TEST_CASE("replay serves every shipped chat with the logits of fresh runs") {
  std::map<std::string, int> tiers;
  int diverged = 0;
  int short_replays = 0;
  int files = 0;
  std::int64_t longest = 0;
  for (auto const& entry : fs::directory_iterator(chats)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    INFO(entry.path().string());
    Run const r = run("replay --json --check -m " + model + " --chat " + entry.path().string());
    CHECK(r.exit_code == 0);
    CHECK(r.err.empty());
    json const replayed = r.parsed();
    CHECK(replayed.at("requests").size() >= 15);
    CHECK(replayed.at("largest_difference") == 0);
    for (json const& request : replayed.at("requests")) {
      ++tiers[request.at("tier").get<std::string>()];
      longest = std::max(longest, request.at("prompt").get<std::int64_t>());
      CHECK(request.at("largest_difference") == 0);
      CHECK(request.at("fed").get<std::int64_t>() >= 1);
      CHECK(request.at("fed").get<std::int64_t>() + request.at("landing").get<std::int64_t>() ==
            request.at("prompt").get<std::int64_t>());
    }
    diverged += replayed.at("diverged").get<int>();
    short_replays += replayed.at("short_replays").get<int>();
    CHECK(2 * replayed.at("tokens_fed").get<std::int64_t>() < replayed.at("tokens_full").get<std::int64_t>());
  }
  CHECK(files >= 3);
  CHECK(longest > 4000);
  CHECK(tiers["per-token"] > 0);
  CHECK(tiers["aligned"] > 0);
  CHECK(tiers["start over"] > 0);  // beyond the reach
  CHECK(4 * short_replays > 3 * diverged);
}

TEST_CASE("replay without tiers starts over and goes on") {
  std::string const chat =
      scratch.file("short.jsonl",
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"one two three\"}], \"max_tokens\": 4}\n"
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"one two four\"}], \"max_tokens\": 4}\n"
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"one two three\"}], \"max_tokens\": 4}\n");
  Run const off = run("replay --check --rs-seq 0 --rs-aligned 0 -m " + model + " --chat " + chat);
  CHECK(off.exit_code == 0);
  CHECK(contains(off.out, "start over"));
  CHECK(contains(off.out, "started over"));
  CHECK(contains(off.out, "max |logit difference| from fresh runs: 0\n"));
  for (std::string chunk : {"1", "5", "300"}) {
    Run const on = run("replay --check --rs-seq 20 --entry-copy --chunk " + chunk + " -m " + model + " --chat " + chat);
    CHECK(on.exit_code == 0);
    CHECK(contains(on.out, "per-token"));
    CHECK(contains(on.out, "max |logit difference| from fresh runs: 0\n"));
  }
}

TEST_CASE("replay goes on from what an earlier run saved as if it had never ended") {
  std::string const chat = content_of(chats + "/regenerate_answer.jsonl");
  std::size_t half = 0;
  for (int line = 0; line < 9; ++line) half = chat.find('\n', half) + 1;
  std::string const saved = (scratch.path / "saved").string();
  std::string const replay = "replay --json -m " + model + " --chat ";
  Run const before = run(replay + scratch.file("before.jsonl", chat.substr(0, half)) + " --save " + saved);
  CHECK(before.exit_code == 0);
  std::string const second = scratch.file("after.jsonl", chat.substr(half));
  Run const after = run(replay + second + " --check --load " + saved);
  CHECK(after.exit_code == 0);
  json const went_on = after.parsed();
  CHECK(went_on.at("largest_difference") == 0);
  json const whole = run(replay + chats + "/regenerate_answer.jsonl").parsed().at("requests");
  json parts = before.parsed().at("requests");
  for (json const& request : went_on.at("requests")) parts.push_back(request);
  REQUIRE(parts.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    INFO("request " << i + 1);
    for (char const* key : {"held", "divergence", "landing", "tier", "fed", "answer"}) {
      CHECK(parts[i].at(key) == whole[i].at(key));
    }
  }

  std::string const content = content_of(saved);
  std::string const damaged = scratch.file("damaged", content.substr(0, content.size() - 9));
  for (std::string const& path : {damaged, second, std::string("/no/such/file"), scratch.path.string()}) {
    INFO(path);
    Run const r = run(replay + second + " --load " + path);
    CHECK(r.exit_code == 3);
    CHECK(r.out.empty());
    CHECK(contains(r.err, path + ": "));
  }
  Run const unwritable = run(replay + second + " --save /no/such/folder/file");
  CHECK(unwritable.exit_code == 3);
  CHECK(unwritable.parsed().at("requests").size() == 9);  // what was served is reported all the same
  std::string const limited = "trap '' XFSZ; ulimit -f 500; " + std::string(DSV4_DECODER) + " " + replay + second +
                              " --save " + saved + " >/dev/null 2>" + (scratch.path / "limited").string();
  int const status = std::system(limited.c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
  CHECK(contains(content_of((scratch.path / "limited").string()), saved + ": cannot be written"));
  CHECK(content_of(saved) == content);
}
