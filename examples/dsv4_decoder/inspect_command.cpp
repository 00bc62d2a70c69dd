#include "command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <stdexcept>

namespace dsv4_decoder {
namespace {

using rollback::dsv4::MemoryBudget;
using rollback::dsv4::MemoryOptions;
using rollback::dsv4::ModelShape;
using rollback::dsv4::PathBytes;

struct InspectFlags {
  std::string model;
  std::string preset;
  TierFlags tiers;
  std::int64_t context = 65536;
  std::int32_t chunk = 512;
  std::int32_t batch = 2048;
  std::int32_t slots = 1;
  std::int32_t steps_in_flight = 1;
  std::int32_t pins = 0;
  bool entry_copy = false;
  bool json = false;
};

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

nlohmann::ordered_json describe(HyperParameters const& h) {
  return {{"layers", h.layers},
          {"context", h.context},
          {"vocabulary", h.vocabulary},
          {"width", h.width},
          {"heads", h.heads},
          {"head_width", h.head_width},
          {"rotary_width", h.rotary_width},
          {"query_rank", h.query_rank},
          {"output_groups", h.output_groups},
          {"output_rank", h.output_rank},
          {"window", h.window},
          {"ratios", h.ratios},
          {"indexer_heads", h.indexer_heads},
          {"indexer_width", h.indexer_width},
          {"indexer_top_k", h.indexer_top_k},
          {"experts", h.experts},
          {"experts_used", h.experts_used},
          {"expert_width", h.expert_width},
          {"hash_layers", h.hash_layers},
          {"sinkhorn_iterations", h.sinkhorn_iterations},
          {"rope_base", h.rope_base},
          {"compressed_rope_base", h.compressed_rope_base}};
}

nlohmann::ordered_json describe(ModelShape const& s) {
  return {{"layers", s.layers()},
          {"ratios", s.ratios},
          {"head_width", s.head_width},
          {"rotary_width", s.rotary_width},
          {"indexer_width", s.indexer_width},
          {"window", s.window}};
}

void print_table(MemoryBudget const& budget, MemoryOptions const& o, ModelShape const& shape) {
  fmt::print("\nstate of {} slot{}, context {}, per-token depth {}, {} boundaries of {} tokens, F32, in MiB\n\n",
             o.slots, o.slots == 1 ? "" : "s", o.max_context, o.per_token, o.aligned, o.quantum);
  std::string const pins = o.pins > 0 ? fmt::format(" {:>10}", "pins") : "";
  fmt::print("{:<10} {:>6} {:>12} {:>10} {:>10} {:>10} {:>10} {:>8} {:>10}{} {:>10}\n", "path", "layers", "plane/slot",
             "live", "per-token", "aligned", "subtotal", "spares", "entry copy", pins, "total");
  for (PathBytes const& p : budget.paths) {
    if (p.layers == 0) continue;
    std::string const of_pins = o.pins > 0 ? fmt::format(" {:>10.3f}", mib(p.pins)) : "";
    fmt::print("{:<10} {:>6} {:>12.4f} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>8.3f} {:>10.3f}{} {:>10.3f}\n",
               text(p.path), p.layers, mib(p.plane), mib(p.live), mib(p.per_token), mib(p.aligned),
               mib(p.live + p.per_token + p.aligned), mib(p.spares), mib(p.entry_copy), of_pins, mib(p.total()));
  }
  std::size_t const width = 95 + pins.size();
  fmt::print("{:<10} {:>{}.3f}\n", "scratch", mib(budget.scratch), width);
  fmt::print("{:<10} {:>{}.3f}\n", "books", mib(budget.books), width);
  fmt::print("{:<10} {:>{}.3f}\n\n", "total", mib(budget.total()), width);
  fmt::print("window rows a slot and layer: {} ({} below a query, the rest for the reach and for open batches)\n",
             rollback::dsv4::Memory::raw_rows(shape, o), shape.window - 1);
}

nlohmann::ordered_json as_json(MemoryBudget const& budget) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (PathBytes const& p : budget.paths) {
    if (p.layers == 0) continue;
    list.push_back({{"path", text(p.path)},
                    {"layers", p.layers},
                    {"plane", p.plane},
                    {"live", p.live},
                    {"per_token", p.per_token},
                    {"aligned", p.aligned},
                    {"subtotal", p.live + p.per_token + p.aligned},
                    {"spares", p.spares},
                    {"entry_copy", p.entry_copy},
                    {"pins", p.pins},
                    {"total", p.total()}});
  }
  return {{"paths", list}, {"scratch", budget.scratch}, {"books", budget.books}, {"total", budget.total()}};
}

int inspect(InspectFlags const& flags) {
  ModelShape shape;
  nlohmann::ordered_json facts;
  if (!flags.preset.empty()) {
    shape = flags.preset == "flash" ? rollback::dsv4::Flash::shape() : rollback::dsv4::Pro::shape();
    facts = describe(shape);
  } else {
    HyperParameters const hyper = HyperParameters::read(Gguf::open(flags.model));
    shape = hyper.shape();
    facts = describe(hyper);
  }
  MemoryOptions o;
  o.slots = flags.slots;
  o.per_token = flags.tiers.per_token;
  o.aligned = flags.tiers.aligned;
  o.max_context = flags.context;
  o.max_chunk_rows = flags.chunk;
  o.max_rows = std::max(flags.batch, flags.chunk);
  o.max_chunks = o.max_rows;
  o.entry_copy = flags.entry_copy;
  o.steps_in_flight = flags.steps_in_flight;
  o.pins = flags.pins;
  MemoryBudget budget;
  try {
    budget = rollback::dsv4::Memory::budget(shape, o);
  } catch (std::invalid_argument const& e) { throw SessionError(e.what()); }
  if (flags.json) {
    nlohmann::ordered_json const out = {{"model", flags.preset.empty() ? flags.model : flags.preset},
                                        {"hyper_parameters", facts},
                                        {"options",
                                         {{"slots", o.slots},
                                          {"per_token", o.per_token},
                                          {"aligned", o.aligned},
                                          {"quantum", o.quantum},
                                          {"context", o.max_context},
                                          {"batch", o.max_rows},
                                          {"chunk", o.max_chunk_rows},
                                          {"entry_copy", o.entry_copy},
                                          {"steps_in_flight", o.steps_in_flight},
                                          {"pins", o.pins}}},
                                        {"bytes", as_json(budget)}};
    fmt::print("{}\n", out.dump(2));
    return exit_ok;
  }
  fmt::print("{}\n", flags.preset.empty() ? flags.model : "preset " + flags.preset);
  for (auto const& [key, value] : facts.items()) fmt::print("  {:<22} {}\n", key, value.dump());
  print_table(budget, o, shape);
  return exit_ok;
}

}  // namespace

void add_inspect(CLI::App& program, int& exit_code) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App& command =
      *program.add_subcommand("inspect", "show a model's numbers and the exact bytes of its state at given depths");
  auto* source = command.add_option_group("model", "one of these");
  source->add_option("model,-m,--model", flags->model, "GGUF file of architecture deepseek4");
  source->add_option("--preset", flags->preset, "a released model")->check(CLI::IsMember({"flash", "pro"}));
  source->require_option(1);
  flags->tiers.add(command);
  command.add_option("--context", flags->context, "positions that the state has room for")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--chunk", flags->chunk, "rows that run at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--batch", flags->batch, "rows that are fed as one transaction")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
  command.add_option("--slots", flags->slots, "sequences kept at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command.add_flag("--entry-copy", flags->entry_copy,
                   "one more live plane an open batch, so that a failed batch leaves the tip where it was");
  command.add_option("--steps-in-flight", flags->steps_in_flight, "batches that may be open at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  command.add_option("--pins", flags->pins, "landings a sequence that the engine places; 0 is off")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  command.add_flag("--json", flags->json, "print a JSON object, bytes as whole numbers");
  command.callback([flags, &exit_code] { exit_code = inspect(*flags); });
}

}  // namespace dsv4_decoder
