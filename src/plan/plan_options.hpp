// SPDX-License-Identifier: MIT
// PlanOptions: options of make_plan().
#pragma once

#include "base/layout.hpp"
#include "graph/graph.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

class KeptValues;

/// Which engines are checked before their first use (plan/trust/trust.hpp). Engines of the host
/// have no programs that would tell how they differ from problem to problem: there `problems`
/// checks each class of sizes, and `kinds` one problem of a kind, since eager calls meet new sizes
/// all the time.
enum class EngineChecks { none, kinds, problems };

struct PlanOptions {
    bool fuse = true;  ///< whether to fuse epilogues
    /// Forced engines: node name or operator type -> engine name.
    std::vector<std::pair<std::string, std::string>> engines;
    /// Parameters of at least this many bytes are bound by the caller. In eager calls that is all
    /// of them (0).
    std::uint64_t bind_params_from = ~std::uint64_t{0};
    /// Layouts in which inputs and parameters are bound, plain by default. They must not be packed.
    std::map<ValueId, Layout> input_layouts;
    /// Layouts in which the caller wants outputs (by name) and gradients (by the value whose
    /// gradient it is). They are plain, channels_last or strided.
    std::map<std::string, Layout> output_layouts;
    std::map<ValueId, Layout> gradient_layouts;
    /// Whether outputs and gradients for which no layout is wanted stay in the layout that their
    /// engine writes; see External::layout.
    bool free_outputs = false;
    std::int64_t least_narrow = 4096;  ///< fewest elements of values stored in 16 bits
    double narrow_cost = 1;  ///< how slow its nodes may be then, relative to the estimate in float
    std::uint64_t memory_limit = 0;  ///< bytes; 0: the device's
    bool over_limit = false;  ///< whether a plan that does not fit is made, too, to look at it
    bool report = true;       ///< whether to write Plan::memory, for people
    std::function<void(std::string_view what, int done, int total)>
        progress;             ///< compiling, tuning
    double tune_seconds = 0;  ///< if positive: measure unknown problems for about that long
    EngineChecks check_engines = EngineChecks::none;
    bool chains = false;            ///< whether to look for chains
    bool build = true;              ///< false: make no launches, only show what would run
    bool recompute_to_fit = false;  ///< whether nodes run again in backward where that makes it fit
    /// Results of setup that other plans of the same parameters have made; null: the plan makes all
    /// of its own. `identity` tells parameters apart: equal texts, equal values.
    const KeptValues* kept = nullptr;
    std::function<std::string(const Value&)> identity;
    bool first_fit = false;  ///< takes the first such nodes that are found, not the cheapest
};

}  // namespace dlprim
