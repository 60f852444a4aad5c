// SPDX-License-Identifier: MIT
// Events of an OpenCL context: markers on its queue.
#pragma once

#include "runtime/event_impl.hpp"
#include "runtime/opencl_transfer.hpp"

#include <memory>

namespace dlprim {

/// Enqueues a marker and flushes the queue.
std::shared_ptr<EventImpl> record_opencl_event(const TransferHome& home,
                                               ContextImpl::EventOptions options);

}  // namespace dlprim
