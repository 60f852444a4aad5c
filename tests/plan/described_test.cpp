// SPDX-License-Identifier: MIT
// Described devices: the files of databases/devices, plans for them, and what bad files get.
#include "api/net_impl.hpp"
#include "engine/engine.hpp"
#include "plan/plan.hpp"
#include "runtime/device_file.hpp"
#include "runtime/program.hpp"
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace dlprim;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> device_files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(DLPRIM_DEVICES_DIR))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::string text_of(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

Context described(const fs::path& path) {
    return Context("file:" + path.string());
}

const char* const pictures = R"({
  "inputs": [{"name": "data", "shape": [32, 3, 112, 112]}, {"name": "label", "shape": [32],
              "dtype": "int"}],
  "outputs": ["loss"],
  "operators": [
    {"name": "first", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
     "options": {"channels_out": 64, "kernel": 7, "stride": 2, "pad": 3}},
    {"name": "norm", "type": "BatchNorm", "inputs": ["a"], "outputs": ["b"]},
    {"name": "second", "type": "Convolution2D", "inputs": ["b"], "outputs": ["c"],
     "options": {"channels_out": 128, "kernel": 3, "pad": 1, "activation": "relu"}},
    {"name": "wise", "type": "Convolution2D", "inputs": ["c"], "outputs": ["d"],
     "options": {"channels_out": 128, "kernel": 3, "pad": 1, "groups": 128}},
    {"name": "pool", "type": "Pooling2D", "inputs": ["d"], "outputs": ["e"],
     "options": {"kernel": 2, "stride": 2}},
    {"name": "fc", "type": "InnerProduct", "inputs": ["e"], "outputs": ["f"],
     "options": {"outputs": 100}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["f", "label"], "outputs": ["loss"]}]})";

const char* const words = R"({
  "inputs": [{"name": "ids", "shape": [4, 96], "dtype": "int"},
             {"name": "target", "shape": [4, 96, 512]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "embed", "type": "Embedding", "inputs": ["ids"], "outputs": ["x"],
     "options": {"num_embeddings": 1000, "embedding_dim": 512}},
    {"name": "norm", "type": "LayerNorm", "inputs": ["x"], "outputs": ["n"]},
    {"name": "q", "type": "InnerProduct", "inputs": ["n"], "outputs": ["y"],
     "options": {"outputs": 512, "axis": 2, "activation": "relu"}},
    {"name": "loss", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";

const char* const heads = R"({
  "inputs": [{"name": "q", "shape": [1, 8, 4096, 64]}, {"name": "k", "shape": [1, 8, 4096, 64]},
             {"name": "v", "shape": [1, 8, 4096, 64]}, {"name": "target", "shape": [1, 8, 4096, 64]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "attention", "type": "Attention", "inputs": ["q", "k", "v"], "outputs": ["y"]},
    {"name": "loss", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";

/// Checks that every launch and every piece of memory of the plan is within the device's limits.
void check_limits(const Context& device, const char* text, bool training) {
    const Traits& traits = device.traits();
    NetOptions options;
    options.mode = training ? Mode::training : Mode::inference;
    const Net net = Net::from_json(device, text, options);
    const SolverOptions solver;
    const auto programs = planned_programs(net, training ? &solver : nullptr);
    CHECK(programs.size() > 3);
    for (const PlannedProgram& program : programs) {
        INFO(program.name << ' ' << program.options);
        CHECK_FALSE(program.kernels.empty());
        for (const PlannedKernel& kernel : program.kernels) {
            CHECK(program.source.find(kernel.name) != std::string::npos);
            const auto& [x, y, z] = kernel.local;
            REQUIRE((x == 0) == (y * z == 0));
            CHECK(x * y * z <= traits.max_work_group);
            for (std::size_t d = 0; d < 3 && x > 0; ++d)
                CHECK(kernel.global[d] % kernel.local[d] == 0);
        }
    }
    const BuildsLater later;
    const std::unique_ptr<Plan> plan =
        Access::impl(net).plan_step(training ? &solver : nullptr, true);
    for (const std::uint64_t bytes : plan->slabs) CHECK(bytes <= traits.max_alloc_bytes);
    for (const Block& block : plan->blocks) CHECK(block.bytes <= traits.max_alloc_bytes);
    CHECK(plan->peak_bytes <= traits.global_bytes);
    for (const Step& step : plan->steps)
        if (step.engine != nullptr) CHECK_FALSE(step.engine->on_host());
}

std::string message_of(const std::string& text) {
    try {
        parse_device(text, "my.json");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::format);
        return error.what();
    }
    return "it was taken";
}

std::string changed(const char* field, const nlohmann::json& value) {
    auto device = nlohmann::json::parse(text_of(fs::path(DLPRIM_DEVICES_DIR) / "rx580.json"));
    if (value.is_discarded())
        device.erase(field);
    else
        device[field] = value;
    return device.dump();
}

}  // namespace

TEST_CASE("Thirteen devices are described, each under its own name") {
    std::set<std::string> names;
    for (const fs::path& file : device_files()) {
        INFO(file);
        const DescribedDevice device = read_device_file(file.string());
        CHECK(names.insert(device.info.name).second);
        CHECK(device.info.id == "file:" + file.string());
        // The peak is that of a whole number of lanes, each of which does a multiply-add in a
        // cycle.
        const auto json = nlohmann::json::parse(text_of(file));
        const double lanes = device.traits.gflops * 1e3 / (2 * json["clock_mhz"].get<double>());
        CHECK(std::abs(lanes / 8 - std::round(lanes / 8)) < 0.06);
    }
    CHECK(names.size() == 13);
}

TEST_CASE("Traits of a described device follow from its file") {
    const fs::path folder(DLPRIM_DEVICES_DIR);
    const Traits radeon = described(folder / "rx580.json").traits();
    CHECK(radeon.compute_units == 36);
    CHECK(radeon.item_registers == 64);
    CHECK(radeon.subgroup_size == 0);
    CHECK(radeon.fp16);
    const Traits intel = described(folder / "iris_xe.json").traits();
    CHECK(intel.subgroup_size == 16);
    CHECK(intel.item_registers == 64);
    CHECK_FALSE(intel.fp64);
    CHECK(intel.unified_memory);
    CHECK(described(folder / "rx6600xt.json").traits().item_registers == 128);
    CHECK(described(folder / "adreno740.json").traits().item_registers == 0);
}

TEST_CASE("Plans keep the limits of every described device") {
    for (const fs::path& file : device_files()) {
        INFO(file);
        const Context device = described(file);
        for (const bool training : {false, true}) {
            check_limits(device, pictures, training);
            check_limits(device, words, training);
        }
    }
}

TEST_CASE("A described device plans as its traits say and runs nothing") {
    const fs::path file = fs::path(DLPRIM_DEVICES_DIR) / "arc_a770.json";
    const Context device = described(file);
    CHECK(Context::find("file:" + file.string()).name == device.info().name);
    Net net = Net::from_json(device, pictures);
    std::set<std::string> engines;
    for (const PlannedProgram& program : planned_programs(net))
        for (const PlannedKernel& kernel : program.kernels) engines.insert(kernel.engine);
    CHECK(engines.count("conv2d.subgroup") == 1);
    net.initialize();
    for (const std::string& name : net.input_names()) net.input(name);
    CHECK_THROWS_WITH(net.forward(), ContainsSubstring("is described by a file") &&
                                         ContainsSubstring("planned_programs()"));
    // Memory works as on any device.
    Tensor tensor(device, Shape{4}, DType::f32);
    const float values[] = {1, 2, 3, 4};
    tensor.copy_from_host(values, sizeof(values));
    float back[4] = {};
    tensor.copy_to_host(back, sizeof(back));
    CHECK(back[3] == 4);
}

/// A layer of a transformer for 8 x 1024 words.
std::string transformer() {
    std::string text = R"({"inputs": [{"name": "words", "shape": [8192], "dtype": "int"},
        {"name": "labels", "shape": [8192], "dtype": "int"}], "outputs": ["loss"], "operators": [
        {"name": "x", "type": "Embedding", "inputs": ["words"], "outputs": ["x"],
         "options": {"num_embeddings": 50257, "embedding_dim": 768}},
        {"name": "n", "type": "LayerNorm", "inputs": ["x"], "outputs": ["n"],
         "options": {"normalized_shape": [768]}},)";
    const std::string part_text = R"(
        {"name": "PART", "type": "InnerProduct", "inputs": ["n"], "outputs": ["PART_rows"],
         "options": {"outputs": 768}},
        {"name": "PART_split", "type": "Reshape", "inputs": ["PART_rows"], "outputs": ["PART_split"],
         "options": {"dims": [8, 1024, 12, 64]}},
        {"name": "PART_heads", "type": "Transpose", "inputs": ["PART_split"], "outputs": ["PART"],
         "options": {"dims": [0, 2, 1, 3]}},)";
    for (const char* part : {"q", "k", "v"}) {
        std::string own = part_text;
        for (std::size_t at; (at = own.find("PART")) != std::string::npos;)
            own.replace(at, 4, part);
        text += own;
    }
    return text + R"(
        {"name": "attention", "type": "Attention", "inputs": ["q", "k", "v"], "outputs": ["y"],
         "options": {"is_causal": true}},
        {"name": "turned", "type": "Transpose", "inputs": ["y"], "outputs": ["t"],
         "options": {"dims": [0, 2, 1, 3]}},
        {"name": "joined", "type": "Reshape", "inputs": ["t"], "outputs": ["j"],
         "options": {"dims": [8192, 768]}},
        {"name": "wide", "type": "InnerProduct", "inputs": ["j"], "outputs": ["o"],
         "options": {"outputs": 3072, "activation": "gelu"}},
        {"name": "logits", "type": "InnerProduct", "inputs": ["o"], "outputs": ["logits"],
         "options": {"outputs": 50257, "bias": false}},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["logits", "labels"],
         "outputs": ["loss"]}]})";
}

/// Depthwise convolutions as ConvNeXt has them, and of channels that are not all in fours, as
/// ShuffleNet's.
std::string depthwise() {
    return R"({"inputs": [{"name": "data", "shape": [64, 3, 224, 224]},
                          {"name": "labels", "shape": [64], "dtype": "int"}],
      "outputs": ["scores", "loss"],
      "operators": [
        {"name": "stem", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
         "options": {"channels_out": 96, "kernel": 4, "stride": 4}},
        {"name": "large", "type": "Convolution2D", "inputs": ["a"], "outputs": ["b"],
         "options": {"channels_out": 96, "kernel": 7, "pad": 3, "groups": 96}},
        {"name": "narrow", "type": "Convolution2D", "inputs": ["b"], "outputs": ["c"],
         "options": {"channels_out": 58, "kernel": 1}},
        {"name": "odd", "type": "Convolution2D", "inputs": ["c"], "outputs": ["d"],
         "options": {"channels_out": 58, "kernel": 3, "stride": 2, "pad": 1, "groups": 58}},
        {"name": "pool", "type": "GlobalPooling", "inputs": ["d"], "outputs": ["e"],
         "options": {"mode": "avg"}},
        {"name": "scores", "type": "InnerProduct", "inputs": ["e"], "outputs": ["scores"],
         "options": {"outputs": 10}},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "labels"],
         "outputs": ["loss"]}]})";
}

TEST_CASE("No precision leaves networks on an H200 to reference engines") {
    const Context device = described(fs::path(DLPRIM_DEVICES_DIR) / "h200.json");
    std::map<std::string, std::string> networks{{"transformer", transformer()},
                                                {"depthwise", depthwise()}};
    for (const auto& entry : fs::directory_iterator(DLPRIM_NETS_DIR))
        networks[entry.path().stem()] = text_of(entry.path());
    CHECK(networks.size() == 7);
    for (const auto& [name, text] : networks)
        for (const Precision precision :
             {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
            for (const Mode mode : {Mode::inference, Mode::training}) {
                INFO(name << " in " << name_of(precision)
                          << (mode == Mode::training ? ", training" : ""));
                NetOptions options;
                options.mode = mode;
                options.precision = precision;
                Net net = Net::from_json(device, text, options);
                for (const std::string& note : net.notes()) {
                    INFO(note);
                    CHECK(note.find("reference engines") == std::string::npos);
                }
            }
}

TEST_CASE("Products of fp16 read values that are stored in 16 bits") {
    const Context device = described(fs::path(DLPRIM_DEVICES_DIR) / "h200.json");
    NetOptions options;
    options.mode = Mode::inference;
    options.precision = Precision::fp16;
    Net net = Net::from_json(device, transformer(), options);
    int products = 0;
    for (const NodeReport& node : net.nodes()) {
        INFO(node.name << " by " << node.engine);
        if (node.type == "InnerProduct") {
            CHECK(node.engine == "inner_product.wgmma_half");
            ++products;
        }
        if (node.name == "attention") CHECK(node.engine == "attention.wgmma");
    }
    CHECK(products == 5);
}

TEST_CASE(
    "Attention over many positions is one node whose memory does not grow with their square") {
    NetOptions options;
    options.mode = Mode::inference;
    for (const char* name : {"rx580.json", "rx7900xtx.json", "gtx960.json", "arc_a770.json"}) {
        INFO(name);
        Net net = Net::from_json(described(fs::path(DLPRIM_DEVICES_DIR) / name), heads, options);
        const std::vector<NodeReport> nodes = net.nodes();
        CHECK(std::any_of(nodes.begin(), nodes.end(), [](const NodeReport& node) {
            return node.name == "attention" && node.engine == "attention.online";
        }));
        CHECK(net.planned_peak_bytes() < 100 << 20);
        NetOptions as_products = options;
        as_products.engines.emplace_back("Attention", "matmul.tiled");
        CHECK(Net::from_json(net.context(), heads, as_products).planned_peak_bytes() > 500 << 20);
    }
}

TEST_CASE(
    "Tensor cores compute attention with a window, a soft cap and dropout in both directions") {
    std::string text = heads;
    const std::string type = R"("type": "Attention",)";
    text.replace(text.find(type), type.size(),
                 type + R"("options": {"is_causal": true, "lower_right": true, "dropout_p": 0.1,
                                       "sliding_window": 1000, "softcap": 30},)");
    NetOptions options;
    options.mode = Mode::training;
    options.input_gradients = true;
    Net net = Net::from_json(described(fs::path(DLPRIM_DEVICES_DIR) / "h200.json"), text, options);
    std::set<std::string> engines;
    for (const NodeReport& node : net.nodes()) engines.insert(node.engine);
    CHECK(engines.count("attention.wgmma") == 1);
    CHECK(engines.count("attention.matrix_backward") == 1);
}

TEST_CASE("A file that describes no device is refused with the field and its bounds") {
    const nlohmann::json nothing(nlohmann::json::value_t::discarded);
    CHECK(message_of(changed("local_kb", 1)) ==
          "device file 'my.json': there is no field 'local_kb'; did you mean 'local_kib'?");
    CHECK(
        message_of(changed("compute_units", 0)) ==
        "device file 'my.json': field 'compute_units' is 0, and must be a number from 1 to 16384");
    CHECK(
        message_of(changed("max_work_group", 1e9)) ==
        "device file 'my.json': field 'max_work_group' is 1000000000.0, and must be a number from "
        "1 to 65536");
    CHECK(message_of(changed("local_kib", 1.5)) ==
          "device file 'my.json': field 'local_kib' is 1.5, and must be a whole number");
    CHECK(message_of(changed("local_kib", nothing)) ==
          "device file 'my.json': it lacks the field 'local_kib'");
    CHECK(message_of(changed("gflops", "many")) ==
          "device file 'my.json': field 'gflops' is \"many\", and must be a number from 1 to "
          "1e+06");
    CHECK(message_of(changed("unified_memory", 1)) ==
          "device file 'my.json': field 'unified_memory' is 1, and must be true or false");
    CHECK(message_of(changed("max_alloc_mib", 9000)) ==
          "device file 'my.json': field 'max_alloc_mib' must not exceed 'global_mib'");
    CHECK(message_of(changed("wanted_waves", 11)) ==
          "device file 'my.json': field 'wanted_waves' must not exceed 'max_waves'");
    CHECK(message_of(changed("base_align_bytes", 100)) ==
          "device file 'my.json': field 'base_align_bytes' must be a power of two");
    CHECK_THAT(message_of(changed("compiler", "gcc")), ContainsSubstring("\"clang\" or \"ocloc\""));
    CHECK_THAT(message_of(changed("extensions", "cl_khr_fp16")), ContainsSubstring("be a list"));
    CHECK_THAT(message_of(changed("sources", nlohmann::json::array())),
               ContainsSubstring("must name a source"));
    CHECK(message_of("{") == "device file 'my.json': it is not JSON");
    CHECK_THAT(message_of("[1]"), ContainsSubstring("it must be an object"));
    CHECK_THAT(message_of(changed("name", nlohmann::json::parse(std::string(20000, '[') +
                                                                std::string(20000, ']')))),
               ContainsSubstring("field 'name' is a list"));
    CHECK_THROWS_WITH(Context("file:/no/such.json"), ContainsSubstring("/no/such.json"));
}
