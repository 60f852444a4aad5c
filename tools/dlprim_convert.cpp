// SPDX-License-Identifier: MIT
// dlprim_convert: writes an ONNX model as a network in JSON and its weights in HDF5.
#include "common.hpp"

#include <CLI/CLI.hpp>

#include <charconv>

using namespace dlprim;

namespace {

/// "data=1,3,224,224": an input's name and shape.
std::pair<std::string, Shape> parse_shape(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    std::vector<std::int64_t> sizes;
    const char* at = text.data() + equals + 1;
    const char* const end = text.data() + text.size();
    while (equals != std::string::npos && at < end) {
        std::int64_t size = 0;
        const auto [next, code] = std::from_chars(at, end, size);
        if (code != std::errc() || size < 1 || (next < end && *next != ',')) break;
        sizes.push_back(size);
        at = next < end ? next + 1 : next;
    }
    if (equals == std::string::npos || at != end)
        throw Error(ErrorKind::invalid_argument,
                    "--shape " + text + ": write it as NAME=SIZE,SIZE,...");
    return {text.substr(0, equals), Shape(sizes)};
}

}  // namespace

int main(int argc, char** argv) {
    std::string model, net, weights;
    std::vector<std::string> shapes;
    NetOptions how;
    CLI::App app("Writes an ONNX model as a network in JSON and its weights in HDF5.",
                 "dlprim_convert");
    app.add_option("MODEL", model, "model, ONNX")->required();
    app.add_option("NET", net, "where the network goes, JSON")->required();
    app.add_option("WEIGHTS", weights, "where the weights go, HDF5")->required();
    app.add_option("-B", how.batch, "batch size, where the model leaves it open")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--shape", shapes, "an input's shape, NAME=SIZE,SIZE,...: for sizes left open");
    return tools::run_command(app, argc, argv, [&] {
        if (net == weights)
            throw Error(ErrorKind::invalid_argument,
                        "NET and WEIGHTS name the same file '" + net + "'");
        for (const std::string& text : shapes) how.input_shapes.insert(parse_shape(text));
        ONNXModel(model).convert(net, weights, how);
    });
}
