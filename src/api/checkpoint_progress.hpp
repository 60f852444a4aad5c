// SPDX-License-Identifier: MIT
// CheckpointProgress: the numbers in a checkpoint that say how far its training is. They are
// attributes of the file's root.
#pragma once

#include "formats/hdf5_file.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dlprim {

struct CheckpointProgress {
    std::uint64_t updates = 0;
    std::uint64_t batches = 0;      ///< since the last update
    std::uint64_t random_step = 0;  ///< NetImpl::step_count
    int shards = 1;
    std::optional<std::uint64_t> seed;
    std::optional<double> rate;
    std::map<std::string, double> extra;  ///< of the program's own
};

/// Throws Error(invalid_argument) for names of `extra` that are empty or hold a comma.
void write_progress(Hdf5Writer& file, const CheckpointProgress& progress);
/// Throws Error(format) for a file that is no checkpoint.
CheckpointProgress read_progress(const Hdf5Reader& file);
/// Throws Error(invalid_argument) unless the checkpoint was made with so many shards: others would
/// add up in another order, and draw other random numbers.
void check_shards(const Hdf5Reader& file, const CheckpointProgress& made, int shards);

}  // namespace dlprim
