// SPDX-License-Identifier: MIT
// The OpenCL headers, for src/runtime alone, and the check that turns error codes into Errors.
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

/// A new queue, in order unless `properties` say otherwise. Throws Error(device).
cl_command_queue cl_make_queue(cl_context context, cl_device_id device,
                               cl_command_queue_properties properties);

/// Throws Error(device), or Error(out_of_memory) for the codes that say so, unless `code` is
/// CL_SUCCESS: "<parts>: <name of the code>".
template <typename... Parts>
void cl_check(cl_int code, const Parts&... parts) {
    if (code == CL_SUCCESS) [[likely]]
        return;
    // CL_OUT_OF_RESOURCES is what drivers say of a kernel that crashed too, so it is no proof of
    // that.
    const bool memory = code == CL_OUT_OF_HOST_MEMORY || code == CL_MEM_OBJECT_ALLOCATION_FAILURE;
    fail(memory ? ErrorKind::out_of_memory : ErrorKind::device, parts..., ": ",
         cl_error_name(code));
}

}  // namespace dlprim
