// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are parsed as a tuning database give rows or an Error with a message of
// our own. Parsed rows are written and read back equal.
#include "engine/database.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const std::string written = dlprim::print_database(dlprim::parse_database(text, "fuzz"));
        if (dlprim::print_database(dlprim::parse_database(written, "written")) != written)
            std::abort();
    } catch (const dlprim::Error& error) {
        const std::string_view what = error.what();
        constexpr std::string_view begin = "fuzz is not a tuning database: ";
        if (what.find(begin) != 0 || what.find("[json.exception") == begin.size() ||
            what.size() > 400)
            std::abort();
    }
    return 0;
}
