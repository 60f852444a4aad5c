// SPDX-License-Identifier: MIT
// Described devices: the traits of a device that is not here, read from a file of
// databases/devices. Networks can be planned for it, and the programs of their plans compiled by
// its maker's compiler on any machine.
#pragma once

#include <dlprim/context.hpp>

#include <string>
#include <string_view>

namespace dlprim {

struct DescribedDevice {
    /// The id is "file:PATH". The driver names the offline compiler and its target, such as "clang
    /// gfx803", or is "none".
    DeviceInfo info;
    Traits traits;        ///< before DLPRIM_TRAITS
    std::string options;  ///< build options that all programs of the device get
};

/// Parses the description of a device; databases/devices/README.md lists its fields. The text is
/// not trusted. Throws Error(format), which names `path`, the field, what it holds and its bounds.
DescribedDevice parse_device(std::string_view text, const std::string& path);
/// The same of a file. Throws also Error(not_found) and Error(io).
DescribedDevice read_device_file(const std::string& path);

}  // namespace dlprim
