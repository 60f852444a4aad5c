// SPDX-License-Identifier: MIT
// Which input channels a group of output blocks reads, for the blocked engines of grouped
// convolutions (kernels/conv2d/blocked_reach.clh has the same formulas).
//
// If the channels of every group fill whole blocks, each slab of output blocks belongs to one
// group. Otherwise blocks are counted over all channels, and a block may have channels of several
// groups. Its slab then reads the channels of all of these groups ("across groups"):
//
//     groups of 24 channels in blocks of 16
//     output block    0         1         2
//     channels        0..15     16..31    32..47
//     of groups       0         0, 1      1
//     reads           0..23     0..47     24..47
//
// The products of channels of different groups are multiplied by zeros in the packed weights, or
// are not read from a gradient's sums.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::conv2d {

/// How the output blocks of a grouped convolution are divided into slabs.
struct Reach {
    bool across;               ///< whether slabs read across groups
    std::int64_t groups;       ///< groups that slabs belong to: 1 if across
    std::int64_t group_in;     ///< input channels of such a group
    std::int64_t group_out;    ///< output channels of such a group
    std::int64_t in_blocks;    ///< blocks of input channels of such a group
    std::int64_t out_vectors;  ///< vectors of output channels of such a group
    std::int64_t slabs;        ///< slabs of all groups
    std::int64_t most_lanes;   ///< the largest number of input lanes that a slab reads
    std::int64_t all_lanes;    ///< the sum of these numbers over all slabs

    /// How many slabs read an input channel, on average.
    double passes() const;
};

/// The reach of slabs of `vectors` vectors of output channels, which have `lanes` lanes: those of a
/// block, or half of them. Across groups, ranges of input channels begin and end at multiples of
/// `unit`, which divides `lanes`.
Reach reach_of(const Traits& device, std::int64_t groups, std::int64_t group_in,
               std::int64_t group_out, int vectors, std::int64_t unit, int lanes);

/// Whether the channels of a group do not fill whole blocks.
bool reaches_across(const Traits& device, std::int64_t groups, std::int64_t group_in,
                    std::int64_t group_out);

/// The lanes of an engine's vectors: those of the device's, or half of them, where groups that do
/// not fill whole blocks fill halves, and reaching across groups would cost a tenth more products
/// or above. Only vectors of 16 lanes are halved. A processor that has them computes with halves at
/// the same rate (AMD's Zen 4), or at half the rate in the worst case.
int group_lanes(const Traits& device, std::int64_t groups, std::int64_t group_in,
                std::int64_t group_out);

}  // namespace dlprim::conv2d
