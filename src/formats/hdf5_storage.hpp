// SPDX-License-Identifier: MIT
// Checks where and how a dataset stores its values before anything is read. Values that are not
// stored directly in the file are refused. For this room's .cpp files only.
#pragma once

#include "formats/hdf5_handle.hpp"

#include <cstdint>
#include <string>

namespace dlprim::hdf5 {

/// Why the dataset's values cannot be read from this file, as the end of a sentence ("is virtual:
/// ..."), or empty. Reasons are values in other files (external storage, virtual datasets) and
/// filters that are not built in, which HDF5 would load from a plugin. This function opens no other
/// file and loads no plugin, and neither does H5Dget_space when called after it.
std::string foreign_storage(hid_t dataset);

/// Why reading a dataset of `bytes` bytes would take more memory than the file's length justifies,
/// as the end of a sentence, or empty. Reasons are chunks far larger than the dataset, compression
/// of compressed data, and filters set up for chunks of another size. Call foreign_storage() first.
std::string absurd_storage(hid_t dataset, std::uint64_t bytes);

/// The most bytes of values that `stored` bytes of a file can hold. Deflate shrinks data at most
/// about a thousandfold, and a small dataset may consist of the fill value.
std::uint64_t most_values(std::uint64_t stored);

}  // namespace dlprim::hdf5
