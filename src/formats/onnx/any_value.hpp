// SPDX-License-Identifier: MIT
// AnyValue: a named value of a model while it is imported: a tensor, a sequence of values, or none.
// An optional with an element is represented by that element, and one without by none.
#pragma once

#include "base/text.hpp"
#include "formats/onnx/builder.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim::onnx {

class AnyValue {
  public:
    using Sequence = std::vector<AnyValue>;

    AnyValue() = default;
    AnyValue(Ref tensor) : tensor_(tensor) {}
    AnyValue(Sequence sequence)
        : sequence_(std::make_shared<const Sequence>(std::move(sequence))) {}

    bool is_none() const { return !tensor_ && !sequence_; }
    Ref tensor() const { return tensor_; }                        ///< null where it is no tensor
    const Sequence* sequence() const { return sequence_.get(); }  ///< null where it is none

    /// Calls `use(Ref)` for the tensor, or for those of the sequence.
    template <typename Use>
    void each_tensor(const Use& use) const {
        if (tensor_) use(tensor_);
        if (sequence_)
            for (const AnyValue& element : *sequence_) element.each_tensor(use);
    }

    /// For messages: "float [2, 3]", "string [4]", "a sequence of 2", "nothing".
    std::string str() const {
        if (sequence_) return cat("a sequence of ", sequence_->size());
        if (!tensor_) return "nothing";
        return cat(tensor_->strings ? "string" : name_of(tensor_->spec.dtype), " ",
                   tensor_->spec.shape.str());
    }

  private:
    Ref tensor_ = nullptr;
    std::shared_ptr<const Sequence> sequence_;
};

}  // namespace dlprim::onnx
