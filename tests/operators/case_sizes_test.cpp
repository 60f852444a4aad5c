// SPDX-License-Identifier: MIT
// Cases of the table at other sizes: whether an operator compiles anything after two sizes, and
// whether its results are the oracle's.
//
//   case_sizes_test [--type TYPE] [--case NAME] [--sizes N] [--part I/N] [--strict] [-v]
//
// A case is run with N random sizes (10 if not said) of its batch, then of the other dimensions
// that its inputs share with the first one. Where the operator refuses a size, as options name
// another one, that size is left out. The first two are those that may compile: the smallest one,
// and the largest. -v names each size that compiled, and --strict fails if one
// did.
#include "support/cases.hpp"
#include "support/devices.hpp"

#include "base/text.hpp"
#include "exec/operator_check.hpp"

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>

using namespace dlprim;

namespace {

struct Arguments {
    std::string type, name;
    int sizes = 10;
    std::size_t part = 0, parts = 1;
    bool strict = false, verbose = false;
};

[[noreturn]] void usage() {
    std::cerr << "usage: case_sizes_test [--type TYPE] [--case NAME] [--sizes N] [--part I/N] "
                 "[--strict] [-v]\n";
    std::exit(2);
}

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "-v" || word == "--strict") {
            (word == "-v" ? arguments.verbose : arguments.strict) = true;
            continue;
        }
        if (++i == argc) usage();
        const std::string value = argv[i];
        if (word == "--type")
            arguments.type = value;
        else if (word == "--case")
            arguments.name = value;
        else if (word == "--sizes")
            arguments.sizes = std::atoi(value.c_str());
        else if (word == "--part" && value.find('/') != std::string::npos) {
            arguments.part = std::strtoul(value.c_str(), nullptr, 10);
            arguments.parts = std::strtoul(value.c_str() + value.find('/') + 1, nullptr, 10);
        } else
            usage();
    }
    return arguments;
}

/// Which dimensions of the inputs change together.
struct Way {
    const char* name;
    std::size_t first, last;  ///< dimensions of inputs of the first one's rank
};

std::vector<Way> ways_of(const Case& one) {
    if (one.inputs.empty() || one.inputs[0].shape.rank() == 0) return {};
    const auto rank = static_cast<std::size_t>(one.inputs[0].shape.rank());
    std::vector<Way> ways{{"batch", 0, 1}};
    if (rank >= 4) ways.push_back({"image", 2, rank});
    if (rank == 3) ways.push_back({"length", 1, 2});
    return ways;
}

/// The case with `size` in place of these dimensions of the first input, and of the equal ones of
/// others.
Case resized(const Case& one, const Way& way, std::int64_t size) {
    Case changed = one;
    for (std::size_t d = way.first; d < way.last; ++d) {
        const std::int64_t from = one.inputs[0].shape[static_cast<int>(d)];
        for (CaseTensor& input : changed.inputs) {
            std::vector<std::int64_t> dims = input.shape.to_vector();
            if (d < dims.size() && dims[d] == from) dims[d] = size;
            input.shape = Shape(dims);
        }
    }
    return changed;
}

std::uint64_t programs_of(const Context& device) {
    device.finish();
    const Counters now = device.counters();
    return now.compiles + now.cache_hits;
}

struct Tally {
    int ways = 0, sizes = 0, compiled = 0, ways_compiled = 0;
    std::vector<std::string> failures;
};

/// Runs a case forward and backward. Returns false if the operator refuses it.
bool run(const Context& device, const Case& one, Tally& tally) {
    try {
        OperatorCheck check(device, one, seed_of(one));
        for (const bool backward : {false, true}) {
            if (backward && !one.gradient) continue;
            for (const std::string& fault : check.run({.backward = backward}).faults)
                tally.failures.push_back(cat(one.title(), ": ", fault));
        }
        return true;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::invalid_argument) return false;
        tally.failures.push_back(cat(one.title(), ": ", error.what()));
        return false;
    }
}

void check_way(const Context& device, const Case& one, const Way& way, const Arguments& arguments,
               Tally& tally) {
    const std::int64_t most = 24;
    std::mt19937 random(seed_of(one));
    std::vector<std::int64_t> sizes{2, most};
    for (int i = 0; i < arguments.sizes; ++i)
        sizes.push_back(2 + static_cast<std::int64_t>(random() % (most - 1)));
    int ran = 0, compiled = 0;
    for (const std::int64_t size : sizes) {
        const std::uint64_t before = programs_of(device);
        if (!run(device, resized(one, way, size), tally)) continue;
        if (++ran <= 2) continue;
        ++tally.sizes;
        const std::uint64_t made = programs_of(device) - before;
        if (made == 0) continue;
        ++compiled;
        if (arguments.verbose)
            std::cout << one.title() << ", " << way.name << ' ' << size << ": " << made
                      << " programs\n";
    }
    if (ran <= 2) return;
    ++tally.ways;
    tally.compiled += compiled;
    tally.ways_compiled += compiled > 0;
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    const std::vector<Case> cases = testing::load_cases(DLPRIM_CASES);
    int failed = 0;
    for (const Context& device : testing::test_devices()) {
        std::map<std::string, Tally> tallies;
        std::size_t number = 0;
        for (const Case& one : cases) {
            if (!arguments.type.empty() && one.type != arguments.type) continue;
            if (!arguments.name.empty() && one.name != arguments.name) continue;
            if (number++ % arguments.parts != arguments.part) continue;
            for (const Way& way : ways_of(one))
                check_way(device, one, way, arguments, tallies[one.type]);
        }
        for (const auto& [type, tally] : tallies) {
            if (tally.ways > 0)
                std::cout << type << ": " << tally.ways << " cases and dimensions, "
                          << tally.ways_compiled << " of which compiled, " << tally.compiled
                          << " of " << tally.sizes << " sizes\n";
            for (const std::string& failure : tally.failures) std::cout << "  " << failure << '\n';
            failed += static_cast<int>(tally.failures.size());
            if (arguments.strict) failed += tally.compiled;
        }
    }
    return failed == 0 ? 0 : 1;
}
