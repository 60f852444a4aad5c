// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are parsed as an ONNX model give a network or an Error, and the network
// a graph or an Error. A small graph is also run on the host, whatever values come out. Then the
// model is imported as a session does it, with made-up contents wherever a run would read a value
// from the device, which reaches loops, branches and sizes that depend on values.
//
// The node cases of Debian's libonnx-testdata are a good corpus to begin with:
//   onnx_fuzz -rss_limit_mb=1024 -max_len=4096 -timeout=60 CORPUS
#include "formats/onnx/import.hpp"
#include "formats/onnx/importer.hpp"
#include "graph/description.hpp"

#include <dlprim/context.hpp>
#include <dlprim/error.hpp>
#include <dlprim/net.hpp>
#include <dlprim/onnx.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using dlprim::DType;
using dlprim::Shape;
using dlprim::TensorSpec;
using dlprim::onnx::HostValue;

/// Small numbers, most of them useful as sizes, axes and indices.
HostValue made_up(const TensorSpec& spec, std::size_t seed) {
    constexpr double numbers[] = {0, 1, 2, -1, 3, 1, 0.5, 7};
    std::vector<double> values(static_cast<std::size_t>(spec.shape.numel()));
    for (double& value : values) {
        value = numbers[seed >> 13 & 7];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    }
    return dlprim::onnx::host_numbers(spec.shape, values, spec.dtype);
}

/// In place of a device: what is read are made-up numbers.
class MadeUp : public dlprim::onnx::StageRunner {
  public:
    explicit MadeUp(std::size_t seed) : seed_(seed) {}

    HostValue read(const dlprim::onnx::Part&, dlprim::onnx::Ref wanted) override {
        return contents(*wanted);
    }
    std::vector<TensorSpec> call(const dlprim::onnx::Part&,
                                 const std::vector<dlprim::onnx::Ref>& wanted,
                                 const dlprim::onnx::HostFunction& function) override {
        std::vector<HostValue> values;
        for (dlprim::onnx::Ref value : wanted) values.push_back(contents(*value));
        std::vector<TensorSpec> specs;
        for (const HostValue& value : function(values))
            specs.push_back({value->shape, value->dtype});
        return specs;
    }

  private:
    HostValue contents(const dlprim::onnx::BuiltValue& value) {
        if (value.known) return value.known;
        if (value.spec.shape.numel() > 1 << 16)
            throw dlprim::Error(dlprim::ErrorKind::unsupported, "too large to be made up");
        return made_up(value.spec, seed_++);
    }

    std::size_t seed_;
};

/// What a run might give to an input.
dlprim::onnx::Fed fed(const dlprim::onnx::ValueInfo& info) {
    using Kind = dlprim::onnx::ValueInfo::Kind;
    if (info.kind == Kind::other) return {};
    std::vector<std::int64_t> sizes;
    if (info.shape)
        for (const dlprim::onnx::Dimension& dim : *info.shape)
            sizes.push_back(dim.size.value_or(2));
    const Shape shape(sizes);
    if (info.kind == Kind::sequence) {
        const dlprim::onnx::Fed element{TensorSpec{Shape{2, 2}, DType::f32}};
        return {dlprim::onnx::Fed::Sequence{element, element}};
    }
    if (info.kind == Kind::tensor) return {TensorSpec{shape, *info.dtype}};
    if (shape.numel() > 1 << 10) return {};
    const auto count = static_cast<std::size_t>(shape.numel());
    dlprim::onnx::HostStrings strings{shape, std::vector<std::string>(count, "a")};
    if (!strings.values.empty()) strings.values[0] = "1.5";
    return {strings};
}

void import_dynamic(const dlprim::onnx::Model& model, std::size_t seed) try {
    dlprim::onnx::ImportLimits limits;
    limits.iterations = 32;
    limits.nodes = 1 << 10;
    limits.known_bytes = 1 << 24;
    MadeUp runner(seed);
    dlprim::onnx::Importer importer(model, limits);
    importer.run_stages_by(runner);
    std::map<std::string, dlprim::onnx::Fed> inputs;
    for (const dlprim::onnx::ValueInfo& info : dlprim::onnx::fed_inputs(model))
        inputs[info.name] = fed(info);
    importer.make_fed_inputs(inputs);
    importer.run();
} catch (const dlprim::Error&) {
}

bool is_small(const dlprim::Graph& graph) {
    std::int64_t elements = 0;
    for (const dlprim::Value& value : graph.values)
        elements += std::min<std::int64_t>(value.spec.shape.numel(), 1 << 20);
    return elements <= 1 << 13 && graph.nodes.size() <= 24;
}

void run(std::string_view bytes, std::size_t seed) {
    static const dlprim::Context host("cpu");
    dlprim::ONNXModel model;
    model.parse(bytes, "fuzz");
    dlprim::Net net(host);
    net.load_model(model);
    for (const std::string& name : net.input_names()) {
        const HostValue value = made_up({net.input_shape(name), net.input_dtype(name)}, seed++);
        net.set_input(name, value->data.data(), value->data.size());
    }
    net.forward();
    for (const std::string& name : net.output_names()) {
        const dlprim::Tensor output = net.output(name);
        std::vector<std::byte> data(output.bytes());
        output.copy_to_host(data.data(), data.size());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const std::size_t seed = std::hash<std::string_view>()(bytes);
    try {
        const dlprim::onnx::Model model = dlprim::onnx::parse_model(bytes, "fuzz");
        import_dynamic(model, seed);
        const dlprim::onnx::ImportedNet net = dlprim::onnx::import_model(model);
        if (is_small(dlprim::build_graph(net.description))) run(bytes, seed);
    } catch (const dlprim::Error&) {
    }
    return 0;
}
