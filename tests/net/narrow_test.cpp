// SPDX-License-Identifier: MIT
// fp16 and bf16: which values are stored in 16 bits, how large errors are, and the loss scale.
// Devices that store only float must give the bits of fp32. These are CPUs, unless
// DLPRIM_TRAITS=wide_vectors=0 makes the library treat them as GPUs.
#include "api/net_impl.hpp"
#include "check/compare.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"
#include "runtime/access.hpp"

#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Activations of 8192 to 32768 elements. `middle` may have a precision of its own.
std::string narrow_json(const std::string& middle = "", const std::string& loss = "\"loss\"") {
    return R"({
  "inputs": [{"name": "data", "shape": [8, 3, 16, 16]},
             {"name": "label", "shape": [8], "dtype": "int"}],
  "outputs": ["scores", )" +
           loss + R"(],
  "operators": [
    {"name": "first", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
     "options": {"channels_out": 16, "kernel": 3, "pad": 1, "bias": false}},
    {"name": "norm1", "type": "BatchNorm", "inputs": ["a"], "outputs": ["b"]},
    {"name": "relu1", "type": "Activation", "inputs": ["b"], "outputs": ["c"],
     "options": {"activation": "relu"}},
    {"name": "middle", "type": "Convolution2D", "inputs": ["c"], "outputs": ["d"],
     "options": {"channels_out": 16, "kernel": 3, "pad": 1, "groups": 16, "bias": false})" +
           middle + R"(},
    {"name": "norm2", "type": "BatchNorm", "inputs": ["d"], "outputs": ["e"]},
    {"name": "sum", "type": "Elementwise", "inputs": ["e", "c"], "outputs": ["f"],
     "options": {"activation": "relu"}},
    {"name": "pool", "type": "Pooling2D", "inputs": ["f"], "outputs": ["g"],
     "options": {"kernel": 2, "stride": 2}},
    {"name": "last", "type": "Convolution2D", "inputs": ["g"], "outputs": ["h"],
     "options": {"channels_out": 32, "kernel": 3, "pad": 1, "stride": 2, "activation": "relu"}},
    {"name": "means", "type": "GlobalPooling", "inputs": ["h"], "outputs": ["i"],
     "options": {"mode": "avg"}},
    {"name": "scores", "type": "InnerProduct", "inputs": ["i"], "outputs": ["scores"],
     "options": {"outputs": 5}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]}
  ]
})";
}

using Precisions = std::vector<std::pair<std::string, Precision>>;

Net make(const Context& device, Precision precision, const std::string& text = narrow_json(),
         Precisions operators = {}) {
    NetOptions options = training(3);
    options.precision = precision;
    options.precisions = std::move(operators);
    // Compilers for CPUs take minutes for GPU kernels with work-groups. storage_test covers these.
    if (stores_narrow(device.traits()))
        for (const char* const type : {"Convolution2D", "Convolution2DBackwardData",
                                       "Convolution2DBackwardFilter", "InnerProduct", "MatMul"})
            options.engines.emplace_back(type,
                                         EngineRegistry::instance().of(type, false).back()->name());
    return make_net(device, text, options);
}

double unit_of(Precision precision) {
    return precision == Precision::fp16 ? 0x1p-11 : 0x1p-8;
}

double distance(const Tensor& found, const Tensor& wanted) {
    return relative_error(found.to_doubles(), wanted.to_doubles());
}

SolverOptions sgd(double rate = 0.05) {
    return {.kind = SolverOptions::Kind::sgd, .learning_rate = rate, .momentum = 0.9};
}

std::vector<double> losses_of(Net& net, Solver& solver, unsigned steps, unsigned batches = 4) {
    std::vector<double> losses;
    for (unsigned step = 0; step < steps; ++step) {
        feed_small_network(net, step % batches);
        solver.step();
        losses.push_back(net.output("loss").to_floats()[0]);
    }
    return losses;
}

}  // namespace

TEST_CASE("16 bits are stored between nodes, and nowhere else", "[narrow]") {
    const Precision precision = GENERATE(Precision::fp16, Precision::bf16);
    const DType type = precision == Precision::fp16 ? DType::f16 : DType::bf16;
    ON_EVERY_DEVICE(device) {
        Net net = make(device, precision), plain = make(device, Precision::fp32);
        Solver solver(net, sgd()), other(plain, sgd());
        const Graph& graph = Access::impl(net).built().executor->plan().graph;
        int narrow = 0;
        for (const Value& value : graph.values) {
            if (!has_16_bits(value.spec.dtype)) continue;
            ++narrow;
            CHECK(value.spec.dtype == type);
            CHECK(value.role == Role::intermediate);
            CHECK(value.spec.shape.numel() >= 4096);
        }
        for (const auto& [value, gradient] : graph.gradients)
            CHECK(graph.spec(gradient).dtype == DType::f32);
        if (!stores_narrow(device.traits())) {
            CHECK(narrow == 0);
            continue;
        }
        // In the forward pass: the inputs and results of the norms, and the results of the sum, of
        // the pooling and of the last convolution. In the backward pass as many.
        CHECK(narrow >= 10);
        CHECK(net.planned_peak_bytes() < plain.planned_peak_bytes() * 3 / 4);
    }
}

TEST_CASE("what a batch norm takes its shift from is no reason to store its input in float",
          "[narrow]") {
    ON_EVERY_DEVICE(device) {
        if (!stores_narrow(device.traits())) continue;
        NetOptions options = training(3);
        options.precision = Precision::fp16;
        options.batch = 64;  // the shift reads a 64th of it
        for (const char* const type :
             {"Convolution2D", "Convolution2DBackwardData", "Convolution2DBackwardFilter"})
            options.engines.emplace_back(type,
                                         EngineRegistry::instance().of(type, false).back()->name());
        Net net = make_net(device, narrow_json(), options);
        const Graph& graph = Access::impl(net).built().executor->plan().graph;
        for (const Node& node : graph.nodes)
            if (!node.removed && node.name != "last" && node.op->type() == "Convolution")
                CHECK(graph.spec(node.outputs[0]).dtype == DType::f16);
    }
}

TEST_CASE("an operator of fp32 reads and makes float in a net of fp16", "[narrow]") {
    ON_EVERY_DEVICE(device) {
        if (!stores_narrow(device.traits())) continue;
        Net net = make(device, Precision::fp16, narrow_json(R"(, "precision": "fp32")"));
        net.prepare();
        const Graph& graph = Access::impl(net).built().executor->plan().graph;
        int own = 0, narrow = 0;
        for (const Node& node : graph.nodes) {
            const bool middle = node.name.starts_with("middle");
            own += middle;
            for (const auto* operands : {&node.inputs, &node.outputs})
                for (const ValueId id : *operands) {
                    if (middle) CHECK(graph.spec(id).dtype == DType::f32);
                    narrow += has_16_bits(graph.spec(id).dtype);
                }
        }
        CHECK(own >= 3);
        CHECK(narrow > 0);
    }
}

TEST_CASE("results of fp16 and bf16 are as close as their rounding lets them", "[narrow]") {
    const Precision precision = GENERATE(Precision::fp16, Precision::bf16);
    ON_EVERY_DEVICE(device) {
        Net exact = make(device, Precision::fp32), rounded = make(device, precision);
        copy_params(exact, rounded);
        for (Net* net : {&exact, &rounded}) {
            feed_small_network(*net, 0);
            net->forward();
            net->backward();
        }
        const std::vector<std::string> names = exact.gradient_names();
        REQUIRE(names.size() >= 10);
        if (!stores_narrow(device.traits())) {
            CHECK((bits(exact.output("scores")) == bits(rounded.output("scores"))));
            for (const std::string& name : names)
                CHECK((bits(exact.gradient(name)) == bits(rounded.gradient(name))));
            continue;
        }
        // Seven values before the scores are rounded, each by a unit at most. A gradient depends on
        // as many roundings. In addition, a ReLU or a maximum of values within a unit of each other
        // may be decided differently. That happens for a fraction of the elements that is about a
        // unit, and gives them another gradient, which contributes the root of that fraction to the
        // L2 error.
        const double unit = unit_of(precision);
        const double off = distance(rounded.output("scores"), exact.output("scores"));
        CHECK(off <= 7 * unit);
        CHECK(off > 0);
        for (const std::string& name : names) {
            const double error = distance(rounded.gradient(name), exact.gradient(name));
            INFO(name << " is off by " << error);
            CHECK(error <= 14 * unit + 2 * std::sqrt(unit));
        }
    }
}

TEST_CASE("training in fp16 and bf16 learns as in fp32", "[narrow]") {
    const Precision precision = GENERATE(Precision::fp16, Precision::bf16);
    ON_EVERY_DEVICE(device) {
        Net exact = make(device, Precision::fp32), rounded = make(device, precision);
        Solver first(exact, sgd()), second(rounded, sgd());
        copy_params(exact, rounded);
        const std::vector<double> wanted = losses_of(exact, first, 40, 1),
                                  found = losses_of(rounded, second, 40, 1);
        INFO("from " << wanted.front() << " to " << wanted.back() << " and " << found.back());
        CHECK(wanted.back() < 0.3 * wanted.front());
        CHECK(found.back() < 0.3 * found.front());
        if (stores_narrow(device.traits())) continue;
        // Multiplying by a power of two changes no bits in float.
        CHECK((all_bits(exact) == all_bits(rounded)));
    }
}

TEST_CASE("a gradient that is not finite leaves all as it is and halves the scale", "[narrow]") {
    const auto kind = GENERATE(SolverOptions::Kind::sgd, SolverOptions::Kind::adamw);
    ON_EVERY_DEVICE(device) {
        // A loss so large that float overflows too.
        const std::string heavy = narrow_json("", R"({"name": "loss", "loss_weight": 1000})");
        Net net = make(device, Precision::fp16, heavy);
        SolverOptions options = sgd(0.01);
        options.kind = kind;
        options.loss_scale = 0x1p127;
        Solver solver(net, options);
        CHECK(solver.loss_scale() == 0x1p127);
        std::map<std::string, Bytes> before;
        for (const std::string& name : net.param_names())
            if (net.is_trainable(name)) before[name] = bits(net.param(name));
        const auto unchanged = [&] {
            for (const auto& [name, content] : before)
                if (bits(net.param(name)) != content) return false;
            return true;
        };
        feed_small_network(net, 0);
        solver.step();
        CHECK(solver.loss_scale() == 0x1p126);
        CHECK(unchanged());
        for (int step = 0; step < 130 && unchanged(); ++step) solver.step();
        CHECK_FALSE(unchanged());
        // After the first good update. If a NaN had reached a moment, it would have spread.
        CHECK(solver.loss_scale() >= 1);
        CHECK(solver.loss_scale() < 0x1p126);
        for (int step = 0; step < 3; ++step) solver.step();
        for (const auto& [name, content] : before)
            for (const float value : net.param(name).to_floats()) REQUIRE(std::isfinite(value));
        if (kind != SolverOptions::Kind::adamw) continue;
        // Adam's first update has the length of the rate, however many updates were skipped before
        // it.
        Net again = make(device, Precision::fp16, heavy);
        options.loss_scale = solver.loss_scale();
        Solver fresh(again, options);
        const std::vector<float> from = again.param(again.param_names()[0]).to_floats();
        feed_small_network(again, 0);
        fresh.step();
        const std::vector<float> to = again.param(again.param_names()[0]).to_floats();
        double most = 0;
        for (std::size_t i = 0; i < from.size(); ++i)
            most = std::max(most, std::fabs(double(to[i]) - from[i]));
        CHECK(std::fabs(most - options.learning_rate) < 0.01 * options.learning_rate);
    }
}

TEST_CASE("the loss scale doubles after so many good updates, where there is one", "[narrow]") {
    ON_EVERY_DEVICE(device) {
        SolverOptions options = sgd(0.001);
        options.loss_scale = 256;
        options.loss_scale_steps = 3;
        options.clip_norm = 1;
        for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp32}) {
            Net net = make(device, precision);
            Solver solver(net, options);
            for (const double wanted : {256, 256, 512, 512, 512, 1024}) {
                feed_small_network(net, 0);
                solver.step();
                CHECK(solver.loss_scale() == (precision == Precision::fp16 ? wanted : 1));
            }
        }
        options.loss_scale = 0;
        Net net = make(device, Precision::fp16);
        CHECK(Solver(net, options).loss_scale() == 1);
        check_error(ErrorKind::invalid_argument, {"loss_scale"}, [&] {
            options.loss_scale = -1;
            Solver(net, options);
        });
    }
}

TEST_CASE("a run in fp16 has the same bits twice, and when it is resumed", "[narrow]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        const std::string path = folder.file("c.h5");
        SolverOptions options{.kind = SolverOptions::Kind::adamw,
                              .loss_scale = 0x1p124};  // some updates are skipped
        options.loss_scale_steps = 4;
        options.accumulate = 2;
        options.clip_norm = 2;
        Net net = make(device, Precision::fp16);
        Solver solver(net, options);
        losses_of(net, solver, 9);
        solver.save_checkpoint(path);
        losses_of(net, solver, 20);
        Net other = make(device, Precision::fp16);
        Solver resumed(other, options);
        resumed.load_checkpoint(path);
        losses_of(other, resumed, 20);
        CHECK(solver.loss_scale() == resumed.loss_scale());
        CHECK((all_bits(net) == all_bits(other)));
        Net third = make(device, Precision::fp16);
        Solver again(third, options);
        losses_of(third, again, 9);
        losses_of(third, again, 20);
        CHECK((all_bits(net) == all_bits(third)));
    }
}

TEST_CASE("operators' own precisions: values at the seams", "[narrow]") {
    // A region of five operators. The first reads, and the last makes, values that are used
    // outside.
    const auto region = [](Precision precision) {
        Precisions all;
        for (const char* const name : {"norm1", "relu1", "middle", "norm2", "sum"})
            all.emplace_back(name, precision);
        return all;
    };
    const auto of = [](Net& net, const char* name) {
        const Graph& graph = Access::impl(net).built().executor->plan().graph;
        return graph.spec(graph.find(name)).dtype;
    };
    struct Mix {
        Precision net, own;
        DType outside, inside;
    };
    const Mix mix = GENERATE(Mix{Precision::fp32, Precision::fp16, DType::f32, DType::f16},
                             Mix{Precision::fp32, Precision::bf16, DType::f32, DType::bf16},
                             Mix{Precision::fp16, Precision::fp32, DType::f16, DType::f32},
                             Mix{Precision::fp16, Precision::bf16, DType::f16, DType::bf16});
    ON_EVERY_DEVICE(device) {
        INFO(name_of(mix.own) << " in " << name_of(mix.net));
        Net exact = make(device, Precision::fp32),
            mixed = make(device, mix.net, narrow_json(), region(mix.own));
        copy_params(exact, mixed);
        for (Net* net : {&exact, &mixed}) {
            feed_small_network(*net, 0);
            net->forward();
            net->backward();
        }
        const std::vector<std::string> names = exact.gradient_names();
        const double off = distance(mixed.output("scores"), exact.output("scores"));
        if (!stores_narrow(device.traits())) {
            CHECK(off == 0);
            for (const std::string& name : names)
                CHECK((bits(exact.gradient(name)) == bits(mixed.gradient(name))));
            continue;
        }
        CHECK(of(mixed, "a") == DType::f32);  // from one region to the other
        // The planner's estimates decide which values benefit. At least one does.
        bool any = false;
        for (const char* const name : {"c", "d"}) {
            any = any || of(mixed, name) == mix.inside;
            CHECK((of(mixed, name) == mix.inside || of(mixed, name) == DType::f32));
        }
        CHECK(any);
        CHECK(of(mixed, "f") == DType::f32);
        CHECK(of(mixed, "g") == mix.outside);
        const bool coarse = mix.own == Precision::bf16;
        const double unit = unit_of(coarse ? Precision::bf16 : Precision::fp16);
        CHECK(off > 0);
        CHECK(off <= 7 * unit);
        for (const std::string& name : names) {
            const double error = distance(mixed.gradient(name), exact.gradient(name));
            INFO(name << " is off by " << error);
            CHECK(error <= 14 * unit + 2 * std::sqrt(unit));
        }
    }
}

TEST_CASE("a single operator of 16 bits among float has float at its seams", "[narrow]") {
    const Precision precision = GENERATE(Precision::fp16, Precision::bf16);
    const std::string field = ", \"precision\": \"" + std::string(name_of(precision)) + '"';
    ON_EVERY_DEVICE(device) {
        // Products on matrix units round factors; operators_test has the bounds.
        if (device.traits().wgmma || device.traits().mma) continue;
        Net exact = make(device, Precision::fp32),
            described = make(device, Precision::fp32, narrow_json(field)),
            asked = make(device, Precision::fp32, narrow_json(), {{"middle", precision}});
        Solver first(exact, sgd()), second(described, sgd()), third(asked, sgd());
        for (Net* net : {&described, &asked}) copy_params(exact, *net);
        const double scale = precision == Precision::fp16 ? SolverOptions().loss_scale : 1;
        CHECK(first.loss_scale() == 1);
        CHECK(second.loss_scale() == scale);
        CHECK(third.loss_scale() == scale);
        losses_of(exact, first, 3);
        losses_of(described, second, 3);
        losses_of(asked, third, 3);
        CHECK((all_bits(exact) == all_bits(described)));
        CHECK((all_bits(exact) == all_bits(asked)));
    }
}

TEST_CASE("the loss is scaled where any operator is of fp16, and nowhere else", "[narrow]") {
    const Context device("cpu");
    const auto scale = [&](Precision net, const Precisions& operators,
                           const std::string& text = narrow_json()) {
        Net made = make(device, net, text, operators);
        return Solver(made, sgd()).loss_scale() != 1;
    };
    CHECK(scale(Precision::fp32, {{"last", Precision::fp16}}));
    CHECK(scale(Precision::bf16, {{"Pooling2D", Precision::fp16}}));
    CHECK(scale(Precision::fp16, {{"Convolution2D", Precision::fp32}}));
    CHECK(scale(Precision::fp16, {{"last", Precision::bf16}}));
    CHECK_FALSE(scale(Precision::fp32, {{"last", Precision::bf16}}));
    CHECK_FALSE(scale(Precision::bf16, {{"last", Precision::tf32}}));
    // The last override of an operator wins. A name takes precedence over the description, and that
    // over a type.
    CHECK_FALSE(scale(Precision::fp32, {{"last", Precision::fp16}, {"last", Precision::fp32}}));
    const std::string described = narrow_json(R"(, "precision": "fp16")");
    CHECK(scale(Precision::fp32, {{"Convolution2D", Precision::fp32}}, described));
    CHECK_FALSE(scale(Precision::fp32, {{"middle", Precision::fp32}}, described));
    CHECK_FALSE(
        scale(Precision::fp32, {{"last", Precision::fp32}, {"Convolution2D", Precision::bf16}}));
    Precisions all;
    for (const char* const type : {"Convolution2D", "BatchNorm", "Activation", "Elementwise",
                                   "Pooling2D", "GlobalPooling", "InnerProduct", "SoftmaxWithLoss"})
        all.emplace_back(type, Precision::bf16);
    CHECK_FALSE(scale(Precision::fp16, all));
}

TEST_CASE("precisions of what the network has not", "[narrow]") {
    const Context device("cpu");
    check_error(ErrorKind::invalid_argument,
                {"precision midle=fp16", "no operator 'midle'", "did you mean 'middle'"}, [&] {
                    make(device, Precision::fp32, narrow_json(), {{"midle", Precision::fp16}});
                });
    check_error(ErrorKind::invalid_argument, {"'Convolutoin'", "did you mean 'Convolution'"}, [&] {
        make(device, Precision::fp32, narrow_json(), {{"Convolutoin", Precision::fp16}});
    });
    Net net = make(device, Precision::fp32, narrow_json(), {{"LSTM", Precision::fp16}});
    const std::vector<std::string> notes = net.notes();
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("LSTM=fp16") != std::string::npos);
    CHECK(notes[0].find("no operator of this type") != std::string::npos);
}
