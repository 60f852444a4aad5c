// SPDX-License-Identifier: MIT
// Compares every operator on every device with its oracle: over the table of cases and over seeded
// random problems, with the planner's choice and with each engine forced in turn.
//
//   operators_test [--cases] [--no-cases] [--random N] [--type TYPE] [--case NAME]
//                  [--precision fp32|tf32] [--sample] [--part I/N] [-v]
//   operators_test --speed [TYPE] [--case NAME]
//
// --speed: measures times instead of testing. Runs the table's cases marked "speed" (of one type),
//   by engine, next to the roofline bound (support/speed.hpp).
// --cases: only the table. --no-cases: only random problems. --random: N random problems per
//   operator; the default is DLPRIM_TEST_RANDOM, else 200 on the host and 1 on OpenCL devices.
// --sample: three small cases per operator, for simulators of devices.
// --part: every Nth of these, starting with the Ith (0 to N - 1), to divide them among processes.
// DLPRIM_TEST_FORCE=all: every engine in every case. DLPRIM_TEST_DEVICES: see support/devices.hpp.
// DLPRIM_TEST_SHARED: runtimes of one processor all try the first case of each operator, and each
//   tries its share of the others. Which engines are forced is shared, too (support/turns.hpp).
#include "base/text.hpp"
#include "engine/reached_by.hpp"
#include "support/cases.hpp"
#include "support/check_case.hpp"
#include "support/devices.hpp"
#include "support/random_cases.hpp"
#include "support/speed.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

struct Arguments {
    bool cases = true, sample = false, speed = false, verbose = false;
    int random = -1;  ///< negative: the default of the device
    std::size_t part = 0, parts = 1;
    std::string type, name;
    Precision precision = Precision::fp32;
};

[[noreturn]] void usage() {
    std::cerr << "usage: operators_test [--cases] [--no-cases] [--random N] [--type TYPE] "
                 "[--case NAME] [--precision fp32|tf32] [--sample] [--part I/N] [-v]\n"
                 "       operators_test --speed [TYPE] [--case NAME]\n";
    std::exit(2);
}

Arguments read_arguments(int count, char** words) {
    Arguments arguments;
    if (const char* given = std::getenv("DLPRIM_TEST_RANDOM")) arguments.random = std::atoi(given);
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const auto next = [&] { return i + 1 < count ? std::string(words[++i]) : std::string(); };
        if (word == "--cases")
            arguments.random = 0;
        else if (word == "--no-cases")
            arguments.cases = false;
        else if (word == "--random")
            arguments.random = std::atoi(next().c_str());
        else if (word == "--type")
            arguments.type = next();
        else if (word == "--case")
            arguments.name = next();
        else if (word == "--precision")
            arguments.precision = parse_precision(next());
        else if (word == "--sample")
            arguments.sample = true;
        else if (word == "--speed") {
            arguments.speed = true;
            if (i + 1 < count && words[i + 1][0] != '-') arguments.type = next();
        } else if (word == "--part") {
            const std::string text = next();
            const auto slash = text.find('/');
            arguments.part = std::strtoul(text.c_str(), nullptr, 10);
            arguments.parts =
                slash == std::string::npos ? 0 : std::strtoul(&text[slash + 1], nullptr, 10);
            if (arguments.part >= arguments.parts) usage();
        } else if (word == "-v")
            arguments.verbose = true;
        else
            usage();
    }
    return arguments;
}

/// Keeps three cases with few elements, evenly spaced, of those from `first` on.
void keep_sample(std::vector<Case>& all, std::size_t first) {
    std::vector<Case> small, kept;
    for (std::size_t i = first; i < all.size(); ++i) {
        std::int64_t elements = 0;
        for (const CaseTensor& input : all[i].inputs) elements += input.shape.numel();
        if (elements <= 2000 && all[i].simulated) small.push_back(all[i]);
    }
    const std::size_t wanted = std::min<std::size_t>(small.size(), 3);
    for (std::size_t i = 0; i < wanted; ++i) kept.push_back(small[i * small.size() / wanted]);
    all.resize(first);
    all.insert(all.end(), kept.begin(), kept.end());
}

/// Keeps the case at `first`, and of those behind it the ones in this device's share.
void keep_share(std::vector<Case>& all, std::size_t first, const Share& share) {
    std::vector<Case> kept;
    for (std::size_t i = first; i < all.size(); ++i)
        if (i == first || share.has(static_cast<unsigned>(i - first))) kept.push_back(all[i]);
    all.resize(first);
    all.insert(all.end(), kept.begin(), kept.end());
}

/// The type that a case's type or an argument means.
std::string type_of(const std::string& name) {
    return OperatorRegistry::instance().type_of(name);
}

/// All cases to run on a device: those of the table, then random ones of each type.
std::vector<Case> collect(const Arguments& arguments, const Context& device,
                          std::vector<std::string>& failures) {
    const int random = arguments.random >= 0 ? arguments.random : device.traits().host ? 200 : 1;
    std::vector<Case> all;
    const std::vector<Case> table = load_cases(DLPRIM_CASES);
    for (const std::string& type : OperatorRegistry::instance().types()) {
        if (!arguments.type.empty() && type_of(arguments.type) != type) continue;
        // It takes no tensor that an eager call could know its device by: tests/graph has its test.
        if (type == "Constant") continue;
        const auto before = all.size();
        bool known = false;
        for (const Case& one : table) {
            known = known || type_of(one.type) == type;
            if (type_of(one.type) == type && !one.speed && arguments.cases) all.push_back(one);
        }
        if (!known) failures.push_back(type + " has no cases in tests/cases");
        if (random > 0 && !has_random_cases(type))
            failures.push_back(type + " has no random problems");
        for (int i = 0; i < random && has_random_cases(type); ++i) {
            try {
                all.push_back(random_case(type, static_cast<unsigned>(i)));
            } catch (const std::exception& error) {
                failures.push_back(type + ": random problem " + std::to_string(i) + ": " +
                                   error.what());
            }
        }
        if (arguments.sample)
            keep_sample(all, before);
        else if (arguments.name.empty())
            keep_share(all, before, share_of(device));
        if (arguments.name.empty()) continue;
        all.erase(std::remove_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                                 [&](const Case& one) { return one.name != arguments.name; }),
                  all.end());
    }
    if (arguments.parts > 1) {
        std::vector<Case> kept;
        for (std::size_t i = arguments.part; i < all.size(); i += arguments.parts)
            kept.push_back(all[i]);
        all = std::move(kept);
    }
    return all;
}

/// Checks that every engine of a device has run. If an engine could not run, the table has a gap.
/// If it could and did not, this program has a fault.
void report_unused(const Context& device, Tally& tally) {
    for (const std::string& name : EngineRegistry::instance().names()) {
        const Engine* engine = EngineRegistry::instance().find(name);
        if (engine->on_host() != device.traits().host || tally.tried.count(engine)) continue;
        // The cases are of float. storage_test and the engines' own tests cover engines of 16 bits.
        if (!engine->computes_in(Precision::fp32)) continue;
        // The engines' own tests, and those of teams, lead to it.
        if (const auto* const special = dynamic_cast<const ReachedBy*>(engine)) {
            ++tally.skips[cat("engine ", name, " is reached by ", special->reached_by(), " alone")];
            continue;
        }
        if (tally.applied.count(engine))
            tally.failures.push_back("engine " + name + " applied, but never ran");
        else if (tally.for_others.count(engine))
            ++tally.skips["engine " + name + " is for devices of another kind"];
        else
            tally.failures.push_back("engine " + name + " applied in no case of this device's");
    }
}

/// Measures the cases marked for it. Returns the number of wrong results.
std::size_t measure(const Arguments& arguments) {
    std::vector<std::string> failures;
    std::size_t measured = 0;
    for (const Context& device : test_devices()) {
        std::cout << device.info().name << ": " << device.traits().gflops << " GFLOP/s, "
                  << device.traits().gbytes_per_s << " GB/s\n";
        for (const Case& one : load_cases(DLPRIM_CASES)) {
            if (!one.speed ||
                (!arguments.type.empty() && type_of(one.type) != type_of(arguments.type)) ||
                (!arguments.name.empty() && one.name != arguments.name))
                continue;
            ++measured;
            measure_case(device, one, seed_of(one), std::cout, failures);
        }
    }
    if (measured == 0) failures.push_back("no such case is marked for speed");
    for (const std::string& failure : failures) std::cout << "FAILED " << failure << '\n';
    return failures.size();
}

}  // namespace

int main(int count, char** words) {
    const Arguments arguments = read_arguments(count, words);
    if (test_devices().empty()) {
        std::cout << "no such device here\n";
        return skipped_status;
    }
    if (arguments.speed) return measure(arguments) == 0 ? 0 : 1;
    std::vector<std::string> failures;
    for (const Context& device : test_devices()) {
        std::vector<std::string> missing;
        const std::vector<Case> cases = collect(arguments, device, missing);
        for (const std::string& failure : missing) std::cout << "FAILED " << failure << '\n';
        failures.insert(failures.end(), missing.begin(), missing.end());
        Tally tally;
        std::string type;
        auto start = std::chrono::steady_clock::now();
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        };
        for (std::size_t i = 0; i < cases.size(); ++i) {
            const int before = tally.runs;
            const auto failed = tally.failures.size();
            start = std::chrono::steady_clock::now();
            check_case(device, cases[i], seed_of(cases[i]), arguments.precision, tally);
            if (arguments.verbose)
                std::cout << cases[i].title() << ": " << tally.runs - before << " runs, "
                          << seconds() << " s" << std::endl;
            for (std::size_t k = failed; k < tally.failures.size(); ++k)
                std::cout << "FAILED " << device.info().name << ": " << tally.failures[k]
                          << "\n    options " << cases[i].options << ", inputs" <<
                    [&] {
                        std::string text;
                        for (const CaseTensor& input : cases[i].inputs)
                            text += ' ' + input.shape.str();
                        return text;
                    }() << std::endl;
        }
        const bool whole = arguments.cases && !arguments.sample && arguments.type.empty() &&
                           arguments.name.empty() && arguments.parts == 1;
        const auto failed = tally.failures.size();
        if (whole) report_unused(device, tally);
        for (std::size_t k = failed; k < tally.failures.size(); ++k)
            std::cout << "FAILED " << device.info().name << ": " << tally.failures[k] << '\n';
        if (arguments.verbose)
            for (const auto& [engine, plans] : tally.tried)
                std::cout << engine->name() << ": in " << plans << " plans\n";
        for (const auto& [reason, times] : tally.skips)
            std::cout << "skipped " << times << ": " << reason << '\n';
        std::cout << device.info().name << ": " << tally.cases << " cases, " << tally.runs
                  << " runs, " << tally.tried.size() << " engines, " << tally.failures.size()
                  << " failures\n";
        failures.insert(failures.end(), tally.failures.begin(), tally.failures.end());
    }
    return failures.empty() ? 0 : 1;
}
