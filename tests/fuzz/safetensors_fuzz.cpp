// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as a safetensors file give its tensors' values or an Error.
#include "formats/safetensors/file.hpp"

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
    try {
        const dlprim::SafetensorsFile model("/proc/self/fd/" + std::to_string(file));
        for (const auto& [name, tensor] : model.tensors()) {
            // No more than the file's size allows.
            std::vector<float> values(static_cast<std::size_t>(tensor.shape.numel()));
            try {
                model.read(tensor, values.data());
            } catch (const dlprim::Error&) {  // a type that is not read
            }
        }
    } catch (const dlprim::Error&) {
    }
    close(file);
    return 0;
}
