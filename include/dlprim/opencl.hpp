// SPDX-License-Identifier: MIT
// Exchange of OpenCL handles, for programs that use OpenCL themselves. A program can open a Context
// on its own cl_context and queue, and can get the handles behind contexts and tensors, to enqueue
// kernels of its own between the library's.
//
// The types are OpenCL's own (cl_context is _cl_context*, and so on), so that handles can be passed
// as CL/cl.h declares them. This header includes none of OpenCL's.
//
// Ownership: the library retains the handles that it is given. A handle that it returns is valid as
// long as the Context or Tensor that it was asked of, or a copy of it, exists; a program that keeps
// it for longer retains it.
//
// Order: the library enqueues all work of a context on one in-order queue. A kernel that a program
// enqueues on that queue runs after what the library enqueued before, and before what it enqueues
// later: no wait and no copy is needed between the two. Work on other queues is ordered by events:
// enqueued_event() and wait_for_event().
//
// Threads: these calls may be made wherever eager calls may (dlprim/context.hpp). The program
// decides the order in which its threads enqueue.
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

/// The place of a tensor's elements. The cl_mem may hold other tensors too, before and behind it.
struct Memory {
    _cl_mem* memory = nullptr;      ///< cl_mem; not retained for the caller
    std::uint64_t byte_offset = 0;  ///< of the first element
};

/// Opens a Context on the program's handles, which the library retains: it allocates in that
/// cl_context and enqueues on that queue. The cl_context may hold other devices, too; the device
/// may be a sub-device. Throws Error(invalid_argument) where a handle is null, where the queue
/// belongs to another cl_context or device, and where the queue is out of order.
///
/// Each call makes another Context, with kernels and memory pools of its own, so that a program
/// calls this once and copies the result. A call cannot take tensors of two contexts, even of one
/// cl_context; Tensor::wrap_opencl() makes a tensor of one context of the memory of the other.
Context open(_cl_context* context, _cl_device_id* device, _cl_command_queue* queue);

/// The handles behind a context, however it was opened. While Net::profile() runs, the library
/// enqueues on another queue.
Handles handles(const Context& context);

/// The memory behind a tensor. Elements are row-major if the tensor is contiguous(), and else lie
/// as strides() say. May enqueue the conversion of an eager result (dlprim/tensor.hpp). After this
/// call the library assumes that the program may write to the memory at any time, so that eager
/// calls pack weights that lie in it anew at every call. After writing to a parameter of a net, the
/// program must call Net::params_changed(). Throws Error(invalid_argument) for an empty Tensor.
///
/// When the last Tensor on the memory is gone, the library uses it for other tensors, unless the
/// program holds the cl_mem by a reference of its own (clRetainMemObject, Tensor::wrap_opencl()). A
/// program whose kernels on other queues still use the memory retains it, or keeps the Tensor, or
/// calls wait_for_event() first.
Memory memory(const Tensor& tensor);

/// Returns an event that completes when all work that the library has enqueued so far is done. The
/// queue is flushed (clFlush), so that other queues can wait for the event. The caller releases it.
_cl_event* enqueued_event(const Context& context);

/// Makes work that the library enqueues from now on begin after `event`, which may be of any queue
/// of the same cl_context. Does not wait. Throws Error(invalid_argument) where `event` is null or
/// of another cl_context.
void wait_for_event(const Context& context, _cl_event* event);

}  // namespace dlprim::opencl
