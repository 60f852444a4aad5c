// SPDX-License-Identifier: MIT
// See errors.hpp.
#include "device/errors.hpp"

#include "device/devices.hpp"
#include "memory/pinned.hpp"

namespace dlprim_torch {

void throw_translated(const dp::Error& error, bool waited) {
    switch (error.kind()) {
        case dp::ErrorKind::out_of_memory:
            TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
        case dp::ErrorKind::unsupported:
            TORCH_CHECK_NOT_IMPLEMENTED(false, error.what());
        case dp::ErrorKind::invalid_argument:
            if (waited) TORCH_CHECK_INDEX(false, error.what());
            break;
        default:
            break;
    }
    TORCH_CHECK(false, error.what());
}

void let_caches_go() noexcept {
    pinned_cache_go();
    for (int i = 0; i < device_count(); ++i) empty_cache(i);
}

}  // namespace dlprim_torch
