// SPDX-License-Identifier: MIT
// Devices for operators by costs: cases worked out by hand, and small networks of random costs
// against the best of all placements there are.
#include "api/placement/choose_devices.hpp"

#include "net/support.hpp"

#include <algorithm>
#include <random>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Devices = std::vector<std::size_t>;
constexpr double never = PlacementProblem::never;

/// Two devices with 100 bytes each, and moves that take a second for each byte and one more.
PlacementProblem two_devices() {
    PlacementProblem problem;
    problem.devices = {"fast", "slow"};
    problem.limits = {100, 100};
    problem.link_seconds = 1;
    return problem;
}

void add_operator(PlacementProblem& problem, std::vector<double> seconds,
                  std::vector<std::uint64_t> bytes) {
    const std::string name = "op" + std::to_string(problem.operators.size());
    problem.operators.push_back({name, std::move(seconds), std::move(bytes)});
}

/// A value of each operator that the next one reads.
void add_chain(PlacementProblem& problem, double bytes, bool passes) {
    for (std::size_t i = 1; i < problem.operators.size(); ++i)
        problem.values.push_back({static_cast<int>(i) - 1, {{i, passes}}, bytes});
}

bool fits(const PlacementProblem& problem, const Devices& devices) {
    std::vector<std::uint64_t> bytes(problem.devices.size());
    for (std::size_t op = 0; op < devices.size(); ++op) {
        if (problem.operators[op].seconds[devices[op]] == never) return false;
        bytes[devices[op]] += problem.operators[op].bytes[devices[op]];
    }
    for (std::size_t d = 0; d < bytes.size(); ++d)
        if (bytes[d] > problem.limits[d]) return false;
    return true;
}

/// The least seconds of all placements within the limits; `never` if there is none.
double least_of_all(const PlacementProblem& problem) {
    double least = never;
    Devices devices(problem.operators.size());
    for (;;) {
        if (fits(problem, devices)) least = std::min(least, seconds_of(problem, devices));
        std::size_t op = 0;
        while (op < devices.size() && ++devices[op] == problem.devices.size()) devices[op++] = 0;
        if (op == devices.size()) return least;
    }
}

/// Up to nine operators on two or three devices, with values that skip some of them.
PlacementProblem random_problem(std::mt19937& random, bool chain) {
    const auto number = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    PlacementProblem problem;
    problem.link_seconds = number(0, 3);
    const int devices = number(2, 3), operators = number(2, devices == 2 ? 9 : 7);
    for (int d = 0; d < devices; ++d) problem.devices.push_back("d" + std::to_string(d));
    std::uint64_t all = 0;
    for (int op = 0; op < operators; ++op) {
        std::vector<double> seconds;
        std::vector<std::uint64_t> bytes;
        for (int d = 0; d < devices; ++d) {
            seconds.push_back(d > 0 && number(0, 7) == 0 ? never : number(1, 12));
            bytes.push_back(static_cast<std::uint64_t>(number(1, 20)));
        }
        all += bytes.front();
        add_operator(problem, seconds, bytes);
    }
    for (int d = 0; d < devices; ++d)
        problem.limits.push_back(all * static_cast<std::uint64_t>(number(2, 10)) / 10);
    if (chain) {
        add_chain(problem, number(0, 4), number(0, 1) == 1);
        return problem;
    }
    for (int maker = -1; maker < operators - 1; ++maker) {
        PlacementProblem::Value value{maker, {}, static_cast<double>(number(0, 4))};
        for (int op = maker + 1; op < operators; ++op)
            if (number(0, 2) == 0)
                value.readers.push_back({static_cast<std::size_t>(op), number(0, 1) == 1});
        problem.values.push_back(value);
    }
    return problem;
}

}  // namespace

TEST_CASE("what runs best on one device stays whole", "[choose]") {
    PlacementProblem problem = two_devices();
    for (int i = 0; i < 4; ++i) add_operator(problem, {1, 3}, {10, 10});
    add_operator(problem, {2, 1}, {10, 10});  // the other device is faster, but not by a move
    add_chain(problem, 1, false);
    const PlacementChoice choice = choose_devices(problem);
    CHECK(choice.devices == Devices{0, 0, 0, 0, 0});
    CHECK(choice.seconds == 6);
    CHECK(choice.optimal);
}

TEST_CASE("what another device does faster goes there, if it pays for the moves", "[choose]") {
    PlacementProblem problem = two_devices();
    add_operator(problem, {1, 5}, {10, 10});
    add_operator(problem, {9, 2}, {10, 10});
    add_operator(problem, {1, 5}, {10, 10});
    add_chain(problem, 1, false);
    // 1 + 2 + 2 + 2 + 1 with two moves of two seconds, against 11 on the first device.
    CHECK(choose_devices(problem).devices == Devices{0, 1, 0});
    CHECK(choose_devices(problem).seconds == 8);
    // With gradients there are four moves, and it stays.
    problem.values.clear();
    add_chain(problem, 1, true);
    CHECK(choose_devices(problem).devices == Devices{0, 0, 0});
    CHECK(choose_devices(problem).seconds == 11);
}

TEST_CASE("a value moves once to a device, however many read it there", "[choose]") {
    PlacementProblem problem = two_devices();
    add_operator(problem, {1, never}, {1, 1});
    for (int i = 0; i < 3; ++i) add_operator(problem, {never, 1}, {1, 1});
    problem.values.push_back({0, {{1, true}, {2, true}, {3, true}}, 4});
    // Five seconds forward, and five for the sum of the gradients.
    CHECK(seconds_of(problem, {0, 1, 1, 1}) == 4 + 5 + 5);
    problem.values[0].readers[1].passes = false;
    CHECK(seconds_of(problem, {0, 1, 1, 1}) == 4 + 5 + 5);
    // The gradient visits readers on both devices: 3 on b, 2 on a, 1 on b, and a.
    problem.values[0].readers[1].passes = true;
    problem.operators[2].seconds[0] = 1;
    CHECK(seconds_of(problem, {0, 1, 0, 1}) == 4 + 5 + 3 * 5);
    // What is fed has its first reader's device, for nothing.
    problem.values[0] = {-1, {{1, false}, {2, false}}, 4};
    CHECK(seconds_of(problem, {0, 1, 1, 1}) == 4);
    CHECK(seconds_of(problem, {0, 1, 0, 1}) == 4 + 5);
}

TEST_CASE("what is too large for a device goes elsewhere, and the rest stays", "[choose]") {
    PlacementProblem problem = two_devices();
    problem.limits = {100, 1000};
    add_operator(problem, {1, 4}, {500, 500});
    for (int i = 0; i < 3; ++i) add_operator(problem, {1, 4}, {30, 30});
    add_chain(problem, 1, true);
    const PlacementChoice choice = choose_devices(problem);
    CHECK(choice.devices == Devices{1, 0, 0, 0});
    CHECK(choice.seconds == 4 + 2 + 2 + 3);
    CHECK(choice.optimal);
    // Two of three fit, and a border in the middle of the chain has as many moves as any.
    problem.limits = {60, 1000};
    CHECK(choose_devices(problem).seconds == 4 + 4 + 4 + 2);
    CHECK(choose_devices(problem).devices == Devices{1, 1, 0, 0});
}

TEST_CASE("what fits nowhere is told with the bytes that it lacks", "[choose]") {
    PlacementProblem problem = two_devices();
    add_operator(problem, {1, 1}, {10, 10});
    add_operator(problem, {1, 1}, {130, 125});
    check_error(
        ErrorKind::out_of_memory,
        {"'op1'", "no device", "130 bytes", "'fast', 30 bytes", "125 bytes", "'slow', 25 bytes"},
        [&] { choose_devices(problem); });
    problem.operators.pop_back();
    for (int i = 0; i < 3; ++i) add_operator(problem, {1, 1}, {90, 90});
    check_error(ErrorKind::out_of_memory,
                {"'fast', 'slow' together", "280 bytes", "80 bytes (0 MiB) more"},
                [&] { choose_devices(problem); });
    problem.operators.clear();
    for (int i = 0; i < 3; ++i) add_operator(problem, {1, 1}, {60, 60});
    check_error(ErrorKind::out_of_memory, {"180 bytes", "no way was found"},
                [&] { choose_devices(problem); });
}

TEST_CASE("small networks get the best of all placements", "[choose]") {
    std::mt19937 random(1);
    int infeasible = 0, bound = 0;
    for (int i = 0; i < 600; ++i) {
        PlacementProblem problem = random_problem(random, i % 2 == 0);
        problem.most_labels = 100000;
        INFO("problem " << i);
        const double least = least_of_all(problem);
        if (least == never) {
            ++infeasible;
            CHECK_THROWS_AS(choose_devices(problem), Error);
            continue;
        }
        const PlacementChoice choice = choose_devices(problem);
        CHECK(fits(problem, choice.devices));
        CHECK(choice.seconds == seconds_of(problem, choice.devices));
        CHECK(choice.seconds == least);
        CHECK(choice.optimal);
        PlacementProblem free = problem;
        for (std::uint64_t& limit : free.limits) limit = 1000;
        bound += least_of_all(free) < least;
    }
    // Both kinds must be there for the test to say something.
    CHECK(infeasible > 20);
    CHECK(bound > 100);
}

TEST_CASE("few labels give a placement within limits, and a bound that holds", "[choose]") {
    std::mt19937 random(2);
    double worst = 1;
    int found = 0, optimal = 0;
    for (int i = 0; i < 300; ++i) {
        PlacementProblem problem = random_problem(random, i % 2 == 0);
        problem.most_labels = 4;
        INFO("problem " << i);
        const double least = least_of_all(problem);
        if (least == never) continue;
        try {
            const PlacementChoice choice = choose_devices(problem);
            ++found;
            CHECK(fits(problem, choice.devices));
            CHECK(choice.seconds >= least);
            CHECK(choice.least_seconds <= least * (1 + 1e-9));
            if (choice.optimal) CHECK(choice.seconds == least);
            optimal += choice.optimal;
            worst = std::max(worst, choice.seconds / least);
        } catch (const Error&) {
            // The heuristic may miss what little fits.
        }
    }
    CHECK(found > 180);
    CHECK(optimal < found);
    CHECK(worst < 1.8);
}

TEST_CASE("more devices than the search can tell apart are an error", "[choose]") {
    PlacementProblem problem;
    for (int i = 0; i < 33; ++i) problem.devices.push_back("d" + std::to_string(i));
    problem.limits.assign(33, 100);
    add_operator(problem, std::vector<double>(33, 1.0), std::vector<std::uint64_t>(33, 1));
    check_error(invalid, {"32 devices", "33"}, [&] { choose_devices(problem); });
    problem.devices.pop_back();
    CHECK(choose_devices(problem).seconds == 1);
}
