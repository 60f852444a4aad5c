// SPDX-License-Identifier: MIT
// Augmenter: makes the input of a net from an example: resizing, cropping, mirroring, colours,
// normalising. Training adds chance to it; else it makes the same of an example each time.
#pragma once

#include "train/dataset.hpp"

#include <cstdint>
#include <vector>

namespace dlprim {

struct AugmentOptions {
    /// Normalising: values, of which pixels are from 0 to 1, become (value - mean) / std. One of
    /// each, or one for each channel.
    std::vector<double> mean{0}, std{1};

    // In training and testing:
    std::int64_t resize = 0;                           ///< the length that the shorter side gets
    std::int64_t resize_height = 0, resize_width = 0;  ///< both sides, in place of `resize`
    std::int64_t crop_height = 0, crop_width = 0;      ///< the part that a net sees; 0: all

    // In training:
    bool random_crop = true;               ///< crops from anywhere, not from the middle
    bool resized_crop = false;             ///< crops of random size and proportions
    double scale[2] = {0.08, 1.0};         ///< their share of the picture's area
    double ratio[2] = {3.0 / 4, 4.0 / 3};  ///< their width divided by their height
    bool flip = false;                     ///< mirrors half of the pictures
    int crop_pad = 0;  ///< shifts by up to so many pixels; what is outside becomes the mean
    /// Factors are drawn from 1 - value to 1 + value.
    double brightness = 0, contrast = 0, saturation = 0;
    std::int64_t cutout = 0;  ///< side of a square that becomes the mean
    double mixup = 0;         ///< the parameter of the beta distribution of weights; 0: none
};

/// The resizing of test sets: `resize`, or for a resized crop without one, the crop with a seventh
/// more around it.
std::int64_t test_resize(const AugmentOptions& options);

class Augmenter {
  public:
    /// Throws Error(invalid_argument), if the options do not suit the data, with a sentence on what
    /// to set.
    /// Where no option sets a size, pictures have that of the first one that can be read.
    Augmenter(const Dataset& data, AugmentOptions options, std::uint64_t seed, bool training);

    /// The shape of what make() writes: one input of the net.
    const Shape& shape() const { return shape_; }
    /// Reads example `index` of the data set, and writes its input to `to` and, if its target is a
    /// mask, the part of the mask that belongs to it to `mask` (height * width).
    Example make(const Dataset& data, std::int64_t index, std::uint64_t epoch, float* to,
                 std::int32_t* mask) const;
    const AugmentOptions& options() const { return options_; }

  private:
    /// How a picture is transformed.
    struct Geometry {
        WantedPart part;
        bool resize = false;  ///< else the part's pixels stay as they are
        bool mirror = false;
        std::int64_t shift_y = 0, shift_x = 0;
    };
    /// The picture that is transformed.
    struct Subject {
        const Dataset& data;
        std::int64_t index;
        std::uint64_t epoch;
        std::int64_t width = 0, height = 0;
    };
    Geometry plan(const Subject& subject) const;
    WantedPart choose_crop(const Subject& subject) const;
    WantedPart choose_resized_crop(const Subject& subject) const;
    void write_bytes(const Example& example, const Geometry& geometry, float* to) const;
    void write_floats(std::vector<float> pixels, const Geometry& geometry, float* to,
                      std::int64_t index, std::uint64_t epoch) const;
    void change_colours(std::vector<float>& pixels, std::int64_t index, std::uint64_t epoch) const;
    void write_mask(const Example& example, const Geometry& geometry, const Subject& subject,
                    std::int32_t* mask) const;
    void cut_out(std::int64_t index, std::uint64_t epoch, float* to) const;
    double mean(std::int64_t channel) const;
    double std(std::int64_t channel) const;

    AugmentOptions options_;
    std::uint64_t seed_;
    bool training_;
    /// Whether nothing brings pictures to one size, so that all must have that of shape_.
    bool same_size_ = false;
    Shape shape_;
    std::vector<float> table_;  ///< by channel and byte, the normalised value
};

}  // namespace dlprim
