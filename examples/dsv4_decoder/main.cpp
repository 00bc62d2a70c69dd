// dsv4_decoder: runs a DeepSeek-V4 model from a GGUF file, and takes tokens back.
#include "command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

namespace {

// What was printed may still be in a buffer: a full disk or a closed pipe shows here at the latest.
int finished(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "dsv4_decoder: the output cannot be written\n");
  return dsv4_decoder::exit_bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dsv4_decoder;
  int exit_code = exit_ok;
  CLI::App program(
      "Runs a DeepSeek-V4 model and takes tokens back: an example of the rollback library.\n"
      "Exit codes: 0 done, 1 a check found a difference, 2 wrong command line, 3 unusable input, or output that cannot "
      "be written.",
      "dsv4_decoder");
  program.require_subcommand(1);
  add_generate(program, exit_code);
  add_replay(program, exit_code);
  add_verify(program, exit_code);
  add_inspect(program, exit_code);
  try {
    program.parse(argc, argv);
    return finished(exit_code);
  } catch (CLI::ParseError const& e) {
    return program.exit(e) == 0 ? finished(exit_ok) : exit_usage;
  } catch (std::bad_alloc const&) {
    fmt::print(stderr, "dsv4_decoder: out of memory\n");
  } catch (std::exception const& e) { fmt::print(stderr, "dsv4_decoder: {}\n", e.what()); }
  return exit_bad_input;
}
