// SPDX-License-Identifier: MIT
// The contents of an HDF5 file: its groups, and its datasets by name. For this room's .cpp files
// only.
//
// Only hard links are followed. A link to another file could read any file of the user, and a soft
// link is a name that need not exist. Cycles end because each group is entered once.
#pragma once

#include "formats/hdf5_handle.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::hdf5 {

/// The most parts that a name may have, which also limits how deep groups nest, and its most bytes.
constexpr int max_parts = 512;
constexpr std::size_t max_name = 4096;

/// The address of an object in its file.
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
    std::map<std::string, std::string> links;  ///< links that are not followed, and their kind
};

/// Walks the file in time proportional to the number of its links, of which there can be no more
/// than `file_bytes` allows. Throws Error(format) on a damaged file and on names beyond the limits.
Listing list_objects(hid_t file, const std::string& path, std::uint64_t file_bytes);

/// Untrusted text, made safe for a message: at most 80 bytes, without control characters.
std::string shown(std::string_view text);

}  // namespace dlprim::hdf5
