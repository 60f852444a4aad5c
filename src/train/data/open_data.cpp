// SPDX-License-Identifier: MIT
// Opening the data sets of a configuration, and splitting.
#include "train/data/open_data.hpp"

#include "base/text.hpp"
#include "train/data/array_data.hpp"
#include "train/data/csv_data.hpp"
#include "train/data/folder_data.hpp"
#include "train/data/random.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

std::unique_ptr<Dataset> open_idx(const DataConfig& config, const DataConfig::Files& files) {
    std::unique_ptr<Rows> images = open_idx_rows(files.inputs);
    std::unique_ptr<Rows> labels = open_idx_rows(files.labels);
    const Shape& shape = images->shape();
    if ((shape.rank() != 3 && shape.rank() != 4) || images->dtype() != DType::u8)
        fail(ErrorKind::format, "'", files.inputs, "' holds ", name_of(images->dtype()),
             " of shape ", shape.str(), "; images are uint8 of shape [N, H, W] or [N, C, H, W]");
    if (is_float(labels->dtype()))
        fail(ErrorKind::format, "'", files.labels, "' holds ", name_of(labels->dtype()),
             "; labels are integers");
    if (labels->shape().rank() != 1 || labels->count() != images->count())
        fail(ErrorKind::format, "'", files.labels, "' has shape ", labels->shape().str(), ", '",
             files.inputs, "' has ", images->count(), " images: there must be a label for each");
    return make_array_data(std::move(images), std::move(labels), false, config.classes);
}

std::unique_ptr<Dataset> open_arrays(const DataConfig& config, const DataConfig::Files& files) {
    const auto open = [&](const std::string& name) {
        if (config.type == DataConfig::Type::hdf5) return open_hdf5_rows(files.path, name);
        return files.path.empty() ? open_npy_rows(name, "") : open_npy_rows(files.path, name);
    };
    return make_array_data(open(files.inputs), open(files.labels), config.channels_last,
                           config.classes);
}

std::shared_ptr<const Dataset> open_set(const DataConfig& config, const DataConfig::Files& files,
                                        const Dataset* train) {
    const std::vector<std::string>& classes = train ? train->classes() : config.classes;
    switch (config.type) {
        case DataConfig::Type::idx:
            return open_idx(config, files);
        case DataConfig::Type::folder:
            if (!files.masks.empty())
                return open_mask_folder(files.path, files.masks, config.channels, classes);
            return open_class_folder(files.path, config.channels, classes);
        case DataConfig::Type::csv: {
            CsvOptions options{config.labels,    config.features, config.label_is_value,
                               config.separator, classes,         train != nullptr};
            if (train != nullptr && options.features.empty())
                options.features = csv_features(*train);
            return open_csv(files.path, options);
        }
        default:
            return open_arrays(config, files);
    }
}

std::vector<std::int64_t> all_of(const Dataset& data) {
    std::vector<std::int64_t> members(static_cast<std::size_t>(data.size()));
    for (std::size_t i = 0; i < members.size(); ++i) members[i] = static_cast<std::int64_t>(i);
    return members;
}

void split_off(const DataConfig& config, std::uint64_t seed, DataParts& parts) {
    std::vector<std::int64_t> order = all_of(*parts.train.data);
    shuffle(order, seed, 0, RandomUse::splitting);
    const auto count = static_cast<std::size_t>(
        std::llround(config.test_share * static_cast<double>(order.size())));
    if (count == 0 || count == order.size())
        fail(ErrorKind::format, "data.test keeps the share ", config.test_share, " of ",
             order.size(), " examples apart, which leaves none to ",
             count == 0 ? "test with" : "train on", "; another share is needed");
    const auto border = order.begin() + static_cast<std::ptrdiff_t>(count);
    parts.test.data = parts.train.data;
    parts.test.members.assign(order.begin(), border);
    parts.train.members.assign(border, order.end());
    std::sort(parts.test.members.begin(), parts.test.members.end());
    std::sort(parts.train.members.begin(), parts.train.members.end());
}

}  // namespace

DataParts open_data(const DataConfig& config, std::uint64_t seed) {
    DataParts parts;
    parts.train.data = open_set(config, config.train, nullptr);
    parts.train.members = all_of(*parts.train.data);
    if (config.test_share > 0) split_off(config, seed, parts);
    if (config.test.empty()) return parts;
    parts.test.data = open_set(config, config.test, parts.train.data.get());
    parts.test.members = all_of(*parts.test.data);
    require(parts.test.data->size() > 0, "the test set is empty");
    const Dataset& train = *parts.train.data;
    const Dataset& test = *parts.test.data;
    if (train.target_kind() != test.target_kind() || train.target_size() != test.target_size() ||
        train.has_pictures() != test.has_pictures())
        fail(ErrorKind::format, test.source(), " and ", train.source(),
             " differ in what an example is: a test set has the inputs and targets of the "
             "training set");
    return parts;
}

std::unique_ptr<Loader> make_loader(const DataPart& part, const DataConfig& config,
                                    const LoaderOptions& options) {
    LoaderOptions all = options;
    all.skip_broken = config.skip_broken;
    all.threads = config.threads;
    return std::make_unique<Loader>(part.data, part.members, config.augmentation, all);
}

std::optional<Preprocessing> preprocessing_of(const DataConfig& config, const Dataset& data,
                                              const Shape& input) {
    if (!data.has_pictures()) return std::nullopt;
    const AugmentOptions& how = config.augmentation;
    Preprocessing result;
    result.resize = test_resize(how);
    result.resize_height = how.resize_height;
    result.resize_width = how.resize_width;
    result.crop_height = input[1];
    result.crop_width = input[2];
    result.mean = how.mean;
    result.deviation = how.std;
    result.classes = data.classes();
    return result;
}

}  // namespace dlprim
