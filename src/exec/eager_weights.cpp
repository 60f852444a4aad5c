// SPDX-License-Identifier: MIT
// WeightUses: by the versions of the buffers.
#include "exec/eager_weights.hpp"

#include <algorithm>

namespace dlprim {

bool WeightUses::worth_keeping(const std::string& key, std::size_t problem, const EagerCall& call,
                               std::span<const EagerOperand> params) {
    constexpr std::uint64_t mixer = 0x9E3779B97F4A7C15u;
    std::uint64_t versions = 0, generations = 0;
    bool foreign = false;
    for (const EagerOperand& param : params) {
        versions = versions * mixer + param.buffer->version();
        generations = generations * mixer + param.buffer->generation();
        foreign = foreign || param.buffer->foreign();
    }
    if (foreign) return false;
    const std::string_view name = std::string_view(key).substr(0, problem);
    const int* const known = passing_.find(name);
    const int passing = known != nullptr ? *known : 0;
    Use* const use = uses_.find(key);
    if (use != nullptr && use->generations == generations) {
        if (passing > 0) passing_.insert(name, 0);
        use->unchanged = use->versions == versions ? std::min(use->unchanged + 1, trusted) : 0;
        use->versions = versions;
        return use->unchanged == trusted;
    }
    const bool changes = call.how.training || call.backward || passing >= trusted;
    if (passing < trusted) passing_.insert(name, passing + 1);
    uses_.insert(key, {versions, generations, changes ? 0 : trusted});
    return !changes;
}

}  // namespace dlprim
