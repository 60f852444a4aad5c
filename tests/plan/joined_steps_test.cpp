// SPDX-License-Identifier: MIT
// Steps that share a launch, packings of weights and parts of one value: how many launches remain,
// that results keep their bits, that memory hardly grows, and what happens where the joined launch
// fails. CPUs pass for GPUs here, because steps are joined on GPUs only.
#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/make_plan.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// What the engines below do.
enum class Play { nothing, pack, refuse_batches };
Play play = Play::nothing;

struct Act {
    explicit Act(Play wanted) { play = wanted; }
    ~Act() { play = Play::nothing; }
};

const char* const pack_text = R"(
kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void turned_pack(global const float* weight, ulong weight_offset, global float* packed, ulong packed_offset, int count,
                 float factor, long row)
{
    local float part[16];
    const int id = get_local_id(0), turned = get_group_id(0) * 16 + 15 - id;
    weight += weight_offset;
    part[15 - id] = turned < count ? weight[turned] * factor : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_global_id(0) < count) packed[packed_offset + get_global_id(0) / row * row + get_global_id(0) % row] = part[id];
}
)";

/// The reference engine on packed weights, which are the plain ones. It is the fastest by its own
/// estimate, and needs two calls for a packing.
class Packed : public Engine {
  public:
    explicit Packed(std::string_view op) : Engine(cat("packed.", op), op, false) {}
    Verdict is_applicable(const Traits&, const Problem&) const override {
        return play == Play::nothing ? Verdict::no("it is not under test") : Verdict::yes();
    }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return -1; }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        auto choices = Engine::layouts(device, problem);
        const Shape& shape = problem.inputs[1].shape;
        choices[0].inputs[1] = Layout::packed(
            cat(op(), shape.str()), static_cast<std::uint64_t>(shape.numel()) * sizeof(float));
        return choices;
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        Problem plain = problem;
        plain.inputs[1].layout = Layout::plain();
        const Engine& right = *EngineRegistry::instance().of(op(), false).back();
        return right.build(context, plain, right.default_tuning(context.traits(), plain));
    }
    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int index) const override {
        const std::int64_t count = problem.inputs[static_cast<std::size_t>(index)].shape.numel();
        const std::int64_t half = count / 2;
        std::string text = pack_text;
        if (play == Play::refuse_batches)
            text = "#ifdef TABLE_ROW\n#error refused\n#endif\n" + text;
        const auto program = context.build({"turned_pack.cl", text, ""});
        auto launch = std::make_unique<KernelLaunch>();
        for (const std::int64_t first : {std::int64_t{0}, half}) {
            const std::int64_t part = first == 0 ? half : count - half;
            const auto bytes = static_cast<std::uint64_t>(first) * sizeof(float);
            KernelCall call(program, "turned_pack", group_range((part + 15) / 16, 16));
            call.tensor_at("weight", 0, bytes).tensor_at("packed", 1, bytes);
            call.scalar("count", static_cast<std::int32_t>(part)).scalar("factor", 1.0f);
            call.scalar("row", std::int64_t{5} << (part % 40));
            launch->add(std::move(call));
        }
        return launch;
    }
};

/// Registered before any device is opened, and therefore before the library registers its own
/// engines.
const bool registered = [] {
    for (const char* const op : {"Convolution2D", "Convolution2DBackwardData"})
        EngineRegistry::instance().add(std::make_unique<Packed>(op));
    return true;
}();

/// The device as a GPU, in a context of its own.
Context gpu_from(const Context& device) {
    const Variable traits("DLPRIM_TRAITS", "wide_vectors=0,max_work_group=64");
    return Context(device.info().id);
}

/// The same, with steps that are not joined.
Context with_steps_apart(const Context& device) {
    Context gpu = gpu_from(device);
    disable(Access::impl(gpu), joined_steps_key, "the test compares with launches of their own");
    return gpu;
}

/// Three convolutions of different sizes. Weights are small in comparison with images of `size`.
std::string network_of(int size) {
    const auto convolution = [](const std::string& name, const std::string& from, int channels,
                                int kernel) {
        return cat(R"({"name": ")", name, R"(", "type": "Convolution2D", "inputs": [")", from,
                   R"("], "outputs": [")", name, R"("], "options": {"channels_out": )", channels,
                   R"(, "kernel": )", kernel, R"(, "pad": )", kernel / 2, "}},");
    };
    return cat(R"({"inputs": [{"name": "data", "shape": [4, 3, )", size, ", ", size, R"(]},
                              {"name": "label", "shape": [4], "dtype": "int"}],
      "outputs": ["loss"], "operators": [)",
               convolution("a", "data", 8, 3), convolution("b", "a", 24, 1),
               convolution("c", "b", 9, 3), R"(
        {"name": "scores", "type": "InnerProduct", "inputs": ["c"], "outputs": ["scores"],
         "options": {"outputs": 5}},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
         "outputs": ["loss"]}]})");
}

/// Compilers for CPUs take minutes for GPU kernels with work-groups, so other nodes have the
/// simplest engines.
std::vector<std::pair<std::string, std::string>> simple_engines() {
    std::vector<std::pair<std::string, std::string>> engines;
    for (const char* const type : {"Convolution2DBackwardFilter", "InnerProduct", "MatMul"})
        engines.emplace_back(type, EngineRegistry::instance().of(type, false).back()->name());
    return engines;
}

std::unique_ptr<Plan> training_plan(const Context& device, int size) {
    Graph graph = build_graph(parse_net_json(network_of(size), "network"), {}, 0, true);
    expand_composites(graph);
    differentiate(graph);
    add_update(graph, {});
    PlanOptions options{.engines = simple_engines()};
    return make_plan(device, graph, options);
}

std::vector<const Step*> packings(const Plan& plan) {
    std::vector<const Step*> found;
    for (const Step& step : plan.steps)
        if (step.type == "Pack") found.push_back(&step);
    return found;
}

struct Trained {
    std::map<std::string, Bytes> params;
    std::uint64_t launches = 0;  ///< of the last step
};

Trained train(const Context& device) {
    NetOptions options = training();
    options.engines = simple_engines();
    Net net = make_net(device, network_of(16), options);
    SolverOptions rate{.learning_rate = 0.05};
    Solver solver(net, rate);
    Trained trained;
    for (unsigned step = 0; step < 4; ++step) {
        set_floats(net, "data", random_floats(std::size_t{4} * 3 * 16 * 16, step));
        set_labels(net, "label", {0, 1, 2, 3});
        device.finish();
        const auto before = device.counters().launches;
        solver.step();
        device.finish();
        trained.launches = device.counters().launches - before;
    }
    trained.params = all_bits(net);
    return trained;
}

struct Sliced {
    std::map<std::string, Bytes> params;
    std::vector<NodeReport> steps;  ///< of type Slice
};

/// Trains a network that concatenates results of 3, 1, 4, 2 and 8 channels, of size x size pixels.
Sliced slices_of(const Context& device, int size) {
    std::string convolutions, names;
    for (const int channels : {3, 1, 4, 2, 8}) {
        convolutions +=
            cat(R"({"name": "c)", channels,
                R"(", "type": "Convolution2D", "inputs": ["data"], "outputs": ["c)", channels,
                R"("], "options": {"channels_out": )", channels, R"(, "kernel": 1}},)");
        names += cat(names.empty() ? "" : ", ", "\"c", channels, '"');
    }
    NetOptions options = training();
    options.engines = simple_engines();
    options.engines.emplace_back("Convolution2D", "conv2d.reference");
    Net net = make_net(device,
                       cat(R"({"inputs": [{"name": "data", "shape": [2, 3, )", size, ", ", size,
                           R"(]}, {"name": "label", "shape": [2], "dtype": "int"}],
      "outputs": ["loss"], "operators": [)",
                           convolutions, R"({"name": "all", "type": "Concat", "inputs": [)", names,
                           R"(], "outputs": ["all"]},
        {"name": "scores", "type": "InnerProduct", "inputs": ["all"], "outputs": ["scores"],
         "options": {"outputs": 4}},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
         "outputs": ["loss"]}]})"),
                       options);
    SolverOptions rate{.learning_rate = 0.05};
    Solver solver(net, rate);
    for (unsigned step = 0; step < 3; ++step) {
        set_floats(
            net, "data",
            random_floats(2 * 3 * static_cast<std::size_t>(size) * static_cast<std::size_t>(size),
                          step));
        set_labels(net, "label", {1, 3});
        solver.step();
    }
    Sliced sliced{all_bits(net), {}};
    for (NodeReport& report : net.nodes())
        if (report.type == "Slice") sliced.steps.push_back(std::move(report));
    return sliced;
}

}  // namespace

TEST_CASE("a training step packs the weights of a part in one launch, with the same bits") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const Act act(Play::pack);
        const Context joined = gpu_from(device), apart = with_steps_apart(device);
        const auto together = training_plan(joined, 16), alone = training_plan(apart, 16);
        // The first convolution needs no gradient of its images.
        CHECK(packings(*alone).size() == 5);
        REQUIRE(packings(*together).size() == 2);
        CHECK(packings(*together)[0]->part == Part::forward);
        CHECK(packings(*together)[0] == &together->steps[0]);
        CHECK(packings(*together)[0]->name == "pack 3 parameters");
        CHECK(packings(*together)[0]->operands.size() == 6);
        CHECK(packings(*together)[1]->part == Part::backward);
        CHECK(packings(*together)[1]->name == "pack 2 parameters");
        CHECK(together->peak_bytes <= alone->peak_bytes + alone->peak_bytes / 64);

        const Trained one = train(joined), other = train(apart);
        CHECK(one.params == other.params);
        CHECK(one.params.size() == 8);
        CHECK(one.launches + 8 == other.launches);  // two calls for each packing
    }
}

TEST_CASE("packings stay apart where memory would grow by more than a 64th") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const Act act(Play::pack);
        const auto plan = training_plan(gpu_from(device), 1);
        const auto alone = training_plan(with_steps_apart(device), 1);
        CHECK(packings(*plan).size() > 2);
        CHECK(plan->peak_bytes <= alone->peak_bytes + alone->peak_bytes / 64);
    }
}

TEST_CASE("packings stay apart on CPUs") {
    ON_EVERY_DEVICE(device) {
        if (!device.traits().wide_vectors || device.traits().host) continue;
        const Act act(Play::pack);
        CHECK(packings(*training_plan(device, 16)).size() == 5);
    }
}

TEST_CASE("the gradient of Concat is a launch for each kernel that it needs, with the same bits") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        // Rows of 36 floats for each channel are copied in fours. Of 25 floats, four and eight
        // channels are.
        for (const auto& [size, launches] : {std::pair(6, 1), {5, 2}}) {
            const auto joined = slices_of(gpu_from(device), size);
            const auto apart = slices_of(with_steps_apart(device), size);
            REQUIRE(apart.steps.size() == 5);
            REQUIRE(joined.steps.size() == static_cast<std::size_t>(launches));
            CHECK(joined.params == apart.params);
            CHECK(joined.params.size() == 12);
            std::set<std::string> names;
            for (const NodeReport& step : joined.steps) {
                CHECK(step.engine == "slice.copy");
                names.insert(step.name);
                names.insert(step.fused.begin(), step.fused.end());
            }
            std::set<std::string> expected;
            for (const NodeReport& step : apart.steps) expected.insert(step.name);
            CHECK(names == expected);
        }
    }
}

TEST_CASE("short products of one value share a launch, with the same bits") {
    std::string network = R"({"inputs": [{"name": "data", "shape": [2, 40]}],
      "outputs": ["all"], "operators": [
        {"name": "x", "type": "Softmax", "inputs": ["data"], "outputs": ["x"]},)";
    for (const char* const name : {"q", "k", "v"})
        network += cat(R"({"name": ")", name, R"(", "type": "InnerProduct", "inputs": ["x"],
          "outputs": [")",
                       name, R"("], "options": {"outputs": )", name[0] == 'q' ? 24 : 8, "}},");
    network += R"({"name": "all", "type": "Concat", "inputs": ["q", "v", "k"], "outputs": ["all"],
                   "options": {"dim": 1}}]})";
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        NetOptions options;
        options.engines = simple_engines();
        const auto run = [&](const Context& context) {
            Net net = make_net(context, network, options);
            set_floats(net, "data", random_floats(2 * 40, 1));
            net.forward();
            std::vector<std::string> products;
            for (const NodeReport& report : net.nodes())
                if (report.type == "InnerProduct") products.push_back(report.name);
            return std::pair(net.output("all").to_floats(), products);
        };
        const auto joined = run(gpu_from(device)), apart = run(with_steps_apart(device));
        CHECK(joined.first == apart.first);
        CHECK(joined.second == std::vector<std::string>{"q"});
        CHECK(apart.second.size() == 3);
    }
}

TEST_CASE("a launch of joined packings that does not build is replaced by one for each") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const Act act(Play::refuse_batches);
        const Context gpu = gpu_from(device);
        CHECK(packings(*training_plan(gpu, 16)).size() == 5);
        const Trained found = train(gpu), expected = train(with_steps_apart(device));
        CHECK(found.params == expected.params);
        CHECK(found.launches == expected.launches);
    }
}
