// SPDX-License-Identifier: MIT
// Schedule.
#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

double Schedule::rate(double epoch) const {
    const double warmup = options_.warmup_epochs;
    if (epoch < warmup) return base_ * (epoch / warmup);
    switch (options_.kind) {
        case ScheduleOptions::Kind::constant:
            return base_;
        case ScheduleOptions::Kind::step:
            return base_ * std::pow(options_.gamma, std::floor(epoch / options_.step_epochs));
        case ScheduleOptions::Kind::cosine: {
            const double progress =
                std::clamp((epoch - warmup) / std::max(1e-9, epochs_ - warmup), 0.0, 1.0);
            return options_.minimum +
                   (base_ - options_.minimum) * 0.5 * (1 + std::cos(3.141592653589793 * progress));
        }
        case ScheduleOptions::Kind::plateau:
            return base_ * factor;
    }
    return base_;
}

void Schedule::report(double loss) {
    if (options_.kind != ScheduleOptions::Kind::plateau) return;
    if (loss < best) {
        best = loss;
        epochs_without_improvement = 0;
    } else if (++epochs_without_improvement > options_.patience) {
        factor *= options_.gamma;
        epochs_without_improvement = 0;
    }
}

}  // namespace dlprim
