// SPDX-License-Identifier: MIT
// ONNXSession: models whose shapes depend on values, and what runs of the same shapes share.
#include "formats/onnx/builder.hpp"
#include "onnx/session_support.hpp"
#include "support/warnings.hpp"

using namespace onnx_test;

TEST_CASE("a shape may be an input, and every shape has its nets") {
    Session session = open_session({.nodes = {node("Relu", {"x"}, {"positive"}),
                                              node("Reshape", {"positive", "sizes"}, {"y"})},
                                    .inputs = {value("x", {4}), value("sizes", {2}, type_int64)},
                                    .outputs = {value("y", {-1, -1})}});
    CHECK(session.run({{"x", tensor({4}, {-1, 2, -3, 4})}, {"sizes", sizes({2, 2})}}) ==
          "float [2, 2]: 0 2 0 4");
    CHECK(session.nets() == 1);
    CHECK(session.run({{"x", tensor({4}, {1, 2, 3, 4})}, {"sizes", sizes({2, 2})}}) ==
          "float [2, 2]: 1 2 3 4");
    CHECK(session.nets() == 1);  // found in the cache
    CHECK(session.run({{"x", tensor({4}, {1, 2, 3, 4})}, {"sizes", sizes({4, -1})}}) ==
          "float [4, 1]: 1 2 3 4");
    CHECK(session.nets() == 2);
}

TEST_CASE("a shape may be computed on the device") {
    // y = expand(x, [largest element of x])
    Session session =
        open_session({.nodes = {node("ReduceMax", {"x"}, {"most"}, {{attribute("keepdims", 1)}}),
                                node("Cast", {"most"}, {"count"}, {{attribute("to", 7)}}),
                                node("Expand", {"one", "count"}, {"ones"}),
                                node("Mul", {"ones", "most"}, {"y"})},
                      .inputs = {value("x", {3})},
                      .outputs = {value("y", {-1})},
                      .initializers = {floats("one", {1}, {1})}});
    CHECK(session.run({{"x", tensor({3}, {1, 3, 2})}}) == "float [3]: 3 3 3");
    CHECK(session.run({{"x", tensor({3}, {1, 0, 2})}}) == "float [2]: 2 2");
    const std::int64_t made = session.nets();
    CHECK(session.run({{"x", tensor({3}, {3, 0, 0})}}) == "float [3]: 3 3 3");
    CHECK(session.run({{"x", tensor({3}, {0, 0, 0})}}) == "float [0]:");
    CHECK(session.nets() == made);  // the last needs none: it has no elements
}

TEST_CASE("open sizes are those of the inputs") {
    Session session = open_session({.nodes = {node("Add", {"x", "x"}, {"y"})},
                                    .inputs = {value("x", {-1, 2})},
                                    .outputs = {value("y", {-1, 2})}});
    CHECK(session.run({{"x", tensor({1, 2}, {1, 2})}}) == "float [1, 2]: 2 4");
    CHECK(session.run({{"x", tensor({2, 2}, {1, 2, 3, 4})}}) == "float [2, 2]: 2 4 6 8");
    CHECK(session.run({{"x", tensor({0, 2}, {})}}) == "float [0, 2]:");
}

TEST_CASE("a size of -1 and one named ? are open, each for itself") {
    const std::string shape =
        bytes(1, number(1, -1)) + bytes(1, bytes(2, "?")) + bytes(1, bytes(2, "?"));
    Session session = open_session(
        {.nodes = {node("Add", {"x", "x"}, {"y"})},
         .inputs = {bytes(1, "x") + bytes(2, bytes(1, number(1, type_float) + bytes(2, shape)))},
         .outputs = {value("y", {-1, -1, -1})}});
    CHECK(session.run({{"x", tensor({2, 1, 3}, {1, 2, 3, 4, 5, 6})}}) ==
          "float [2, 1, 3]: 2 4 6 8 10 12");
}

TEST_CASE("outputs may be inputs and constants, and an initialiser may be given") {
    Session session =
        open_session({.nodes = {node("Identity", {"x"}, {"y"})},
                      .inputs = {value("x", {}), value("stored", {2})},
                      .outputs = {value("y", {}), value("x", {}), value("stored", {2})},
                      .initializers = {floats("stored", {2}, {5, 6})}});
    CHECK(session.run({{"x", tensor({}, {7})}}) == "float []: 7");
    CHECK(session.output("x") == "float []: 7");
    CHECK(session.output("stored") == "float [2]: 5 6");
    session.run({{"x", tensor({}, {7})}, {"stored", tensor({2}, {1, 2})}});
    CHECK(session.output("stored") == "float [2]: 1 2");
    CHECK(session.nets() == 0);
}

TEST_CASE("a session keeps as many ways as it may") {
    Model model{.nodes = {node("Reshape", {"x", "sizes"}, {"r"}), node("Relu", {"r"}, {"y"})},
                .inputs = {value("x", {4}), value("sizes", {1}, type_int64)},
                .outputs = {value("y", {-1})}};
    dlprim::ONNXSessionOptions options;
    options.max_programs = 2;
    Session session = open_session(model, options);
    const auto run = [&](const Sizes& shape) {
        session.run({{"x", tensor({4}, {1, 2, 3, 4})}, {"sizes", sizes(shape)}});
        return session.nets();
    };
    model.inputs[1] = value("sizes", {-1}, type_int64);
    session = open_session(model, options);
    CHECK(run({4}) == 1);
    CHECK(run({2, 2}) == 2);
    CHECK(run({4}) == 2);
    CHECK(run({1, 4}) == 3);  // drops [2, 2], which was used least recently
    CHECK(run({4}) == 3);
    CHECK(run({2, 2}) == 4);
}

/// y = x w, with a w of 64 KiB.
Model product_of_any_rows() {
    return {.nodes = {node("MatMul", {"x", "w"}, {"h"}), node("Relu", {"h"}, {"y"})},
            .inputs = {value("x", {-1, 128})},
            .outputs = {value("y", {-1, 128})},
            .initializers = {floats("w", {128, 128}, Values(128 * 128, 0.5))}};
}

TEST_CASE("programs of many shapes keep no weights of their own") {
    const dlprim::Context device("cpu");
    Session session = open_session(product_of_any_rows(), {}, device);
    const auto run = [&](std::int64_t rows) {
        session.run({{"x", tensor({rows, 128}, Values(static_cast<std::size_t>(rows) * 128, 1))}});
        return session.output("y");
    };
    const std::uint64_t before = device.memory().live;
    for (std::int64_t rows = 1; rows <= 20; ++rows) run(rows);
    CHECK(session.nets() == 20);
    // Inputs and outputs, 2 * 512 bytes a row, are a program's own.
    const std::uint64_t own = 210 * 2 * 512;
    CHECK(device.memory().live - before >= own);
    CHECK(device.memory().live - before < own + 20 * 4096);
    for (std::int64_t rows = 1; rows <= 20; ++rows)
        CHECK(run(rows).find(": 64 64") != std::string::npos);
    CHECK(session.nets() == 20);
}

TEST_CASE("imports share copies of the model's values") {
    using namespace dlprim::onnx;
    ValueCopies copies;
    const auto made_of = [&](const HostValue& value, const auto& make) {
        Builder build;
        build.share_copies(copies);
        return make(build, build.constant("w", value))->known;
    };
    const auto turned = [](Builder& build, Ref w) { return build.transpose(w, {1, 0}); };
    const auto flat = [](Builder& build, Ref w) { return build.reshape(w, {6}); };
    const auto whole = [](Builder& build, Ref w) { return build.cast(w, dlprim::DType::i32); };
    const auto one = host_numbers({2, 3}, {1, 2, 3, 4, 5, 6}, dlprim::DType::f32);
    const HostValue first = made_of(one, turned);
    CHECK(to_numbers(*first) == std::vector<double>{1, 4, 2, 5, 3, 6});
    CHECK(made_of(one, turned) == first);
    CHECK(made_of(one, flat)->shape == dlprim::Shape{6});
    CHECK(made_of(one, whole)->dtype == dlprim::DType::i32);
    const auto other = host_numbers({2, 3}, {6, 5, 4, 3, 2, 1}, dlprim::DType::f32);
    CHECK(to_numbers(*made_of(other, turned)) == std::vector<double>{6, 3, 5, 2, 4, 1});
    // A copy that nobody holds takes no memory.
    const std::weak_ptr<const dlprim::HostTensor> gone = made_of(other, turned);
    CHECK(gone.expired());
}

TEST_CASE("programs of many shapes pack weights once") {
    const Model model{.nodes = {node("Conv", {"x", "w"}, {"h"}), node("Relu", {"h"}, {"y"})},
                      .inputs = {value("x", {1, 32, -1, 8})},
                      .outputs = {value("y", {1, 32, -1, 6})},
                      .initializers = {floats("w", {32, 32, 3, 3}, Values(32 * 32 * 9, 0.5))}};
    const dlprim::Context device("cpu");
    Session session = open_session(model, {}, device);
    const auto run = [&](std::int64_t rows) {
        const auto count = static_cast<std::size_t>(rows) * 32 * 8;
        session.run({{"x", tensor({1, 32, rows, 8}, Values(count, 1))}});
        return device.memory().live;
    };
    const std::uint64_t one = run(20);
    std::uint64_t own = 0;  // inputs and outputs
    for (std::uint64_t rows = 21; rows <= 40; ++rows) {
        run(static_cast<std::int64_t>(rows));
        own += (rows * 8 + (rows - 2) * 6) * 32 * 4;
    }
    CHECK(session.nets() == 21);
    CHECK(device.memory().live - one < own + 20 * 4096);  // the weights are 36 KiB
}

TEST_CASE("programs that keep more memory than they may are dropped") {
    dlprim::ONNXSessionOptions options;
    options.max_program_bytes = 0;
    Session session = open_session(product_of_any_rows(), options);
    const auto run = [&](std::int64_t rows) {
        session.run({{"x", tensor({rows, 128}, Values(static_cast<std::size_t>(rows) * 128, 1))}});
        return session.nets();
    };
    CHECK(run(1) == 1);
    CHECK(run(1) == 1);  // the last is kept in any case
    CHECK(run(2) == 2);
    CHECK(run(1) == 3);
}

TEST_CASE("inputs that do not fit are named, with what is declared") {
    Session session = open_session({.nodes = {node("Add", {"x", "z"}, {"y"})},
                                    .inputs = {value("x", {-1, 2}), value("z", {-1, 2})},
                                    .outputs = {value("y", {-1, 2})}});
    const auto x = tensor({1, 2}, {1, 2});
    CHECK(has(session.error({{"x", x}}), "input 'z' is not given; it is declared as float [N, 2]"));
    CHECK(has(session.error({{"x", x}, {"z", x}, {"w", x}}), "has no input 'w'"));
    CHECK(has(session.error({{"x", x}, {"z", tensor({1, 3}, {1, 2, 3})}}),
              "input 'z' is declared as float [N, 2], got float [1, 3]"));
    CHECK(has(session.error({{"x", x}, {"z", sizes({1, 2})}}),
              "input 'z' is declared as float [N, 2], got int64 [2]"));
    {
        dlprim::testing::Warnings warnings;
        CHECK(session.run({{"x", x}, {"z", tensor({2, 2}, {1, 2, 3, 4})}}) ==
              "float [2, 2]: 2 4 4 6");
        REQUIRE(warnings.lines.size() == 1);
        CHECK(has(warnings.lines[0], "input 'z' has N = 2, input 'x' has N = 1"));
    }
    CHECK(has(session.error({{"x", x}, {"z", dlprim::ONNXValue()}}), "got nothing"));
    CHECK(session.run({{"x", x}, {"z", x}}) == "float [1, 2]: 2 4");  // it can still be used
}

TEST_CASE("more constants than memory is one sentence") {
    Session session = open_session({.nodes = {node("ConstantOfShape", {"sizes"}, {"y"})},
                                    .inputs = {value("sizes", {-1}, type_int64)},
                                    .outputs = {value("y", {-1})}});
    CHECK(session.run({{"sizes", sizes({2})}}) == "float [2]: 0 0");
    CHECK(has(session.error({{"sizes", sizes({1 << 20, 1 << 20})}}), "would take more than"));
}
