// SPDX-License-Identifier: MIT
// What the commands that classify pictures share: their options, and how they print classes.
#pragma once

#include <dlprim/preprocessing.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dlprim::tools {

/// Options of preprocessing. What is not given is 0 or empty.
struct PredictOptions {
    std::vector<std::string> images;
    std::string labels, json;
    std::int64_t resize = 0, crop = 0;
    std::vector<double> mean, deviation;
    int top = 5;
    bool bgr = false;
};

/// Adds the options, and IMAGE.
void add_predict_options(CLI::App& app, PredictOptions& options, const std::string& otherwise);

/// Names of classes, one in each line of a file.
std::vector<std::string> read_labels(const std::string& path);

/// The picture of a file as a net takes it: [channels, height, width], with blue first if options
/// say so. Messages name the file.
std::vector<float> net_input(const std::string& path, Image image, const Preprocessing& how,
                             bool bgr);

/// The preprocessing with what the options say in its place; `size` is the side of the net's input,
/// or 0 if it is open. Throws Error(invalid_argument) for options that make no sense together.
Preprocessing with_options(const PredictOptions& options, const Preprocessing& how,
                           std::int64_t height, std::int64_t width);

/// What pictures are treated with if nobody says: ImageNet's means and deviations, and a crop of
/// 7/8.
Preprocessing imagenet_preprocessing(std::int64_t height, std::int64_t width);

/// Collects the likeliest classes of pictures, and prints them as text or JSON.
class Predictions {
  public:
    Predictions(const PredictOptions& options, std::vector<std::string> names);
    /// `scores` of the classes; they are made shares of 1 by a softmax, unless they are that
    /// already. Prints them, if text is wanted.
    void add(const std::string& image, const std::vector<float>& scores);
    /// Writes the JSON, if that is wanted.
    void finish() const;

  private:
    struct Class {
        std::size_t number;
        double share;
    };
    const PredictOptions& options_;
    std::vector<std::string> names_;
    std::vector<std::pair<std::string, std::vector<Class>>> all_;
};

}  // namespace dlprim::tools
