// SPDX-License-Identifier: MIT
// Where and how a dataset keeps its values, looked at before anything is read: what is not plainly
// in the file itself is refused. For this room's .cpp files only.
#pragma once

#include "formats/hdf5_handle.hpp"

#include <cstdint>
#include <string>

namespace dlprim::hdf5 {

/// Why the dataset's values are not read from this file, as the end of a sentence ("is virtual:
/// ..."), or empty: values in other files (external storage, virtual datasets), filters other than
/// those that HDF5 itself has, which it would load from a plugin. Opens no other file and loads no
/// plugin; neither does H5Dget_space after it.
std::string foreign_storage(hid_t dataset);

/// Why a dataset of so many bytes cannot be read in memory that its file's length justifies, as the
/// end of a sentence, or empty: chunks far larger than the dataset, compression on compression,
/// filters set up for other chunks than the dataset's. Call foreign_storage() first.
std::string absurd_storage(hid_t dataset, std::uint64_t bytes);

/// How many bytes of values `stored` bytes of a file can hold: deflate shrinks at most about a
/// thousandfold, and a small dataset may be all fill value.
std::uint64_t most_values(std::uint64_t stored);

}  // namespace dlprim::hdf5
