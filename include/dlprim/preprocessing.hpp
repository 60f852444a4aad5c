// SPDX-License-Identifier: MIT
// Preprocessing: how a picture becomes the input of a net, as it is kept with the net's weights.
//
// dlprim_train writes it as attributes of the group "preprocessing" in model.h5: resize (an
// integer, or [height, width]), crop ([height, width]), mean, deviation, and classes (one name per
// line). All of them may be absent. Results are plain values, which belong to the caller. Any
// thread may call these functions, several threads at a time. They return when their work is done.
#pragma once

#include <dlprim/image.hpp>
#include <dlprim/namespace.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

struct Preprocessing {
    std::int64_t resize = 0;  ///< the length that the shorter side gets; 0: none
    std::int64_t resize_height = 0, resize_width = 0;  ///< both sides, in place of `resize`
    /// The part in the middle that the net sees; 0: all.
    std::int64_t crop_height = 0, crop_width = 0;
    /// Pixels from 0 to 1 become (pixel - mean) / deviation. One number, or one for each channel.
    std::vector<double> mean{0}, deviation{1};
    std::vector<std::string> classes;  ///< names, in the order of their numbers
};

/// What a weights file says, or nothing if it says nothing. Throws Error: not_found, io; format (no
/// weights file, or attributes that make no sense).
std::optional<Preprocessing> read_preprocessing(const std::string& weights);

/// The picture as a net takes it: planes of its channels, [channels, height, width], where height
/// and width are those of the crop. Throws Error(invalid_argument) if the picture is smaller than
/// the crop after resizing, or lists have another length than there are channels.
std::vector<float> preprocessed(const Image& image, const Preprocessing& how);

}  // namespace dlprim
