// SPDX-License-Identifier: MIT
// Every case of the table at other sizes: a size after the first two compiles nothing, and its
// results are the oracle's and, bit by bit, those of a fresh plan.
//
//   case_sizes_test [--type TYPE] [--case NAME] [--sizes N] [--part I/N] [--results] [--table] [-v]
//
// A case is run on a context of its own with N random sizes (6 if not said) of its batch, then of
// its rows, its columns and its image, and the other inputs follow where they have the same size.
// A size that the operator refuses, because options name another one, is left out. The smallest and
// the largest size come first, and these may compile. The last one is compared with a fresh context
// bit by bit, and all with a context that runs them in the reverse order, after other cases: there
// is none whose results depend on what ran before. With --results, results and bits alone count:
// engines are chosen by estimates of the processor, so which sizes compile differs between
// processors, and cases that are listed are those of one with AVX-512. --table prints rows of
// Markdown, to which -v adds each failure.
#include "support/cases.hpp"
#include "support/devices.hpp"

#include "base/text.hpp"
#include "exec/operator_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

using namespace dlprim;

namespace {

/// Cases that do not hold yet on OpenCL devices. They are tried with `listed_sizes` sizes until one
/// of these does not hold. If all hold, the test fails, so that nothing stays here without need.
struct Listed {
    const char* title;
    const char* reason;  ///< a sentence
};
constexpr int listed_sizes = 50;
constexpr const char* few_pixels =
    "Images and gradients of few pixels are computed by another engine, such as conv2d.reference.";
constexpr const char* product_engines =
    "Products on CPUs are computed by matmul.dot, matmul.vector or matmul.cache_blocked, whichever "
    "is the fastest for the size. Each has one program.";
constexpr const char* cancels =
    "A sum of numbers of both signs nearly cancels, and errors are relative to what remains.";
constexpr const char* blocks =
    "Small images are pooled as they are, and large ones after a copy to blocks of channels.";
constexpr const char* transposed =
    "Large images are convolved in blocks of channels, and small ones by another engine or "
    "layout.";
const Listed listed[] = {
    {"Attention/cross", product_engines},
    {"Attention/gqa", product_engines},
    {"Attention/gqa_masks", product_engines},
    {"Attention/one_element", cancels},
    {"Convolution2D/depthwise_multiplier", few_pixels},
    {"Convolution2D/patches", few_pixels},
    {"Convolution2D/patches_uneven", few_pixels},
    {"Convolution2D/whole_image", few_pixels},
    {"GRU/one_step_states", product_engines},
    {"GridSample/one_element", cancels},
    {"InnerProduct/inputs_given", product_engines},
    {"InnerProduct/no_bias", product_engines},
    {"InnerProduct/relu", product_engines},
    {"InnerProduct/second_axis_relu", product_engines},
    {"InnerProduct/tanh", product_engines},
    {"MatMul/bfloat16", product_engines},
    {"MatMul/seventeen_rows_transposed_b", product_engines},
    {"MatMul/tile_plus_one", product_engines},
    {"MaxPooling2D/basic", blocks},
    {"MaxPooling2D/ceil", blocks},
    {"MaxPooling2D/large_window", blocks},
    {"MaxPooling2D/one_side", blocks},
    {"MaxPooling2D/padded", blocks},
    {"NLLLoss/sum", cancels},
    {"Pooling2D/odd_plane_channels", blocks},
    {"Reduction/mean_all_dropped", cancels},
    {"TransposedConvolution2D/basic", transposed},
    {"TransposedConvolution2D/empty_batch", transposed},
    {"TransposedConvolution2D/groups", transposed},
    {"TransposedConvolution2D/one_element", cancels},
    {"TransposedConvolution2D/pad", transposed},
    {"TransposedConvolution2D/relu", transposed},
    {"TransposedConvolution2D/stride2_output_pad", transposed},
    {"TransposedConvolutionND/image", transposed},
    {"TransposedConvolutionND/line", transposed},
    {"TransposedConvolutionND/one_element", cancels},
};

const Listed* find_listed(const Case& one) {
    for (const Listed& each : listed)
        if (one.title() == each.title) return &each;
    return nullptr;
}

struct Arguments {
    std::string type, name;
    int sizes = 6;
    std::size_t part = 0, parts = 1;
    bool table = false, verbose = false;
    bool results = false;  ///< whether programs do not count
};

[[noreturn]] void usage() {
    std::cerr << "usage: case_sizes_test [--type TYPE] [--case NAME] [--sizes N] [--part I/N] "
                 "[--results] [--table] [-v]\n";
    std::exit(2);
}

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "-v" || word == "--table" || word == "--results") {
            (word == "-v"        ? arguments.verbose
             : word == "--table" ? arguments.table
                                 : arguments.results) = true;
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
    if (arguments.parts == 0) usage();
    return arguments;
}

/// Which dimensions of the first input change together.
struct Way {
    const char* name;
    int first, last;
};

std::vector<Way> ways_of(const Case& one) {
    if (one.inputs.empty()) return {};
    const int rank = one.inputs[0].shape.rank();
    std::vector<Way> ways;
    if (rank >= 1) ways.push_back({"batch", 0, 1});
    if (rank >= 3) ways.push_back({"rows", rank - 2, rank - 1});
    if (rank >= 2) ways.push_back({"columns", rank - 1, rank});
    if (rank >= 4) ways.push_back({"image", 2, rank});
    return ways;
}

using Dims = std::vector<std::int64_t>;

/// The smallest and the largest sizes, then so many others, each once. Dimensions of images differ.
/// Large inputs get smaller sizes or none, because oracles take their time.
std::vector<Dims> draw_sizes(const Shape& shape, const Way& way, unsigned seed, int count) {
    const auto dims = static_cast<std::size_t>(way.last - way.first);
    std::int64_t rest = 1;
    for (int d = 0; d < shape.rank(); ++d)
        if (d < way.first || d >= way.last) rest *= std::max<std::int64_t>(shape[d], 1);
    if (rest > 16384) return {};
    const std::int64_t least = 2;
    const double fits = std::pow(262144 / rest, 1 / static_cast<double>(dims));
    const auto most =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(fits), 4, dims == 1 ? 64 : 20);
    std::vector<Dims> sizes{Dims(dims, least), Dims(dims, most)};
    std::mt19937 random(seed);
    for (int tries = 0; tries < 20 * count && static_cast<int>(sizes.size()) < count + 2; ++tries) {
        Dims size;
        for (std::size_t d = 0; d < dims; ++d)
            size.push_back(least + static_cast<std::int64_t>(random() % (most - least + 1)));
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    }
    return sizes;
}

/// The case with `sizes` in place of these dimensions of the first input, and of the equal ones of
/// others. Inputs of a lower rank follow where their last dimensions are the first one's, or, in
/// the batch, their first ones.
Case resized(const Case& one, const Way& way, const Dims& sizes) {
    Case changed = one;
    const Shape& shape = one.inputs[0].shape;
    for (CaseTensor& input : changed.inputs) {
        std::vector<std::int64_t> dims = input.shape.to_vector();
        const int behind = way.first == 0 ? 0 : shape.rank() - static_cast<int>(dims.size());
        for (int d = way.first; d < way.last; ++d) {
            const int at = d - behind;
            if (at < 0 || at >= static_cast<int>(dims.size())) continue;
            std::int64_t& dim = dims[static_cast<std::size_t>(at)];
            if (dim == shape[d]) dim = sizes[static_cast<std::size_t>(d - way.first)];
        }
        const double growth = static_cast<double>(Shape(dims).numel()) /
                              static_cast<double>(std::max<std::int64_t>(input.shape.numel(), 1));
        input.shape = Shape(dims);
        // Networks' weights get smaller with the sums over them, else a sigmoid is 1 in float.
        if (way.first == 0 || input.fill != "normal" || growth <= 1) continue;
        input.fill = "uniform";
        input.max = std::sqrt(3 / growth);
        input.min = -input.max;
    }
    return changed;
}

std::uint64_t programs_of(const Context& device) {
    device.finish();
    const Counters now = device.counters();
    return now.compiles + now.cache_hits;
}

/// What became of the cases of an operator, or of one of them.
struct Tally {
    int cases = 0, sizes = 0, compiled = 0, differing = 0, wrong = 0;
    std::size_t unlisted = 0;  ///< failures of cases that are not listed
    std::vector<std::string> failures;

    void add(const Tally& other) {
        cases += other.cases;
        sizes += other.sizes;
        compiled += other.compiled;
        differing += other.differing;
        wrong += other.wrong;
        unlisted += other.unlisted;
        failures.insert(failures.end(), other.failures.begin(), other.failures.end());
    }
    bool holds() const { return compiled == 0 && differing == 0 && wrong == 0; }
};

using Results = std::vector<std::vector<std::byte>>;

/// A case of one size, and what it computed first: results, then gradients.
struct Sized {
    std::unique_ptr<Case> one;
    std::string title;
    std::unique_ptr<OperatorCheck> check = nullptr;
    std::vector<Results> results = {};
    std::set<const Engine*> engines = {};  ///< that computed them
};

/// Results on `device`, then gradients.
std::vector<Results> results_on(const Context& device, Sized& sized,
                                std::vector<std::string>& faults) {
    std::vector<Results> results;
    for (const bool backward : {false, true}) {
        if (backward && !sized.one->gradient) continue;
        OperatorCheck::Call call{.backward = backward};
        call.upload = [&](const HostArray& array, unsigned) { return upload(device, array); };
        const OperatorCheck::Outcome outcome = sized.check->run(call);
        results.push_back(outcome.results);
        sized.engines.insert(outcome.used.begin(), outcome.used.end());
        faults.insert(faults.end(), outcome.faults.begin(), outcome.faults.end());
    }
    return results;
}

/// Fills in results. They remain empty if the operator refuses the case.
void compute(const Context& device, Sized& sized, Tally& tally) {
    std::vector<std::string> faults;
    try {
        sized.results = results_on(device, sized, faults);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::invalid_argument) return;
        faults.emplace_back(error.what());
    }
    tally.wrong += !faults.empty();
    for (const std::string& fault : faults) tally.failures.push_back(cat(sized.title, ": ", fault));
}

/// The sizes that the operator accepts, with the data and the oracle's results.
std::vector<Sized> sized_cases(const Context& device, const Case& one, const Way& way, int count) {
    std::vector<Sized> all;
    for (const Dims& sizes : draw_sizes(one.inputs[0].shape, way, seed_of(one), count)) {
        auto changed = std::make_unique<Case>(resized(one, way, sizes));
        try {
            auto check = std::make_unique<OperatorCheck>(device, *changed, seed_of(one));
            all.push_back({std::move(changed),
                           cat(one.title(), ", ", way.name, ' ', Shape(sizes).str()),
                           std::move(check)});
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::invalid_argument) throw;
        }
    }
    return all;
}

/// Compares with the bits that `device` computes.
void compare_bits(const Context& device, Sized& sized, Tally& tally) {
    std::vector<std::string> faults;
    if (results_on(device, sized, faults) == sized.results) return;
    ++tally.differing;
    tally.failures.push_back(cat(sized.title, ": other bits than those of another plan"));
}

/// The engines that computed this size and none before, in brackets.
std::string new_engines(const Sized& sized, const std::set<const Engine*>& before) {
    std::string names;
    for (const Engine* engine : sized.engines)
        if (before.count(engine) == 0)
            names += cat(names.empty() ? " (first of " : ", ", engine->name());
    return names.empty() ? names : names + ')';
}

Tally check_way(const Context& device, const Case& one, const Way& way, const Context& other,
                int sizes) {
    const Context used(device.info().id);
    Tally tally;
    std::set<const Engine*> engines;
    std::vector<Sized> all = sized_cases(device, one, way, sizes);
    int ran = 0;
    for (Sized& sized : all) {
        const std::uint64_t before = programs_of(used);
        compute(used, sized, tally);
        if (sized.results.empty()) continue;
        const auto made = static_cast<int>(programs_of(used) - before);
        if (++ran > 2) {
            ++tally.sizes;
            tally.compiled += made;
            if (made > 0)
                tally.failures.push_back(
                    cat(sized.title, ": ", made, " programs", new_engines(sized, engines)));
        }
        engines.insert(sized.engines.begin(), sized.engines.end());
    }
    std::erase_if(all, [](const Sized& sized) { return sized.results.empty(); });
    if (!all.empty()) compare_bits(Context(device.info().id), all.back(), tally);
    std::reverse(all.begin(), all.end());
    for (Sized& sized : all) compare_bits(other, sized, tally);
    tally.cases = tally.sizes > 0;
    return tally;
}

/// Tries a case in all ways, or a listed one until something does not hold.
Tally check_case(const Context& device, const Case& one, const Context& other,
                 const Arguments& arguments) {
    const Listed* const known = device.traits().host ? nullptr : find_listed(one);
    Tally tally;
    for (const Way& way : ways_of(one)) {
        tally.add(check_way(device, one, way, other, known ? listed_sizes : arguments.sizes));
        if (known && !arguments.table && !tally.holds()) break;
    }
    if (arguments.results) {
        tally.unlisted = known == nullptr ? tally.differing + tally.wrong : 0;
    } else if (known == nullptr) {
        tally.unlisted = tally.failures.size();
    } else if (tally.holds()) {
        tally.unlisted = 1;
        tally.failures.push_back(cat(one.title(),
                                     " holds. Remove it from the list of cases that "
                                     "do not: ",
                                     known->reason));
    } else {
        tally.failures.push_back(cat(one.title(), " is listed: ", known->reason));
    }
    return tally;
}

void print(const std::string& type, const Tally& tally, const Arguments& arguments) {
    if (arguments.table)
        std::cout << "| " << type << " | " << tally.cases << " | " << tally.sizes << " | "
                  << tally.compiled << " | " << tally.differing << " | " << tally.wrong << " |\n";
    else
        std::cout << type << ": " << tally.cases << " cases and dimensions, " << tally.sizes
                  << " sizes, " << tally.compiled << " programs, " << tally.differing
                  << " with other bits, " << tally.wrong << " wrong\n";
    if (!arguments.table || arguments.verbose)
        for (const std::string& failure : tally.failures) std::cout << "  " << failure << '\n';
    std::cout << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    std::map<std::string, std::vector<Case>> types;
    std::size_t number = 0;
    for (const Case& one : testing::load_cases(DLPRIM_CASES)) {
        if (!arguments.type.empty() && one.type != arguments.type) continue;
        if (!arguments.name.empty() && one.name != arguments.name) continue;
        if (one.speed) continue;
        if (number++ % arguments.parts == arguments.part) types[one.type].push_back(one);
    }
    if (arguments.table)
        std::cout << "| operator | cases and dimensions | sizes | programs after the second | "
                     "other bits | wrong |\n|---|---:|---:|---:|---:|---:|\n";
    std::size_t failures = 0;
    for (const Context& device : testing::test_devices()) {
        for (const auto& [type, cases] : types) {
            Tally tally;
            const Context other(device.info().id);
            for (const Case& one : cases) tally.add(check_case(device, one, other, arguments));
            print(type, tally, arguments);
            failures += tally.unlisted;
        }
    }
    return failures == 0 ? 0 : 1;
}
