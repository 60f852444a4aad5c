// SPDX-License-Identifier: MIT
// dlprim_convert: writes an ONNX model or a program of torch.export as a network in JSON and its
// weights in HDF5, or a language model as GGUF or as a folder of Hugging Face's. A program of
// torch.export is a graph in front of PyTorch's decompositions, so that Python and the package
// dlprim_torch make the network of it.
#include "common.hpp"

#include <dlprim/language_convert.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

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

struct Options {
    std::string model, net, weights, adapter;
    bool half = false;
    NetOptions how;
};

[[noreturn]] void wrong(const std::string& sentence) {
    throw Error(ErrorKind::invalid_argument, sentence);
}

void convert(const Options& options) {
    const std::string& model = options.model;
    const bool language = model.ends_with(".gguf") || std::filesystem::is_directory(model);
    const bool gguf = options.net.ends_with(".gguf");
    if (!options.adapter.empty() && !language)
        wrong("--lora is for a language model, a GGUF file or a folder");
    if (gguf && !language)
        wrong("only a language model, a GGUF file or a folder, can be written as '" + options.net +
              "'");
    if (language && (options.net.ends_with(".json") || !options.weights.empty()))
        wrong(
            "a language model is written with its weights as one file that ends with .gguf, or as "
            "a folder: a network in JSON does not remember what was read");
    if (!language && options.weights.empty()) wrong("WEIGHTS, where the weights go, is missing");
    if (options.net == options.weights)
        wrong("NET and WEIGHTS name the same file '" + options.net + "'");
    if (language) {
        if (options.how.batch > 0 || !options.how.input_shapes.empty())
            wrong("-B and --shape are for ONNX models");
        return (gguf ? convert_to_gguf : convert_to_hugging_face)(model, options.net, options.half,
                                                                  options.adapter);
    }
    if (model.ends_with(".pt2")) {
        if (options.how.batch > 0 || !options.how.input_shapes.empty())
            wrong(
                "-B and --shape are for ONNX models; a program of torch.export leaves open what it "
                "was exported with");
        convert_by_python(model, options.net, options.weights);
    }
    ONNXModel(model).convert(options.net, options.weights, options.how);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Writes an ONNX model or a program of torch.export as a network in JSON and its weights in "
        "HDF5, or a language model as GGUF or as a folder of Hugging Face's.",
        "dlprim_convert");
    app.add_option(
           "MODEL", options.model,
           "model: ONNX; .pt2 of torch.export, for which Python is asked; .gguf; or a folder "
           "of Hugging Face's")
        ->required();
    app.add_option("NET", options.net,
                   "where the network goes, JSON, or a language model, .gguf or a folder")
        ->required();
    app.add_option("WEIGHTS", options.weights, "where the weights go, HDF5");
    app.add_flag("--half", options.half, "of language models: weights as F16");
    app.add_option("--lora", options.adapter,
                   "of language models: folder of an adapter that is added to the weights");
    app.add_option("-B", options.how.batch, "batch size, where the model leaves it open")
        ->check(CLI::Range(1, 1 << 20));
    tools::add_shape_option(app, options.how.input_shapes);
    return tools::run_command(app, argc, argv, [&] { convert(options); });
}
