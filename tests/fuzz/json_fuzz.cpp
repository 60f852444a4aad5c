// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are parsed as network JSON give a description or an Error. A
// description is written and read back equal.
#include "formats/json_net.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const dlprim::NetDescription net = dlprim::parse_net_json(text, "fuzz");
        const std::string written = dlprim::write_net_json(net);
        if (dlprim::write_net_json(dlprim::parse_net_json(written, "written")) != written)
            std::abort();
    } catch (const dlprim::Error&) {
    }
    return 0;
}
