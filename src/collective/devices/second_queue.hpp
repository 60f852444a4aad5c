// SPDX-License-Identifier: MIT
// A second queue of a device: a context on the memory of another one, whose work runs beside that
// one's. Events order the two (ContextImpl::record).
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlprim {

/// A context on the same device and, with OpenCL, in the same cl_context. Throws Error(device).
Context beside(const Context& context);

/// Elements [begin, begin + count) of a row-major tensor, as a vector of `context`: of the tensor's
/// own, or of one that is beside() it.
Tensor elements_of(const Context& context, const Tensor& tensor, std::int64_t begin,
                   std::int64_t count);

/// Memory of a device for values on their way, which is used again and again. It grows to the
/// largest that was asked for.
class StagingTensors {
  public:
    /// Uninitialized elements on the context, always the same one, that nobody else gets before
    /// restart().
    Tensor take(const Context& context, std::int64_t elements, DType dtype);
    /// Work that is enqueued from now on may use all of the memory anew.
    void restart() { taken_ = 0; }

  private:
    std::vector<Tensor> all_;  ///< of bytes
    std::size_t taken_ = 0;
};

}  // namespace dlprim
