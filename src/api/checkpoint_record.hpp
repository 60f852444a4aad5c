// SPDX-License-Identifier: MIT
// CheckpointRecord: what a checkpoint says of how its run computed: in which precisions, by which
// engines. With the same of both a run that goes on has the bits of one that was not interrupted.
//
// In the file: the attribute "precision" of the root; "solver/precisions" and "solver/engines",
// uint8, text of a line each: precision or engine, a space, the name of the operator or node, in
// which "%25" stands for a percent sign and "%0A" for a line's end.
#pragma once

#include "formats/hdf5_file.hpp"

#include <dlprim/precision.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

class NetImpl;

struct CheckpointRecord {
    std::optional<Precision> precision;  ///< of the net; none in files older than the record
    std::map<std::string, Precision> precisions;  ///< of operators with another than the net's
    std::map<std::string, std::string> engines;   ///< by node; empty in files older than the record
};

/// As the net is planned now.
CheckpointRecord record_of(NetImpl& net);
void write_record(Hdf5Writer& file, const CheckpointRecord& record);
/// Throws Error(format) on what is no record.
CheckpointRecord read_record(const Hdf5Reader& file);

/// Throws Error(invalid_argument) where a net computes in another precision than the run that
/// `path` was made by; says both.
void check_precision(const std::string& path, const CheckpointRecord& made,
                     const CheckpointRecord& now);
/// A sentence where engines are others, or none: results may differ in their last bits.
std::vector<std::string> other_engines(const std::string& path, const CheckpointRecord& made,
                                       const CheckpointRecord& now);

}  // namespace dlprim
