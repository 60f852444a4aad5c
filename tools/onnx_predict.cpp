// SPDX-License-Identifier: MIT
// onnx_predict: classifies images by an ONNX model and prints the likeliest classes of each.
#include "common.hpp"
#include "image.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>

using namespace dlprim;

namespace {

struct Options {
    std::string model, device, labels;
    std::vector<std::string> images;
    std::int64_t resize = 0, crop = 0;
    std::vector<double> mean{0.485, 0.456, 0.406}, deviation{0.229, 0.224, 0.225};
    int top = 5;
    bool bgr = false;
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

/// The image as the model takes it: the shorter side resized, the middle cut out, normalised.
ONNXValue prepare(const Options& options, const Taken& input, const std::string& path) {
    const std::int64_t crop = options.crop ? options.crop : input.size ? input.size : 224;
    const std::int64_t side = options.resize ? options.resize : crop * 256 / 224;
    tools::Image image = tools::read_image(path);
    const std::int64_t shorter = std::min(image.width, image.height);
    image = tools::resized(image, image.width * side / shorter, image.height * side / shorter);
    image = tools::cropped(image, crop);
    const Shape shape = input.channels_last ? Shape{1, crop, crop, 3} : Shape{1, 3, crop, crop};
    const std::int64_t area = crop * crop;
    std::vector<float> values(image.pixels.size());
    for (std::int64_t i = 0; i < area; ++i) {
        for (std::int64_t c = 0; c < 3; ++c) {
            const auto channel = static_cast<std::size_t>(c);
            const float pixel =
                image.pixels[static_cast<std::size_t>(i * 3 + (options.bgr ? 2 - c : c))];
            values[static_cast<std::size_t>(input.channels_last ? i * 3 + c : c * area + i)] =
                static_cast<float>((pixel / 255.0 - options.mean[channel]) /
                                   options.deviation[channel]);
        }
    }
    HostTensor tensor{shape, DType::f32, std::vector<std::byte>(values.size() * sizeof(float))};
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    return tensor;
}

/// Scores as shares of 1: a softmax, unless that is what they are already.
std::vector<double> probabilities(const HostTensor& scores) {
    std::vector<double> values(static_cast<std::size_t>(scores.shape.numel()));
    convert(scores.data.data(), scores.dtype, values.data(), DType::f64, values.size());
    if (values.empty()) refuse("the model's output is empty");
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    const bool negative = std::any_of(values.begin(), values.end(), [](double v) { return v < 0; });
    if (!negative && std::abs(sum - 1) < 1e-2) return values;
    const double most = *std::max_element(values.begin(), values.end());
    double total = 0;
    for (double& value : values) total += value = std::exp(value - most);
    for (double& value : values) value /= total;
    return values;
}

std::vector<std::string> read_labels(const std::string& path) {
    std::vector<std::string> labels;
    if (path.empty()) return labels;
    std::ifstream file(path);
    if (!file) throw Error(ErrorKind::not_found, "'" + path + "' cannot be opened");
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        labels.push_back(line);
    }
    return labels;
}

void print(const std::string& path, const std::vector<double>& shares,
           const std::vector<std::string>& labels, int top) {
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t count = std::min(order.size(), static_cast<std::size_t>(top));
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](std::size_t a, std::size_t b) {
                          return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
                      });
    std::printf("%s\n", path.c_str());
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t number = order[i];
        const std::string label = number < labels.size() ? "  " + labels[number] : "";
        std::printf("%8.4f %5zu%s\n", shares[number], number, label.c_str());
    }
}

void predict(const Options& options) {
    for (const double deviation : options.deviation)
        if (deviation == 0) refuse("--deviation is 0");
    const ONNXModel model(options.model);
    const Taken input = input_of(model, options.model);
    const std::int64_t crop = options.crop ? options.crop : input.size ? input.size : 224;
    if (options.resize && options.resize < crop)
        refuse("--resize " + std::to_string(options.resize) + " is smaller than the crop of " +
               std::to_string(crop));
    const std::vector<std::string> labels = read_labels(options.labels);
    ONNXSession session(Context(options.device), model);
    for (const std::string& path : options.images) {
        const auto outputs = session.run({{input.name, prepare(options, input, path)}});
        const ONNXValue& scores = outputs.at(session.output_names().front());
        print(path, probabilities(scores.tensor()), labels, options.top);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Classifies images by an ONNX model and prints the likeliest classes of each.",
                 "onnx_predict");
    app.add_option("MODEL", options.model, "model, ONNX")->required();
    app.add_option("IMAGE", options.images, "images: PPM, PGM, PNG or JPEG")->required();
    tools::add_device_option(app, options.device);
    app.add_option("--labels", options.labels, "names of the classes, one in each line");
    app.add_option("--crop", options.crop,
                   "side of the square that the model sees (the model's, or 224)")
        ->check(CLI::Range(1, 1 << 14));
    app.add_option("--resize", options.resize,
                   "the shorter side before that (8/7 of the crop, as for ImageNet)")
        ->check(CLI::Range(1, 1 << 14));
    app.add_option("--mean", options.mean, "of red, green and blue from 0 to 1 (ImageNet's)")
        ->expected(3)
        ->delimiter(',');
    app.add_option("--deviation", options.deviation, "by which they are divided (ImageNet's)")
        ->expected(3)
        ->delimiter(',');
    app.add_flag("--bgr", options.bgr, "the model takes blue first");
    app.add_option("--top", options.top, "how many classes are printed (5)")
        ->check(CLI::Range(1, 1 << 20));
    return tools::run_command(app, argc, argv, [&] { predict(options); });
}
