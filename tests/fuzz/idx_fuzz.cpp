// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as an IDX file give an array or an Error. An array is written
// and read back equal.
#include "formats/idx.hpp"

#include <dlprim/error.hpp>

#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
    try {
        const dlprim::IdxArray array = dlprim::read_idx("/proc/self/fd/" + std::to_string(file));
        const std::string again = "/tmp/dlprim-idx-fuzz-" + std::to_string(getpid());
        dlprim::write_idx(again, array.shape, array.dtype, array.data.data());
        const dlprim::IdxArray back = dlprim::read_idx(again);
        unlink(again.c_str());
        if (back.shape != array.shape || back.dtype != array.dtype || back.data != array.data)
            std::abort();
    } catch (const dlprim::Error&) {
    }
    close(file);
    return 0;
}
