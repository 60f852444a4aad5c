// SPDX-License-Identifier: MIT
// Databases of what tuning found: which engine, with which tuning, for a problem on a device.
//
// Order of knowledge: the user's database (a JSON file in the cache folder), then the one shipped with
// the library, else nothing (the planner then takes the lowest estimate). A plain run never writes.
#pragma once

#include "engine/engine.hpp"

#include <optional>
#include <string>

namespace dlprim {

struct TuningRow {
    std::string engine;
    Tuning tuning;
    double seconds = 0;  ///< as measured when the row was made
};

/// What is known of the problem (without layouts) on the context's device.
std::optional<TuningRow> lookup_tuning(ContextImpl& context, const Problem& problem);
/// Adds or replaces a row in the user's database and writes it at once, whole or not at all.
void store_tuning(ContextImpl& context, const Problem& problem, const TuningRow& row);

}  // namespace dlprim
