// SPDX-License-Identifier: MIT
// Resizing a picture: rows are mixed first, as long vectors, then columns, pixel by pixel.
#include "base/text.hpp"

#include <dlprim/image.hpp>

#include <cmath>

namespace dlprim {

namespace {

/// By output pixel: its first input pixel, and the weights of that and those behind it.
class ResizeTaps {
  public:
    /// From the pixels of [begin, begin + length), of `limit` pixels in all, to `to` pixels.
    ResizeTaps(double begin, double length, std::int64_t to, std::int64_t limit) {
        const double step = length / static_cast<double>(to);
        const double reach = std::max(step, 1.0);
        most_taps = static_cast<std::int64_t>(std::ceil(reach)) * 2 + 1;
        first.resize(static_cast<std::size_t>(to));
        weights.assign(static_cast<std::size_t>(to * most_taps), 0.0f);
        for (std::int64_t i = 0; i < to; ++i) {
            const double center = begin + (static_cast<double>(i) + 0.5) * step;
            const auto from = std::max<std::int64_t>(
                0, static_cast<std::int64_t>(std::floor(center - reach + 0.5)));
            const auto end =
                std::min(limit, static_cast<std::int64_t>(std::floor(center + reach + 0.5)));
            first[static_cast<std::size_t>(i)] = from;
            set_weights(i, from, std::min(end, from + most_taps), center, reach);
        }
    }
    const float* weights_of(std::int64_t i) const { return weights.data() + i * most_taps; }
    std::int64_t count_of(std::int64_t i) const { return counts[static_cast<std::size_t>(i)]; }

    std::int64_t most_taps = 0;
    std::vector<std::int64_t> first, counts;
    std::vector<float> weights;

  private:
    void set_weights(std::int64_t i, std::int64_t from, std::int64_t end, double center,
                     double reach) {
        float* const to = weights.data() + i * most_taps;
        double sum = 0;
        for (std::int64_t k = from; k < end; ++k) {
            const double distance = (static_cast<double>(k) + 0.5 - center) / reach;
            const double weight = std::max(0.0, 1 - std::abs(distance));
            to[k - from] = static_cast<float>(weight);
            sum += weight;
        }
        for (std::int64_t k = from; k < end; ++k)
            to[k - from] = static_cast<float>(to[k - from] / sum);
        counts.push_back(end - from);
    }
};

/// Mixes rows of bytes into one row of floats.
void mix_rows(const std::uint8_t* rows, std::int64_t stride, const float* weights,
              std::int64_t count, float* to, std::int64_t length) {
    std::fill_n(to, length, 0.0f);
    for (std::int64_t k = 0; k < count; ++k) {
        const std::uint8_t* const from = rows + k * stride;
        const float weight = weights[k];
        for (std::int64_t i = 0; i < length; ++i) to[i] += weight * static_cast<float>(from[i]);
    }
}

template <int channels>
void mix_columns(const float* row, std::int64_t begin, const ResizeTaps& taps, std::int64_t width,
                 float* to) {
    for (std::int64_t x = 0; x < width; ++x, to += channels) {
        const float* from = row + (taps.first[static_cast<std::size_t>(x)] - begin) * channels;
        const float* const weights = taps.weights_of(x);
        float sum[channels] = {};
        for (std::int64_t k = 0; k < taps.count_of(x); ++k, from += channels)
            for (int c = 0; c < channels; ++c) sum[c] += weights[k] * from[c];
        for (int c = 0; c < channels; ++c) to[c] = sum[c];
    }
}

/// mix_columns() for any number of channels.
void mix_planes(const float* row, std::int64_t begin, const ResizeTaps& taps, std::int64_t width,
                std::int64_t channels, float* to) {
    for (std::int64_t x = 0; x < width; ++x) {
        const float* const from =
            row + (taps.first[static_cast<std::size_t>(x)] - begin) * channels;
        for (std::int64_t c = 0; c < channels; ++c) {
            float sum = 0;
            for (std::int64_t k = 0; k < taps.count_of(x); ++k)
                sum += taps.weights_of(x)[k] * from[k * channels + c];
            *to++ = sum;
        }
    }
}

}  // namespace

std::vector<float> resized(const Image& image, const ImageBox& box, std::int64_t width,
                           std::int64_t height) {
    constexpr double slack = 1e-6;
    require(width > 0 && height > 0, "an image cannot be resized to ", width, " x ", height);
    require(box.width > 0 && box.height > 0 && box.left >= -slack && box.top >= -slack &&
                box.left + box.width <= static_cast<double>(image.width) + slack &&
                box.top + box.height <= static_cast<double>(image.height) + slack,
            "a box of ", box.width, " x ", box.height, " pixels at ", box.left, ", ", box.top,
            " is not within an image of ", image.width, " x ", image.height);
    const double left = std::max(box.left, 0.0), top = std::max(box.top, 0.0);
    const ResizeTaps columns(left, box.width, width, image.width);
    const ResizeTaps rows(top, box.height, height, image.height);
    const std::int64_t channels = image.channels;
    const std::int64_t begin = columns.first.front();
    const std::int64_t end = columns.first.back() + columns.count_of(width - 1);
    std::vector<float> row(static_cast<std::size_t>((end - begin) * channels));
    std::vector<float> result(static_cast<std::size_t>(width * height * channels));
    const std::int64_t stride = image.width * channels;
    for (std::int64_t y = 0; y < height; ++y) {
        const std::uint8_t* const from = image.pixels.data() +
                                         rows.first[static_cast<std::size_t>(y)] * stride +
                                         begin * channels;
        mix_rows(from, stride, rows.weights_of(y), rows.count_of(y), row.data(),
                 (end - begin) * channels);
        float* const to = result.data() + y * width * channels;
        if (channels == 3)
            mix_columns<3>(row.data(), begin, columns, width, to);
        else if (channels == 1)
            mix_columns<1>(row.data(), begin, columns, width, to);
        else
            mix_planes(row.data(), begin, columns, width, channels, to);
    }
    return result;
}

}  // namespace dlprim
