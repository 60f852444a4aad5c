// SPDX-License-Identifier: MIT
// ImageData: a set of labelled images in memory, and its batches. They are shuffled and augmented
// by Philox, so that they depend only on the seed and the epoch, not on what ran before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

struct Augmentation {
    double mean = 0, std = 1;  ///< pixels become (value / 255 - mean) / std
    bool flip = false;
    int crop_pad = 0;
};

class ImageData {
  public:
    /// Reads images [N, H, W] or [N, C, H, W] of u8 and labels [N]. Throws Error, which names the
    /// files, if they do not fit together.
    ImageData(const std::string& images_file, const std::string& labels_file);

    std::int64_t size() const { return count_; }
    std::int64_t channels() const { return channels_; }
    std::int64_t height() const { return height_; }
    std::int64_t width() const { return width_; }
    const std::string& images_file() const { return images_file_; }
    /// Throws Error(format), which names the file, if a label is not from 0 to classes - 1.
    void check_labels(std::int64_t classes) const;

    /// The order of the images in an epoch.
    std::vector<std::int64_t> shuffled(std::uint64_t seed, std::uint64_t epoch) const;
    /// Writes image `index` as floats to `to` (channels * height * width). The augmentation that
    /// `how` asks for depends on (seed, epoch, index).
    void image(std::int64_t index, const Augmentation& how, std::uint64_t seed, std::uint64_t epoch,
               float* to) const;
    std::int32_t label(std::int64_t index) const {
        return labels_[static_cast<std::size_t>(index)];
    }

  private:
    std::int64_t count_ = 0, channels_ = 1, height_ = 0, width_ = 0;
    std::vector<std::byte> pixels_;
    std::vector<std::int32_t> labels_;
    std::string images_file_, labels_file_;
};

}  // namespace dlprim
