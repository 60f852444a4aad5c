// SPDX-License-Identifier: MIT
// Checks the text of generated pointwise kernels byte for byte. A hash for every program of
// pointwise_programs.hpp, over all layouts and several kinds of device, is compared with
// pointwise_texts.txt. Cached kernels are found by their text, so it should not change by accident.
//
//   engine_pointwise_texts_test                          compares with pointwise_texts.txt
//   engine_pointwise_texts_test --write FILE [--all]     writes the hashes
//   engine_pointwise_texts_test --against FILE [--all]   compares with a file
//
// With --all it also covers the table of cases, random cases and the plans of all networks, with
// gradients, solvers and 16-bit types. These are about 36,000 kernels in a minute or two, for
// changes that should not change any. Their hashes are in no file of the repository, because passes
// and cases may change.
//
// No device is needed. After a change that is meant to change kernels, write the file again:
//   engine_pointwise_texts_test --write tests/engine/pointwise_texts.txt
#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/laid_out.hpp"
#include "engine/pointwise/kernels.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "plan/choose.hpp"
#include "pointwise_programs.hpp"
#include "support/cases.hpp"
#include "support/random_cases.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;
using pointwise::Generated;
using pointwise::Job;

namespace {

/// A kind of device, as the generators see it.
struct Kind {
    const char* name;
    pointwise::Style style;
    Traits traits;
};

Traits cpu(int vector_width, int compute_units, bool fp64) {
    Traits traits;
    traits.wide_vectors = true;
    traits.vector_width = vector_width;
    traits.compute_units = compute_units;
    traits.max_work_group = 4096;
    traits.local_bytes = 256 << 10;
    traits.fp64 = fp64;
    return traits;
}

Traits gpu(std::uint64_t work_group, int compute_units, std::uint64_t local_bytes, bool fp64) {
    Traits traits;
    traits.compute_units = compute_units;
    traits.max_work_group = work_group;
    traits.local_bytes = local_bytes;
    traits.fp64 = fp64;
    traits.fp16 = true;
    return traits;
}

const std::vector<Kind>& kinds() {
    using pointwise::Style;
    static const std::vector<Kind> all{
        {"cpu4", Style::vector, cpu(4, 1, false)},
        {"cpu8", Style::vector, cpu(8, 2, true)},
        {"cpu16", Style::vector, cpu(16, 64, true)},
        {"cpu_groups", Style::group, cpu(8, 4, true)},
        {"gpu256", Style::group, gpu(256, 132, 48 << 10, true)},
        {"gpu64", Style::group, gpu(64, 8, 16 << 10, false)},
        {"gpu1", Style::group, gpu(1, 1, 0, true)},
        {"gpu1024", Style::group, gpu(1024, 20, 1 << 10, true)},
    };
    return all;
}

/// The distinct problems of a case.
class Problems {
  public:
    void add(const Problem& problem) {
        if (known_.insert(problem.key()).second) all_.push_back(problem);
    }
    /// Adds the problems of a graph's nodes.
    void add(const Graph& graph) {
        for (const Node& node : graph.nodes)
            if (!node.removed && node.op->type() == "Pointwise")
                add(problem_of(kinds()[0].traits, graph, node, constant_values(graph)));
    }
    const std::vector<Problem>& all() const { return all_; }

  private:
    std::set<std::string> known_;
    std::vector<Problem> all_;
};

/// Runs the planner's passes for both kinds of devices, once without epilogues and once with all.
void add_planned(const Graph& given, Problems& problems) {
    for (const Kind* kind : {&kinds()[1], &kinds()[4]}) {
        for (const bool fuses : {false, true}) {
            Graph graph = given;
            expand_composites(graph);
            if (fuses) {
                fold_batch_norms(graph);
                fuse_epilogues(graph, [](const Graph&, const Node&) { return true; });
            }
            lower(graph);
            problems.add(graph);
            merge_pointwise(graph);
            while (recompute_pointwise(graph, kind->traits)) merge_pointwise(graph);
            problems.add(graph);
            if (graph.precision == Precision::fp32) continue;
            lower_precision(graph, 0, 1, [](const Graph&, const Node&) { return 0.0; });
            problems.add(graph);
        }
    }
}

/// Programs with 64-bit positions and with rare operations, which no other test runs.
std::vector<PointwiseCase> further_programs() {
    return {
        {"y0 = x0 + 1", {{{70000, 70000}}}},
        {"y0 = x0 * x1", {{{70000, 70001}}, {{70001}}}},
        {"y0 = sum[0](x0 * x1)", {{{70000, 70001}}, {{70001}}}},
        {"y0 = sum[1](x0); y1 = reduce[1; 1; a + b + a * b](x0)", {{{70000, 70000}}}},
        {"y0 = mean[0,2,3](x0)", {{{2000, 33, 300, 300}}}},
        {"y0 = x0 + x1", {{{1000003}}, {{1}}}},
        {"y0 = !(x0 > 0) || x1 > 0 ? fma(x0, x1, 2) : !x0", {{{40, 12}}, {{12}}}},
        {"y0 = abs(x0) + fma(x0, x0, 3)", {{{40}, DType::i32}}},
        {"y0 = uniform(x0 + 1, p0, 5)", {{{1}}}, {{"shape", Ints{3, 40}}, {"scalars", Doubles{3}}}},
        {"y0 = reduce[0; 0; (a > b) + b](x0)", {{{300, 30}}}},
        {"y0 = reduce[1; 0; a && !b ? a : b](x0)", {{{30, 3000}}}},
    };
}

/// The graph of an eager call of one operator, optionally with gradients.
Graph graph_of(const Case& one, bool backward, Precision precision) {
    const Operator& op = OperatorRegistry::instance().get(one.type);
    Graph graph;
    graph.training = one.training;
    graph.precision = precision;
    const Attrs attrs = op.schema().complete(parse_options_json(one.options), "test");
    std::vector<TensorSpec> specs;
    std::vector<ValueId> values;
    const auto add = [&](const TensorSpec& spec, Role role) {
        Value value;
        value.name = cat("operand ", values.size());
        value.spec = spec;
        value.role = role;
        value.trainable = role == Role::parameter && is_float(spec.dtype);
        values.push_back(graph.add_value(std::move(value)));
        if (role == Role::input) graph.inputs.push_back(values.back());
    };
    for (const CaseTensor& input : one.inputs) specs.push_back({input.shape, input.dtype});
    for (const TensorSpec& spec : specs) add(spec, Role::input);
    for (const ParamSpec& param : op.params(attrs, specs)) add(param.spec, Role::parameter);
    const std::vector<ValueId> made = graph.add(one.type, one.type, values, attrs);
    for (std::size_t i = 0; i < made.size(); ++i)
        graph.outputs.emplace_back(made[i], cat("output ", i));
    expand_composites(graph);
    if (!backward) return graph;
    DifferentiateOptions how;
    how.input_gradients = true;
    how.seeds_are_inputs = true;
    differentiate(graph, how);
    return graph;
}

Problems problems_of(const Case& one) {
    Problems problems;
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
        add_planned(graph_of(one, false, precision), problems);
        if (one.gradient) add_planned(graph_of(one, true, precision), problems);
    }
    return problems;
}

Problems problems_of(const NetDescription& net) {
    Problems problems;
    for (const Precision precision : {Precision::fp32, Precision::fp16}) {
        add_planned(build_graph(net, {}, 3, false, precision), problems);
        for (const auto kind : {SolverOptions::Kind::sgd, SolverOptions::Kind::adam}) {
            SolverOptions solver{.kind = kind,
                                 .momentum = 0.9,
                                 .clip_norm = kind == SolverOptions::Kind::sgd ? 0.0 : 1.0,
                                 .accumulate = kind == SolverOptions::Kind::sgd ? 1 : 2};
            Graph graph = build_graph(net, {}, 3, true, precision);
            expand_composites(graph);
            DifferentiateOptions how;
            how.loss_scale = add_loss_scale(graph, solver);
            differentiate(graph, how);
            add_update(graph, solver, how.loss_scale);
            add_planned(graph, problems);
        }
    }
    return problems;
}

std::set<std::string> sources;  ///< hashes of all sources, to report their number

void append(TextWriter& text, const Generated& made) {
    sources.insert(hash_hex(made.source));
    text << "parts " << made.parts << " of " << made.partial_bytes << "\nrange " << made.range.dims;
    for (const auto& sizes : {made.range.global, made.range.local})
        for (const std::size_t size : sizes) text << ' ' << size;
    text << '\n';
    for (const pointwise::KernelNumber& n : made.numbers)
        text << n.name << ' ' << n.real << ' ' << n.whole << ' '
             << exact(static_cast<double>(n.value)) << '\n';
    text << made.source << '\n';
}

Generated generate(const Job& job, const Kind& kind, std::int64_t parts, bool text) {
    return kind.style == pointwise::Style::vector
               ? pointwise::vector_kernel(job, kind.traits, parts, text)
               : pointwise::group_kernel(job, kind.traits, parts, text);
}

/// Whether a job writes nothing, so that it has no kernel.
bool writes_nothing(const Job& job) {
    return std::all_of(job.outputs.begin(), job.outputs.end(), [&](const auto& out) {
        return out.reduces() ? job.kept() == 0 : job.kept() * job.reduction() == 0;
    });
}

void append(TextWriter& text, const Job& job, const Kind& kind) {
    for (const std::int64_t parts : {0, 1, 3}) {
        if (parts > 0 && !job.reduces()) continue;
        append(text, generate(job, kind, parts, false));
        const Generated first = generate(job, kind, parts, true);
        append(text, first);
        if (first.results == pointwise::Results::partial && first.parts > 1)
            append(text, generate(second_stage(job, first.parts), kind, 1, true));
    }
}

/// A job with padding lanes whose channel has other strides. It covers guards that no real operand
/// needs.
Job with_channel(Job job, std::int64_t outer, std::int64_t inner) {
    std::vector<std::int64_t> strides(job.sizes.size(), outer);
    strides.back() = inner;
    job.channel_class = static_cast<int>(job.classes.size());
    job.classes.push_back(strides);
    return job;
}

/// Appends all texts that are generated for a problem, in all layouts, on a kind of device.
void append(TextWriter& text, const Problem& problem, const Kind& kind) {
    const Engine& engine = *EngineRegistry::instance().find("pointwise.generated");
    if (!engine.is_applicable(kind.traits, problem)) return;
    for (const LayoutChoice& layouts : engine.layouts(kind.traits, problem)) {
        const Problem laid = with_layouts(problem, layouts);
        for (const Job& job : pointwise::make_jobs(laid, kind.traits.fp64)) {
            if (writes_nothing(job)) continue;
            text << "# " << kind.name << ' ' << layouts.name() << ' ' << problem.key(false) << '\n';
            append(text, job, kind);
            if (job.channel_class < 0) continue;
            append(text, with_channel(job, 8, 1), kind);
            append(text, with_channel(job, 8, 0), kind);
        }
    }
}

/// What to do with each case and its problems.
using Action = std::function<void(const std::string& name, const Problems& problems)>;

void for_each_program(const Action& action) {
    const std::map<std::string, std::vector<PointwiseCase>> programs{
        {"elementwise", elementwise_programs()}, {"exact", exact_programs()},
        {"reduction", reduction_programs()},     {"random", random_programs()},
        {"further", further_programs()},
    };
    for (const auto& [list, cases] : programs) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
            Problems problems;
            problems.add(problem_of_program(cases[i]));
            action(cat("programs/", list, '/', i), problems);
        }
    }
}

void for_each_planned(const Action& action) {
    std::set<std::string> types;
    for (const Case& one : load_cases(DLPRIM_CASES)) {
        action(cat("cases/", one.title()), problems_of(one));
        types.insert(one.type);
    }
    for (const std::string& type : types)
        for (unsigned i = 0; i < 40 && has_random_cases(type); ++i)
            action(cat("cases/", type, "/random", i), problems_of(random_case(type, i)));
    std::vector<std::filesystem::path> nets;
    for (const char* folder : {DLPRIM_EXAMPLE_NETS, DLPRIM_TEST_NETS})
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".json") nets.push_back(entry.path());
    std::sort(nets.begin(), nets.end());
    for (const auto& path : nets)
        action(cat("nets/", path.stem().string()),
               problems_of(parse_net_json(read_file(path), path.string())));
}

/// The hashes, one line per case.
std::string hashes(bool all) {
    TextWriter lines;
    const auto add = [&](const std::string& name, const Problems& problems) {
        if (problems.all().empty()) return;
        TextWriter text;
        for (const Problem& problem : problems.all())
            for (const Kind& kind : kinds()) append(text, problem, kind);
        lines << name << ' ' << hash_hex(text.str()) << '\n';
    };
    for_each_program(add);
    if (all) for_each_planned(add);
    return lines.str();
}

int compare(const std::string& found, const std::string& file) {
    const std::string wanted = read_file(file);
    std::set<std::string> known;
    for (const std::string& line : split(wanted, '\n')) known.insert(line);
    int different = 0, cases = 0;
    for (const std::string& line : split(found, '\n')) {
        if (line.empty()) continue;
        ++cases;
        if (known.erase(line) == 1) continue;
        ++different;
        std::cout << "FAILED " << line << ": " << file << " has another hash, or none\n";
    }
    known.erase("");
    for (const std::string& line : known) std::cout << "FAILED " << file << " has " << line << '\n';
    std::cout << cases << " cases, " << sources.size() << " kernels, " << different
              << " cases with another text\n";
    return different == 0 && known.empty() && cases > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        std::vector<std::string> given(argv + 1, argv + argc);
        const bool all = !given.empty() && given.back() == "--all";
        if (all) given.pop_back();
        const bool with_file =
            given.size() == 2 && (given[0] == "--write" || given[0] == "--against");
        if (!with_file && (all || !given.empty())) {
            std::cout << "usage: engine_pointwise_texts_test [--write|--against FILE [--all]]\n";
            return 2;
        }
        const std::string found = hashes(all);
        if (!with_file) return compare(found, DLPRIM_TEXT_HASHES);
        if (given[0] == "--against") return compare(found, given[1]);
        write_file_atomically(given[1], found);
        return 0;
    } catch (const std::exception& error) {
        std::cout << "FAILED: " << error.what() << '\n';
        return 1;
    }
}
