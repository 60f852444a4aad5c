// SPDX-License-Identifier: MIT
// What the commands that classify pictures share.
#include "predict.hpp"

#include "common.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>

namespace dlprim::tools {

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorKind::invalid_argument, what);
}

/// Scores as shares of 1: a softmax, unless that is what they are already.
std::vector<double> shares_of(const std::vector<float>& scores) {
    std::vector<double> values(scores.begin(), scores.end());
    if (values.empty()) refuse("the net's output is empty");
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    const bool negative = std::any_of(values.begin(), values.end(), [](double v) { return v < 0; });
    if (!negative && std::abs(sum - 1) < 1e-2) return values;
    const double most = *std::max_element(values.begin(), values.end());
    double total = 0;
    for (double& value : values) total += value = std::exp(value - most);
    for (double& value : values) value /= total;
    return values;
}

}  // namespace

void add_predict_options(CLI::App& app, PredictOptions& options, const std::string& otherwise) {
    app.add_option("IMAGE", options.images, "images: PPM, PGM, PNG or JPEG")->required();
    app.add_option("--labels", options.labels,
                   "names of the classes, one in each line" + otherwise);
    app.add_option("--crop", options.crop,
                   "side of the square that the model sees (the model's, or 224)")
        ->check(CLI::Range(1, 1 << 14));
    app.add_option("--resize", options.resize,
                   "the shorter side before that (8/7 of the crop, as for ImageNet)" + otherwise)
        ->check(CLI::Range(1, 1 << 14));
    app.add_option("--mean", options.mean,
                   "of red, green and blue from 0 to 1 (ImageNet's)" + otherwise)
        ->expected(1, 3)
        ->delimiter(',');
    app.add_option("--deviation", options.deviation,
                   "by which they are divided (ImageNet's)" + otherwise)
        ->expected(1, 3)
        ->delimiter(',');
    app.add_flag("--bgr", options.bgr, "the model takes blue first");
    app.add_option("--top", options.top, "how many classes are printed (5)")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--json", options.json, "write the classes as JSON to this file; - prints it");
}

std::vector<std::string> read_labels(const std::string& path) {
    std::vector<std::string> labels;
    std::ifstream file(path);
    if (!file) throw Error(ErrorKind::not_found, "'" + path + "' cannot be opened");
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        labels.push_back(line);
    }
    return labels;
}

std::vector<float> net_input(const std::string& path, Image image, const Preprocessing& how,
                             bool bgr) {
    std::vector<float> planes;
    if (bgr)
        for (std::size_t i = 0; i + 2 < image.pixels.size(); i += 3)
            std::swap(image.pixels[i], image.pixels[i + 2]);
    try {
        planes = preprocessed(image, how);
    } catch (const Error& error) {
        throw Error(error.kind(), "'" + path + "': " + error.what());
    }
    return planes;
}

Preprocessing with_options(const PredictOptions& options, const Preprocessing& how,
                           std::int64_t height, std::int64_t width) {
    Preprocessing result = how;
    for (const auto* list : {&options.mean, &options.deviation})
        if (list->size() == 2)
            refuse("--mean and --deviation take one number, or one for each of three colours");
    for (const double value : options.deviation)
        if (value == 0) refuse("--deviation is 0");
    if (!options.mean.empty()) result.mean = options.mean;
    if (!options.deviation.empty()) result.deviation = options.deviation;
    if (options.crop > 0) {
        const bool given = result.resize > 0 && result.crop_height == options.crop &&
                           result.crop_width == options.crop;
        result.crop_height = result.crop_width = options.crop;
        if (!given) {
            result.resize = options.crop * 256 / 224;
            result.resize_height = result.resize_width = 0;
        }
    }
    if (options.resize > 0) {
        result.resize = options.resize;
        result.resize_height = result.resize_width = 0;
        const std::int64_t least = std::max(result.crop_height, result.crop_width);
        if (options.resize < least)
            refuse("--resize " + std::to_string(options.resize) + " is smaller than the crop of " +
                   std::to_string(least));
    }
    if (result.crop_height == 0 && result.resize_height == 0) {
        result.crop_height = height;
        result.crop_width = width;
    }
    const std::int64_t rows = result.crop_height > 0 ? result.crop_height : result.resize_height;
    const std::int64_t columns = result.crop_width > 0 ? result.crop_width : result.resize_width;
    if ((height > 0 && rows != height) || (width > 0 && columns != width))
        refuse("the model takes images of " + std::to_string(width) + " x " +
               std::to_string(height) + " pixels, but the crop is " + std::to_string(columns) +
               " x " + std::to_string(rows));
    return result;
}

Preprocessing imagenet_preprocessing(std::int64_t height, std::int64_t width) {
    Preprocessing how;
    how.mean = {0.485, 0.456, 0.406};
    how.deviation = {0.229, 0.224, 0.225};
    how.crop_height = height;
    how.crop_width = width;
    how.resize = std::max(height, width) * 256 / 224;
    return how;
}

Predictions::Predictions(const PredictOptions& options, std::vector<std::string> names)
    : options_(options), names_(std::move(names)) {}

void Predictions::add(const std::string& image, const std::vector<float>& scores) {
    const std::vector<double> shares = shares_of(scores);
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t count = std::min(order.size(), static_cast<std::size_t>(options_.top));
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](std::size_t a, std::size_t b) {
                          return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
                      });
    std::vector<Class> best;
    for (std::size_t i = 0; i < count; ++i) best.push_back({order[i], shares[order[i]]});
    if (options_.json != "-") {
        std::printf("%s\n", image.c_str());
        for (const Class& one : best) {
            const std::string name = one.number < names_.size() ? "  " + names_[one.number] : "";
            std::printf("%8.4f %5zu%s\n", one.share, one.number, name.c_str());
        }
    }
    all_.emplace_back(image, std::move(best));
}

void Predictions::finish() const {
    if (options_.json.empty()) return;
    using Json = nlohmann::ordered_json;
    Json json{{"images", Json::array()}};
    for (const auto& [image, best] : all_) {
        Json classes = Json::array();
        for (const Class& one : best) {
            classes.push_back({{"class", one.number}, {"share", one.share}});
            if (one.number < names_.size()) classes.back()["name"] = names_[one.number];
        }
        json["images"].push_back({{"file", image}, {"classes", classes}});
    }
    // Names of files may be in any encoding; what is no UTF-8 is replaced.
    const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
    if (options_.json == "-")
        std::fputs(text.c_str(), stdout);
    else
        write_text(options_.json, text);
}

}  // namespace dlprim::tools
