// SPDX-License-Identifier: MIT
// Engines that compute something wrong: checks find that out before a network uses them, the next
// engine takes their place, and what was found is remembered.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "net/support.hpp"

#include <cstdlib>

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
    Liar(std::string name, bool on_host) : name_(std::move(name)), on_host_(on_host) {}
    std::string_view name() const override { return name_; }
    std::string_view op() const override { return "InnerProduct"; }
    bool on_host() const override { return on_host_; }
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

  private:
    std::string name_;
    bool on_host_;
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

constexpr const char* net_text = R"({"inputs": [{"name": "x", "shape": [8, 5]}], "outputs": ["y"],
    "operators": [{"name": "y", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"],
                   "options": {"outputs": 6}}]})";

/// The outputs for an input that changes from element to element, and the net's notes.
struct Run {
    std::vector<float> y;
    std::string notes, engine;
};

Run run(const std::string& device) {
    const Context context(device);
    Net net = Net::from_json(context, net_text);
    net.initialize();
    std::vector<float> x(40);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
    net.input("x").copy_from_host(x.data(), x.size() * 4);
    net.forward();
    Run done;
    done.y.resize(48);
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
        ::setenv("DLPRIM_TRUST", "0", 1);
        const Run unchecked = run(id);
        ::unsetenv("DLPRIM_TRUST");
        CHECK(unchecked.engine == name);
        CHECK(unchecked.y == std::vector<float>(48, 1.0f));
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
