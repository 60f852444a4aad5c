// SPDX-License-Identifier: MIT
// CheckpointRecord: what a checkpoint states about its run: the precisions and engines. If a
// resumed run uses the same, its results are bit-identical to those of an uninterrupted run.
//
// In the file: the attribute "precision" of the root, and the uint8 datasets "solver/precisions"
// and "solver/engines". These contain text. Each line is a precision or engine, a space, and the
// name of the operator or node. In names "%25" means a percent sign and "%0A" the end of a line.
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
    std::optional<Precision> precision;           ///< of the net; absent in older files
    std::map<std::string, Precision> precisions;  ///< of operators that differ from the net
    std::map<std::string, std::string> engines;   ///< by node; empty in older files
};

/// The record of the net as it is planned now.
CheckpointRecord record_of(NetImpl& net);
void write_record(Hdf5Writer& file, const CheckpointRecord& record);
/// Throws Error(format) if the file contains no valid record.
CheckpointRecord read_record(const Hdf5Reader& file);

/// Throws Error(invalid_argument) if the net computes in another precision than the run that wrote
/// `path`. The message states both.
void check_precision(const std::string& path, const CheckpointRecord& made,
                     const CheckpointRecord& now);
/// Returns a sentence if engines differ, which may change the last bits of results. Otherwise
/// empty.
std::vector<std::string> other_engines(const std::string& path, const CheckpointRecord& made,
                                       const CheckpointRecord& now);

}  // namespace dlprim
