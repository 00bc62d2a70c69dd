// A case as a program that does it again: what the model test prints of a failure.
#pragma once

#include "case.hpp"

#include <ostream>

namespace model {

inline char const* name_of(Kind kind) {
  static constexpr char const* names[] = {"begin", "run",  "settle", "commit", "fail",    "roll_back",    "pin",
                                          "unpin", "fork", "clear",  "ask",    "refused", "save_and_load"};
  return names[static_cast<int>(kind)];
}

inline void print_program(Case const& c, std::ostream& out) {
  Configuration const& f = c.configuration;
  out << "// c++ -std=c++17 -I include -I tests counterexample.cpp && ./a.out\n"
         "#include \"model/walk.hpp\"\n\n#include <cstdio>\n\nint main() {\n  using model::Kind;\n"
         "  model::Case const counterexample{\n      {"
      << f.slots << ", " << f.steps_in_flight << ", " << f.pins << ", " << f.entry_copy << ", " << f.max_rows << ", "
      << f.chunk_rows << ", " << f.max_context << ", " << f.sinks << ", " << f.worst_shapes << ", " << f.pin_windows
      << ",\n       {";
  for (ComponentChoice const& x : f.components) {
    out << "{" << x.kind << ", " << x.per_token << ", " << x.quantum << ", " << x.aligned << ", " << x.empty_at
        << "}, ";
  }
  out << "},\n       {";
  for (WindowChoice const& x : f.windows) out << "{" << x.window << ", " << x.more_rows << "}, ";
  out << "},\n       " << f.defect << "},\n      {\n";
  for (Op const& op : c.ops) {
    out << "          {Kind::" << name_of(op.kind) << ", " << op.a << ", " << op.b << ", " << op.c << ", " << op.d
        << "},\n";
  }
  out << "      }};\n  std::string const differs = model::replay(counterexample);\n"
         "  std::printf(\"%s\\n\", differs.empty() ? \"all agrees\" : differs.c_str());\n"
         "  return differs.empty() ? 0 : 1;\n}\n";
}

}  // namespace model
