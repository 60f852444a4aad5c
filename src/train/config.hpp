// SPDX-License-Identifier: MIT
// TrainConfig: a training configuration file (JSON), as docs/json.md describes it.
#pragma once

#include <dlprim/precision.hpp>
#include <dlprim/schedule.hpp>
#include <dlprim/solver_options.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

struct TrainConfig {
    struct Files {
        std::string images, labels;
    };
    std::string name;     ///< of the configuration in messages
    std::string net;      ///< path, made relative to the configuration's folder
    std::string weights;  ///< initial weights, or empty
    Files train, test;    ///< IDX; test may be empty
    double mean = 0, std = 1;
    std::int64_t batch = 64;
    int epochs = 10;
    std::uint64_t seed = 1;
    std::optional<Precision> precision;  ///< as NetOptions::precision
    std::string initialization = "default";
    SolverOptions solver;
    ScheduleOptions schedule;
    bool flip = false;  ///< mirror half of the training images
    int crop_pad = 0;   ///< shift training images by up to so many pixels, filled with the mean
    int checkpoint_every = 1;
    int checkpoint_keep = 1;
    bool continue_on_nan = false;
};

/// Reads a configuration. `epochs` replaces the configuration's number when it is positive. Throws
/// Error(format), which names the file, line and path of what is wrong.
TrainConfig read_train_config(const std::string& path, int epochs = 0);
/// The same for a text. Messages call it `name`, and paths are relative to the working folder.
TrainConfig parse_train_config(std::string_view text, const std::string& name, int epochs = 0);

/// Throws Error(format) if numbers of the configuration do not fit the training images, of which
/// there are `count` with this height and width.
void check_images(const TrainConfig& config, std::int64_t count, std::int64_t height,
                  std::int64_t width);

}  // namespace dlprim
