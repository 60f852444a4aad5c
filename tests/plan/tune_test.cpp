// SPDX-License-Identifier: MIT
// The tuner with engines that promise too much. An engine whose results are wrong, or only as exact
// as tf32, is not used, whatever its estimate. A problem that is not finished in time is not
// stored.
#include "plan/tune.hpp"
#include "check/compare.hpp"
#include "engine/database.hpp"
#include "engine/engine.hpp"
#include "engine/launch.hpp"
#include "graph/operator.hpp"
#include "plan/bench.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <dlprim/net.hpp>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

enum class Makes { what_is_right, zeros, eleven_bits, nothing };

/// What the engine below does: to which output, and in how many variants.
struct Script {
    std::string op;  ///< empty: it applies to no operator
    Makes makes = Makes::what_is_right;
    std::size_t output = 0;
    int variants = 1;
};
Script script;

class Play : public Launch {
  public:
    Play(std::unique_ptr<Launch> right, const Problem& problem) : right_(std::move(right)) {
        for (const Operand& output : problem.outputs)
            elements_.push_back(static_cast<std::size_t>(output.shape.numel()));
        inputs_ = problem.inputs.size();
    }
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        if (script.makes == Makes::nothing) return;
        right_->enqueue(queue, operands);
        if (script.makes == Makes::what_is_right) return;
        std::vector<float> values(elements_.at(script.output));
        const BufferRef& output = operands[inputs_ + script.output];
        queue.read(output, values.data(), values.size() * sizeof(float), true);
        for (float& value : values) {
            int exponent = 0;
            const float share = std::frexp(value, &exponent);
            const bool zeros = script.makes == Makes::zeros;
            value = zeros ? 0 : std::ldexp(std::round(share * 2048) / 2048, exponent);
        }
        queue.write(output, values.data(), values.size() * sizeof(float), true);
    }

  private:
    std::unique_ptr<Launch> right_;
    std::size_t inputs_ = 0;
    std::vector<std::size_t> elements_;
};

/// The fastest engine by its own estimate. It uses the last one that applies, the reference, and is
/// registered before it.
class Favourite : public Engine {
  public:
    Favourite(std::string_view op, bool on_host)
        : Engine("favourite." + std::string(op) + (on_host ? "_host" : ""), op, on_host) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return script.op == op() && problem.outputs.size() > script.output
                   ? Verdict::yes()
                   : Verdict::no("it is not under test");
    }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return 1e-12; }
    TuneSpace tune_space(const Traits&, const Problem&) const override {
        TuneSpace space;
        for (int i = 0; i < script.variants; ++i) space["variant"].push_back(i);
        return space;
    }
    Tuning default_tuning(const Traits&, const Problem&) const override { return {{"variant", 0}}; }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const auto engines = EngineRegistry::instance().of(op(), on_host());
        const auto right =
            std::find_if(engines.rbegin(), engines.rend(), [&](const Engine* engine) {
                return engine != this && engine->is_applicable(context.traits(), problem).ok;
            });
        const Tuning tuning = (*right)->default_tuning(context.traits(), problem);
        return std::make_unique<Play>((*right)->build(context, problem, tuning), problem);
    }
};

/// Registered before any device is opened, and therefore before the library registers its own
/// engines.
const bool registered = [] {
    for (const char* const op : {"Convolution2D", "Pointwise"})
        for (const bool on_host : {false, true})
            EngineRegistry::instance().add(std::make_unique<Favourite>(op, on_host));
    return true;
}();

const char* const convolution = R"({
  "inputs": [{"name": "x", "shape": [2, 8, 12, 12]}], "outputs": ["y"],
  "operators": [{"name": "conv", "type": "Convolution2D", "inputs": ["x"], "outputs": ["y"],
                 "options": {"channels_out": 16, "kernel": 3, "pad": 1}}]})";
const char* const two_outputs = R"({
  "inputs": [{"name": "x", "shape": [4, 100]}], "outputs": ["a", "b"],
  "operators": [{"name": "both", "type": "Pointwise", "inputs": ["x"], "outputs": ["a", "b"],
                 "options": {"code": "y0 = x0 * 2; y1 = x0 + 1"}}]})";

struct Tuned {
    std::set<std::string> engines;  ///< in the database
    std::string notes;
    std::vector<std::string> progress;
};

/// Tunes a network for a batch for which no other test has tuned it, because the database is read
/// only once. Each candidate takes `pause` seconds longer.
Tuned tune(const Context& device, const char* net, double seconds = 60, double pause = 0) {
    static const auto path =
        std::filesystem::temp_directory_path() / ("dlprim_tune_" + std::to_string(getpid()));
    static std::int64_t batch = 1;
    setenv("DLPRIM_TUNING", path.c_str(), 1);
    std::filesystem::remove(path);
    Tuned tuned;
    NetOptions options;
    options.batch = ++batch;
    options.tune_seconds = seconds;
    options.progress = [&](std::string_view what, int, int) {
        if (!what.starts_with("tuning")) return;
        tuned.progress.emplace_back(what);
        std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    };
    Net made = Net::from_json(device, net, options);
    for (const std::string& note : made.notes()) tuned.notes += note + '\n';
    for (const DatabaseRow& row : load_database(path)) tuned.engines.insert(row.row.engine);
    std::filesystem::remove(path);
    return tuned;
}

std::size_t favourites(const std::set<std::string>& engines) {
    return static_cast<std::size_t>(
        std::count_if(engines.begin(), engines.end(),
                      [](const std::string& name) { return name.starts_with("favourite."); }));
}

/// Sets the script during its lifetime.
struct Act {
    explicit Act(Script how) { script = std::move(how); }
    ~Act() { script = {}; }
    Act(const Act&) = delete;
    Act& operator=(const Act&) = delete;
};

}  // namespace

#define ON_EVERY_DEVICE(device)                  \
    for (const Context& device : test_devices()) \
    DYNAMIC_SECTION("on " << device.info().id << " (" << device.info().name << ")")

TEST_CASE("a favourite that is wrong does not count, and others do") {
    REQUIRE(registered);
    const Makes makes = GENERATE(Makes::zeros, Makes::eleven_bits, Makes::nothing);
    ON_EVERY_DEVICE(device) {
        const Act act({"Convolution2D", makes});
        const Tuned tuned = tune(device, convolution);
        INFO(tuned.notes);
        CHECK(favourites(tuned.engines) == 0);
        CHECK_FALSE(tuned.engines.empty());
        CHECK(tuned.notes.find("tuned 1 problem") != std::string::npos);
        CHECK(tuned.notes.find("favourite.Convolution2D") != std::string::npos);
        CHECK(tuned.notes.find("are wrong") != std::string::npos);
        // The other engines agree with the reference and with each other.
        CHECK(tuned.notes.find("conv2d.") == std::string::npos);
    }
}

TEST_CASE("a favourite that is right counts") {
    ON_EVERY_DEVICE(device) {
        const Act act({"Convolution2D", Makes::what_is_right});
        const Tuned tuned = tune(device, convolution);
        INFO(tuned.notes);
        CHECK(favourites(tuned.engines) == 1);
        CHECK(tuned.notes.find("are wrong") == std::string::npos);
    }
}

TEST_CASE("a second output that is wrong does not count") {
    const Makes makes = GENERATE(Makes::what_is_right, Makes::zeros);
    ON_EVERY_DEVICE(device) {
        const Act act({"Pointwise", makes, 1});
        const Tuned tuned = tune(device, two_outputs);
        INFO(tuned.notes);
        CHECK(favourites(tuned.engines) == (makes == Makes::zeros ? 0 : 1));
        CHECK(tuned.engines.size() == favourites(tuned.engines) + 1);
    }
}

TEST_CASE("the tuner's tolerance of float lets no rounding to 11 bits pass") {
    // For both factors the error is at most 2^-12 each, evenly distributed.
    CHECK(allowed_error(DType::f32) < 0.1 * 0x1p-12);
}

TEST_CASE("a deadline within a problem ends it, and leaves nothing half known") {
    ON_EVERY_DEVICE(device) {
        const Act act({"Convolution2D", Makes::what_is_right, 0, 60});
        const Tuned tuned = tune(device, convolution, 0.5, 0.1);
        INFO(tuned.notes);
        CHECK(tuned.engines.empty());
        CHECK(tuned.notes.find("tuned 0 problems") != std::string::npos);
        CHECK(tuned.notes.find("too short for 1 of 1 problems; give it more time") !=
              std::string::npos);
        CHECK(tuned.progress.size() <= 5);  // of more than 60
    }
}

TEST_CASE("progress tells of each candidate") {
    ON_EVERY_DEVICE(device) {
        const Act act({"Convolution2D", Makes::what_is_right, 0, 3});
        const Tuned tuned = tune(device, convolution);
        REQUIRE(tuned.progress.size() >= 3);
        const std::string of = " of " + std::to_string(tuned.progress.size());
        CHECK(tuned.progress.front() == "tuning conv, 1" + of);
        CHECK(tuned.progress.back() ==
              "tuning conv, " + std::to_string(tuned.progress.size()) + of);
    }
}

TEST_CASE("notes name a node that a reference engine computes, unless the user asked for it") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        // Enough work for a note, even on a fast device.
        std::string large = convolution;
        large.replace(large.find("[2, 8, 12, 12]"), 14, "[2, 256, 56, 56]");
        // Other engines for convolutions need larger work-groups.
        setenv("DLPRIM_TRAITS", "wide_vectors=0,max_work_group=1", 1);
        const Context small(device.info().id);
        unsetenv("DLPRIM_TRAITS");
        for (const bool forced : {false, true}) {
            NetOptions options;
            if (forced) options.engines = {{"conv", "conv2d.reference"}};
            std::string notes;
            for (const std::string& note : Net::from_json(small, large, options).notes())
                notes += note + '\n';
            INFO(notes);
            CHECK((notes.find("[Convolution2D 'conv'] is expected to take ") !=
                   std::string::npos) == !forced);
            CHECK((notes.find("conv2d.reference") == std::string::npos) == forced);
        }
    }
}

TEST_CASE("an engine that offers more than the most is told so") {
    ON_EVERY_DEVICE(device) {
        for (const int variants : {100, 101}) {
            const Act act({"Convolution2D", Makes::what_is_right, 0, variants});
            const bool host = device.traits().host;
            Problem problem;
            problem.op = "Convolution2D";
            problem.outputs.resize(1);
            const auto engines = EngineRegistry::instance().of("Convolution2D", host);
            if (variants == 100) {
                CHECK(tunings_of(*engines[0], device.traits(), problem).size() == 100);
                continue;
            }
            CHECK_THROWS_WITH(tunings_of(*engines[0], device.traits(), problem),
                              ContainsSubstring("favourite.Convolution2D") &&
                                  ContainsSubstring("101 tunings") && ContainsSubstring("100"));
        }
    }
}
