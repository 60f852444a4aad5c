// SPDX-License-Identifier: MIT
// The data sets that a configuration names, and which of their examples train and which test.
#pragma once

#include "train/data/loader.hpp"
#include "train/data_config.hpp"
#include "train/dataset.hpp"

#include <dlprim/preprocessing.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace dlprim {

/// Some examples of a data set.
struct DataPart {
    std::shared_ptr<const Dataset> data;
    std::vector<std::int64_t> members;
    explicit operator bool() const { return data != nullptr; }
};

struct DataParts {
    DataPart train;
    DataPart test;  ///< the test set: of its own, a share of the training set, or nothing
};

/// Opens what the configuration names. The seed chooses the examples of such a share. Throws Error
/// for files that cannot be read or do not fit together, and where a part would be empty.
DataParts open_data(const DataConfig& config, std::uint64_t seed);

/// The loader of a part. `one_hot` and `classes` are as in LoaderOptions.
std::unique_ptr<Loader> make_loader(const DataPart& part, const DataConfig& config,
                                    const LoaderOptions& options);

/// How pictures outside of the data are to be treated, for a net that was trained on them; see
/// dlprim/preprocessing.hpp. `input` is the loader's input_shape(). Nothing if inputs are no
/// pictures.
std::optional<Preprocessing> preprocessing_of(const DataConfig& config, const Dataset& data,
                                              const Shape& input);

}  // namespace dlprim
