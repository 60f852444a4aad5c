// SPDX-License-Identifier: MIT
// Calls of a kernel in one launch: which can share one, that every packing of a GPU's engine can,
// and that it writes the bits that its calls write one by one.
#include "engine/laid_out.hpp"
#include "engine/table_launch.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"
#include "runtime/program_builds.hpp"
#include "support/gpu_traits.hpp"

#include <map>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const network = R"({
  "inputs": [{"name": "data", "shape": [8, 3, 64, 64]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "first", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
     "options": {"channels_out": 64, "kernel": 7, "stride": 2, "pad": 3}},
    {"name": "second", "type": "Convolution2D", "inputs": ["a"], "outputs": ["b"],
     "options": {"channels_out": 96, "kernel": 3, "pad": 1}},
    {"name": "third", "type": "Convolution2D", "inputs": ["b"], "outputs": ["c"],
     "options": {"channels_out": 40, "kernel": 3, "pad": 1, "stride": 2}},
    {"name": "fourth", "type": "Convolution2D", "inputs": ["c"], "outputs": ["d"],
     "options": {"channels_out": 80, "kernel": 3, "pad": 1}},
    {"name": "fifth", "type": "InnerProduct", "inputs": ["d"], "outputs": ["loss"],
     "options": {"outputs": 64}}
  ]
})";

/// The device with the traits of a GPU that has every matrix unit.
Traits hopper(const Context& device) {
    Traits traits = with_matrix_units(as_gpu(device.traits(), 132), true, true, 227);
    traits.subgroup_size = 16;
    return traits;
}

/// One packing: plain weights, packed weights.
struct Packing {
    std::unique_ptr<Launch> launch;
    std::uint64_t plain_bytes, packed_bytes;
};

struct Found {
    std::set<std::string> engines;
    std::map<std::string, std::vector<Packing>> by_key;
};

void add_packings(Found& found, const Context& device, const Engine& engine,
                  const Problem& problem) {
    const Traits traits = hopper(device);
    if (!engine.is_applicable(traits, problem)) return;
    for (const LayoutChoice& choice : engine.layouts(traits, problem)) {
        const Problem laid = with_layouts(problem, choice);
        for (std::size_t i = 0; i < laid.inputs.size(); ++i) {
            const Layout& layout = laid.inputs[i].layout;
            if (layout.kind != Layout::Kind::packed) continue;
            INFO(engine.name() << " for " << laid.key());
            const BuildsLater later;
            Packing packing{
                engine.build_packing(Access::impl(device), laid,
                                     engine.default_tuning(traits, laid), static_cast<int>(i)),
                static_cast<std::uint64_t>(laid.inputs[i].shape.numel()) * 4, layout.bytes};
            std::set<std::string> keys;
            for (const KernelCall& call : packing.launch->calls())
                keys.insert(TableLaunch::key(call).value_or("cannot share a launch"));
            REQUIRE(keys.size() == 1);
            CHECK(*keys.begin() != "cannot share a launch");
            CHECK(is_copy(packing.launch->calls()[0]));
            found.engines.emplace(engine.name());
            found.by_key[*keys.begin()].push_back(std::move(packing));
        }
    }
}

/// The packings of all engines that apply to a node of the network in any precision.
Found all_packings(const Context& device) {
    Graph graph = build_graph(parse_net_json(network, "network"), {}, 0, true);
    expand_composites(graph);
    differentiate(graph);
    lower(graph);
    Found found;
    for (const Node& node : graph.nodes) {
        if (node.op->is_view()) continue;
        for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
            Problem problem = problem_of(hopper(device), graph, node, {});
            problem.precision = precision;
            if (precision == Precision::fp16) problem.inputs[0].dtype = DType::f16;
            for (const Engine* engine : EngineRegistry::instance().of(problem.op, false))
                add_packings(found, device, *engine, problem);
        }
    }
    return found;
}

std::shared_ptr<Buffer> filled(ContextImpl& device, std::uint64_t bytes, std::uint32_t word) {
    auto buffer = device.allocate(bytes);
    device.queue().fill({buffer.get(), 0}, bytes, &word, sizeof(word));
    return buffer;
}

Bytes contents(ContextImpl& device, const Buffer& buffer, std::uint64_t bytes) {
    Bytes data(bytes);
    device.queue().read({&buffer, 0}, data.data(), bytes, true);
    return data;
}

/// Checks that packings of one key are one program, which is not compiled.
void check_joins(ContextImpl& device, const std::vector<Packing>& packings) {
    std::vector<PlacedCall> calls;
    for (const Packing& packing : packings)
        for (const KernelCall& call : packing.launch->calls())
            calls.push_back({&call, 2 * calls.size()});
    const NotedBuilds noted;
    const TableLaunch joined(device, calls);
    CHECK(noted.programs().size() == 1);
}

/// Runs packings of one key one by one and in one launch, and compares all bytes. Then does so
/// again with operands that were moved.
void check_bits(ContextImpl& device, const std::vector<Packing>& packings) {
    constexpr std::uint64_t unit = 256, moves = 2 * unit;
    const auto up = [](std::uint64_t bytes) { return (bytes + unit - 1) / unit * unit; };
    std::uint64_t plain_bytes = moves, packed_bytes = moves;
    std::vector<PlacedCall> calls;
    std::size_t operand = 0;
    for (const Packing& packing : packings) {
        plain_bytes += up(packing.plain_bytes);
        packed_bytes += up(packing.packed_bytes);
        for (const KernelCall& call : packing.launch->calls()) calls.push_back({&call, operand});
        operand += 2;
    }
    TableLaunch joined(device, calls);
    const std::vector<float> weights = random_floats(plain_bytes / 4, 7);
    const auto plain = device.allocate(plain_bytes);
    device.queue().write({plain.get(), 0}, weights.data(), plain_bytes, true);
    for (std::uint64_t begin = 0; begin <= moves; begin += unit) {
        const auto alone = filled(device, packed_bytes, 0xffffffff);
        const auto together = filled(device, packed_bytes, 0xffffffff);
        std::vector<BufferRef> operands;
        std::uint64_t from = moves - begin, to = begin;
        for (const Packing& packing : packings) {
            const BufferRef pair[] = {{plain.get(), from}, {alone.get(), to}};
            packing.launch->enqueue(device.queue(), pair);
            operands.push_back({plain.get(), from});
            operands.push_back({together.get(), to});
            from += up(packing.plain_bytes);
            to += up(packing.packed_bytes);
        }
        joined.enqueue(device.queue(), operands);
        const Bytes expected = contents(device, *alone, packed_bytes);
        CHECK(contents(device, *together, packed_bytes) == expected);
        CHECK(expected !=
              contents(device, *filled(device, packed_bytes, 0xffffffff), packed_bytes));
    }
}

std::optional<std::string> key_of(const Context& device, const std::string& text,
                                  const NDRange& range = group_range(4, 16)) {
    const BuildsLater later;
    KernelCall call(Access::impl(device).build({"test.cl", text, ""}), "pack", range);
    call.tensor("x", 0).tensor("y", 1);
    return is_copy(call) ? TableLaunch::key(call) : std::nullopt;
}

}  // namespace

TEST_CASE("the packings of all engines for GPUs can share launches and keep their bits") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const Found found = all_packings(device);
        for (const char* const engine :
             {"conv2d.wgmma_split", "conv2d.wgmma_planes", "conv2d.wgmma_window",
              "conv2d.wgmma_narrow", "conv2d.wgmma_half", "conv2d.wgmma_half_first",
              "conv2d.mma_split", "conv2d.implicit_gemm", "conv2d.winograd", "conv2d.subgroup",
              "conv2d_backward_data.wgmma_split", "conv2d_backward_data.implicit_gemm",
              "conv2d_backward_data.winograd", "inner_product.wgmma_half"})
            CHECK(found.engines.count(engine) == 1);
        int compared = 0;
        for (const auto& [key, packings] : found.by_key) {
            INFO(key.substr(0, key.find('\n')) << ", " << packings.size() << " packings");
            check_joins(Access::impl(device), packings);
            // Other kernels have instructions of one vendor.
            if (key.find("asm") != std::string::npos && !device.traits().mma) continue;
            check_bits(Access::impl(device), packings);
            ++compared;
        }
        CHECK(compared >= 2);
    }
}

TEST_CASE(
    "a call shares no launch whose kernel has helpers that ask for ids or writes what it reads") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const std::string head = "kernel void pack(global const float* x, ulong x_offset, ";
        const std::string tail = "global float* y, ulong y_offset) ";
        const std::string good = "{ y[get_global_id(0)] = x[get_group_id(0)]; }";
        CHECK(key_of(device, head + tail + good));
        CHECK(key_of(device, head + tail + good + "\nkernel void other() { get_global_size(0); }"));
        CHECK(key_of(device, head + tail + "{ y[0] = x[get_global_size(0)]; }"));
        CHECK(key_of(device, "#define WIDTH \\\n  get_global_size(0)\n" + head + tail + good));
        CHECK_FALSE(key_of(device, head + "int calls_at, " + tail + good));
        CHECK_FALSE(
            key_of(device, "size_t at() { return get_global_id(0); }\n" + head + tail + good));
        CHECK_FALSE(
            key_of(device, "kernel void pack(global float* x, ulong x_offset, " + tail + good));
        NDRange plane = group_range(4, 16);
        plane.dims = 2;
        plane.global[1] = 2;
        plane.local[1] = 1;
        CHECK_FALSE(key_of(device, head + tail + good, plane));
        CHECK_FALSE(key_of(device, head + tail + good, {1, {64, 1, 1}, {0, 0, 0}}));
        CHECK(key_of(device, head + tail + good, group_range(4, 16)) !=
              key_of(device, head + tail + good, group_range(4, 32)));
    }
}
