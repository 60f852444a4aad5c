// SPDX-License-Identifier: MIT
// ZipReader: the members of a ZIP archive, stored or deflated, as .npz files are. The archive is
// not trusted: offsets and sizes are checked before memory is asked for, and checksums after
// reading.
#pragma once

#include "base/input_file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

struct ZipMember {
    std::string name;
    bool deflated = false;
    std::uint64_t position = 0;  ///< of the data in the file
    std::uint64_t stored = 0;    ///< bytes in the file
    std::uint64_t size = 0;      ///< bytes of the member
    std::uint32_t checksum = 0;  ///< CRC-32 of the member
};

/// The members in the order of the archive's directory. Throws Error(format) if the file is no such
/// archive, and Error(unsupported) for members that are encrypted or compressed in another way.
std::vector<ZipMember> list_zip(const InputFile& file);

/// A member's bytes. Throws Error(format) if they are damaged, and Error(unsupported) in a build
/// without zlib if they are deflated.
std::vector<std::byte> read_zip_member(const InputFile& file, const ZipMember& member);

}  // namespace dlprim
