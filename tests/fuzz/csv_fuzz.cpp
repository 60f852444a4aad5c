// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are read as a CSV table give rows or an Error.
#include "formats/csv.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        std::int64_t before = 0;
        dlprim::read_csv(text, "fuzz", ',', [&](const auto& fields, std::int64_t line) {
            if (line <= before || fields.empty()) std::abort();
            before = line;
        });
    } catch (const dlprim::Error&) {
    }
    return 0;
}
