// SPDX-License-Identifier: MIT
// Data sets without files, for the tests of what reads them.
#pragma once

#include "base/text.hpp"
#include "train/dataset.hpp"

#include <chrono>
#include <set>
#include <thread>

namespace dlprim {

/// Pictures of one size, each pixel of another value, so that tests know where a pixel comes from.
/// The label is the example's number; the mask is the picture's first channel.
class MadeUpPictures final : public Dataset {
  public:
    MadeUpPictures(std::int64_t count, std::int64_t height, std::int64_t width, int channels = 3)
        : count_(count), height_(height), width_(width), channels_(channels) {}

    std::int64_t size() const override { return count_; }
    bool has_pictures() const override { return true; }
    Shape input_shape() const override { return Shape{channels_, height_, width_}; }
    TargetKind target_kind() const override { return kind; }
    const std::vector<std::string>& classes() const override { return names_; }
    std::int32_t label(std::int64_t index) const override {
        return static_cast<std::int32_t>(index);
    }
    std::string name(std::int64_t index) const override { return cat("picture ", index); }
    std::string source() const override { return "'made up'"; }

    std::uint8_t pixel(std::int64_t index, std::int64_t y, std::int64_t x, int c) const {
        return static_cast<std::uint8_t>((index * 31 + y * 7 + x * 3 + c * 50) % 256);
    }
    Example read(std::int64_t index, const ChoosePart& choose) const override {
        if (delay.count() > 0) std::this_thread::sleep_for(delay);
        if (broken.count(index)) fail(ErrorKind::format, name(index), " is broken");
        Example example;
        example.image = {width_, height_, channels_, {}};
        example.mask = {width_, height_, 1, {}};
        for (std::int64_t y = 0; y < height_; ++y) {
            for (std::int64_t x = 0; x < width_; ++x) {
                for (int c = 0; c < channels_; ++c)
                    example.image.pixels.push_back(pixel(index, y, x, c));
                example.mask.pixels.push_back(pixel(index, y, x, 0));
            }
        }
        example.box = choose ? choose(width_, height_).box : ImageBox{};
        example.label = label(index);
        return example;
    }

    TargetKind kind = TargetKind::label;
    std::set<std::int64_t> broken;
    std::chrono::milliseconds delay{0};

  private:
    std::int64_t count_, height_, width_;
    int channels_;
    std::vector<std::string> names_;
};

}  // namespace dlprim
