// SPDX-License-Identifier: MIT
// Reading "data" and "augmentation" of a training configuration.
#include "train/data_config.hpp"

#include "base/text.hpp"

#include <cmath>

namespace dlprim {

namespace {

using Type = DataConfig::Type;

double data_number(const JsonView& view, double least, double most, bool least_excluded = false) {
    const double value = view.number();
    if (!(least_excluded ? value > least : value >= least) || !(value <= most))
        view.fail(cat("is ", value, ", must be a number ",
                      least_excluded ? "above " : "of at least ", least,
                      most < 1e30 ? cat(" and at most ", most) : ""));
    return value;
}

std::int64_t data_integer(const JsonView& view, std::int64_t least, std::int64_t most) {
    const std::int64_t value = view.integer();
    if (value < least || value > most)
        view.fail(
            cat("is ", value, ", must be an integer of at least ", least, " and at most ", most));
    return value;
}

std::size_t data_choice(const JsonView& view, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == view.text()) return i;
    view.fail(cat("is '", view.text(), "', must be one of ", join(names, ", "),
                  did_you_mean(view.text(), names)));
}

/// A list of texts, or one.
std::vector<std::string> texts(const JsonView& view) {
    if (!view.is_array()) return {view.name()};
    std::vector<std::string> result;
    for (const JsonView& one : view.array()) result.push_back(one.name());
    if (result.empty()) view.fail("is empty");
    return result;
}

/// A list of numbers, or one.
std::vector<double> numbers(const JsonView& view, double least, double most) {
    if (!view.is_array()) return {data_number(view, least, most)};
    std::vector<double> result;
    for (const JsonView& one : view.array()) result.push_back(data_number(one, least, most));
    if (result.empty()) view.fail("is empty");
    return result;
}

/// [least, most] with least at most most.
void read_range(const JsonView& view, double least, double most, double (&range)[2]) {
    const std::vector<JsonView> both = view.array();
    if (both.size() != 2) view.fail("must be a list of two numbers, the least and the most");
    range[0] = data_number(both[0], least, most, true);
    range[1] = data_number(both[1], range[0], most);
}

/// An integer for a square, or [height, width].
void read_size(const JsonView& view, std::int64_t& height, std::int64_t& width) {
    constexpr std::int64_t most = 1 << 15;
    if (!view.is_array()) {
        height = width = data_integer(view, 1, most);
        return;
    }
    const std::vector<JsonView> both = view.array();
    if (both.size() != 2) view.fail("must be an integer, or a list [height, width]");
    height = data_integer(both[0], 1, most);
    width = data_integer(both[1], 1, most);
}

class DataReader {
  public:
    explicit DataReader(const std::filesystem::path& folder) : folder_(folder) {}

    DataConfig read(const JsonView& data) {
        const auto type = data.find("type");
        config_.type =
            type ? static_cast<Type>(data_choice(*type, {"idx", "folder", "hdf5", "csv", "npy"}))
                 : Type::idx;
        check_keys(data);
        config_.train = files(data.at("train"));
        read_test(data);
        if (const auto view = data.find("on_broken"))
            config_.skip_broken = data_choice(*view, {"stop", "skip"}) == 1;
        if (const auto view = data.find("threads"))
            config_.threads = static_cast<int>(data_integer(*view, 1, 1024));
        if (const auto view = data.find("classes")) config_.classes = texts(*view);
        if (const auto view = data.find("channels")) {
            config_.channels = static_cast<int>(view->integer());
            if (config_.channels != 1 && config_.channels != 3)
                view->fail("must be 1 (grey) or 3 (red, green and blue)");
        }
        if (const auto view = data.find("layout"))
            config_.channels_last = data_choice(*view, {"NCHW", "NHWC"}) == 1;
        if (config_.type == Type::csv) read_columns(data);
        // Pixels are from 0 to 1. A larger mean was meant for pixels from 0 to 255.
        const bool pixels = config_.type == Type::idx || config_.type == Type::folder;
        AugmentOptions& how = config_.augmentation;
        if (const auto view = data.find("mean"))
            how.mean = numbers(*view, pixels ? 0 : -1e30, pixels ? 1 : 1e30);
        if (const auto view = data.find("std")) how.std = numbers(*view, 1e-12, 1e30);
        return std::move(config_);
    }

  private:
    std::string path(const JsonView& view) const { return (folder_ / view.name()).string(); }

    /// Files, or the share of the training set, which was once the key "validation".
    void read_test(const JsonView& data) {
        const auto test = data.find("test"), share = data.find("validation");
        if (test && share) share->fail("is another word for data.test; leave one out");
        if (share || (test && test->is_number()))
            config_.test_share = data_number(share ? *share : *test, 0, 0.999, true);
        else if (test)
            config_.test = files(*test);
    }

    void check_keys(const JsonView& data) const {
        switch (config_.type) {
            case Type::idx:
                data.object({"type", "train", "test", "validation", "on_broken", "threads", "mean",
                             "std", "classes"});
                break;
            case Type::folder:
                data.object({"type", "train", "test", "validation", "on_broken", "threads", "mean",
                             "std", "classes", "channels"});
                break;
            case Type::hdf5:
            case Type::npy:
                data.object({"type", "train", "test", "validation", "on_broken", "threads", "mean",
                             "std", "classes", "layout"});
                break;
            case Type::csv:
                data.object({"type", "train", "test", "validation", "on_broken", "threads", "mean",
                             "std", "classes", "label", "features", "target", "separator"});
        }
    }

    DataConfig::Files files(const JsonView& view) const {
        DataConfig::Files result;
        switch (config_.type) {
            case Type::idx:
                view.object({"images", "labels"});
                result.inputs = path(view.at("images"));
                result.labels = path(view.at("labels"));
                break;
            case Type::folder:
                if (!view.is_object()) {
                    result.path = path(view);
                    break;
                }
                view.object({"images", "masks"});
                result.path = path(view.at("images"));
                result.masks = path(view.at("masks"));
                break;
            case Type::hdf5:
                view.object({"file", "inputs", "labels"});
                result.path = path(view.at("file"));
                result.inputs = view.at("inputs").name();
                result.labels = view.at("labels").name();
                break;
            case Type::npy:
                view.object({"file", "inputs", "labels"});
                if (view.find("file")) {
                    result.path = path(view.at("file"));
                    result.inputs = view.at("inputs").name();
                    result.labels = view.at("labels").name();
                } else {
                    result.inputs = path(view.at("inputs"));
                    result.labels = path(view.at("labels"));
                }
                break;
            case Type::csv:
                result.path = path(view);
        }
        return result;
    }

    void read_columns(const JsonView& data) {
        config_.labels = texts(data.at("label"));
        if (const auto view = data.find("features")) config_.features = texts(*view);
        if (const auto view = data.find("target"))
            config_.label_is_value = data_choice(*view, {"class", "value"}) == 1;
        if (config_.labels.size() > 1) config_.label_is_value = true;
        if (const auto view = data.find("separator")) {
            const std::string& text = view->text();
            if (text.size() != 1 || text == "\"" || text == "\n" || text == "\r")
                view->fail("must be one character, such as \",\", \";\" or a tabulator");
            config_.separator = text[0];
        }
    }

    std::filesystem::path folder_;
    DataConfig config_;
};

void read_resized_crop(const JsonView& view, AugmentOptions& how) {
    if (!view.is_object()) {
        how.resized_crop = view.boolean();
        return;
    }
    view.object({"scale", "ratio"});
    how.resized_crop = true;
    if (const auto scale = view.find("scale")) read_range(*scale, 0, 1, how.scale);
    if (const auto ratio = view.find("ratio")) read_range(*ratio, 0, 1e3, how.ratio);
}

void read_augmentation(const JsonView& view, AugmentOptions& how) {
    view.object({"resize", "crop", "crop_from", "resized_crop", "flip", "crop_pad", "brightness",
                 "contrast", "saturation", "cutout", "mixup"});
    if (const auto resize = view.find("resize")) {
        if (resize->is_array())
            read_size(*resize, how.resize_height, how.resize_width);
        else
            how.resize = data_integer(*resize, 1, 1 << 15);
    }
    if (const auto crop = view.find("crop")) read_size(*crop, how.crop_height, how.crop_width);
    if (const auto from = view.find("crop_from"))
        how.random_crop = data_choice(*from, {"middle", "anywhere"}) == 1;
    if (const auto crop = view.find("resized_crop")) read_resized_crop(*crop, how);
    if (how.resized_crop && how.crop_height == 0)
        view.at("resized_crop").fail("needs the size of the result: set augmentation.crop");
    if (const auto flip = view.find("flip")) how.flip = flip->boolean();
    if (const auto pad = view.find("crop_pad"))
        how.crop_pad = static_cast<int>(data_integer(*pad, 0, 1'000'000'000));
    for (const auto& [key, value] :
         {std::pair("brightness", &how.brightness), std::pair("contrast", &how.contrast),
          std::pair("saturation", &how.saturation)})
        if (const auto found = view.find(key)) *value = data_number(*found, 0, 10);
    if (const auto cutout = view.find("cutout")) how.cutout = data_integer(*cutout, 0, 1 << 15);
    if (const auto mixup = view.find("mixup")) how.mixup = data_number(*mixup, 0, 1e3);
}

}  // namespace

DataConfig read_data_config(const JsonView& data, const std::optional<JsonView>& augmentation,
                            const std::filesystem::path& folder) {
    DataConfig config = DataReader(folder).read(data);
    if (augmentation) read_augmentation(*augmentation, config.augmentation);
    return config;
}

}  // namespace dlprim
