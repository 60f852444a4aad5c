// SPDX-License-Identifier: MIT
// PlanOptions: what the maker of a plan may be told.
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

struct PlanOptions {
    bool fuse = true;  ///< attach epilogues
    /// Forced engines: node name or operator type -> engine name.
    std::vector<std::pair<std::string, std::string>> engines;
    /// Parameters of at least so many bytes are bound by the caller: in eager calls all of them
    /// (0).
    std::uint64_t bind_params_from = ~std::uint64_t{0};
    /// Layouts in which inputs are bound; plain where there is none. Not packed ones.
    std::map<ValueId, Layout> input_layouts;
    /// Outputs and gradients are left in the layout that their engine writes: External::layout.
    bool free_outputs = false;
    std::int64_t least_narrow = 4096;  ///< elements of what is stored in 16 bits
    double narrow_cost = 1;          ///< times the estimate in float that its nodes may take, then
    std::uint64_t memory_limit = 0;  ///< bytes; 0: the device's
    std::function<void(std::string_view what, int done, int total)>
        progress;             ///< compiling, tuning
    double tune_seconds = 0;  ///< over 0: measures what no database knows, for about so long
    bool chains = false;      ///< looks for chains
    bool build = true;        ///< false: steps get no launch; for looking at what would run
};

}  // namespace dlprim
