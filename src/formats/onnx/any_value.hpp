// SPDX-License-Identifier: MIT
// AnyValue: a named value of a model while it is imported: a tensor, a tensor of more dimensions
// than a Shape has, a sequence of values, a sequence of maps, or none. An optional with an element
// is represented by that element, and one without by none.
#pragma once

#include "base/text.hpp"
#include "formats/onnx/builder.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::onnx {

/// "[2, 3]".
inline std::string sizes_text(const std::vector<std::int64_t>& dims) {
    std::vector<std::string> sizes;
    sizes.reserve(dims.size());
    for (const std::int64_t size : dims) sizes.push_back(cat(size));
    return cat("[", join(sizes, ", "), "]");
}

/// The number of elements. Throws as Shape does, and Error(unsupported) where there are more than
/// AnyValue::max_rank dimensions.
std::int64_t element_count(const std::vector<std::int64_t>& dims);

class AnyValue {
  public:
    using Sequence = std::vector<AnyValue>;
    /// Maps with the same keys, strings or integers, and a row of `values` each.
    struct Maps {
        std::vector<std::string> texts;
        std::vector<std::int64_t> numbers;
        Ref values;
    };
    /// ONNX bounds the rank of no tensor; ONNX Runtime's operators take some dozen dimensions.
    static constexpr int max_rank = 16;

    AnyValue() = default;
    AnyValue(Ref tensor) : tensor_(tensor) {}
    /// These elements, row-major, as a tensor of more than Shape::max_rank dimensions; the tensor
    /// itself for none.
    AnyValue(Ref elements, std::vector<std::int64_t> dims) {
        if (dims.empty())
            tensor_ = elements;
        else
            wide_ = std::make_shared<const Wide>(Wide{elements, std::move(dims)});
    }
    AnyValue(Sequence sequence)
        : sequence_(std::make_shared<const Sequence>(std::move(sequence))) {}
    AnyValue(Maps maps) : maps_(std::make_shared<const Maps>(std::move(maps))) {}

    bool is_none() const { return !tensor_ && !wide_ && !sequence_ && !maps_; }
    /// Null where it is no tensor, or has more than Shape::max_rank dimensions.
    Ref tensor() const { return tensor_; }
    /// Whether it is a tensor of more than Shape::max_rank dimensions.
    bool is_wide() const { return wide_ != nullptr; }
    /// A tensor of any rank: its elements, row-major in some shape, or null; and its dimensions.
    Ref elements() const { return wide_ ? wide_->elements : tensor_; }
    std::vector<std::int64_t> dims() const {
        if (wide_) return wide_->dims;
        return tensor_ ? tensor_->spec.shape.to_vector() : std::vector<std::int64_t>{};
    }
    const Sequence* sequence() const { return sequence_.get(); }  ///< null where it is none
    const Maps* maps() const { return maps_.get(); }              ///< null where it is none

    /// Calls `use(Ref)` for the tensor, or for those of the sequence or of the maps.
    template <typename Use>
    void each_tensor(const Use& use) const {
        if (const Ref value = elements()) use(value);
        if (sequence_)
            for (const AnyValue& element : *sequence_) element.each_tensor(use);
        if (maps_) use(maps_->values);
    }

    /// For messages: "float [2, 3]", "string [4]", "a sequence of 2", "a sequence of maps",
    /// "nothing".
    std::string str() const {
        if (sequence_) return cat("a sequence of ", sequence_->size());
        if (maps_) return "a sequence of maps";
        const Ref value = elements();
        if (!value) return "nothing";
        return cat(value->strings ? "string" : name_of(value->spec.dtype), " ", sizes_text(dims()));
    }

  private:
    struct Wide {
        Ref elements;
        std::vector<std::int64_t> dims;
    };

    Ref tensor_ = nullptr;
    std::shared_ptr<const Wide> wide_;
    std::shared_ptr<const Sequence> sequence_;
    std::shared_ptr<const Maps> maps_;
};

}  // namespace dlprim::onnx
