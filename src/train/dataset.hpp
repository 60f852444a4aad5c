// SPDX-License-Identifier: MIT
// Dataset: examples to train on, each an input and its target, which are read one at a time.
// Implementations are in train/data; open_dataset() chooses one.
#pragma once

#include "base/text.hpp"
#include "formats/image/decode.hpp"

#include <dlprim/shape.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

/// What an example's target is.
enum class TargetKind {
    label,   ///< the number of a class
    values,  ///< target_size() numbers: regression, or several labels of 0 or 1
    mask,    ///< the number of a class for each pixel of a picture, or each place of another input
};

/// One example. What it has of these follows from its Dataset.
struct Example {
    /// The input of a data set of pictures: pixels of any number of channels, and where in `image`
    /// the part is that the reader asked for.
    Image image;
    ImageBox box;
    std::vector<float> values;  ///< the input of another data set
    std::int32_t label = 0;
    std::vector<float> target;  ///< numbers, or classes of the places of an input
    Image mask;                 ///< of the whole picture, whatever part was asked for
};

/// A data set does not change. All of its functions may be called by several threads at a time.
class Dataset {
  public:
    Dataset() = default;
    virtual ~Dataset() = default;
    Dataset(const Dataset&) = delete;
    Dataset& operator=(const Dataset&) = delete;

    virtual std::int64_t size() const = 0;
    /// Whether inputs are pictures of uint8, which are augmented.
    virtual bool has_pictures() const = 0;
    /// The shape of an input: [channels, height, width] of pictures, where height and width are 0
    /// if they differ or are not known yet.
    virtual Shape input_shape() const = 0;
    virtual TargetKind target_kind() const = 0;
    virtual std::int64_t target_size() const { return 1; }
    /// Names of the classes in the order of their numbers, or nothing if they have none.
    virtual const std::vector<std::string>& classes() const = 0;
    /// The label of an example, without reading the rest of it. Only with TargetKind::label.
    virtual std::int32_t label(std::int64_t index) const = 0;
    /// Reads an example. Throws Error, which names the file, if it cannot be read.
    virtual Example read(std::int64_t index, const ChoosePart& choose = {}) const = 0;
    /// What messages call an example: its file, or a file and a row.
    virtual std::string name(std::int64_t index) const = 0;
    /// What messages call the place of an example's label.
    virtual std::string label_name(std::int64_t index) const { return cat("'", name(index), "'"); }
    /// What messages call the whole set.
    virtual std::string source() const = 0;
    /// Sentences on what a person may want to know of it, such as files that are passed over.
    virtual std::vector<std::string> remarks() const { return {}; }
};

/// Throws Error(format), which names the example, if a label is not from 0 to classes - 1.
void check_labels(const Dataset& data, std::int64_t classes);
/// The number of classes that labels tell apart: as many as have names, or else one more than the
/// largest label.
std::int64_t class_count(const Dataset& data);

}  // namespace dlprim
