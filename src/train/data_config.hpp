// SPDX-License-Identifier: MIT
// DataConfig: the parts "data" and "augmentation" of a training configuration, as docs/data.md
// describes them.
#pragma once

#include "formats/json_tree.hpp"
#include "train/data/augment.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

struct DataConfig {
    /// Where a set lies. Which of these are set follows from the type; paths are relative to the
    /// working folder.
    struct Files {
        std::string path;            ///< folder, CSV, HDF5 or .npz file
        std::string inputs, labels;  ///< files, or names of arrays in `path`
        std::string masks;           ///< folder of masks
        bool empty() const { return path.empty() && inputs.empty(); }
    };
    enum class Type { idx, folder, hdf5, csv, npy };

    Type type = Type::idx;
    Files train, test;
    double test_share = 0;    ///< of the training set, kept apart to test with, if above 0
    bool skip_broken = true;  ///< examples that cannot be read
    int threads = 0;          ///< that read; 0: as many as cores
    std::vector<std::string> classes;

    int channels = 3;                           ///< folder
    bool channels_last = false;                 ///< hdf5, npy
    std::vector<std::string> labels, features;  ///< csv: columns; no features: all others
    bool label_is_value = false;                ///< csv: targets are numbers, not classes
    char separator = ',';                       ///< csv

    AugmentOptions augmentation;
};

/// `folder`: what paths are relative to. Throws Error(format), which names the file, line and path
/// of what is wrong, and offers the nearest name for a misspelt key.
DataConfig read_data_config(const JsonView& data, const std::optional<JsonView>& augmentation,
                            const std::filesystem::path& folder);

}  // namespace dlprim
