// SPDX-License-Identifier: MIT
// Heads that attention reads and writes where projections have them: no Transpose, Slice or Concat
// is launched around it, and results are those of the plan that launches them.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "net/support.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A layer of attention with its projections.
struct Layer {
    enum class Heads { apart, sliced, by_head };  ///< three projections, or how one is divided
    Heads heads = Heads::apart;
    std::int64_t batch = 2, length = 20, positions = 20, count = 4, groups = 4, features = 8;
    std::string options = R"("is_causal": true)";
    std::string mask;  ///< JSON of the shape and type of a mask
    bool rotates = false;
};

/// Writes operators, each of which has one result of its own name.
class Writer {
  public:
    std::string add(const std::string& name, const std::string& type, const std::string& inputs,
                    const std::string& options) {
        text_ += (text_.empty() ? "" : ", ") + (R"({"name": ")" + name) + R"(", "type": ")" + type +
                 R"(", "inputs": [)" + inputs + R"(], "outputs": [")" + name +
                 R"("], "options": {)" + options + "}}";
        return '"' + name + '"';
    }
    /// Reshape to [batch, rows, heads, features] and Transpose to [batch, heads, rows, features].
    std::string by_head(const std::string& name, const std::string& from, std::int64_t rows,
                        std::int64_t heads, const Layer& l) {
        const std::string split =
            add(name + "_heads", "Reshape", from, dims({l.batch, rows, heads, l.features}));
        return add(name, "Transpose", split, dims({0, 2, 1, 3}));
    }
    static std::string dims(const Shape& shape) { return R"("dims": )" + shape.str(); }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

std::string product(Writer& to, const std::string& name, const std::string& from,
                    std::int64_t outputs) {
    return to.add(name, "InnerProduct", from, R"("outputs": )" + std::to_string(outputs));
}

/// q, k and v of one product of three times the features.
std::vector<std::string> packed_heads(Writer& to, const Layer& l) {
    const std::int64_t width = l.count * l.features;
    const std::string all = product(to, "qkv", "\"x_rows\"", 3 * width);
    std::string from = all, dim = R"("dim": 1)";
    const bool sliced = l.heads == Layer::Heads::sliced;
    if (!sliced) {
        from = to.add("split", "Reshape", all,
                      Writer::dims({l.batch, l.length, 3, l.count, l.features}));
        from = to.add("split_by_head", "Transpose", from, Writer::dims({2, 0, 3, 1, 4}));
        dim = R"("dim": 0)";
    }
    std::vector<std::string> heads;
    for (int i = 0; i < 3; ++i) {
        const std::string name(1, "qkv"[i]);
        const std::int64_t step = sliced ? width : 1;
        const std::string part = to.add(name + "_part", "Slice", from,
                                        dim + R"(, "begin": )" + std::to_string(i * step) +
                                            R"(, "end": )" + std::to_string((i + 1) * step));
        heads.push_back(sliced ? to.by_head(name, part, l.length, l.count, l)
                               : to.add(name, "Reshape", part,
                                        Writer::dims({l.batch, l.count, l.length, l.features})));
    }
    return heads;
}

std::vector<std::string> heads_apart(Writer& to, const Layer& l) {
    const auto heads = [&](const std::string& name, const std::string& from, std::int64_t rows,
                           std::int64_t count) {
        const std::string all = product(to, name + "_proj", from, count * l.features);
        return to.by_head(name, all, rows, count, l);
    };
    std::vector<std::string> made{heads("q", "\"x_rows\"", l.length, l.count),
                                  heads("k", "\"z_rows\"", l.positions, l.groups),
                                  heads("v", "\"z_rows\"", l.positions, l.groups)};
    for (std::size_t i = 0; i < 2 && l.rotates; ++i)
        made[i] = to.add(i == 0 ? "q_turned" : "k_turned", "RotaryEmbedding",
                         made[i] + R"(, "cos", "sin")", "");
    return made;
}

std::string network(const Layer& l) {
    const std::int64_t width = l.count * l.features;
    Writer to;
    to.add("x_rows", "Reshape", "\"x\"", Writer::dims({l.batch * l.length, width}));
    to.add("z_rows", "Reshape", "\"z\"", Writer::dims({l.batch * l.positions, width}));
    const std::vector<std::string> heads =
        l.heads == Layer::Heads::apart ? heads_apart(to, l) : packed_heads(to, l);
    std::string inputs = heads[0] + ", " + heads[1] + ", " + heads[2];
    if (!l.mask.empty()) inputs += ", \"mask\"";
    const std::string gqa = l.groups < l.count ? R"(, "enable_gqa": true)" : "";
    const std::string y = to.add("attention", "Attention", inputs, l.options + gqa);
    const std::string rows = to.add("by_position", "Transpose", y, Writer::dims({0, 2, 1, 3}));
    const std::string merged =
        to.add("merged", "Reshape", rows, Writer::dims({l.batch * l.length, width}));
    const std::string out = product(to, "out", merged, width);
    const std::string sum =
        to.add("sum", "Pointwise", out + ", \"x_rows\"", R"("code": "y0 = sin(x0) + x1")");
    const auto input = [](const std::string& name, const Shape& shape) {
        return R"({"name": ")" + name + R"(", "shape": )" + shape.str() + "}";
    };
    std::string given =
        input("x", {l.batch, l.length, width}) + ", " + input("z", {l.batch, l.positions, width});
    if (l.rotates)
        given += ", " + input("cos", {l.length, l.features / 2}) + ", " +
                 input("sin", {l.length, l.features / 2});
    if (!l.mask.empty()) given += R"(, {"name": "mask", )" + l.mask + "}";
    return R"({"inputs": [)" + given + R"(], "outputs": [{"name": )" + sum +
           R"(, "loss_weight": 1}], "operators": [)" + to.text() + "]}";
}

/// The launches that only move elements.
std::vector<std::string> moves(Net& net) {
    const std::set<std::string> types{"Transpose", "Slice", "Concat", "Reorder", "Copy"};
    std::vector<std::string> found;
    for (const NodeReport& node : net.nodes())
        if (types.count(node.type) && (!node.engine.empty() || node.type == "Copy"))
            found.push_back(node.name);
    return found;
}

/// Layers of all kinds.
std::map<std::string, Layer> layers() {
    std::map<std::string, Layer> all;
    all["three projections"] = {};
    all["one projection"] = {.heads = Layer::Heads::sliced};
    all["one projection, divided by head"] = {.heads = Layer::Heads::by_head};
    all["grouped queries"] = {.groups = 2};
    all["other lengths"] = {.positions = 13,
                            .options = R"("is_causal": true, "lower_right": true)"};
    all["a bool mask"] = {
        .positions = 13, .options = "", .mask = R"("shape": [20, 13], "dtype": "bool")"};
    all["a float mask"] = {
        .groups = 2, .options = R"("softcap": 2.0)", .mask = R"("shape": [2, 1, 1, 20])"};
    all["a window"] = {.options = R"("is_causal": true, "sliding_window": 5)"};
    all["a rotation"] = {.rotates = true};
    return all;
}

Net made(const Context& device, const Layer& layer, Mode mode, bool fuse,
         std::vector<std::pair<std::string, std::string>> engines) {
    NetOptions options;
    options.mode = mode;
    options.fuse = fuse;
    options.engines = std::move(engines);
    Net net = make_net(device, network(layer), options);
    unsigned seed = 1;
    for (const std::string& name : net.input_names()) {
        Tensor input = net.input(name);
        const auto count = static_cast<std::size_t>(input.shape().numel());
        const std::vector<float> values = random_floats(count, seed++);
        if (input.dtype() == DType::boolean) {
            std::vector<std::uint8_t> bools;
            for (const float value : values) bools.push_back(value > -0.5F);
            input.copy_from_host(bools.data(), bools.size());
        } else {
            set_floats(net, name, values);
        }
    }
    return net;
}

/// Runs the layer with and without the moves and compares outputs and gradients.
void compare(const Context& device, Layer layer, Mode mode,
             const std::vector<std::pair<std::string, std::string>>& engines) {
    if (mode == Mode::training && layer.mask.empty())
        layer.options += std::string(layer.options.empty() ? "" : ", ") + R"("dropout_p": 0.3)";
    Net folded = made(device, layer, mode, true, engines);
    Net whole = made(device, layer, mode, false, engines);
    CHECK(moves(folded) == std::vector<std::string>());
    CHECK(moves(whole).size() >= 2);
    for (Net* net : {&folded, &whole}) {
        net->forward();
        if (mode == Mode::training) net->backward();
    }
    check_close(values_of<float>(folded.output("sum")),
                doubles(values_of<float>(whole.output("sum"))), 1e-5);
    if (mode != Mode::training) return;
    for (const std::string& name : whole.param_names()) {
        INFO("gradient of " << name);
        check_close(values_of<float>(folded.gradient(name)),
                    doubles(values_of<float>(whole.gradient(name))), 1e-5);
    }
}

/// An engine that takes operands as they lie and cannot be built.
class Broken : public Engine {
  public:
    Broken() : Engine("attention.broken", "AttentionForward", true) {}
    Verdict is_applicable(const Traits&, const Problem&) const override {
        return builds < 0 ? Verdict::no("it is not under test") : Verdict::yes();
    }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return 0; }
    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        for (std::size_t i = 0; i < 3; ++i) choice.inputs[i] = problem.inputs[i].layout;
        choice.outputs[0] = problem.outputs[0].layout;
        return {choice};
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        builds += problem.inputs[0].layout.is_strided() && problem.outputs[0].layout.is_strided();
        fail(ErrorKind::build, "the broken engine does not build");
    }
    static inline int builds = -1;
};

}  // namespace

TEST_CASE("Where an engine fails on strided heads, the moves are launched again") {
    OperatorRegistry::instance();  // registers the others
    EngineRegistry::instance().add_first(std::make_unique<Broken>());
    const Context host("cpu");
    Broken::builds = 0;
    Net broken = made(host, {}, Mode::inference, true, {{"AttentionForward", "attention.broken"}});
    Net whole = made(host, {}, Mode::inference, false, {});
    broken.forward();
    whole.forward();
    CHECK(Broken::builds == 1);
    CHECK(moves(broken).size() >= 4);
    check_close(values_of<float>(broken.output("sum")),
                doubles(values_of<float>(whole.output("sum"))), 1e-5);
    Broken::builds = -1;
}

TEST_CASE("On an H200 no launch moves heads") {
    const Context h200("file:" +
                       (std::filesystem::path(DLPRIM_DEVICES_DIR) / "h200.json").string());
    for (auto [name, layer] : layers())
        for (const Mode mode : {Mode::inference, Mode::training})
            for (const Precision precision : {Precision::fp32, Precision::fp16}) {
                INFO(name << (mode == Mode::training ? ", training, " : ", inference, ")
                          << name_of(precision));
                if (layer.mask.empty()) layer.length = layer.positions = 1024;
                layer.batch = layer.mask.empty() ? 8 : 2;
                layer.features = 64;
                NetOptions options;
                options.mode = mode;
                options.precision = precision;
                options.engines = {{"AttentionForward", "attention.matrix"},
                                   {"AttentionBackward", "attention.matrix_backward"}};
                Net net = Net::from_json(h200, network(layer), options);
                CHECK(moves(net) == std::vector<std::string>());
            }
}

TEST_CASE("Heads that lie in projections have the same results") {
    for (const auto& [name, layer] : layers()) {
        INFO(name);
        for (const Context& device : test_devices()) {
            INFO("on " << device.info().name);
            if (!device.traits().host)
                compare(device, layer, Mode::inference, {{"AttentionForward", "attention.online"}});
            else
                for (const Mode mode : {Mode::inference, Mode::training})
                    compare(device, layer, mode,
                            {{"AttentionForward", "attention.host"},
                             {"AttentionBackward", "attention.host_backward"}});
        }
    }
}
