// SPDX-License-Identifier: MIT
// onnx_predict: classifies images by an ONNX model and prints the likeliest classes of each.
#include "common.hpp"
#include "predict.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>

using namespace dlprim;

namespace {

struct Options {
    std::string model, device;
    tools::PredictOptions predict;
};

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorKind::invalid_argument, what);
}

/// What the model takes: one tensor of floats, [N, 3, H, W] or [N, H, W, 3].
struct Taken {
    std::string name;
    bool channels_last = false;
    std::int64_t size = 0;  ///< 0: left open
};

Taken input_of(const ONNXModel& model, const std::string& path) {
    const std::vector<ONNXInput> inputs = model.inputs();
    if (inputs.size() != 1)
        refuse("'" + path + "' takes " + std::to_string(inputs.size()) +
               " inputs; a model that classifies images takes one");
    const ONNXInput& input = inputs[0];
    const auto is_colours = [&](std::size_t i) {
        return input.dims[i] == 3 || input.dims[i] == -1;
    };
    const bool fits = input.dtype == "float" && input.dims.size() == 4 && input.dims[0] <= 1 &&
                      (is_colours(1) || is_colours(3));
    if (!fits)
        refuse("'" + path + "' takes '" + input.name +
               "', which is no batch of one image of floats, [N, 3, H, W] or [N, H, W, 3]");
    const bool last = input.dims[3] == 3 && input.dims[1] != 3;
    const std::int64_t height = input.dims[last ? 1 : 2], width = input.dims[last ? 2 : 3];
    if (height > 0 && width > 0 && height != width)
        refuse("'" + path + "' takes images of " + std::to_string(width) + " x " +
               std::to_string(height) + " pixels; only squares are supported");
    return {input.name, last, std::max<std::int64_t>({height, width, 0})};
}

/// The image as the model takes it.
ONNXValue prepare(const tools::PredictOptions& options, const Preprocessing& how,
                  const Taken& input, const std::string& path) {
    const std::vector<float> planes = tools::net_input(path, read_image(path, 3), how, options.bgr);
    const std::int64_t height = how.crop_height, width = how.crop_width, area = height * width;
    std::vector<float> values = planes;
    for (std::int64_t i = 0; input.channels_last && i < area; ++i)
        for (std::int64_t c = 0; c < 3; ++c)
            values[static_cast<std::size_t>(i * 3 + c)] =
                planes[static_cast<std::size_t>(c * area + i)];
    const Shape shape =
        input.channels_last ? Shape{1, height, width, 3} : Shape{1, 3, height, width};
    HostTensor tensor{shape, DType::f32, std::vector<std::byte>(values.size() * sizeof(float))};
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    return tensor;
}

void predict(const Options& options) {
    const ONNXModel model(options.model);
    const Taken input = input_of(model, options.model);
    const std::int64_t size = input.size > 0 ? input.size : 224;
    const Preprocessing how = tools::with_options(
        options.predict, tools::imagenet_preprocessing(size, size), input.size, input.size);
    tools::Predictions predictions(options.predict,
                                   options.predict.labels.empty()
                                       ? std::vector<std::string>{}
                                       : tools::read_labels(options.predict.labels));
    ONNXSession session(Context(options.device), model);
    for (const std::string& path : options.predict.images) {
        const auto outputs =
            session.run({{input.name, prepare(options.predict, how, input, path)}});
        const HostTensor scores = outputs.at(session.output_names().front()).tensor();
        std::vector<float> values(static_cast<std::size_t>(scores.shape.numel()));
        convert(scores.data.data(), scores.dtype, values.data(), DType::f32, values.size());
        predictions.add(path, values);
    }
    predictions.finish();
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Classifies images by an ONNX model and prints the likeliest classes of each.",
                 "onnx_predict");
    app.add_option("MODEL", options.model, "model, ONNX")->required();
    tools::add_predict_options(app, options.predict, "");
    tools::add_device_option(app, options.device);
    return tools::run_command(app, argc, argv, [&] { predict(options); });
}
