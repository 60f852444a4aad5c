// SPDX-License-Identifier: MIT
// HostJob: the order of dimensions and the division of the work into tasks.
#include "engine/pointwise/host_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dlprim::pointwise {

HostJob::HostJob(Job job) : job_(std::move(job)) {
    const bool reduces = job_.reduces();
    // The offset of a result, over the kept dimensions in order.
    std::vector<std::int64_t> place(job_.sizes.size(), 0);
    std::int64_t below = 1;
    for (std::size_t d = job_.sizes.size(); d-- > 0;)
        if (!job_.reduced[d]) {
            place[d] = below;
            below *= job_.sizes[d];
        }
    results_ = reduces ? below : 0;
    if (reduces) {
        kept_class_ = static_cast<int>(job_.classes.size());
        job_.classes.push_back(place);
        // Kept dimensions come first, except an innermost one.
        const std::size_t count = job_.sizes.size();
        std::vector<std::size_t> order;
        for (std::size_t d = 0; d + 1 < count; ++d)
            if (!job_.reduced[d]) order.push_back(d);
        if (!job_.reduced[count - 1] && order.size() + 1 == count) order.push_back(count - 1);
        const std::size_t outer = order.size();
        for (std::size_t d = 0; d < count; ++d)
            if (job_.reduced[d]) order.push_back(d);
        if (order.size() < count) order.push_back(count - 1);
        Job sorted = job_;
        for (std::size_t d = 0; d < count; ++d) {
            sorted.sizes[d] = job_.sizes[order[d]];
            sorted.reduced[d] = job_.reduced[order[d]];
            for (std::size_t c = 0; c < job_.classes.size(); ++c)
                sorted.classes[c][d] = job_.classes[c][order[d]];
        }
        units_ = 1;
        for (std::size_t d = 0; d < outer; ++d) units_ *= sorted.sizes[d];
        unit_elements_ = 1;
        for (std::size_t d = outer; d < count; ++d) unit_elements_ *= sorted.sizes[d];
        grain_ = sorted.reduced[count - 1] || outer == count ? 1 : sorted.sizes[count - 1];
        job_ = std::move(sorted);
        if (units_ < 16 && grain_ > 0)
            parts_ = std::clamp<std::int64_t>(
                units_ * unit_elements_ / 32768, 1,
                std::max<std::int64_t>(1, std::min<std::int64_t>(16, unit_elements_ / grain_)));
        if (parts_ * results_ > 4'000'000) parts_ = 1;
    } else {
        unit_elements_ = 1;
        units_ = job_.kept() * job_.reduction();
    }
}

}  // namespace dlprim::pointwise
