// SPDX-License-Identifier: MIT
// dlprim_run: runs a network once on tensors from an HDF5 file, and writes outputs and gradients.
#include "common.hpp"
#include "placing.hpp"
#include "untrusted/files.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

using namespace dlprim;

namespace {

struct Options {
    std::string net, device, weights, inputs, outputs, output_grads, grads;
    tools::EngineOptions engines;
    bool train = false;
    PlacementOptions placement;
    tools::InputFiles files;
};

HostTensor download(const Tensor& tensor) {
    HostTensor host{tensor.shape(), tensor.dtype(), std::vector<std::byte>(tensor.bytes())};
    tensor.copy_to_host(host.data.data(), host.data.size());
    return host;
}

/// The data in the wanted type. Float types are converted to each other, and integers to each other
/// and to floats (labels).
std::vector<std::byte> converted(const HostTensor& from, const std::string& name,
                                 const Shape& shape, DType dtype) {
    const bool scalar = from.shape.numel() == 1 && shape.numel() == 1;
    if (from.shape != shape && !scalar)
        throw Error(ErrorKind::invalid_argument, "'" + name + "' has shape " + from.shape.str() +
                                                     " in the file, the network wants " +
                                                     shape.str());
    if (is_float(from.dtype) && !is_float(dtype) && dtype != DType::boolean)
        throw Error(ErrorKind::invalid_argument,
                    "'" + name + "' is " + std::string(name_of(from.dtype)) +
                        " in the file, the network wants " + std::string(name_of(dtype)));
    std::vector<std::byte> data(static_cast<std::size_t>(shape.numel()) * size_of(dtype));
    const auto count = static_cast<std::size_t>(shape.numel());
    convert(from.data.data(), from.dtype, data.data(), dtype, count);
    if (is_integer(from.dtype) && is_integer(dtype)) {
        // Checks integers, because one that the network's type cannot hold would silently become
        // another.
        std::vector<std::int64_t> given(count), kept(count);
        convert(from.data.data(), from.dtype, given.data(), DType::i64, count);
        convert(data.data(), dtype, kept.data(), DType::i64, count);
        const auto [a, b] = std::mismatch(given.begin(), given.end(), kept.begin());
        if (a != given.end())
            throw Error(ErrorKind::invalid_argument,
                        "'" + name + "' holds " + std::to_string(*a) + " at position " +
                            std::to_string(a - given.begin()) +
                            " in the file, which does not fit into " + std::string(name_of(dtype)) +
                            ", the network's type");
    }
    return data;
}

std::map<std::string, Shape> input_shapes(const Context& context, const Options& options,
                                          const std::map<std::string, HostTensor>& inputs,
                                          std::string& reshaped) {
    // Shapes in the file take precedence: a network runs with the batch size of its inputs.
    NetOptions plain;
    if (tools::is_onnx(options.net) && options.files.untrusted())
        for (const auto& [name, tensor] : inputs) plain.input_shapes[name] = tensor.shape;
    else if (tools::is_onnx(options.net))
        for (const ONNXInput& input : ONNXModel(options.net).inputs())
            if (const auto found = inputs.find(input.name); found != inputs.end())
                plain.input_shapes[input.name] = found->second.shape;
    const Net net = options.files.open_net(context, options.net, plain);
    std::map<std::string, Shape> shapes;
    for (const std::string& name : net.input_names()) {
        const auto found = inputs.find(name);
        if (found == inputs.end())
            throw Error(ErrorKind::not_found, "'" + options.inputs + "' has no tensor '" + name +
                                                  "', which the network takes");
        const Shape declared = net.input_shape(name);
        const bool scalar = found->second.shape.numel() == 1 && declared.numel() == 1;
        shapes[name] = scalar ? declared : found->second.shape;
        if (shapes[name] != declared)
            reshaped += "; '" + name + "' has shape " + shapes[name].str() + " in '" +
                        options.inputs + "', the network declares " + declared.str();
    }
    return shapes;
}

/// Says what the network remarks, and feeds it.
template <typename AnyNet>
void begin(AnyNet& net, const std::map<std::string, HostTensor>& inputs) {
    for (const std::string& note : net.notes()) std::fprintf(stderr, "note: %s\n", note.c_str());
    for (const std::string& name : net.input_names()) {
        const auto data =
            converted(inputs.at(name), name, net.input_shape(name), net.input_dtype(name));
        net.set_input(name, data.data(), data.size());
    }
}

template <typename AnyNet>
std::map<std::string, HostTensor> outputs_of(AnyNet& net) {
    std::map<std::string, HostTensor> outputs;
    for (const std::string& name : net.output_names()) outputs[name] = download(net.output(name));
    return outputs;
}

/// `reshaped` names the inputs whose shapes differ from the declared ones, since these may be the
/// reason if the network cannot be built.
Net open_with_weights(const Context& context, const Options& options, const NetOptions& how,
                      const std::string& reshaped) {
    try {
        Net net = options.files.open_net(context, options.net, how);
        if (!options.weights.empty())
            options.files.load_weights(net, options.weights);
        else if (!net.param_names().empty() && !tools::is_onnx(options.net))
            throw Error(ErrorKind::invalid_argument,
                        "the network has parameters: give their file with --weights");
        return net;
    } catch (const Error& error) {
        throw Error(error.kind(), error.what() + reshaped);
    }
}

void run(const Options& options) {
    NetOptions how;
    options.engines.set(how);
    if (!options.grads.empty() && options.outputs == options.grads)
        throw Error(ErrorKind::invalid_argument,
                    "--outputs and --grads name the same file '" + options.grads + "'");
    const Context context(options.device);
    const auto inputs = options.files.load_tensors(options.inputs);
    how.mode = options.train           ? Mode::training
               : options.grads.empty() ? Mode::inference
                                       : Mode::evaluation;
    how.backward = !options.grads.empty();
    how.input_gradients = how.output_gradients = !options.grads.empty();
    how.progress = tools::terminal_progress();
    std::string reshaped;
    how.input_shapes = input_shapes(context, options, inputs, reshaped);
    Net net = open_with_weights(context, options, how, reshaped);
    begin(net, inputs);
    if (!options.grads.empty()) {
        std::map<std::string, HostTensor> given;
        if (!options.output_grads.empty()) given = options.files.load_tensors(options.output_grads);
        const auto losses = net.loss_weights();
        for (const std::string& name : net.output_gradient_names()) {
            Tensor gradient = net.output_gradient(name);
            if (const auto found = given.find(name); found != given.end()) {
                const auto data =
                    converted(found->second, name, gradient.shape(), gradient.dtype());
                gradient.copy_from_host(data.data(), data.size());
                given.erase(found);
            } else {
                const auto loss = losses.find(name);
                gradient.fill(loss == losses.end() ? 0.0 : loss->second);
            }
        }
        if (!given.empty())
            throw Error(ErrorKind::not_found, "'" + options.output_grads + "' holds '" +
                                                  given.begin()->first +
                                                  "', which is no float output of the network");
    }

    std::map<std::string, HostTensor> before;
    if (options.train)
        for (const std::string& name : net.changed_by_forward()) before[name] = {};
    net.forward();
    if (!options.grads.empty()) net.backward();
    std::map<std::string, HostTensor> results = outputs_of(net);
    for (const auto& [name, unused] : before) results[name] = download(net.param(name));
    std::map<std::string, HostTensor> gradients;
    if (!options.grads.empty())
        for (const std::string& name : net.gradient_names())
            gradients[name] = download(net.gradient(name));
    std::map<std::string, std::map<std::string, HostTensor>> files{
        {options.outputs, std::move(results)}};
    if (!options.grads.empty()) files[options.grads] = std::move(gradients);
    save_tensors(files);
}

/// The outputs of a network whose operators run on several devices.
void run_placed(const Options& options) {
    if (!options.grads.empty() || options.train || options.files.untrusted() ||
        tools::is_onnx(options.net))
        throw Error(ErrorKind::invalid_argument,
                    "on several devices dlprim_run computes the outputs of a network in JSON: "
                    "--grads, --train, --untrusted and ONNX models are for one device");
    const std::vector<NamedDevice> devices = tools::open_named_devices(options.device);
    const auto inputs = options.files.load_tensors(options.inputs);
    NetOptions how;
    options.engines.set(how);
    how.progress = tools::terminal_progress();
    std::string reshaped;
    how.input_shapes = input_shapes(devices.front().context, options, inputs, reshaped);
    PlacedNet net = PlacedNet::from_json_file(devices, options.net, how, options.placement);
    if (!options.weights.empty())
        net.load_weights(options.weights);
    else if (!net.param_names().empty())
        throw Error(ErrorKind::invalid_argument,
                    "the network has parameters: give their file with --weights");
    begin(net, inputs);
    net.forward();
    save_tensors(options.outputs, outputs_of(net));
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Runs a network once on tensors from an HDF5 file.", "dlprim_run");
    app.add_option("NET", options.net, "network, JSON or ONNX")->required();
    tools::add_device_option(app, options.device, false, true);
    app.add_option("--weights", options.weights, "parameters, HDF5");
    app.add_option("--inputs", options.inputs, "input tensors, HDF5")->required();
    app.add_option("--outputs", options.outputs, "where outputs go, HDF5")->required();
    app.add_flag("--train", options.train,
                 "training-mode forward; outputs get what it changed, too");
    auto* output_grads =
        app.add_option("--output-grads", options.output_grads, "gradients of outputs, HDF5");
    auto* grads = app.add_option("--grads", options.grads,
                                 "where gradients of inputs and parameters go, HDF5");
    output_grads->needs(grads);
    tools::add_precision_option(app, options.engines);
    tools::add_engine_option(app, options.engines);
    tools::add_placement_options(app, options.placement);
    options.files.add_option(app);
    return tools::run_command(app, argc, argv, [&] {
        tools::check_placement(options.placement, options.device);
        if (tools::names_devices(options.device))
            run_placed(options);
        else
            run(options);
    });
}
