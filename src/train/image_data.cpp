// SPDX-License-Identifier: MIT
// ImageData.
#include "train/image_data.hpp"

#include "base/philox.hpp"
#include "base/text.hpp"
#include "formats/idx.hpp"

#include <algorithm>
#include <numeric>

namespace dlprim {

namespace {

// What a random number is used for. It is a word of the generator's counter.
enum Purpose : std::uint32_t { shuffling = 1, augmenting = 2 };

std::array<std::uint32_t, 4> random_words(std::uint64_t seed, std::uint64_t epoch,
                                          std::int64_t index, Purpose purpose) {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                   static_cast<std::uint32_t>(epoch), purpose},
                  {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

}  // namespace

ImageData::ImageData(const std::string& images_file, const std::string& labels_file)
    : images_file_(images_file), labels_file_(labels_file) {
    IdxArray images = read_idx(images_file), labels = read_idx(labels_file);
    const Shape& shape = images.shape;
    if ((shape.rank() != 3 && shape.rank() != 4) || images.dtype != DType::u8)
        fail(ErrorKind::format, "'", images_file, "' holds ", name_of(images.dtype), " of shape ",
             shape.str(), "; images are uint8 of shape [N, H, W] or [N, C, H, W]");
    if (labels.shape.rank() != 1 || labels.shape[0] != shape[0])
        fail(ErrorKind::format, "'", labels_file, "' has shape ", labels.shape.str(), ", '",
             images_file, "' has ", shape[0], " images: there must be a label for each");
    if (is_float(labels.dtype))
        fail(ErrorKind::format, "'", labels_file, "' holds ", name_of(labels.dtype),
             "; labels are integers");
    count_ = shape[0];
    channels_ = shape.rank() == 4 ? shape[1] : 1;
    height_ = shape[-2];
    width_ = shape[-1];
    pixels_ = std::move(images.data);
    labels_.resize(static_cast<std::size_t>(count_));
    convert(labels.data.data(), labels.dtype, labels_.data(), DType::i32, labels_.size());
}

void ImageData::check_labels(std::int64_t classes) const {
    for (const std::int32_t label : labels_)
        if (label < 0 || label >= classes)
            fail(ErrorKind::format, "'", labels_file_, "' holds label ", label,
                 ", the network has ", classes, " classes: labels run from 0 to ", classes - 1);
}

std::vector<std::int64_t> ImageData::shuffled(std::uint64_t seed, std::uint64_t epoch) const {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count_));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (std::int64_t i = count_ - 1; i > 0; --i) {  // Fisher-Yates shuffle
        const auto words = random_words(seed, epoch, i, shuffling);
        const std::uint64_t word = (std::uint64_t{words[0]} << 32) | words[1];
        std::swap(order[static_cast<std::size_t>(i)],
                  order[word % static_cast<std::uint64_t>(i + 1)]);
    }
    return order;
}

void ImageData::image(std::int64_t index, const Augmentation& how, std::uint64_t seed,
                      std::uint64_t epoch, float* to) const {
    bool mirror = false;
    std::int64_t shift_y = 0, shift_x = 0;
    if (how.flip || how.crop_pad > 0) {
        const auto words = random_words(seed, epoch, index, augmenting);
        mirror = how.flip && (words[0] & 1) != 0;
        const auto span = static_cast<std::uint32_t>(2 * how.crop_pad + 1);
        shift_y = static_cast<std::int64_t>(words[1] % span) - how.crop_pad;
        shift_x = static_cast<std::int64_t>(words[2] % span) - how.crop_pad;
    }
    float table[256];
    for (int v = 0; v < 256; ++v) table[v] = static_cast<float>((v / 255.0 - how.mean) / how.std);
    const std::byte* from = pixels_.data() + index * channels_ * height_ * width_;
    for (std::int64_t c = 0; c < channels_; ++c) {
        for (std::int64_t y = 0; y < height_; ++y) {
            for (std::int64_t x = 0; x < width_; ++x) {
                const std::int64_t sy = y + shift_y, sx = (mirror ? width_ - 1 - x : x) + shift_x;
                const bool inside = sy >= 0 && sy < height_ && sx >= 0 && sx < width_;
                *to++ =
                    inside ? table[static_cast<int>(from[(c * height_ + sy) * width_ + sx])] : 0.0f;
            }
        }
    }
}

}  // namespace dlprim
