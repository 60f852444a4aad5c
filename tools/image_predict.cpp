// SPDX-License-Identifier: MIT
// image_predict: classifies pictures by a network and prints the likeliest classes of each.
#include "common.hpp"
#include "predict.hpp"
#include "untrusted/files.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>

using namespace dlprim;

namespace {

struct Options {
    std::string net, weights, device;
    tools::PredictOptions predict;
    tools::InputFiles files;
};

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorKind::invalid_argument, what);
}

/// The names of the tensors that count.
struct Ends {
    std::string images, scores;
};

/// The input of pictures, and the first output that is no loss. Labels, which a loss reads, are no
/// matter: they keep their zeros.
Ends ends_of(Net& net, const std::string& path) {
    Ends ends;
    for (const std::string& name : net.input_names()) {
        if (net.label_classes(name) > 0) continue;
        if (!ends.images.empty())
            refuse("'" + path + "' takes inputs '" + ends.images + "' and '" + name +
                   "'; a net that classifies images takes one, beside labels");
        ends.images = name;
    }
    const Shape shape = ends.images.empty() ? Shape{} : net.input_shape(ends.images);
    if (shape.rank() != 4 || (shape[1] != 1 && shape[1] != 3))
        refuse("'" + path +
               "' takes no images: no input has a shape of [N, 3, H, W] or "
               "[N, 1, H, W]");
    const std::vector<std::string> losses = net.loss_names();
    for (const std::string& name : net.output_names())
        if (ends.scores.empty() && std::find(losses.begin(), losses.end(), name) == losses.end())
            ends.scores = name;
    if (ends.scores.empty()) refuse("'" + path + "' has no output besides losses");
    return ends;
}

void predict(const Options& options) {
    constexpr std::size_t most_at_once = 16;
    const std::vector<std::string>& images = options.predict.images;
    const Context context(options.device);
    NetOptions how;
    how.batch = static_cast<std::int64_t>(std::min(images.size(), most_at_once));
    how.without_losses = true;  // labels are not known
    how.progress = tools::terminal_progress();
    Net net = options.files.open_net(context, options.net, how);
    const Ends ends = ends_of(net, options.net);
    const Shape shape = net.input_shape(ends.images);
    const auto kept = options.files.read_preprocessing(options.weights);
    const Preprocessing steps = tools::with_options(
        options.predict, kept ? *kept : tools::imagenet_preprocessing(shape[2], shape[3]), shape[2],
        shape[3]);
    options.files.load_weights(net, options.weights);
    tools::Predictions predictions(options.predict,
                                   options.predict.labels.empty()
                                       ? steps.classes
                                       : tools::read_labels(options.predict.labels));
    for (std::size_t first = 0; first < images.size(); first += most_at_once) {
        const std::size_t count = std::min(images.size() - first, most_at_once);
        if (static_cast<std::size_t>(net.input_shape(ends.images)[0]) != count)
            net.reshape(static_cast<std::int64_t>(count));
        std::vector<float> batch;
        for (std::size_t i = first; i < first + count; ++i) {
            const std::vector<float> one = tools::net_input(
                images[i], options.files.read_image(images[i], static_cast<int>(shape[1])), steps,
                options.predict.bgr);
            batch.insert(batch.end(), one.begin(), one.end());
        }
        const DType want = net.input_dtype(ends.images);
        std::vector<std::byte> bytes(batch.size() * size_of(want));
        convert(batch.data(), DType::f32, bytes.data(), want, batch.size());
        net.set_input(ends.images, bytes.data(), bytes.size());
        net.forward();
        const std::vector<float> scores = net.output(ends.scores).to_floats();
        const std::size_t classes = scores.size() / count;
        for (std::size_t i = 0; i < count; ++i) {
            const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(i * classes);
            predictions.add(images[first + i],
                            {begin, begin + static_cast<std::ptrdiff_t>(classes)});
        }
    }
    predictions.finish();
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Classifies images by a network and prints the likeliest classes of each.",
                 "image_predict");
    app.add_option("NET", options.net, "network, JSON")->required();
    app.add_option("WEIGHTS", options.weights, "its weights, HDF5")->required();
    tools::add_predict_options(app, options.predict, "; in place of what the weights file says");
    tools::add_device_option(app, options.device);
    options.files.add_option(app);
    return tools::run_command(app, argc, argv, [&] { predict(options); });
}
