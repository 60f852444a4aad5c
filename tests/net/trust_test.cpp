// SPDX-License-Identifier: MIT
// Engines that compute something wrong: checks find that out before a network or an eager call uses
// them, the next engine takes their place, and what was found is remembered.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "net/eager_support.hpp"

#include <dlprim/diagnosis.hpp>
#include <dlprim/ops.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>

#include <unistd.h>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// What the engines below do, and how often they have run.
struct Lies {
    bool apply = false;
    int launches = 0;
};
Lies lies;

/// Writes ones.
class OnesLaunch : public Launch {
  public:
    explicit OnesLaunch(std::uint64_t bytes) : bytes_(bytes) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        ++lies.launches;
        const float one = 1;
        queue.fill(operands[operands.size() - 1], bytes_, &one, sizeof(one));
    }

  private:
    std::uint64_t bytes_;
};

/// An engine that promises to be the fastest by far, and is wrong.
class Liar : public Engine {
  public:
    Liar(std::string name, bool on_host) : Engine(std::move(name), "InnerProduct", on_host) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return lies.apply && problem.outputs[0].dtype == DType::f32
                   ? Verdict::yes()
                   : Verdict::no("it is not under test");
    }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return -1; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<OnesLaunch>(
            static_cast<std::uint64_t>(problem.outputs[0].shape.numel()) * 4);
    }
};

/// Other names than in earlier runs of this program, which are in the cache.
const std::string liar = cat("inner_product.liar", ::getpid());

/// Lets the engines apply during its lifetime. They are registered first, so that the library's
/// engines stay the last ones, with which others are compared.
class Lie {
  public:
    Lie() {
        static const bool once = [] {
            auto& engines = EngineRegistry::instance();
            engines.add(std::make_unique<Liar>(liar, false));
            engines.add(std::make_unique<Liar>(liar + "_host", true));
            OperatorRegistry::instance();  // registers the library's engines
            return true;
        }();
        (void)once;
        lies = {true, 0};
    }
    ~Lie() { lies = {}; }
    Lie(const Lie&) = delete;
    Lie& operator=(const Lie&) = delete;
};

std::string net_text(std::int64_t features) {
    return cat(R"({"inputs": [{"name": "x", "shape": [8, )", features, R"(]}], "outputs": ["y"],
    "operators": [{"name": "y", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"],
                   "options": {"outputs": 6}}]})");
}

/// The outputs for an input that changes from element to element, and the net's notes.
struct Run {
    std::vector<float> y;
    std::string notes, engine;
};

Run run(const std::string& device, std::int64_t samples = 8, std::int64_t features = 5) {
    const Context context(device);
    NetOptions options;
    options.batch = samples;
    Net net = Net::from_json(context, net_text(features), options);
    net.initialize();
    std::vector<float> x(static_cast<std::size_t>(features * samples));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
    net.input("x").copy_from_host(x.data(), x.size() * 4);
    net.forward();
    Run done;
    done.y.resize(static_cast<std::size_t>(6 * samples));
    net.output("y").copy_to_host(done.y.data(), done.y.size() * 4);
    for (const std::string& note : net.notes()) done.notes += note + '\n';
    for (const NodeReport& node : net.nodes())
        if (node.type == "InnerProduct") done.engine = node.engine;
    return done;
}

}  // namespace

TEST_CASE("an engine that is wrong is not used", "[trust]") {
    { const Lie first; }  // registers before any device is opened
    for (const Context& device : test_devices()) {
        INFO(device.info().str());
        const std::string id = device.info().id;
        const Run honest = run(id);
        const Lie lie;
        const std::string name = device.traits().host ? liar + "_host" : liar;
        {
            const Warnings warnings;
            const Run checked = run(id);
            CHECK(checked.y == honest.y);
            CHECK(checked.engine == honest.engine);
            CHECK(checked.notes.find(cat("engine ", name, " is not used")) != std::string::npos);
            CHECK(checked.notes.find("its results are wrong") != std::string::npos);
            CHECK(lies.launches >= 1);
            bool logged = false;
            for (const std::string& line : warnings.lines)
                logged = logged || line.find(cat("engine ", name, " is disabled: ")) == 0;
            CHECK(logged);
        }
        // Another context remembers, and chooses the same.
        const int before = lies.launches;
        const Run again = run(id);
        CHECK(again.y == honest.y);
        CHECK(again.engine == honest.engine);
        CHECK(lies.launches == before);
        // More samples are checked by the same two.
        CHECK(run(id, 9).engine == honest.engine);
        CHECK(lies.launches == before);
        ::setenv("DLPRIM_TRUST", "0", 1);
        const Run unchecked = run(id);
        ::unsetenv("DLPRIM_TRUST");
        CHECK(unchecked.engine == name);
        CHECK(unchecked.y == std::vector<float>(48, 1.0f));
    }
}

TEST_CASE("a check on the host covers sizes of one class", "[trust]") {
    { const Lie first; }
    const std::string honest = run("cpu", 8, 36).engine;
    const Lie lie;
    CHECK(run("cpu", 8, 36).engine == honest);
    const int launches = lies.launches;
    CHECK(launches >= 1);
    // Numbers of six bits that 4 divides, and no larger power of two.
    for (const std::int64_t same : {44, 52, 60}) CHECK(run("cpu", 8, same).engine == honest);
    CHECK(lies.launches == launches);
    int before = launches;
    for (const std::int64_t other : {35, 40, 68}) {
        CHECK(run("cpu", 8, other).engine == honest);
        CHECK(lies.launches > before);
        before = lies.launches;
    }
}

TEST_CASE("the only engine that reads integers is not distrusted for zeros", "[trust]") {
    // Zeros are no valid indices for the gradient of a maximum pooling, of which there is one
    // engine.
    constexpr const char* text = R"({"inputs": [{"name": "x", "shape": [1, 2, 9, 5]}],
        "outputs": ["y", "places"], "operators": [
        {"name": "c", "type": "Convolution2D", "inputs": ["x"], "outputs": ["c"],
         "options": {"channels_out": 2, "kernel": 1}},
        {"name": "y", "type": "AdaptivePooling", "inputs": ["c"], "outputs": ["y", "places"],
         "options": {"output": [4, 3], "return_indices": true}}]})";
    for (const Context& device : test_devices()) {
        INFO(device.info().str());
        const Warnings warnings;
        NetOptions options = training();
        options.output_gradients = true;
        Net net = Net::from_json(Context(device.info().id), text, options);
        net.initialize();
        CHECK(net.notes().empty());
        CHECK(warnings.lines.empty());
    }
}

namespace {

/// One eager call of the operator for which there is a liar, and what it logged.
struct EagerRun {
    std::vector<float> y;
    std::vector<std::string> lines;
};

EagerRun call_inner_product(const Context& context, std::int64_t samples,
                            const ops::CallOptions& how = {}) {
    const Warnings warnings;
    const Tensor x = random_tensor(context, {samples, 5}, 1), w = random_tensor(context, {6, 5}, 2),
                 b = random_tensor(context, {6}, 3);
    EagerRun done;
    done.y = ops::call("InnerProduct", R"({"outputs": 6})", {x}, {w, b}, how)[0].to_floats();
    done.lines = warnings.lines;
    return done;
}

std::size_t count_disabled(const EagerRun& run, const std::string& engine) {
    return static_cast<std::size_t>(
        std::count_if(run.lines.begin(), run.lines.end(), [&](const std::string& line) {
            return line.find(cat("engine ", engine, " is disabled: its results are wrong")) == 0;
        }));
}

/// Whether the report of what checks have found, from which dlprim_doctor has it, says so.
bool is_reported_wrong(const Context& context, const std::string& engine) {
    const std::vector<EngineTrust> all = engine_trust(context);
    return std::any_of(all.begin(), all.end(), [&](const EngineTrust& found) {
        return found.engine == engine && found.kind == EngineTrust::Kind::wrong;
    });
}

}  // namespace

TEST_CASE("an engine that is wrong is not used in an eager call", "[trust]") {
    { const Lie first; }
    for (const Context& device : test_devices()) {
        INFO(device.info().str());
        const std::string id = device.info().id;
        const std::string name = device.traits().host ? liar + "_host" : liar;
        const std::vector<float> honest = call_inner_product(Context(id), 9).y,
                                 honest_7 = call_inner_product(Context(id), 7).y;
        const Lie lie;
        const Context context(id);
        const EagerRun checked = call_inner_product(context, 9);
        CHECK(checked.y == honest);
        CHECK(count_disabled(checked, name) == 1);
        CHECK(is_reported_wrong(context, name));
        // The next call has a plan, one of another size knows of the check, and so has another
        // context.
        const int before = lies.launches;
        CHECK(call_inner_product(context, 9).y == honest);
        CHECK(call_inner_product(context, 7).y == honest_7);
        CHECK(call_inner_product(Context(id), 9).y == honest);
        CHECK(lies.launches == before);
        // An engine that the call forces is an error then.
        ops::CallOptions how{.engine = name};
        bool refused = false;
        try {
            call_inner_product(Context(id), 9, how);
        } catch (const Error& error) {
            refused = std::string(error.what()).find("its results are wrong") != std::string::npos;
        }
        CHECK(refused);
        ::setenv("DLPRIM_TRUST", "0", 1);
        const EagerRun unchecked = call_inner_product(Context(id), 9);
        ::unsetenv("DLPRIM_TRUST");
        CHECK(unchecked.y == std::vector<float>(54, 1.0f));
        CHECK(unchecked.lines.empty());
    }
}

TEST_CASE("checks of eager calls understand views, empty results and scalars", "[trust]") {
    ON_EVERY_DEVICE(context) {
        const Warnings warnings;
        const auto call = [&](const char* code, const std::vector<Tensor>& inputs,
                              const ops::CallOptions& how = {}) {
            return ops::call("Pointwise", cat(R"({"code": ")", code, R"("})"), inputs, {}, how)[0];
        };
        const Tensor x = random_tensor(context, {6, 10}, 1);
        // Codes that no other test has, so that they are checked here, at least with empty caches.
        const Tensor turned = x.transpose(0, 1),
                     spread = random_tensor(context, {1, 6}, 2).expand({10, 6});
        const std::vector<float> sums =
            call("y0 = 3 * x0 + 5 * x1 + 17", {turned, spread}).to_floats();
        CHECK(sums ==
              call("y0 = 3 * x0 + 5 * x1 + 17", {turned.to_contiguous(), spread.to_contiguous()})
                  .to_floats());
        CHECK(call("y0 = 19 * x0 + 2", {Tensor(context, {0, 4}, DType::f32)}).shape() ==
              Shape({0, 4}));
        Tensor whole(context, {7}, DType::i32);
        whole.fill(3);
        CHECK(call("y0 = 23 / x0", {whole}).shape() == Shape({7}));
        ops::CallOptions how;
        how.scalars = {Scalar(2.5), Scalar(std::int64_t{3})};
        Tensor ones(context, {5}, DType::f32);
        ones.fill(1);
        CHECK(call("y0 = 29 * x0 + p0 * p1", {ones}, how).to_floats() ==
              std::vector<float>(5, 36.5f));
        // Zeros are no valid indices for its gradient, of which there is one engine alone.
        const Tensor picture = random_tensor(context, {1, 2, 9, 5}, 3);
        const Tensor gradient = random_tensor(context, {1, 2, 4, 3}, 4);
        const auto pooled =
            ops::backward("AdaptivePooling", R"({"output": [4, 3], "return_indices": true})",
                          {picture}, {}, {gradient});
        CHECK(pooled.at(0).shape() == picture.shape());
        CHECK(warnings.lines.empty());
    }
}

TEST_CASE("a check keeps what a kernel before it has refused", "[trust]") {
    ON_EVERY_DEVICE(context) {
        if (context.traits().host) return;  // there a call throws at once
        const Tensor x = random_tensor(context, {6, 10}, 1);
        Tensor places(context, {2}, DType::i32);
        places.fill(7);
        ops::call("Gather", "{}", {x, places}, {});
        // A code that no run had before, so that its engine is checked here.
        const unsigned number = std::random_device()();
        ops::call("Pointwise", cat(R"({"code": "y0 = x0 + )", number, R"("})"), {x}, {});
        bool told = false;
        try {
            context.finish();
        } catch (const Error& error) {
            told = std::string(error.what()).find("index 7") != std::string::npos;
        }
        CHECK(told);
        context.finish();  // once
    }
}
