// SPDX-License-Identifier: MIT
// OpenCL handles in and out, for programs that use OpenCL themselves: a Context on a cl_context and
// queue of theirs, and the handles of what the library made, for kernels of theirs between the
// library's.
//
// The types are OpenCL's own (cl_context is _cl_context*, and so on), so that what CL/cl.h declares
// can be passed as it is; this header needs none of OpenCL's.
//
// Ownership: the library retains what it is given. What it hands out lives as long as a Context or
// Tensor on it; a program that keeps a handle for longer retains it.
//
// Order: the library enqueues all work of a context on one in-order queue. A kernel that a program
// enqueues on that queue runs after what the library enqueued before, and before what it enqueues
// later: no wait and no copy is needed between the two. Work on other queues is ordered by events:
// enqueued_event() and wait_for_event().
//
// Threads: calls are as safe as those on Context and Tensor (dlprim/context.hpp). The order in
// which threads enqueue is theirs to settle.
//
// On the host, which has no OpenCL, every function throws Error(unsupported).
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/tensor.hpp>

#include <cstdint>

struct _cl_context;
struct _cl_device_id;
struct _cl_command_queue;
struct _cl_mem;
struct _cl_event;

namespace dlprim::opencl {

/// A context's OpenCL objects; not retained for the caller.
struct Handles {
    _cl_context* context = nullptr;      ///< cl_context
    _cl_device_id* device = nullptr;     ///< cl_device_id
    _cl_command_queue* queue = nullptr;  ///< cl_command_queue, in order
};

/// Where a tensor's elements lie.
struct Memory {
    _cl_mem* memory = nullptr;      ///< cl_mem; not retained for the caller
    std::uint64_t byte_offset = 0;  ///< of the first element
};

/// A Context on handles of the program's, which the library retains: it allocates in that
/// cl_context and enqueues on that queue. The cl_context may hold other devices, too; a device may
/// be a sub-device. Throws Error(invalid_argument) where a handle is null, the queue belongs to
/// another cl_context or device, or runs out of order.
///
/// Each call makes a Context of its own, with kernels and pools of its own: make one and copy it.
/// Tensors of two do not mix, even on one cl_context; Tensor::wrap_opencl makes a tensor of one out
/// of the memory of the other.
Context open(_cl_context* context, _cl_device_id* device, _cl_command_queue* queue);

/// The handles behind a context, however it was opened. While Net::profile() runs, the library's
/// work is on another queue.
Handles handles(const Context& context);

/// The memory behind a tensor, with its elements row-major where the tensor is contiguous(), by
/// strides() else. May enqueue the conversion of an eager result (dlprim/tensor.hpp). From then on
/// the program may read and write the memory at any time, so that eager calls pack weights that lie
/// in it anew at every call; a parameter of a net wants Net::params_changed() after it was written.
/// Throws Error(invalid_argument) for an empty Tensor.
Memory memory(const Tensor& tensor);

/// An event that completes when all work that the library has enqueued so far has; the device has
/// been told to begin (clFlush). The caller releases it.
_cl_event* enqueued_event(const Context& context);

/// Work that the library enqueues from now on begins after `event`, of any queue of the same
/// cl_context. Does not wait. Throws Error(invalid_argument) where `event` is null or of another
/// cl_context.
void wait_for_event(const Context& context, _cl_event* event);

}  // namespace dlprim::opencl
