// SPDX-License-Identifier: MIT
// Preprocessing in files; see the public header.
#pragma once

#include "formats/hdf5_file.hpp"

#include <dlprim/preprocessing.hpp>

namespace dlprim {

/// Adds it to a weights file. Names of classes of more than 60000 bytes in all are left out, since
/// an attribute does not hold them.
void write_preprocessing(Hdf5Writer& file, const Preprocessing& how);

}  // namespace dlprim
