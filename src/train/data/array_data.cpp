// SPDX-License-Identifier: MIT
// A data set in two arrays.
#include "train/data/array_data.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

bool holds_integers(DType dtype) {
    return !is_float(dtype);
}

class ArrayData final : public Dataset {
  public:
    ArrayData(std::unique_ptr<Rows> inputs, std::unique_ptr<Rows> targets, bool channels_last,
              std::vector<std::string> classes)
        : inputs_(std::move(inputs)),
          targets_(std::move(targets)),
          channels_last_(channels_last),
          classes_(std::move(classes)) {
        set_shape();
        set_targets();
    }

    std::int64_t size() const override { return inputs_->count(); }
    bool has_pictures() const override { return pictures_; }
    Shape input_shape() const override { return shape_; }
    TargetKind target_kind() const override { return kind_; }
    std::int64_t target_size() const override { return target_size_; }
    const std::vector<std::string>& classes() const override { return classes_; }
    std::int32_t label(std::int64_t index) const override {
        return labels_[static_cast<std::size_t>(index)];
    }
    std::string name(std::int64_t index) const override {
        return cat(inputs_->name(), ", row ", index);
    }
    std::string label_name(std::int64_t index) const override {
        return cat("'", targets_->name(), "', row ", index, ",");
    }
    std::string source() const override { return cat("'", inputs_->name(), "'"); }

    Example read(std::int64_t index, const ChoosePart& choose) const override {
        Example example;
        if (pictures_)
            read_picture(index, choose, example);
        else
            read_values(index, example);
        if (kind_ == TargetKind::label) example.label = label(index);
        if (kind_ == TargetKind::values) {
            const float* const row = values_.data() + index * target_size_;
            example.target.assign(row, row + target_size_);
            for (const float value : example.target)
                if (!std::isfinite(value))
                    fail(ErrorKind::format, "'", targets_->name(), "', row ", index, " is ",
                         std::isnan(value) ? "NaN" : "infinite", ", no number to learn");
        }
        if (kind_ == TargetKind::mask) read_mask(index, example);
        return example;
    }

  private:
    void set_shape() {
        const Shape& shape = inputs_->shape();
        if (shape.rank() < 2)
            fail(ErrorKind::format, "'", inputs_->name(), "' has shape ", shape.str(),
                 "; inputs have at least two dimensions, [N, ...]");
        if (inputs_->count() == 0)
            fail(ErrorKind::format, "'", inputs_->name(), "' is empty: its shape is ", shape.str());
        pictures_ = inputs_->dtype() == DType::u8 && (shape.rank() == 3 || shape.rank() == 4);
        if (!pictures_) {
            std::vector<std::int64_t> dims = shape.to_vector();
            dims.erase(dims.begin());
            shape_ = Shape(dims);
            return;
        }
        if (shape.rank() == 3)
            shape_ = Shape{1, shape[1], shape[2]};
        else if (channels_last_)
            shape_ = Shape{shape[3], shape[1], shape[2]};
        else
            shape_ = Shape{shape[1], shape[2], shape[3]};
        if (shape_.numel() == 0)
            fail(ErrorKind::format, "'", inputs_->name(), "' holds pictures without pixels: its ",
                 "shape is ", shape.str());
    }

    void set_targets() {
        const Shape& shape = targets_->shape();
        if (shape.rank() < 1 || shape[0] != inputs_->count())
            fail(ErrorKind::format, "'", targets_->name(), "' has shape ", shape.str(), ", '",
                 inputs_->name(), "' has ", inputs_->count(), pictures_ ? " images" : " rows",
                 ": there must be a label for each");
        const bool integers = holds_integers(targets_->dtype());
        if (integers && shape.rank() == 3 && pictures_) {
            kind_ = TargetKind::mask;
            if (shape[1] != shape_[1] || shape[2] != shape_[2])
                fail(ErrorKind::format, "'", targets_->name(), "' has masks of ", shape[1], " x ",
                     shape[2], ", '", inputs_->name(), "' has images of ", shape_[1], " x ",
                     shape_[2]);
            return;
        }
        if (shape.rank() > 2)
            fail(ErrorKind::format, "'", targets_->name(), "' has shape ", shape.str(),
                 "; targets are labels [N] of integers, numbers [N] or [N, K], or masks [N, H, W] "
                 "of integers");
        kind_ = integers && shape.rank() == 1 ? TargetKind::label : TargetKind::values;
        target_size_ = targets_->row_size();
        std::vector<std::byte> data(static_cast<std::size_t>(shape[0]) * targets_->row_bytes());
        targets_->read(0, shape[0], data.data());
        const auto count = static_cast<std::size_t>(shape.numel());
        if (kind_ == TargetKind::label) {
            labels_.resize(count);
            convert(data.data(), targets_->dtype(), labels_.data(), DType::i32, count);
        } else {
            values_.resize(count);
            convert(data.data(), targets_->dtype(), values_.data(), DType::f32, count);
        }
    }

    void read_picture(std::int64_t index, const ChoosePart& choose, Example& example) const {
        Image& image = example.image;
        const std::int64_t channels = shape_[0], area = shape_[1] * shape_[2];
        image.height = shape_[1];
        image.width = shape_[2];
        image.channels = static_cast<int>(channels);
        image.pixels.resize(static_cast<std::size_t>(shape_.numel()));
        if (channels == 1 || channels_last_) {
            inputs_->read(index, 1, image.pixels.data());
        } else {
            std::vector<std::uint8_t> planes(image.pixels.size());
            inputs_->read(index, 1, planes.data());
            for (std::int64_t c = 0; c < channels; ++c)
                for (std::int64_t i = 0; i < area; ++i)
                    image.pixels[static_cast<std::size_t>(i * channels + c)] =
                        planes[static_cast<std::size_t>(c * area + i)];
        }
        example.box = {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
        if (choose) example.box = choose(image.width, image.height).box;
    }

    void read_values(std::int64_t index, Example& example) const {
        const auto count = static_cast<std::size_t>(inputs_->row_size());
        example.values.resize(count);
        if (inputs_->dtype() == DType::f32) {
            inputs_->read(index, 1, example.values.data());
        } else {
            std::vector<std::byte> row(inputs_->row_bytes());
            inputs_->read(index, 1, row.data());
            convert(row.data(), inputs_->dtype(), example.values.data(), DType::f32, count);
        }
        for (std::size_t i = 0; i < count; ++i)
            if (!std::isfinite(example.values[i]))
                fail(ErrorKind::format, "'", inputs_->name(), "', row ", index, ", column ", i,
                     " is ", std::isnan(example.values[i]) ? "NaN" : "infinite",
                     ", no number to learn from");
    }

    void read_mask(std::int64_t index, Example& example) const {
        std::vector<std::byte> row(targets_->row_bytes());
        targets_->read(index, 1, row.data());
        Image& mask = example.mask;
        mask = {shape_[2], shape_[1], 1, {}};
        const auto count = static_cast<std::size_t>(targets_->row_size());
        mask.pixels.resize(count);
        std::vector<std::int32_t> classes(count);
        convert(row.data(), targets_->dtype(), classes.data(), DType::i32, count);
        for (std::size_t i = 0; i < count; ++i) {
            if (classes[i] < 0 || classes[i] > 255)
                fail(ErrorKind::format, "'", targets_->name(), "', row ", index, " holds class ",
                     classes[i], "; masks hold classes from 0 to 255");
            mask.pixels[i] = static_cast<std::uint8_t>(classes[i]);
        }
    }

    std::unique_ptr<Rows> inputs_, targets_;
    bool channels_last_;
    std::vector<std::string> classes_;
    bool pictures_ = false;
    Shape shape_;
    TargetKind kind_ = TargetKind::label;
    std::int64_t target_size_ = 1;
    std::vector<std::int32_t> labels_;
    std::vector<float> values_;
};

}  // namespace

std::unique_ptr<Dataset> make_array_data(std::unique_ptr<Rows> inputs,
                                         std::unique_ptr<Rows> targets, bool channels_last,
                                         std::vector<std::string> classes) {
    return std::make_unique<ArrayData>(std::move(inputs), std::move(targets), channels_last,
                                       std::move(classes));
}

void check_labels(const Dataset& data, std::int64_t classes) {
    if (data.target_kind() != TargetKind::label) return;
    for (std::int64_t i = 0; i < data.size(); ++i) {
        const std::int32_t label = data.label(i);
        if (label < 0 || label >= classes)
            fail(ErrorKind::format, data.label_name(i), " holds label ", label,
                 ", the network has ", classes, " classes: labels run from 0 to ", classes - 1);
    }
}

std::int64_t class_count(const Dataset& data) {
    if (!data.classes().empty()) return static_cast<std::int64_t>(data.classes().size());
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < data.size(); ++i)
        count = std::max<std::int64_t>(count, data.label(i) + 1);
    return count;
}

}  // namespace dlprim
