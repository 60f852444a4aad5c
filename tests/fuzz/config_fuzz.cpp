// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are parsed as a training configuration give one or an Error.
#include "train/config.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        dlprim::parse_train_config({reinterpret_cast<const char*>(data), size}, "fuzz");
    } catch (const dlprim::Error&) {
    }
    return 0;
}
