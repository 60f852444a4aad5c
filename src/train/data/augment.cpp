// SPDX-License-Identifier: MIT
// Augmenter: where the part of a picture lies, and what its pixels become.
#include "train/data/augment.hpp"

#include "base/text.hpp"
#include "formats/image/geometry.hpp"
#include "train/data/random.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

/// A whole number from 0 to `most`.
double below(std::uint32_t word, double most) {
    return std::floor(word * 0x1p-32 * (most + 1));
}

double between(std::uint32_t word, double least, double most) {
    return least + (most - least) * uniform_from_bits(word);
}

image::Size resized_size(const AugmentOptions& how, std::int64_t width, std::int64_t height) {
    return image::resized_size({width, height}, how.resize, {how.resize_width, how.resize_height});
}

/// The size to which the first picture that can be read is resized. Throws the first Error if none
/// can be read.
image::Size first_size(const Dataset& data, const AugmentOptions& how) {
    require(data.size() > 0, data.source(), " has no pictures");
    for (std::int64_t i = 0;; ++i) {
        try {
            const Image picture = data.read(i).image;
            require(picture.width > 0 && picture.height > 0, "'", data.name(i), "' has no pixels");
            return resized_size(how, picture.width, picture.height);
        } catch (const Error&) {
            if (i + 1 == data.size()) throw;
        }
    }
}

}  // namespace

std::int64_t test_resize(const AugmentOptions& options) {
    const bool needed = options.resized_crop && options.resize == 0 && options.resize_height == 0;
    return needed ? std::max(options.crop_height, options.crop_width) * 8 / 7 : options.resize;
}

Augmenter::Augmenter(const Dataset& data, AugmentOptions options, std::uint64_t seed, bool training)
    : options_(std::move(options)), seed_(seed), training_(training), shape_(data.input_shape()) {
    const std::int64_t channels = shape_.rank() > 0 ? shape_[0] : 1;
    for (const auto* list : {&options_.mean, &options_.std})
        require(list->size() == 1 || static_cast<std::int64_t>(list->size()) == channels, "data.",
                list == &options_.mean ? "mean" : "std", " has ", list->size(),
                " numbers, but inputs of ", data.source(), " have ", channels,
                data.has_pictures() ? " channels" : " features");
    const bool geometric = options_.resize > 0 || options_.resize_height > 0 ||
                           options_.crop_height > 0 || options_.flip || options_.crop_pad > 0 ||
                           options_.cutout > 0 || options_.brightness > 0 ||
                           options_.contrast > 0 || options_.saturation > 0;
    if (!data.has_pictures()) {
        require(!geometric, "augmentation changes pictures, but inputs of ", data.source(),
                " are none: they are not uint8 of shape [N, H, W] or [N, C, H, W]; mixup alone "
                "suits them");
        return;
    }
    std::int64_t height = shape_[1], width = shape_[2];
    if (height > 0 || options_.resize_height > 0) {
        const image::Size size = resized_size(options_, width, height);
        height = size.height;
        width = size.width;
    }
    if (options_.crop_height > 0) {
        const bool too_large =
            height > 0 && (options_.crop_height > height || options_.crop_width > width);
        require(!too_large || (training_ && options_.resized_crop), "augmentation.crop is ",
                options_.crop_height, " x ", options_.crop_width, ", but images of ", data.source(),
                " are ", height, " x ", width,
                ": a smaller crop, or augmentation.resize, is needed");
        height = options_.crop_height, width = options_.crop_width;
    }
    if (height == 0) {
        const image::Size size = first_size(data, options_);
        height = size.height, width = size.width;
        same_size_ = true;
    }
    shape_ = Shape{channels, height, width};
    require(!training_ || options_.crop_pad < std::min(height, width), "augmentation.crop_pad is ",
            options_.crop_pad, ", but images are ", height, "x", width,
            ": such shifts would leave nothing of them");
    for (std::int64_t c = 0; c < channels; ++c)
        for (int v = 0; v < 256; ++v)
            table_.push_back(static_cast<float>((v / 255.0 - mean(c)) / std(c)));
}

double Augmenter::mean(std::int64_t channel) const {
    return options_.mean[options_.mean.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
}

double Augmenter::std(std::int64_t channel) const {
    return options_.std[options_.std.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
}

WantedPart Augmenter::choose_resized_crop(const Subject& subject) const {
    // As torchvision's RandomResizedCrop: ten attempts to find a part that fits.
    const auto width = static_cast<double>(subject.width);
    const auto height = static_cast<double>(subject.height);
    WantedPart part{{}, shape_[2], shape_[1]};
    for (std::uint32_t attempt = 0; attempt < 10; ++attempt) {
        const auto words =
            data_random(seed_, subject.epoch, subject.index, RandomUse::cropping, attempt);
        const double area =
            width * height * between(words[0], options_.scale[0], options_.scale[1]);
        const double ratio =
            std::exp(between(words[1], std::log(options_.ratio[0]), std::log(options_.ratio[1])));
        const double w = std::nearbyint(std::sqrt(area * ratio));
        const double h = std::nearbyint(std::sqrt(area / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        part.box = {below(words[2], width - w), below(words[3], height - h), w, h};
        return part;
    }
    // The largest part in the middle whose proportions are allowed.
    const double ratio = std::clamp(width / height, options_.ratio[0], options_.ratio[1]);
    const double w = std::clamp(std::nearbyint(height * ratio), 1.0, width);
    const double h = std::clamp(std::nearbyint(w / ratio), 1.0, height);
    part.box = {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
    return part;
}

WantedPart Augmenter::choose_crop(const Subject& subject) const {
    AugmentOptions how = options_;
    how.resize = test_resize(options_);
    const image::Size picture{subject.width, subject.height}, crop{shape_[2], shape_[1]};
    const image::Size all = resized_size(how, subject.width, subject.height);
    if (same_size_ && (all.width != crop.width || all.height != crop.height))
        fail(ErrorKind::format, "'", subject.data.name(subject.index), "' is an image of ",
             subject.width, " x ", subject.height, " pixels",
             all.width != subject.width ? cat(", resized to ", all.width, " x ", all.height) : "",
             ", and the first one gives ", crop.width, " x ", crop.height,
             ": set augmentation.crop, with resize or resized_crop, or augmentation.resize to "
             "[height, width]");
    const std::int64_t free_x = all.width - crop.width, free_y = all.height - crop.height;
    if (free_x < 0 || free_y < 0)
        fail(ErrorKind::format, "'", subject.data.name(subject.index), "' is an image of ",
             subject.width, " x ", subject.height, " pixels",
             all.width != subject.width ? cat(", resized to ", all.width, " x ", all.height) : "",
             ", smaller than the crop of ", crop.width, " x ", crop.height,
             "; augmentation.resize makes images larger");
    std::int64_t left = image::middle(free_x), top = image::middle(free_y);
    if (training_ && options_.random_crop && (free_x > 0 || free_y > 0)) {
        const auto words = data_random(seed_, subject.epoch, subject.index, RandomUse::cropping);
        left = static_cast<std::int64_t>(below(words[0], static_cast<double>(free_x)));
        top = static_cast<std::int64_t>(below(words[1], static_cast<double>(free_y)));
    }
    return {image::crop_box(picture, all, left, top, crop), crop.width, crop.height};
}

Augmenter::Geometry Augmenter::plan(const Subject& subject) const {
    Geometry geometry;
    geometry.part =
        training_ && options_.resized_crop ? choose_resized_crop(subject) : choose_crop(subject);
    geometry.resize = geometry.part.box.width != static_cast<double>(shape_[2]) ||
                      geometry.part.box.height != static_cast<double>(shape_[1]);
    if (training_ && (options_.flip || options_.crop_pad > 0)) {
        const auto words = data_random(seed_, subject.epoch, subject.index, RandomUse::augmenting);
        geometry.mirror = options_.flip && (words[0] & 1) != 0;
        const auto span = static_cast<std::uint32_t>(2 * options_.crop_pad + 1);
        geometry.shift_y = static_cast<std::int64_t>(words[1] % span) - options_.crop_pad;
        geometry.shift_x = static_cast<std::int64_t>(words[2] % span) - options_.crop_pad;
    }
    return geometry;
}

/// Calls put(y, x, source y, source x) for each pixel, or with a source of -1 for those outside.
template <typename Put>
static void for_each_pixel(std::int64_t height, std::int64_t width, bool mirror,
                           std::int64_t shift_y, std::int64_t shift_x, const Put& put) {
    for (std::int64_t y = 0; y < height; ++y) {
        const std::int64_t from_y = y + shift_y;
        for (std::int64_t x = 0; x < width; ++x) {
            const std::int64_t from_x = (mirror ? width - 1 - x : x) + shift_x;
            const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
            put(y, x, inside ? from_y : -1, inside ? from_x : -1);
        }
    }
}

void Augmenter::write_bytes(const Example& example, const Geometry& geometry, float* to) const {
    const std::int64_t channels = shape_[0], height = shape_[1], width = shape_[2];
    const Image& image = example.image;
    const auto left = static_cast<std::int64_t>(example.box.left);
    const auto top = static_cast<std::int64_t>(example.box.top);
    for (std::int64_t c = 0; c < channels; ++c) {
        const float* const table = table_.data() + 256 * c;
        float* const plane = to + c * height * width;
        for_each_pixel(height, width, geometry.mirror, geometry.shift_y, geometry.shift_x,
                       [&](std::int64_t y, std::int64_t x, std::int64_t sy, std::int64_t sx) {
                           const std::int64_t at =
                               ((top + sy) * image.width + left + sx) * channels + c;
                           plane[y * width + x] =
                               sy < 0 ? 0.0f : table[image.pixels[static_cast<std::size_t>(at)]];
                       });
    }
}

void Augmenter::change_colours(std::vector<float>& pixels, std::int64_t index,
                               std::uint64_t epoch) const {
    const std::int64_t channels = shape_[0];
    const auto words = data_random(seed_, epoch, index, RandomUse::colouring);
    const auto factor = [](std::uint32_t word, double reach) {
        return static_cast<float>(between(word, std::max(0.0, 1 - reach), 1 + reach));
    };
    const auto grey = [&](const float* pixel) {
        return channels == 3 ? 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2] : *pixel;
    };
    const auto clip = [](float value) { return std::clamp(value, 0.0f, 255.0f); };
    if (options_.brightness > 0) {
        const float by = factor(words[0], options_.brightness);
        for (float& value : pixels) value = clip(value * by);
    }
    if (options_.contrast > 0) {
        const float by = factor(words[1], options_.contrast);
        double sum = 0;
        for (std::size_t i = 0; i < pixels.size(); i += static_cast<std::size_t>(channels))
            sum += grey(pixels.data() + i);
        const auto middle = static_cast<float>(sum * static_cast<double>(channels) /
                                               static_cast<double>(pixels.size()));
        for (float& value : pixels) value = clip(middle + (value - middle) * by);
    }
    if (options_.saturation > 0 && channels == 3) {
        const float by = factor(words[2], options_.saturation);
        for (std::size_t i = 0; i < pixels.size(); i += 3) {
            const float middle = grey(pixels.data() + i);
            for (std::size_t c = 0; c < 3; ++c)
                pixels[i + c] = clip(middle + (pixels[i + c] - middle) * by);
        }
    }
}

void Augmenter::write_floats(std::vector<float> pixels, const Geometry& geometry, float* to,
                             std::int64_t index, std::uint64_t epoch) const {
    const std::int64_t channels = shape_[0], height = shape_[1], width = shape_[2];
    if (training_) change_colours(pixels, index, epoch);
    for (std::int64_t c = 0; c < channels; ++c) {
        const auto scale = static_cast<float>(1 / (255 * std(c)));
        const auto offset = static_cast<float>(-mean(c) / std(c));
        float* const plane = to + c * height * width;
        const bool plain = geometry.shift_x == 0 && geometry.shift_y == 0;
        for (std::int64_t y = 0; plain && y < height; ++y) {
            const float* const from = pixels.data() + y * width * channels + c;
            float* const row = plane + y * width;
            if (geometry.mirror)
                for (std::int64_t x = 0; x < width; ++x)
                    row[x] = from[(width - 1 - x) * channels] * scale + offset;
            else
                for (std::int64_t x = 0; x < width; ++x)
                    row[x] = from[x * channels] * scale + offset;
        }
        if (plain) continue;
        for_each_pixel(height, width, geometry.mirror, geometry.shift_y, geometry.shift_x,
                       [&](std::int64_t y, std::int64_t x, std::int64_t sy, std::int64_t sx) {
                           const auto at =
                               static_cast<std::size_t>((sy * width + sx) * channels + c);
                           plane[y * width + x] = sy < 0 ? 0.0f : pixels[at] * scale + offset;
                       });
    }
}

void Augmenter::write_mask(const Example& example, const Geometry& geometry, const Subject& subject,
                           std::int32_t* mask) const {
    const std::int64_t height = shape_[1], width = shape_[2];
    const Image& from = example.mask;
    const ImageBox& box = geometry.part.box;
    if (from.width != subject.width || from.height != subject.height)
        fail(ErrorKind::format, "'", subject.data.name(subject.index), "' is ", subject.width,
             " x ", subject.height, " pixels, but its mask is ", from.width, " x ", from.height);
    for_each_pixel(
        height, width, geometry.mirror, geometry.shift_y, geometry.shift_x,
        [&](std::int64_t y, std::int64_t x, std::int64_t sy, std::int64_t sx) {
            // The nearest pixel's class: classes have no mean.
            const auto at = [](double begin, double length, std::int64_t i, std::int64_t count,
                               std::int64_t most) {
                const double position =
                    begin + (static_cast<double>(i) + 0.5) * length / static_cast<double>(count);
                return std::clamp(static_cast<std::int64_t>(position), std::int64_t{0}, most - 1);
            };
            const std::int64_t row = at(box.top, box.height, sy, height, from.height);
            const std::int64_t column = at(box.left, box.width, sx, width, from.width);
            mask[y * width + x] =
                sy < 0 ? 0 : from.pixels[static_cast<std::size_t>(row * from.width + column)];
        });
}

void Augmenter::cut_out(std::int64_t index, std::uint64_t epoch, float* to) const {
    const std::int64_t channels = shape_[0], height = shape_[1], width = shape_[2];
    const auto words = data_random(seed_, epoch, index, RandomUse::cutting);
    // The middle lies anywhere, so that squares at the edges are cut short (DeVries and Taylor,
    // 2017).
    const auto span = [&](std::uint32_t word, std::int64_t length) {
        const auto middle = static_cast<std::int64_t>(below(word, static_cast<double>(length - 1)));
        const std::int64_t begin = middle - options_.cutout / 2;
        return std::pair(std::clamp(begin, std::int64_t{0}, length),
                         std::clamp(begin + options_.cutout, std::int64_t{0}, length));
    };
    const auto [top, bottom] = span(words[0], height);
    const auto [left, right] = span(words[1], width);
    for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t y = top; y < bottom; ++y)
            std::fill_n(to + (c * height + y) * width + left, right - left, 0.0f);
}

Example Augmenter::make(const Dataset& data, std::int64_t index, std::uint64_t epoch, float* to,
                        std::int32_t* mask) const {
    if (!data.has_pictures()) {
        Example example = data.read(index);
        const std::int64_t channels = shape_.rank() > 0 ? shape_[0] : 1;
        const std::int64_t each = shape_.numel() / std::max<std::int64_t>(1, channels);
        for (std::size_t i = 0; i < example.values.size(); ++i) {
            const std::int64_t c = static_cast<std::int64_t>(i) / std::max<std::int64_t>(1, each);
            to[i] = static_cast<float>((example.values[i] - mean(c)) / std(c));
        }
        if (mask != nullptr)
            for (const float label : example.target) *mask++ = static_cast<std::int32_t>(label);
        return example;
    }
    Geometry geometry;
    Subject subject{data, index, epoch};
    Example example = data.read(index, [&](std::int64_t width, std::int64_t height) {
        subject.width = width;
        subject.height = height;
        geometry = plan(subject);
        return geometry.part;
    });
    if (mask != nullptr) write_mask(example, geometry, subject, mask);
    const bool coloured =
        training_ && (options_.brightness > 0 || options_.contrast > 0 || options_.saturation > 0);
    if (!geometry.resize && !coloured)
        write_bytes(example, geometry, to);
    else
        write_floats(resized(example.image, example.box, shape_[2], shape_[1]), geometry, to, index,
                     epoch);
    if (training_ && options_.cutout > 0) cut_out(index, epoch, to);
    return example;
}

}  // namespace dlprim
