// SPDX-License-Identifier: MIT
// libFuzzer: any bytes that are parsed and rendered as a chat template give a text or an Error,
// within the limits.
#include "language/jinja/template.hpp"

#include <dlprim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace dlprim::language::jinja;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Limits limits{std::uint64_t{1} << 20, 4096};
    try {
        Run run("fuzz", limits);
        const Value message = make_map(run, {{"role", "user"}, {"content", " a\n\u3000</x>b "}});
        const Value messages = make_list(run, {message, message});
        const Template parsed(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
        if (parsed.render({{"messages", messages}, {"add_generation_prompt", true}}, {}, limits)
                .size() > limits.output)
            std::abort();
    } catch (const dlprim::Error&) {
    }
    return 0;
}
