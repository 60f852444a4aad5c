// SPDX-License-Identifier: MIT
// Options for networks on several devices.
#include "placing.hpp"

#include "common.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <utility>

namespace dlprim::tools {

namespace {

/// The bytes of "2GiB", "512MiB", "64KiB" or "4096"; nothing where the text is something else.
std::optional<std::uint64_t> parse_bytes(const std::string& text) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (read.ec != std::errc() || !(number > 0)) return std::nullopt;
    const std::string unit(read.ptr, end);
    double scale = 1;
    for (const auto& [name, bytes] : {std::pair{"", 0x1p0}, std::pair{"KiB", 0x1p10},
                                      std::pair{"MiB", 0x1p20}, std::pair{"GiB", 0x1p30}}) {
        if (unit != name) continue;
        scale = bytes;
        const double all = number * scale;
        if (all < 1 || all >= 0x1p63) return std::nullopt;
        return static_cast<std::uint64_t>(all);
    }
    return std::nullopt;
}

}  // namespace

void add_placement_options(CLI::App& app, PlacementOptions& placement) {
    app.add_option_function<std::string>(
           "--place",
           [&placement](const std::string& who) {
               placement.automatic = who != "named";
               placement.measure = who == "measured";
           },
           "with -d NAME=DEVICE,...: who chooses devices of operators that name none; 'auto' takes "
           "those that are best for the time of a batch, by estimates, within their memory; "
           "'measured' runs the network on each of them first; "
           "'named' (default) the first one")
        ->check(CLI::IsMember({"auto", "measured", "named"}))
        ->type_name("WHO");
    const auto check = [](const std::string& text) -> std::string {
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos && equals > 0 && parse_bytes(text.substr(equals + 1)))
            return "";
        return "takes NAME=SIZE, such as fast=2GiB or fast=512MiB, got '" + text + "'";
    };
    app.add_option_function<std::vector<std::string>>(
           "--device-memory",
           [&placement](const std::vector<std::string>& texts) {
               for (const std::string& text : texts) {
                   const std::size_t equals = text.find('=');
                   placement.memory_limits[text.substr(0, equals)] =
                       parse_bytes(text.substr(equals + 1)).value_or(0);
               }
           },
           "NAME=SIZE: the most memory that operators may take on that device, as fast=2GiB; may "
           "be "
           "given again")
        ->type_name("LIMIT")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(CLI::Validator(check, "", "limit"));
}

void check_placement(const PlacementOptions& placement, const std::string& devices) {
    if (names_devices(devices)) return;
    if (placement.automatic || !placement.memory_limits.empty())
        throw Error(ErrorKind::invalid_argument,
                    "--place and --device-memory are for several devices with names: give them as "
                    "fast=gpu,large=cpu");
}

}  // namespace dlprim::tools
