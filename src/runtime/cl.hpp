// SPDX-License-Identifier: MIT
// The OpenCL headers, which only src/runtime includes, and the check that turns error codes into
// Errors.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include "base/text.hpp"

#include <string>

namespace dlprim {

/// "CL_INVALID_ARG_SIZE (-51)".
std::string cl_error_name(cl_int code);

/// Makes a queue, which is in order unless `properties` say otherwise. Throws Error(device).
cl_command_queue cl_make_queue(cl_context context, cl_device_id device,
                               cl_command_queue_properties properties);

/// Throws unless `code` is CL_SUCCESS: Error(out_of_memory) for the codes that mean that, else
/// Error(device). The message is "<parts>: <name of the code>".
template <typename... Parts>
void cl_check(cl_int code, const Parts&... parts) {
    if (code == CL_SUCCESS) [[likely]]
        return;
    // Drivers also report CL_OUT_OF_RESOURCES when a kernel crashed, so it does not prove a lack of
    // memory.
    const bool memory = code == CL_OUT_OF_HOST_MEMORY || code == CL_MEM_OBJECT_ALLOCATION_FAILURE;
    fail(memory ? ErrorKind::out_of_memory : ErrorKind::device, parts..., ": ",
         cl_error_name(code));
}

}  // namespace dlprim
