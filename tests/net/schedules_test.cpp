// SPDX-License-Identifier: MIT
// Compares learning rates with PyTorch's StepLR, CosineAnnealingLR and ReduceLROnPlateau, with
// warm-up.
#include "net/support.hpp"

#include <dlprim/schedule.hpp>

#include <cmath>

using dlprim::Schedule;
using dlprim::ScheduleOptions;

TEST_CASE("a constant rate stays", "[schedules]") {
    const Schedule schedule({}, 0.5, 10);
    for (const double epoch : {0.0, 0.5, 3.0, 10.0}) CHECK(schedule.rate(epoch) == 0.5);
}

TEST_CASE("a step multiplies the rate every so many epochs", "[schedules]") {
    ScheduleOptions options;
    options.kind = ScheduleOptions::Kind::step;
    options.step_epochs = 3;
    options.gamma = 0.1;
    const Schedule schedule(options, 2, 10);
    CHECK(schedule.rate(0) == 2);
    CHECK(schedule.rate(2.99) == 2);
    CHECK(schedule.rate(3) == Approx(0.2));
    CHECK(schedule.rate(5.5) == Approx(0.2));
    CHECK(schedule.rate(6) == Approx(0.02));
    CHECK(schedule.rate(9.9) == Approx(0.002));
}

TEST_CASE("a cosine falls to the minimum at the last epoch's end", "[schedules]") {
    ScheduleOptions options;
    options.kind = ScheduleOptions::Kind::cosine;
    options.minimum = 0.1;
    const Schedule schedule(options, 1.1, 8);
    CHECK(schedule.rate(0) == Approx(1.1));
    CHECK(schedule.rate(4) == Approx(0.6));
    CHECK(schedule.rate(2) == Approx(0.1 + 0.5 * (1 + std::sqrt(0.5))));
    CHECK(schedule.rate(8) == Approx(0.1));
    CHECK(schedule.rate(9) == Approx(0.1));
}

TEST_CASE("a warm-up rises linearly to the full rate, the cosine starts behind it", "[schedules]") {
    ScheduleOptions options;
    options.kind = ScheduleOptions::Kind::cosine;
    options.warmup_epochs = 2;
    const Schedule schedule(options, 1, 10);
    CHECK(schedule.rate(0) == 0);
    CHECK(schedule.rate(0.5) == Approx(0.25));
    CHECK(schedule.rate(1.5) == Approx(0.75));
    CHECK(schedule.rate(2) == Approx(1));
    CHECK(schedule.rate(6) == Approx(0.5));
    CHECK(schedule.rate(10) == Approx(0).margin(1e-12));
}

TEST_CASE("a plateau lowers the rate when patience is at its end", "[schedules]") {
    ScheduleOptions options;
    options.kind = ScheduleOptions::Kind::plateau;
    options.patience = 2;
    options.gamma = 0.5;
    Schedule schedule(options, 1, 100);
    // Losses, and the rate after each has been reported.
    const double losses[] = {3, 2, 2, 2.5, 2, 1, 1, 1, NAN, 1, 1, 1};
    const double rates[] = {1, 1, 1, 1, .5, .5, .5, .5, .25, .25, .25, .125};
    for (int epoch = 0; epoch < 12; ++epoch) {
        INFO("epoch " << epoch);
        schedule.report(losses[epoch]);
        CHECK(schedule.rate(epoch + 1) == rates[epoch]);
    }
}

TEST_CASE("a schedule refuses numbers that make no sense", "[schedules]") {
    const auto refused = [](const char* word, double rate, auto change) {
        ScheduleOptions options;
        change(options);
        dlprim::testing::check_error(dlprim::ErrorKind::invalid_argument, {word},
                                     [&] { Schedule(options, rate, 10); });
    };
    refused("-1", -1, [](ScheduleOptions&) {});
    refused("nan", NAN, [](ScheduleOptions&) {});
    refused("step_epochs", 1, [](ScheduleOptions& o) { o.step_epochs = 0; });
    refused("gamma", 1, [](ScheduleOptions& o) { o.gamma = 0; });
    refused("warmup_epochs", 1, [](ScheduleOptions& o) { o.warmup_epochs = -1; });
    refused("minimum", 1, [](ScheduleOptions& o) { o.minimum = NAN; });
    refused("patience", 1, [](ScheduleOptions& o) { o.patience = -1; });
}
