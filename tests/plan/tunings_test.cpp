// SPDX-License-Identifier: MIT
// Checks what the contract requires of all engines, for every case of the table, without a device.
// A problem has at most 100 tunings over all layouts, and these name what they set. Each layout has
// a name of its own. The reference engine comes last.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/laid_out.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "plan/choose.hpp"
#include "plan/tune.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/gpu_traits.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <map>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

Traits gpu() {
    Traits traits = as_gpu(Context("cpu").traits());
    traits.local_bytes = 48 << 10;
    return traits;
}

/// Kinds of devices, by the traits that engines examine.
std::map<std::string, Traits> devices() {
    std::map<std::string, Traits> all;
    all["host"] = Context("cpu").traits();
    Traits cpu = gpu();
    cpu.wide_vectors = true;
    for (const int lanes : {4, 16}) {
        cpu.vector_width = lanes;
        all[cat("CPU with vectors of ", lanes)] = cpu;
    }
    all["GPU"] = gpu();
    Traits small = gpu();
    small.max_work_group = 64;
    small.local_bytes = 16 << 10;
    small.max_alloc_bytes = 64 << 20;
    all["small GPU"] = small;
    Traits hopper = gpu();
    hopper.wgmma = hopper.mma = hopper.matrix_fp16 = hopper.matrix_bf16 = true;
    hopper.mma_local_bytes = 227 << 10;
    hopper.compute_units = 132;
    all["GPU with the unit of warpgroups"] = hopper;
    for (const int kib : {227, 163, 99}) {
        Traits mma = hopper;
        mma.wgmma = false;
        mma.mma_local_bytes = static_cast<std::uint64_t>(kib) << 10;
        all[cat("GPU with the unit of warps and ", kib, " KiB")] = mma;
    }
    for (const int lanes : {8, 16}) {
        Traits subgroups = gpu();
        subgroups.subgroup_size = lanes;
        all[cat("GPU with sub-groups of ", lanes)] = subgroups;
    }
    return all;
}

/// The problems of a case's planned nodes, forward and backward, with and without values that are
/// constant because they depend on parameters alone.
Graph graph_of(const Case& one, bool training) {
    nlohmann::json inputs = nlohmann::json::array(), names = nlohmann::json::array();
    for (const CaseTensor& input : one.inputs) {
        const std::string name = cat("x", names.size());
        names.push_back(name);
        inputs.push_back({{"name", name},
                          {"shape", input.shape.to_vector()},
                          {"dtype", std::string(name_of(input.dtype))}});
    }
    const nlohmann::json net = {{"inputs", inputs},
                                {"outputs", {{{"name", "loss"}, {"loss_weight", 1}}}},
                                {"operators",
                                 {{{"name", "op"},
                                   {"type", one.type},
                                   {"inputs", names},
                                   {"outputs", {"loss"}},
                                   {"options", nlohmann::json::parse(one.options)}}}}};
    Graph graph = build_graph(parse_net_json(net.dump(), one.title()), {}, 0, training);
    expand_composites(graph);
    if (training) {
        DifferentiateOptions how;
        how.input_gradients = true;
        differentiate(graph, how);
    }
    lower(graph);
    return graph;
}

/// The problem in each precision, with each mix of operand types that the planner may use.
std::vector<Problem> forms_of(const Problem& problem) {
    std::vector<Problem> all;
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
        Problem next = problem;
        next.precision = precision;
        all.push_back(next);
        if (precision != Precision::fp16 && precision != Precision::bf16) continue;
        const DType type = precision == Precision::fp16 ? DType::f16 : DType::bf16;
        const std::size_t inputs = std::min<std::size_t>(problem.inputs.size(), 2);
        // bf16 behaves like fp16, so testing all three types together suffices.
        for (unsigned mix = precision == Precision::fp16 ? 1 : 7; mix < 8; ++mix) {
            next = problem;
            for (const Precision posed : {precision, Precision::tf32, Precision::fp32}) {
                next.precision = posed;
                for (std::size_t i = 0; i < inputs; ++i)
                    if ((mix >> i & 1) != 0 && next.inputs[i].dtype == DType::f32)
                        next.inputs[i].dtype = type;
                if ((mix & 4) != 0)
                    for (Operand& output : next.outputs)
                        if (output.dtype == DType::f32) output.dtype = type;
                all.push_back(next);
            }
        }
    }
    return all;
}

/// The problems of all cases.
std::vector<Problem> all_problems() {
    OperatorRegistry::instance();
    std::set<std::string> seen;
    std::vector<Problem> problems;
    const Traits any = gpu();
    for (const Case& one : load_cases(DLPRIM_CASES))
        for (const bool training : {false, true}) {
            Graph graph;
            try {
                graph = graph_of(one, training);
            } catch (const Error&) {
                continue;  // it cannot have a loss: integers, or several results
            }
            for (const std::vector<char>& constant :
                 {constant_values(graph), std::vector<char>(graph.values.size(), 0)})
                for (const Node& node : graph.nodes) {
                    if (node.removed || node.op->is_view()) continue;
                    const Problem problem = problem_of(any, graph, node, constant);
                    if (seen.insert(problem.key(false)).second) problems.push_back(problem);
                }
        }
    return problems;
}

/// Calls `check(kind, device, engine, problem)` for all kinds of devices and all forms of all
/// problems to which an engine applies.
template <typename Check>
void for_all(const std::vector<Problem>& problems, const Check& check) {
    for (const auto& [kind, device] : devices())
        for (const Problem& problem : problems)
            for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host))
                for (const Problem& form : forms_of(problem))
                    if (engine->is_applicable(device, form)) check(kind, device, *engine, form);
}

/// Names that denote a position in a table.
bool is_place(const std::string& name) {
    return name == "tile" || name == "layout" || name == "variant" || name == "index";
}

/// What is wrong with the names in an engine's tunings, or empty. All tunings must have the
/// default's names, none may denote a position, and a tuning that is not listed must not be
/// accepted.
std::string wrong_names(const Engine& engine, const Traits& device, const Problem& laid) {
    const std::vector<Tuning> all = tunings_of(engine, device, laid);
    const Tuning& standard = all.front();
    for (const auto& [name, value] : standard)
        if (is_place(name)) return name;
    for (const Tuning& tuning : all)
        if (!std::equal(tuning.begin(), tuning.end(), standard.begin(), standard.end(),
                        [](const auto& a, const auto& b) { return a.first == b.first; }))
            return text_of(tuning);
    Tuning more = standard, less = standard, huge = standard;
    more["tile"] = 0;
    std::vector<Tuning> hostile{more};
    if (!standard.empty()) {
        less.erase(less.begin());
        huge.begin()->second = 1'000'000'000'000'000'000;
        hostile.insert(hostile.end(), {less, huge});
    }
    for (const Tuning& tuning : hostile)
        if (offers(engine, device, laid, tuning)) return text_of(tuning);
    return offers(engine, device, laid, all.back()) ? "" : text_of(all.back());
}

}  // namespace

TEST_CASE("engines offer a hundred tunings of a problem at most") {
    const std::vector<Problem> problems = all_problems();
    CHECK(problems.size() > 300);
    std::map<std::string, std::size_t> most;
    for_all(problems, [&](const std::string& kind, const Traits& device, const Engine& engine,
                          const Problem& form) {
        std::size_t count = 0;
        for (const LayoutChoice& layouts : engine.layouts(device, form))
            count += tunings_of(engine, device, with_layouts(form, layouts)).size();
        std::size_t& known = most[std::string(engine.name())];
        known = std::max(known, count);
        if (count <= most_tunings) return;
        INFO(engine.name() << " on a " << kind << ": " << form.key());
        CHECK(count <= most_tunings);
    });
    std::size_t with_space = 0;
    for (const auto& [name, count] : most) {
        with_space += count > 1;
        UNSCOPED_INFO(name << ": " << count);
    }
    CHECK(with_space >= 20);
}

TEST_CASE("tunings name what they set, and layouts have a name each") {
    const std::vector<Problem> all = all_problems();
    std::vector<Problem> some;  // an eighth suffices, as names do not depend on sizes
    for (std::size_t i = 0; i < all.size(); i += 8) some.push_back(all[i]);
    std::size_t several = 0, named = 0;
    for_all(some, [&](const std::string& kind, const Traits& device, const Engine& engine,
                      const Problem& form) {
        std::set<std::string> names;
        const std::vector<LayoutChoice> choices = engine.layouts(device, form);
        for (const LayoutChoice& layouts : choices) {
            names.insert(layouts.name());
            const Problem laid = with_layouts(form, layouts);
            const std::string wrong = wrong_names(engine, device, laid);
            named += !engine.default_tuning(device, laid).empty();
            if (wrong.empty()) continue;
            INFO(engine.name() << " on a " << kind << ": " << form.key() << ": " << wrong);
            CHECK(false);
        }
        several += choices.size() > 1;
        if (names.size() == choices.size()) return;
        INFO(engine.name() << " on a " << kind << ": " << form.key());
        CHECK(names.size() == choices.size());
    });
    CHECK(several > 100);
    CHECK(named > 100);
}

TEST_CASE("where an operator has several engines, the last is its reference") {
    // The tuner compares candidates with the last engine, and messages name it as the one that
    // should work. Where elements only move, the copies of their inputs are that engine: they are
    // as simple as a reference, and too fast to be counted as one. Casts of narrow types,
    // layouts with strides and poolings that are not of plain images have a single engine.
    // Attention, its gradients and attention over caches are composites, too, whose nodes are the
    // reference.
    OperatorRegistry::instance();
    const EngineRegistry& engines = EngineRegistry::instance();
    std::map<std::string, std::size_t> counts;
    for (const std::string& name : engines.names())
        if (!engines.find(name)->on_host()) ++counts[std::string(engines.find(name)->op())];
    CHECK(counts.size() > 15);
    for (const auto& [op, count] : counts) {
        const std::vector<const Engine*> found = engines.of(op, false);
        REQUIRE(found.size() == count);
        for (const Engine* engine : found) {
            INFO(op << ": " << engine->name());
            const std::string_view name = engine->name();
            const bool simplest = name.ends_with(".reference") || name == "concat.copy" ||
                                  name == "cast.narrow" || name == "reorder.strided" ||
                                  name == "attention.online" ||
                                  name == "attention.online_backward" ||
                                  name == "attention.cached_rows" || name.starts_with("pooling_nd");
            CHECK((simplest || count == 1) == (engine == found.back()));
        }
    }
}

TEST_CASE("reference engines are not taken for fast where few elements have long sums") {
    // The 1x1 convolutions of squeeze-and-excite blocks, on images of one pixel. They are little
    // work, but a reference engine computes each sum in one long loop. Other engines pack weights,
    // which takes a launch or two.
    OperatorRegistry::instance();
    int long_sums = 0;
    for (const auto& [kind, traits] : devices()) {
        if (traits.host || traits.wide_vectors) continue;
        Traits device = traits;
        device.gflops = 60000;
        device.gbytes_per_s = 4000;
        device.launch_us = 5;
        for (const auto& [in, out] : {std::pair{1536, 64}, {64, 1536}, {960, 240}}) {
            Case one;
            one.type = "Convolution2D";
            one.options = cat(R"({"kernel": 1, "channels_out": )", out, "}");
            one.inputs.resize(1);
            one.inputs[0].shape = Shape{64, in, 1, 1};
            const Graph graph = graph_of(one, true);
            for (const Node& node : graph.nodes) {
                if (node.removed || !node.op->problem_type().starts_with("Convolution2D")) continue;
                const Problem problem = problem_of(device, graph, node, {});
                double least = std::numeric_limits<double>::infinity(), reference = 0;
                for (const Engine* engine : EngineRegistry::instance().of(problem.op, false)) {
                    if (!engine->is_applicable(device, problem)) continue;
                    const Problem laid =
                        with_layouts(problem, engine->layouts(device, problem).front());
                    const double seconds =
                        engine->estimate(device, laid, engine->default_tuning(device, laid));
                    (is_reference(*engine) ? reference : least) =
                        is_reference(*engine) ? seconds : std::min(least, seconds);
                }
                // For all three directions: the operands are x and weight, or y and one of these.
                const bool sums_batch = node.op->type() == "Convolution2DBackwardFilter";
                const bool sums_out = node.op->type() == "Convolution2DBackwardData";
                const int terms = sums_batch ? 64 : sums_out ? out : in;
                if (terms < 200) continue;
                ++long_sums;
                INFO(kind << ": " << problem.key());
                CHECK(reference > 3 * least);
            }
        }
    }
    CHECK(long_sums >= 16);
}
