// SPDX-License-Identifier: MIT
// Where shipped programs lie, and for which devices they are.
#include "runtime/shipped_programs.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/compile_program.hpp"
#include "runtime/devices.hpp"

#include <sys/auxv.h>

namespace dlprim {

std::optional<std::filesystem::path> shipped_programs() {
    if (const auto given = env("DLPRIM_PROGRAMS")) {
        if (::getauxval(AT_SECURE) != 0) return std::nullopt;
        return std::filesystem::path(*given);
    }
    static const auto installed =
        installed_path({DLPRIM_SHARE_FROM_LIB, DLPRIM_SHARE_FROM_BIN}, "programs");
    return installed;
}

std::string device_class(const DeviceInfo& device) {
    if (device.kind != DeviceKind::cpu) return device.name;
    static const std::string model = cat('-', host_info().name);
    if (!device.name.ends_with(model)) return device.name;
    std::string name = device.name.substr(0, device.name.size() - model.size());
    return name.find('-') == std::string::npos ? device.name : name;
}

}  // namespace dlprim
