// SPDX-License-Identifier: MIT
// LateOutput: an output of a net, which is read back while later steps run.
#pragma once

#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace dlprim {

class LateOutput {
  public:
    explicit LateOutput(const Tensor& tensor)
        : tensor_(tensor),
          readback_(Access::impl(tensor.context()).make_readback(tensor.bytes())) {}
    /// Enqueues a read of the output after all work enqueued so far.
    void read() { readback_->read({Access::buffer(tensor_).get(), tensor_.byte_offset()}); }
    /// Waits for the oldest read and returns its values.
    std::vector<float> take() {
        std::vector<float> values(static_cast<std::size_t>(tensor_.shape().numel()));
        convert(readback_->take(), tensor_.dtype(), values.data(), DType::f32, values.size());
        return values;
    }

  private:
    Tensor tensor_;
    std::unique_ptr<Readback> readback_;
};

}  // namespace dlprim
