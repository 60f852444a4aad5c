// SPDX-License-Identifier: MIT
// Preprocessing: attributes of weights files, and what they say done to a picture.
#include "formats/preprocessing.hpp"

#include "base/text.hpp"
#include "formats/image/geometry.hpp"

#include <cmath>

namespace dlprim {

namespace {

constexpr const char* preprocessing_group = "preprocessing";
constexpr std::size_t most_names = 60000;
constexpr std::int64_t largest_picture = 1 << 15;

class PreprocessingReader {
  public:
    explicit PreprocessingReader(const std::string& path) : file_(path) {}

    std::optional<Preprocessing> read() {
        Preprocessing how;
        if (const Ints resize = integers("resize"); resize.size() == 1) {
            how.resize = resize[0];
        } else if (resize.size() == 2) {
            how.resize_height = resize[0];
            how.resize_width = resize[1];
        }
        if (const Ints crop = integers("crop"); !crop.empty()) {
            how.crop_height = crop.front();
            how.crop_width = crop.back();
        }
        numbers("mean", how.mean);
        numbers("deviation", how.deviation);
        for (const double value : how.deviation)
            if (value == 0) bad("deviation", "is 0");
        if (const auto classes = file_.attribute(preprocessing_group, "classes")) {
            found_ = true;
            const auto* const text = std::get_if<std::string>(&*classes);
            if (text == nullptr) bad("classes", "is no text");
            how.classes = split(*text, '\n');
        }
        return found_ ? std::optional(how) : std::nullopt;
    }

  private:
    [[noreturn]] void bad(std::string_view name, std::string_view what) const {
        fail(ErrorKind::format, "'", file_.path(), "': attribute '", name, "' of '",
             preprocessing_group, "' ", what);
    }
    /// One or two sizes, or none.
    Ints integers(const char* name) {
        const auto attribute = file_.attribute(preprocessing_group, name);
        if (!attribute) return {};
        found_ = true;
        Ints values;
        if (const auto* const list = std::get_if<Ints>(&*attribute)) values = *list;
        if (const auto* const one = std::get_if<std::int64_t>(&*attribute)) values = {*one};
        if (values.empty() || values.size() > 2) bad(name, "is no integer and no pair of integers");
        for (const std::int64_t value : values)
            if (value < 1 || value > largest_picture)
                bad(name, cat("is ", value, ", must be from 1 to ", largest_picture));
        return values;
    }
    void numbers(const char* name, std::vector<double>& values) {
        const auto attribute = file_.attribute(preprocessing_group, name);
        if (!attribute) return;
        found_ = true;
        values.clear();
        if (const auto* const list = std::get_if<Doubles>(&*attribute)) values = *list;
        if (const auto* const one = std::get_if<double>(&*attribute)) values = {*one};
        if (values.empty()) bad(name, "is no number and no list of numbers");
        for (const double value : values)
            if (!std::isfinite(value)) bad(name, "has a number that is not finite");
    }

    Hdf5Reader file_;
    bool found_ = false;
};

}  // namespace

std::optional<Preprocessing> read_preprocessing(const std::string& weights) {
    return PreprocessingReader(weights).read();
}

void write_preprocessing(Hdf5Writer& file, const Preprocessing& how) {
    const auto set = [&](const char* name, const Attr& value) {
        file.attribute(preprocessing_group, name, value);
    };
    if (how.resize_height > 0)
        set("resize", Ints{how.resize_height, how.resize_width});
    else if (how.resize > 0)
        set("resize", how.resize);
    if (how.crop_height > 0) set("crop", Ints{how.crop_height, how.crop_width});
    set("mean", Doubles(how.mean));
    set("deviation", Doubles(how.deviation));
    const std::string names = join(how.classes, "\n");
    if (!names.empty() && names.size() <= most_names) set("classes", names);
}

std::vector<float> preprocessed(const Image& image, const Preprocessing& how) {
    const image::Size picture{image.width, image.height};
    const image::Size all =
        resized_size(picture, how.resize, {how.resize_width, how.resize_height});
    const image::Size crop =
        how.crop_height > 0 ? image::Size{how.crop_width, how.crop_height} : all;
    require(crop.width <= all.width && crop.height <= all.height, "an image of ", image.width,
            " x ", image.height, " pixels", all.width != image.width ? ", resized to " : "",
            all.width != image.width ? cat(all.width, " x ", all.height) : "",
            ", is smaller than the crop of ", crop.width, " x ", crop.height);
    const auto channels = static_cast<std::size_t>(image.channels);
    for (const auto* list : {&how.mean, &how.deviation})
        require(list->size() == 1 || list->size() == channels, "the preprocessing has ",
                list->size(), list == &how.mean ? " means" : " deviations", ", the image has ",
                channels, " channels");
    const ImageBox box = crop_box(picture, all, image::middle(all.width - crop.width),
                                  image::middle(all.height - crop.height), crop);
    const std::vector<float> pixels = resized(image, box, crop.width, crop.height);
    std::vector<float> planes(pixels.size());
    const std::size_t area = pixels.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
        const double mean = how.mean[how.mean.size() == 1 ? 0 : c];
        const double deviation = how.deviation[how.deviation.size() == 1 ? 0 : c];
        for (std::size_t i = 0; i < area; ++i)
            planes[c * area + i] =
                static_cast<float>((pixels[i * channels + c] / 255.0 - mean) / deviation);
    }
    return planes;
}

}  // namespace dlprim
