// SPDX-License-Identifier: MIT
// A second queue of a device: a context on the memory of another one, whose work runs beside that
// one's. Events order the two (ContextImpl::record).
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <cstdint>

namespace dlprim {

/// A context on the same device and, with OpenCL, in the same cl_context. Throws Error(device).
Context beside(const Context& context);

/// Elements [begin, begin + count) of a row-major tensor, as a vector of `context`: of the tensor's
/// own, or of one that is beside() it.
Tensor elements_of(const Context& context, const Tensor& tensor, std::int64_t begin,
                   std::int64_t count);

}  // namespace dlprim
