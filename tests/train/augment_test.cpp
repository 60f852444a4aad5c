// SPDX-License-Identifier: MIT
// Augmenter: which pixels an input is made of.
#include "train/data/augment.hpp"
#include "made_up_data.hpp"
#include "support/catch.hpp"

#include <dlprim/error.hpp>

#include <cmath>

using namespace dlprim;

namespace {

struct Made {
    std::vector<float> input;
    std::vector<std::int32_t> mask;
};

Made make(const MadeUpPictures& data, const AugmentOptions& how, bool training,
          std::int64_t index = 0, std::uint64_t epoch = 0) {
    const Augmenter augmenter(data, how, 7, training);
    Made made;
    made.input.resize(static_cast<std::size_t>(augmenter.shape().numel()));
    made.mask.resize(made.input.size() / static_cast<std::size_t>(augmenter.shape()[0]));
    augmenter.make(data, index, epoch, made.input.data(), made.mask.data());
    return made;
}

}  // namespace

TEST_CASE("without options an input is the picture, normalised") {
    const MadeUpPictures data(2, 4, 5);
    AugmentOptions how;
    how.mean = {0.1, 0.2, 0.3};
    how.std = {0.5};
    const Made made = make(data, how, true, 1);
    for (int c = 0; c < 3; ++c)
        for (std::int64_t y = 0; y < 4; ++y)
            for (std::int64_t x = 0; x < 5; ++x)
                CHECK(made.input[static_cast<std::size_t>(c * 20 + y * 5 + x)] ==
                      static_cast<float>(
                          (data.pixel(1, y, x, c) / 255.0 - how.mean[static_cast<std::size_t>(c)]) /
                          0.5));
}

TEST_CASE("crops, mirrors and shifts take pixels and masks from the same places") {
    MadeUpPictures data(20, 9, 11, 1);
    data.kind = TargetKind::mask;
    AugmentOptions how;
    how.crop_height = 5;
    how.crop_width = 6;
    how.flip = true;
    how.crop_pad = 2;
    bool mirrored = false, straight = false, outside = false;
    for (std::int64_t index = 0; index < 20; ++index) {
        const Made made = make(data, how, true, index, 3);
        for (std::size_t i = 0; i < made.input.size(); ++i) {
            CHECK(std::lround(made.input[i] * 255) == made.mask[i]);
            outside = outside || made.mask[i] == 0;
        }
        const auto difference = made.mask[14] - made.mask[13];
        mirrored = mirrored || difference == -3;
        straight = straight || difference == 3;
    }
    CHECK(mirrored);
    CHECK(straight);
    CHECK(outside);
}

TEST_CASE("testing crops the middle, by any options of training") {
    const MadeUpPictures data(1, 9, 12, 1);
    AugmentOptions how;
    how.crop_height = how.crop_width = 3;
    how.flip = true;
    how.brightness = how.contrast = 0.9;
    how.cutout = 3;
    how.crop_pad = 1;
    const Made made = make(data, how, false);
    for (std::int64_t y = 0; y < 3; ++y)
        for (std::int64_t x = 0; x < 3; ++x)
            CHECK(std::lround(made.input[static_cast<std::size_t>(y * 3 + x)] * 255) ==
                  data.pixel(0, y + 3, x + 4, 0));
}

TEST_CASE("resizing takes means, and random parts of all allowed sizes") {
    const MadeUpPictures data(300, 40, 50, 1);
    AugmentOptions how;
    how.resize_height = 20;
    how.resize_width = 25;
    const Made half = make(data, how, false);
    // Within, where values do not wrap around, a pixel is the mean at its middle.
    CHECK(half.input[2 * 25 + 3] * 255 == Approx(7 * 4.5 + 3 * 6.5).margin(1e-3));
    how = {};
    how.resized_crop = true;
    how.crop_height = how.crop_width = 8;
    how.scale[0] = 0.25;
    std::set<float> values;
    for (std::int64_t index = 0; index < 300; ++index)
        values.insert(make(data, how, true, index % 2, static_cast<std::uint64_t>(index)).input[9]);
    CHECK(values.size() > 200);
}

TEST_CASE("colours change by a factor, and a square is cut out") {
    const MadeUpPictures data(1, 8, 8);
    AugmentOptions how;
    how.brightness = 0.5;
    std::set<float> factors;
    for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
        const Made made = make(data, how, true, 0, epoch);
        const float factor = made.input[1] * 255 / data.pixel(0, 0, 1, 0);
        CHECK(factor >= 0.5f - 1e-5f);
        CHECK(factor <= 1.5f + 1e-5f);
        CHECK(made.input[5] * 255 ==
              Approx(std::min(255.0f, factor * data.pixel(0, 0, 5, 0))).margin(1e-3));
        factors.insert(factor);
    }
    CHECK(factors.size() == 40);
    how = {};
    how.mean = {0.5};
    how.cutout = 3;
    int most = 0;
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
        const Made made = make(data, how, true, 0, epoch);
        const auto zeros = static_cast<int>(std::count(made.input.begin(), made.input.end(), 0.0f));
        CHECK(zeros > 0);
        most = std::max(most, zeros);
    }
    CHECK(most == 27);
}

TEST_CASE("options that do not suit the data are refused") {
    const MadeUpPictures data(1, 8, 8), open(1, 0, 0);
    AugmentOptions how;
    how.crop_height = how.crop_width = 9;
    CHECK_THROWS_AS(Augmenter(data, how, 1, true), Error);
    how = {};
    how.crop_pad = 8;
    CHECK_THROWS_AS(Augmenter(data, how, 1, true), Error);
    CHECK_NOTHROW(Augmenter(data, how, 1, false));
    how = {};
    how.std = {1, 2};
    CHECK_THROWS_AS(Augmenter(data, how, 1, true), Error);
    how = {};
    how.resize = 8;
    CHECK_THROWS_AS(Augmenter(open, how, 1, true), Error);
    how.crop_height = how.crop_width = 8;
    CHECK_NOTHROW(Augmenter(open, how, 1, true));
}
