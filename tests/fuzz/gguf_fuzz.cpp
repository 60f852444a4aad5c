// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as a GGUF file give its tensors' values or an Error.
#include "formats/gguf/file.hpp"

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
        const dlprim::GgufFile model("/proc/self/fd/" + std::to_string(file));
        for (const auto& [name, tensor] : model.tensors()) {
            // Checked for types that are known, so that it is no more than the file's size allows.
            std::vector<float> values;
            if (dlprim::find_gguf_type(tensor.type))
                values.resize(static_cast<std::size_t>(tensor.shape.numel()));
            model.read(tensor, values.data());
        }
    } catch (const dlprim::Error&) {
    }
    close(file);
    return 0;
}
