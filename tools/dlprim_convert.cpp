// SPDX-License-Identifier: MIT
// dlprim_convert: writes an ONNX model, or a program of torch.export, as a network in JSON and its
// weights in HDF5. The latter is a graph in front of PyTorch's decompositions, so that Python and
// the package dlprim_torch make the network of it.
#include "common.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>

using namespace dlprim;

namespace {

/// Becomes Python, which writes the network of a program of torch.export.
[[noreturn]] void convert_by_python(const std::string& model, const std::string& net,
                                    const std::string& weights) {
    constexpr const char* code =
        "import sys\n"
        "try:\n"
        "    from dlprim_torch.convert import main\n"
        "except ImportError as error:\n"
        "    sys.exit(f'{sys.argv[1]}: a program of torch.export is read by the Python package '\n"
        "             f'dlprim_torch (docs/torch.md), and python3 says: {error}')\n"
        "sys.exit(main(sys.argv[1:]))\n";
    execlp("python3", "python3", "-c", code, model.c_str(), net.c_str(), weights.c_str(),
           static_cast<char*>(nullptr));
    throw Error(ErrorKind::unsupported, model +
                                            ": a program of torch.export is read by the Python "
                                            "package dlprim_torch (docs/torch.md), and python3 "
                                            "does not start: " +
                                            std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
    std::string model, net, weights;
    NetOptions how;
    CLI::App app(
        "Writes an ONNX model, or a program of torch.export, as a network in JSON and its weights "
        "in "
        "HDF5.",
        "dlprim_convert");
    app.add_option("MODEL", model,
                   "model: ONNX, or .pt2 of torch.export, for which Python is asked")
        ->required();
    app.add_option("NET", net, "where the network goes, JSON")->required();
    app.add_option("WEIGHTS", weights, "where the weights go, HDF5")->required();
    app.add_option("-B", how.batch, "batch size, where the model leaves it open")
        ->check(CLI::Range(1, 1 << 20));
    tools::add_shape_option(app, how.input_shapes);
    return tools::run_command(app, argc, argv, [&] {
        if (net == weights)
            throw Error(ErrorKind::invalid_argument,
                        "NET and WEIGHTS name the same file '" + net + "'");
        if (model.ends_with(".pt2")) {
            if (how.batch > 0 || !how.input_shapes.empty())
                throw Error(ErrorKind::invalid_argument,
                            "-B and --shape are for ONNX models; a program of torch.export leaves "
                            "open what it was exported with");
            convert_by_python(model, net, weights);
        }
        ONNXModel(model).convert(net, weights, how);
    });
}
