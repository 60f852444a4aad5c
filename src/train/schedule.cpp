// SPDX-License-Identifier: MIT
// Schedule.
#include <dlprim/schedule.hpp>

#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

void check_numbers(const ScheduleOptions& o, double base_rate, double epochs) {
    const auto at_least_zero = [](double value) { return std::isfinite(value) && value >= 0; };
    require(at_least_zero(base_rate), "a schedule's rate of ", base_rate,
            " is invalid: it must be a number of at least 0");
    require(at_least_zero(epochs), "a schedule over ", epochs,
            " epochs is invalid: it must be a number of at least 0");
    require(at_least_zero(o.warmup_epochs), "warmup_epochs is ", o.warmup_epochs,
            ": it must be a number of at least 0");
    require(o.kind != ScheduleOptions::Kind::cosine || o.warmup_epochs <= epochs,
            "warmup_epochs is ", o.warmup_epochs, ", but the run has ", epochs,
            " epochs: the learning rate would never be reached");
    require(o.step_epochs > 0 && !std::isnan(o.step_epochs), "step_epochs is ", o.step_epochs,
            ": it must be a number above 0");
    require(std::isfinite(o.gamma) && o.gamma > 0, "gamma is ", o.gamma,
            ": it must be a number above 0");
    require(at_least_zero(o.minimum), "minimum is ", o.minimum,
            ": it must be a number of at least 0");
    require(o.patience >= 0, "patience is ", o.patience, ": it must be at least 0");
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options, double base_rate, double epochs)
    : options_(options), base_(base_rate), epochs_(epochs) {
    check_numbers(options, base_rate, epochs);
}

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
