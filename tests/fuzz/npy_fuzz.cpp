// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as a .npy file or a .npz archive give rows or an Error.
#include "formats/rows.hpp"

#include <dlprim/error.hpp>

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
    const bool archive = size > 1 && data[0] == 'P' && data[1] == 'K';
    try {
        const auto rows =
            dlprim::open_npy_rows("/proc/self/fd/" + std::to_string(file), archive ? "x" : "");
        if (rows->count() > 0) {  // without rows, one may have any size
            std::vector<std::byte> row(rows->row_bytes());
            rows->read(rows->count() - 1, 1, row.data());
        }
    } catch (const dlprim::Error&) {
    }
    close(file);
    return 0;
}
