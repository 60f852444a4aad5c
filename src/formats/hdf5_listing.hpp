// SPDX-License-Identifier: MIT
// What is in an HDF5 file: its groups, and its datasets by name. For this room's .cpp files only.
//
// Hard links alone are followed. A link to another file would read whatever file of the user's it
// names; a soft link is a name that need not exist. Cycles end since a group is entered once.
#pragma once

#include "formats/hdf5_handle.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::hdf5 {

/// Names have at most this many parts, so groups are nested less deep, and this many bytes.
constexpr int max_parts = 512;
constexpr std::size_t max_name = 4096;

/// Where an object stands in its file.
#if H5_VERSION_GE(1, 12, 0)
using Place = H5O_token_t;
#else
using Place = haddr_t;
#endif

/// Opens an object without following any link.
Handle open_at(hid_t file, const Place& place);

struct Listing {
    std::map<std::string, Place> groups;  ///< the root is ""
    std::vector<std::pair<std::string, Place>> datasets;
    std::map<std::string, std::string> links;  ///< that are not followed, and what they are
};

/// Walks the file in time proportional to its links. `file_bytes` bounds how many there can be.
/// Throws Error(format) on a damaged file and on names beyond the limits.
Listing list_objects(hid_t file, const std::string& path, std::uint64_t file_bytes);

/// Untrusted text for a message: at most 80 bytes, without control characters.
std::string shown(std::string_view text);

}  // namespace dlprim::hdf5
