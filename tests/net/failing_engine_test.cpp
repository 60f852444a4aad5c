// SPDX-License-Identifier: MIT
// Engines that are chosen and then fail: when they are built, and when they are launched. The next
// engine replaces them, the results are right, and the notes say what happened.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

enum class Failing { no, in_build, in_compile, in_launch, in_packing };

/// What the engines below do, and how often they were used.
struct Script {
    Failing convolution = Failing::no, filter_gradient = Failing::no;
    int builds = 0, launches = 0;
};
Script script;

class BrokenLaunch : public Launch {
  public:
    void enqueue(Queue&, std::span<const BufferRef>) override {
        ++script.launches;
        fail(ErrorKind::device, "the broken engine's launch is refused");
    }
};

/// An engine that promises to be the fastest by far.
class Broken : public Engine {
  public:
    Broken(std::string name, std::string_view op, bool on_host, Failing Script::*failing)
        : Engine(std::move(name), op, on_host), failing_(failing) {}
    Verdict is_applicable(const Traits&, const Problem&) const override {
        return script.*failing_ == Failing::no ? Verdict::no("it is not under test")
                                               : Verdict::yes();
    }
    // Less than the cost of any conversion of layouts.
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return -1; }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        auto choices = Engine::layouts(device, problem);
        if (script.*failing_ == Failing::in_packing)
            choices[0].inputs[1] = Layout::packed("broken", 4);
        return choices;
    }
    std::unique_ptr<Launch> build_packing(ContextImpl&, const Problem&, const Tuning&,
                                          int) const override {
        return std::make_unique<BrokenLaunch>();
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem&,
                                  const Tuning&) const override {
        ++script.builds;
        if (script.*failing_ >= Failing::in_launch) return std::make_unique<BrokenLaunch>();
        if (script.*failing_ == Failing::in_compile && !on_host()) {
            auto launch = std::make_unique<KernelLaunch>();
            launch->add(
                KernelCall(context.build({"broken.cl", "kernel void broken() { no_such(); }", ""}),
                           "broken", {}));
            return launch;
        }
        if (!on_host()) context.build({"broken.cl", "kernel void broken() { no_such(); }", ""});
        fail(ErrorKind::build, "the broken engine does not build");
    }

  private:
    Failing Script::*failing_;
};

void register_broken_engines() {
    static const bool once = [] {
        OperatorRegistry::instance();  // registers the library's engines first
        auto& registry = EngineRegistry::instance();
        for (const bool on_host : {false, true}) {
            const std::string where = on_host ? "_host" : "";
            registry.add(std::make_unique<Broken>("conv2d.broken" + where, "Convolution2D", on_host,
                                                  &Script::convolution));
            registry.add(std::make_unique<Broken>("conv2d_filter.broken" + where,
                                                  "Convolution2DBackwardFilter", on_host,
                                                  &Script::filter_gradient));
        }
        return true;
    }();
    (void)once;
}

/// Sets the script during its lifetime.
class Act {
  public:
    Act(Failing convolution, Failing filter_gradient) {
        register_broken_engines();
        script = {convolution, filter_gradient, 0, 0};
    }
    ~Act() { script = {}; }
    Act(const Act&) = delete;
    Act& operator=(const Act&) = delete;
};

/// The bits of all parameters after some training steps, followed by the last loss.
std::map<std::string, Bytes> trained(Net& net, Solver& solver) {
    for (unsigned step = 0; step < 3; ++step) {
        feed_small_network(net, step);
        solver.step();
    }
    auto all = all_bits(net);
    all["loss"] = bits(net.output("loss"));
    return all;
}

std::map<std::string, Bytes> trained(const Context& device) {
    Net net = make_net(device, small_network, training());
    Solver solver(net, {});
    return trained(net, solver);
}

}  // namespace

TEST_CASE("where an engine fails the next one takes its place", "[failing_engine]") {
    for (const Context& shared : test_devices()) {
        DYNAMIC_SECTION("on " << shared.info().name) {
            const auto expected = trained(shared);
            for (const auto& [convolution, filter] :
                 {std::pair{Failing::in_build, Failing::no},
                  std::pair{Failing::in_compile, Failing::no},
                  std::pair{Failing::in_compile, Failing::in_compile},
                  std::pair{Failing::in_launch, Failing::no},
                  std::pair{Failing::no, Failing::in_build},
                  std::pair{Failing::no, Failing::in_launch},
                  std::pair{Failing::in_launch, Failing::in_launch}}) {
                INFO("convolution " << static_cast<int>(convolution) << ", its filter's gradient "
                                    << static_cast<int>(filter));
                // The context remembers what failed.
                const Context device(shared.info().id);
                const Act act(convolution, filter);
                const Warnings warnings;
                Net net = make_net(device, small_network, training());
                Solver solver(net, {});
                Tensor input = net.input("data");
                CHECK((trained(net, solver) == expected));
                CHECK(script.builds > 0);
                // Tensors that the program holds still belong to the net.
                CHECK(input.shares_memory(net.input("data")));
                CHECK((bits(net.output("loss")) == expected.at("loss")));

                const std::string notes = join(net.notes(), "\n"),
                                  logged = join(warnings.lines, "\n");
                INFO("notes: " << notes << "\nlog: " << logged);
                if (convolution != Failing::no) {
                    CHECK(notes.find("[Convolution2D 'conv'] engine conv2d.broken") !=
                          std::string::npos);
                    CHECK(logged.find("conv2d.broken") != std::string::npos);
                }
                if (filter != Failing::no)
                    CHECK(notes.find("conv2d_filter.broken") != std::string::npos);
                for (const NodeReport& node : net.nodes())
                    CHECK(node.engine.find("broken") == std::string::npos);

                // The next net of the context does not use the engine again.
                const int builds = script.builds, launches = script.launches;
                CHECK((trained(device) == expected));
                CHECK(script.builds == builds);
                CHECK(script.launches == launches);
            }
        }
    }
}

TEST_CASE("an engine that cannot pack weights gives way when they are loaded", "[failing_engine]") {
    for (const Context& shared : test_devices()) {
        DYNAMIC_SECTION("on " << shared.info().name) {
            // Weights that are released after packing, and are therefore packed by load_weights().
            std::string json = small_network;
            json.replace(json.find("\"channels_out\": 8"), 17, "\"channels_out\": 700");
            const Folder folder;
            Net expected = make_net(shared, json);
            expected.initialize("he");
            expected.save_weights(folder.file("w.h5"));
            feed_small_network(expected, 1);
            expected.forward();
            const Context device(shared.info().id);
            const Act act(Failing::in_packing, Failing::no);
            Net net = make_net(device, json);
            net.load_weights(folder.file("w.h5"));
            const int launches = script.launches;
            CHECK(launches > 0);
            feed_small_network(net, 1);
            net.forward();
            CHECK(script.launches == launches);
            CHECK((bits(net.output("scores")) == bits(expected.output("scores"))));
            CHECK(join(net.notes(), "\n").find("engine conv2d.broken") != std::string::npos);
        }
    }
}

TEST_CASE("an engine that the program forces and that fails is an error", "[failing_engine]") {
    for (const Context& shared : test_devices()) {
        DYNAMIC_SECTION("on " << shared.info().name) {
            const Context device(shared.info().id);
            const std::string name =
                device.info().id == "cpu" ? "conv2d.broken_host" : "conv2d.broken";
            const Act act(Failing::in_build, Failing::no);
            NetOptions options{.engines = {{"conv", name}}};
            Net forced = make_net(device, small_network, options);
            check_error(ErrorKind::invalid_argument,
                        {"[Convolution2D 'conv']", name, "failed on this device"},
                        [&] { forced.prepare(); });
            // If it is forced by type, others may replace it.
            options.engines = {{"Convolution2D", name}};
            Net by_type = make_net(device, small_network, options);
            by_type.prepare();
            const std::string notes = join(by_type.notes(), "\n");
            INFO(notes);
            CHECK(notes.find(name) != std::string::npos);
        }
    }
}

TEST_CASE("an eager call goes on with the next engine, too", "[failing_engine]") {
    for (const Context& shared : test_devices()) {
        DYNAMIC_SECTION("on " << shared.info().name) {
            const char* const how =
                R"({"channels_out": 4, "kernel": 3, "pad": 1, "activation": "relu"})";
            const auto call = [&](const Context& device) {
                const Tensor x(device, Shape{2, 3, 6, 6}, random_floats(216, 1));
                const Tensor weight(device, Shape{4, 3, 3, 3}, random_floats(108, 2));
                const Tensor bias(device, Shape{4}, random_floats(4, 3));
                const Tensor y = ops::call("Convolution2D", how, {x}, {weight, bias}).at(0);
                const auto gradients =
                    ops::backward("Convolution2D", how, {x}, {weight, bias}, {y});
                std::vector<Bytes> all{bits(y)};
                for (const Tensor& gradient : gradients) all.push_back(bits(gradient));
                return all;
            };
            const auto expected = call(shared);
            for (const Failing failing : {Failing::in_build, Failing::in_launch}) {
                const Context device(shared.info().id);
                const Act act(failing, failing);
                CHECK((call(device) == expected));
                CHECK((call(device) == expected));
                CHECK(script.builds > 0);
            }
        }
    }
}

TEST_CASE("a forced engine whose launch is refused is an error each time", "[failing_engine]") {
    for (const Context& shared : test_devices()) {
        DYNAMIC_SECTION("on " << shared.info().name) {
            const Context device(shared.info().id);
            const std::string name =
                device.info().id == "cpu" ? "conv2d.broken_host" : "conv2d.broken";
            const Act act(Failing::in_launch, Failing::no);
            NetOptions options{.engines = {{"conv", name}}};
            Net net = make_net(device, small_network, options);
            feed_small_network(net, 0);
            check_error(ErrorKind::invalid_argument,
                        {"[Convolution2D 'conv']", name, "launch is refused"},
                        [&] { net.forward(); });
            check_error(ErrorKind::device, {"[Convolution2D 'conv']", name, "launch is refused"},
                        [&] { net.forward(); });
        }
    }
}
