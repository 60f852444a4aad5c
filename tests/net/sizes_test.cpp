// SPDX-License-Identifier: MIT
// Sizes that compile nothing: after the first ones, eager calls and a net that is reshaped use the
// programs that they have, for fifty random sizes of each operator in a table. Products first see
// sizes that choose all of the engines, since each engine has a program of its own. Generated
// kernels first see two sizes. Results are those of a fresh context bit by bit, so they depend on
// the size and not on what ran before, and the host's within the operator's tolerance.
#include "net/sizes.hpp"
#include "base/text.hpp"

#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

struct Sizes {
    std::int64_t m, n, k, batch, heads;
    std::string str() const {
        return cat("m ", m, " n ", n, " k ", k, " batch ", batch, " heads ", heads);
    }
};
constexpr Sizes large_sizes = {200, 300, 800, 4, 3};

/// Numbers up to `most`, of which small ones are as likely as large ones.
std::int64_t draw_size(std::mt19937& random, std::int64_t most) {
    const double share = static_cast<double>(random()) / 4294967296.0;
    return static_cast<std::int64_t>(std::pow(static_cast<double>(most + 1), share));
}

/// Sizes of at least `least`, up to the large ones.
std::vector<Sizes> draw_from(std::int64_t least, unsigned seed) {
    std::mt19937 random(seed);
    const auto size = [&](std::int64_t most) { return std::max(least, draw_size(random, most)); };
    std::vector<Sizes> all;
    for (int i = 0; i < random_sizes; ++i) {
        Sizes one{};
        one.m = size(large_sizes.m);
        one.n = size(large_sizes.n);
        one.k = size(large_sizes.k);
        one.batch = size(large_sizes.batch);
        one.heads = size(large_sizes.heads);
        all.push_back(one);
    }
    return all;
}

/// Sizes of generated kernels. None is 1, because a dimension of size 1 belongs to no kernel.
std::vector<Sizes> draw_pointwise(unsigned seed) {
    return draw_from(2, seed);
}

/// First sizes of products. Which engine is the fastest follows from the sizes, and each engine has
/// programs of its own. These cover single rows, columns and steps, few and many, and rows that
/// fill tiles.
std::vector<Sizes> first_sizes() {
    std::vector<Sizes> all;
    const Sizes& most = large_sizes;
    for (const std::int64_t m : {1, 5, 16, 144, 200})
        for (const std::int64_t n : {std::int64_t{1}, std::int64_t{2}, std::int64_t{9}, most.n})
            for (const std::int64_t k : {std::int64_t{1}, std::int64_t{3}, most.k})
                for (const bool many : {false, true})
                    all.push_back({m, n, k, many ? most.batch : 1, many ? most.heads : 1});
    return all;
}

/// Two sizes that differ in every dimension.
std::vector<Sizes> two_sizes() {
    return {{5, 7, 3, 2, 2}, large_sizes};
}

/// An operator whose programs serve all sizes.
struct SizesRow {
    const char* name;
    const char* type;
    const char* options;
    Shapes (*shapes)(const Sizes&);
    double tolerance;  ///< of the largest result
};

const SizesRow sizes_rows[] = {
    {"product", "MatMul", "{}",
     [](const Sizes& s) {
         return Shapes{{{s.m, s.k}, {s.k, s.n}}, {}};
     },
     2e-6},
    {"batch of products", "MatMul", "{}",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.k}, {s.batch, s.k, s.n}}, {}};
     },
     2e-6},
    {"product with the transposed second", "MatMul", R"({"transpose_b": true})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.k}, {s.batch, s.n, s.k}}, {}};
     },
     2e-6},
    {"product with the transposed first", "MatMul", R"({"transpose_a": true})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.k, s.m}, {s.batch, s.k, s.n}}, {}};
     },
     2e-6},
    // Of more than one group: heads that share a matrix are a single product with more rows.
    {"product of grouped heads", "MatMul", "{}",
     [](const Sizes& s) {
         return Shapes{{{s.batch + 1, s.heads, s.m, s.k}, {s.batch + 1, 1, s.k, s.n}}, {}};
     },
     2e-6},
    {"product of crossed batches", "MatMul", R"({"transpose_b": true})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, 1, s.m, s.k}, {1, s.heads + 1, s.n, s.k}}, {}};
     },
     2e-6},
    {"inner product", "InnerProduct", "{}",
     [](const Sizes& s) {
         return Shapes{{{s.m, s.k}}, {{s.n, s.k}, {s.n}}};
     },
     2e-6},
};

// Operators that become generated kernels (engine/pointwise).
const SizesRow pointwise_rows[] = {
    {"sum of two", "Elementwise", R"({"operation": "sum"})",
     [](const Sizes& s) {
         return Shapes{{{s.m, s.n}, {s.m, s.n}}, {}};
     },
     1e-6},
    {"a row for all rows", "Elementwise", R"({"operation": "prod"})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.n}, {s.n}}, {}};
     },
     1e-6},
    {"a number for each row", "Pointwise", R"json({"code": "y0 = exp(x0 - x1)"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.n}, {s.batch, s.m, 1}}, {}};
     },
     2e-6},
    {"a row for each matrix", "Pointwise", R"json({"code": "y0 = x0 * x1 + x2"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.n}, {s.batch, 1, s.n}, {s.m, 1}}, {}};
     },
     1e-6},
    {"a number for each channel", "Pointwise", R"json({"code": "y0 = x0 * x1 + x2"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.k, s.heads, s.n}, {s.k, 1, 1}, {s.k, 1, 1}}, {}};
     },
     1e-6},
    {"softmax", "Softmax", R"({"axis": -1})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.heads, s.m, s.n}}, {}};
     },
     2e-6},
    {"layer norm", "LayerNorm", R"({"elementwise_affine": false})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.n}}, {}};
     },
     4e-6},
    {"sum of all", "Pointwise", R"json({"code": "y0 = sum[](x0 * x0)"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.k}}, {}};
     },
     4e-6},
    {"mean of columns", "Pointwise", R"json({"code": "y0 = mean[0](x0 * x0)"})json",
     [](const Sizes& s) {
         return Shapes{{{s.m, s.n}}, {}};
     },
     4e-6},
    {"largest of rows", "Pointwise", R"json({"code": "y0 = max[-1](x0)"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.k}}, {}};
     },
     1e-6},
    {"sums of channels", "Pointwise",
     R"json({"code": "y0 = mean[0, 2, 3](abs(x0)); y1 = mean[0, 2, 3](x0 * x0)"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.heads, s.n}}, {}};
     },
     4e-6},
    {"softmax of columns", "Softmax", R"({"axis": 1, "log": true})",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.n}}, {}};
     },
     2e-6},
    {"sums in the middle", "Pointwise", R"json({"code": "y0 = sum[1](x0 * x0 + x1 * x1)"})json",
     [](const Sizes& s) {
         return Shapes{{{s.batch, s.m, s.n}, {s.m, 1}}, {}};
     },
     4e-6},
    {"mean squared error", "MSELoss", "{}",
     [](const Sizes& s) {
         return Shapes{{{s.m, s.k}, {s.m, s.k}}, {}};
     },
     4e-6},
};

/// The row's options of a call or a node; some operators need to be told their sizes.
std::string options_of(const SizesRow& row, const Sizes& sizes) {
    const std::string_view type = row.type;
    if (type == "InnerProduct") return cat(R"({"outputs": )", sizes.n, "}");
    if (type == "LayerNorm")
        return cat(R"({"elementwise_affine": false, "normalized_shape": [)", sizes.n, "]}");
    return row.options;
}

Tensor call_eager(const Context& device, const SizesRow& row, const Sizes& sizes) {
    const Shapes shapes = row.shapes(sizes);
    return ops::call(row.type, options_of(row, sizes), tensors(device, shapes.inputs, 1),
                     tensors(device, shapes.params, 100))
        .at(0);
}

Net net_of(const Context& device, const SizesRow& row, const Sizes& sizes) {
    std::string inputs, names;
    const Shapes shapes = row.shapes(sizes);
    for (std::size_t i = 0; i < shapes.inputs.size(); ++i) {
        const char* const comma = i ? ", " : "";
        inputs += cat(comma, R"({"name": "x)", i, R"(", "shape": )", shapes.inputs[i].str(), "}");
        names += cat(comma, "\"x", i, '"');
    }
    return make_net(device,
                    cat(R"({"inputs": [)", inputs, R"(], "outputs": ["y"], "operators": [
        {"name": "one", "type": ")",
                        row.type, R"(", "inputs": [)", names, R"(], "outputs": ["y"], "options": )",
                        options_of(row, sizes), "}]}"));
}

Tensor run_net(Net& net, const SizesRow& row, const Sizes& sizes) {
    const std::vector<Shape> shapes = row.shapes(sizes).inputs;
    std::map<std::string, Shape> named;
    for (std::size_t i = 0; i < shapes.size(); ++i) named[cat("x", i)] = shapes[i];
    net.reshape(named);
    for (std::size_t i = 0; i < shapes.size(); ++i)
        set_floats(net, cat("x", i),
                   random_floats(static_cast<std::size_t>(shapes[i].numel()),
                                 1 + static_cast<unsigned>(i)));
    net.forward();
    return net.output("y");
}

void check_eager(const Context& device, const SizesRow& row, const Runs<Sizes>& sizes) {
    const Context used(device.info().id);
    const auto call = [&](const Context& on, const Sizes& s) { return call_eager(on, row, s); };
    check_sizes(
        used, row, sizes, [&](const Sizes& s) { return call(used, s); }, call);
}

void check_net(const Context& device, const SizesRow& row, Runs<Sizes> sizes) {
    // The sizes of parameters and those that options name belong to the net.
    const bool has_params = !row.shapes(large_sizes).params.empty();
    const bool names_n = options_of(row, large_sizes) != options_of(row, two_sizes()[0]);
    for (std::vector<Sizes>* all : {&sizes.first, &sizes.random})
        for (Sizes& s : *all) {
            if (names_n) s.n = large_sizes.n;
            if (has_params) s.k = large_sizes.k;
        }
    const Context used(device.info().id);
    Net net = net_of(used, row, large_sizes);
    check_sizes(
        used, row, sizes, [&](const Sizes& s) { return run_net(net, row, s); },
        [&](const Context& on, const Sizes& s) {
            Net other = net_of(on, row, s);
            return run_net(other, row, s);
        });
}

// Norms, activations, pooling of whole images and a loss, but neither products nor convolutions.
constexpr const char* pointwise_network = R"({
  "inputs": [{"name": "x", "shape": [2, 16, 5, 7]}, {"name": "label", "shape": [2], "dtype": "int32"}],
  "outputs": ["loss"],
  "operators": [
    {"name": "bn", "type": "BatchNorm", "inputs": ["x"], "outputs": ["bn"], "options": {"features": 16}},
    {"name": "relu", "type": "Activation", "inputs": ["bn"], "outputs": ["relu"],
     "options": {"activation": "relu"}},
    {"name": "sum", "type": "Elementwise", "inputs": ["relu", "x"], "outputs": ["sum"],
     "options": {"operation": "sum"}},
    {"name": "bn2", "type": "BatchNorm", "inputs": ["sum"], "outputs": ["bn2"],
     "options": {"features": 16}},
    {"name": "gap", "type": "GlobalPooling", "inputs": ["bn2"], "outputs": ["gap"],
     "options": {"mode": "avg"}},
    {"name": "flat", "type": "Flatten", "inputs": ["gap"], "outputs": ["flat"]},
    {"name": "norm", "type": "LayerNorm", "inputs": ["flat"], "outputs": ["norm"],
     "options": {"normalized_shape": [16]}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["norm", "label"], "outputs": ["loss"]}
  ]})";

/// A step of training on `images` images of this height and width.
void train_on(Net& net, Solver& solver, std::int64_t images, std::int64_t height,
              std::int64_t width) {
    const Shape shape{images, 16, height, width};
    net.reshape({{"x", shape}, {"label", {images}}});
    set_floats(net, "x", random_floats(static_cast<std::size_t>(shape.numel()), 1));
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < images; ++i) labels.push_back(static_cast<std::int32_t>(i % 16));
    set_labels(net, "label", labels);
    solver.step();
}

}  // namespace

TEST_CASE("eager calls of a new size compile nothing", "[sizes]") {
    ON_EVERY_DEVICE(device) {
        for (const SizesRow& row : sizes_rows)
            check_eager(device, row, {first_sizes(), draw_from(1, 1)});
        for (const SizesRow& row : pointwise_rows)
            check_eager(device, row, {two_sizes(), draw_pointwise(1)});
    }
}

TEST_CASE("a net of a new size compiles nothing", "[sizes]") {
    ON_EVERY_DEVICE(device) {
        for (const SizesRow& row : sizes_rows)
            check_net(device, row, {first_sizes(), draw_from(1, 2)});
        for (const SizesRow& row : pointwise_rows)
            check_net(device, row, {two_sizes(), draw_pointwise(2)});
    }
}

TEST_CASE("training on a new size compiles nothing", "[sizes]") {
    ON_EVERY_DEVICE(device) {
        for (const auto kind : {SolverOptions::Kind::adam, SolverOptions::Kind::sgd}) {
            const Context used(device.info().id);
            Net net = make_net(used, pointwise_network, training());
            SolverOptions options;
            options.kind = kind;
            Solver solver(net, options);
            train_on(net, solver, 2, 5, 7);
            train_on(net, solver, 9, 40, 30);
            std::uint64_t programs = programs_of(used);
            for (const Sizes& one : draw_pointwise(3)) {
                INFO(one.str());
                train_on(net, solver, one.batch + 1, one.k % 40 + 2, one.n % 30 + 2);
                CHECK(programs_of(used) == programs);
                programs = programs_of(used);
            }
        }
    }
}
