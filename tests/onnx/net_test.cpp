// SPDX-License-Identifier: MIT
// What models compute on the host, and what the importer settles beforehand: sizes, constants,
// names.
#include "onnx/support.hpp"

#include <cmath>
#include <limits>

using namespace onnx_test;

TEST_CASE("arithmetic, with constants and broadcasting") {
    Model model{
        .nodes = {node("Add", {"x", "two"}, {"sum"}), node("Sub", {"sum", "row"}, {"difference"}),
                  node("Max", {"difference", "zero"}, {"y"})},
        .inputs = {value("x", {2, 3})},
        .outputs = {value("y", {2, 3})},
        .initializers = {floats("two", {}, {2}), floats("row", {3}, {1, 2, 3}),
                         floats("zero", {1}, {0})}};
    CHECK(run(model, {{"x", {-5, 0, 1, 2, 3, 4}}}) == Values{0, 0, 0, 3, 3, 3});
}

TEST_CASE("a convolution with padding on one side, and with auto_pad") {
    Model model{.inputs = {value("x", {1, 1, 2, 2})},
                .outputs = {value("y", {1, 1, 2, 2})},
                .initializers = {floats("w", {1, 1, 2, 2}, {1, 2, 3, 4}), floats("b", {1}, {100})}};
    const std::map<std::string, Values> x{{"x", {1, 1, 1, 1}}};
    // Padding below and to the right.
    const Values lower_right{110, 104, 103, 101}, upper_left{104, 107, 106, 110};
    model.nodes = {node("Conv", {"x", "w", "b"}, {"y"}, {{attribute("pads", Sizes{0, 0, 1, 1})}})};
    CHECK(run(model, x) == lower_right);
    model.nodes = {node("Conv", {"x", "w", "b"}, {"y"}, {{attribute("auto_pad", "SAME_UPPER")}})};
    CHECK(run(model, x) == lower_right);
    model.nodes = {node("Conv", {"x", "w", "b"}, {"y"}, {{attribute("auto_pad", "SAME_LOWER")}})};
    CHECK(run(model, x) == upper_left);
}

TEST_CASE("a convolution's weight may be fed, and images may have one dimension") {
    Model model{.nodes = {node("Conv", {"x", "w"}, {"y"})},
                .inputs = {value("x", {1, 1, 4}), value("w", {1, 1, 2})},
                .outputs = {value("y", {1, 1, 3})}};
    CHECK(run(model, {{"x", {1, 2, 3, 4}}, {"w", {1, 10}}}) == Values{21, 32, 43});
}

TEST_CASE("sizes that follow from shapes are folded, for every batch") {
    dlprim::Net net =
        open({.nodes = {node("Shape", {"x"}, {"shape"}),
                        node("Gather", {"shape", "first"}, {"batch"}, {{attribute("axis", 0)}}),
                        node("Unsqueeze", {"batch", "first_axis"}, {"batch_list"}),
                        node("Concat", {"batch_list", "rest"}, {"sizes"}, {{attribute("axis", 0)}}),
                        node("Reshape", {"x", "sizes"}, {"flat"}), node("Relu", {"flat"}, {"y"})},
              .inputs = {value("x", {-1, 2, 2})},
              .outputs = {value("y", {-1, 4})},
              .initializers = {tensor("first", {}, type_int64, raw<std::int64_t>({0})),
                               integers("first_axis", {0}), integers("rest", {-1})}});
    CHECK(types(net) == "Reshape Activation");
    CHECK(run(net, {{"x", {1, -2, 3, -4}}}) == Values{1, 0, 3, 0});
    net.reshape(2);
    CHECK(run(net, {{"x", {1, -2, 3, -4, -5, 6, -7, 8}}}) == Values{1, 0, 3, 0, 0, 6, 0, 8});
    CHECK(net.output("y").shape() == dlprim::Shape{2, 4});
}

TEST_CASE("a product with a constant matrix keeps the batch open") {
    Model model{
        .nodes = {node("MatMul", {"x", "w"}, {"product"}), node("Add", {"product", "b"}, {"y"})},
        .inputs = {value("x", {1, 2, 2})},
        .outputs = {value("y", {1, 2, 3})},
        .initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("b", {3}, {10, 20, 30})}};
    dlprim::NetOptions options;
    options.batch = 2;
    dlprim::Net net = open(model, options);
    CHECK(types(net) == "Reshape InnerProduct Reshape");
    CHECK(run(net, {{"x", {1, 0, 0, 1, 1, 1, 0, 0}}}) ==
          Values{11, 22, 33, 14, 25, 36, 15, 27, 39, 10, 20, 30});
}

TEST_CASE("outputs may be inputs, constants, or the same value twice") {
    dlprim::Net net = open({.nodes = {node("Identity", {"x"}, {"same"}), node("Relu", {"x"}, {"y"}),
                                      node("Identity", {"y"}, {"again"})},
                            .inputs = {value("x", {2})},
                            .outputs = {value("y", {2}), value("same", {2}), value("again", {2}),
                                        value("stored", {2})},
                            .initializers = {floats("stored", {2}, {5, 6})}});
    CHECK(net.output_names() == std::vector<std::string>{"y", "same", "again", "stored"});
    CHECK(run(net, {{"x", {-1, 2}}}) == Values{0, 2});
    const auto read = [&](const char* name) {
        Values result(2);
        net.output(name).copy_to_host(result.data(), 8);
        return result;
    };
    CHECK(read("same") == Values{-1, 2});
    CHECK(read("again") == Values{0, 2});
    CHECK(read("stored") == Values{5, 6});
}

TEST_CASE("a model's own functions are expanded, with their attributes") {
    // shifted_softmax(a) = Softmax<axis = axis>(a + a)
    const std::string axis = bytes(1, "axis") + number(20, 2) + bytes(21, "axis");
    const std::string function = bytes(1, "shifted_softmax") + bytes(4, "a") + bytes(5, "b") +
                                 bytes(6, "axis") + bytes(7, node("Add", {"a", "a"}, {"twice"})) +
                                 bytes(7, node("Softmax", {"twice"}, {"b"}, {{axis}})) +
                                 bytes(9, bytes(1, "") + number(2, 17)) + bytes(10, "custom");
    Model model{
        .nodes = {node("shifted_softmax", {"x"}, {"y"}, {{attribute("axis", 0)}, "", "custom"})},
        .inputs = {value("x", {2, 1})},
        .outputs = {value("y", {2, 1})},
        .functions = {function}};
    CHECK(run(model, {{"x", {3, 3}}}) == Values{0.5, 0.5});
}

TEST_CASE("a function's attributes have defaults") {
    // softmax(a) = Softmax<axis = axis>(a), where axis is 0 unless it is given
    const std::string axis = bytes(1, "axis") + number(20, 2) + bytes(21, "axis");
    Model model{.nodes = {node("softmax", {"x"}, {"y"}, {{}, "", "custom"})},
                .inputs = {value("x", {2, 1})},
                .outputs = {value("y", {2, 1})},
                .functions = {bytes(1, "softmax") + bytes(4, "a") + bytes(5, "b") +
                              bytes(11, attribute("axis", 0)) +
                              bytes(7, node("Softmax", {"a"}, {"b"}, {{axis}})) +
                              bytes(9, bytes(1, "") + number(2, 17)) + bytes(10, "custom")}};
    CHECK(run(model, {{"x", {3, 3}}}) == Values{0.5, 0.5});
    model.nodes = {node("softmax", {"x"}, {"y"}, {{attribute("axis", 1)}, "", "custom"})};
    CHECK(run(model, {{"x", {3, 3}}}) == Values{1, 1});
}

TEST_CASE("an image grows by a scale that is no exact float") {
    Model model{.nodes = {node("Resize", {"x", "", "scales"}, {"y"},
                               {{attribute("coordinate_transformation_mode", "asymmetric"),
                                 attribute("nearest_mode", "floor")}})},
                .inputs = {value("x", {1, 1, 1, 10})},
                .outputs = {value("y", {1, 1, 1, 7})},
                .initializers = {floats("scales", {4}, {1, 1, 1, 0.7f})}};
    CHECK(run(model, {{"x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}) == Values{0, 1, 2, 4, 5, 7, 8});
}

TEST_CASE("integers that a double does not hold are not folded, and are divided exactly") {
    Model model;
    const std::int64_t root = 3037000499;
    model.nodes = {node("Mul", {"root", "root"}, {"square"}), node("Mod", {"square", "ten"}, {"y"}),
                   node("Div", {"square", "ten"}, {"z"})};
    model.initializers = {integers("root", {root}), integers("ten", {10})};
    model.inputs = {value("x", {1})};
    model.outputs = {value("y", {1}, type_int64), value("z", {1}, type_int64)};
    dlprim::Net net = open(model);
    net.forward();
    std::int64_t rest = 0, quotient = 0;
    net.output("y").copy_to_host(&rest, sizeof(rest));
    net.output("z").copy_to_host(&quotient, sizeof(quotient));
    CHECK(rest == 1);
    CHECK(quotient == 922337203092624900);
}

TEST_CASE("quotients and remainders of wide integers have all signs") {
    constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    const Sizes a{7, -7, 7, -7, 0, 123456789012345678, -123456789012345678, 6, -6, 5, 0, lowest},
        b{3, 3, -3, -3, 5, 1000003, 1000003, 3, -3, 0, 0, -1};
    const auto count = static_cast<std::int64_t>(a.size());
    Model model{.nodes = {node("Div", {"a", "b"}, {"div"}), node("Mod", {"a", "b"}, {"mod"}),
                          node("Mod", {"a", "b"}, {"fmod"}, {{attribute("fmod", 1)}})},
                .inputs = {value("a", {count}, type_int64), value("b", {count}, type_int64)}};
    for (const char* name : {"div", "mod", "fmod"})
        model.outputs.push_back(value(name, {count}, type_int64));
    dlprim::Net net = open(model);
    net.set_input("a", a.data(), a.size() * sizeof(a[0]));
    net.set_input("b", b.data(), b.size() * sizeof(b[0]));
    net.forward();
    Sizes div(a.size()), mod(a.size()), fmod(a.size());
    net.output("div").copy_to_host(div.data(), div.size() * sizeof(div[0]));
    net.output("mod").copy_to_host(mod.data(), mod.size() * sizeof(mod[0]));
    net.output("fmod").copy_to_host(fmod.data(), fmod.size() * sizeof(fmod[0]));
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (b[i] == 0 || b[i] == -1) {  // docs/pointwise.md has these
            CHECK(div[i] == (b[i] == 0 ? 0 : lowest));
            CHECK(fmod[i] == 0);
            CHECK(mod[i] == 0);
            continue;
        }
        CHECK(div[i] == a[i] / b[i]);
        CHECK(fmod[i] == a[i] % b[i]);
        CHECK(mod[i] == (a[i] % b[i] + b[i]) % b[i]);
    }
}

TEST_CASE("quotients of known integers by 0 are folded to 0") {
    dlprim::Net net =
        open({.nodes = {node("Div", {"a", "b"}, {"div"}), node("Mod", {"a", "b"}, {"mod"}),
                        node("Add", {"div", "mod"}, {"sum"}), node("Add", {"x", "sum"}, {"y"})},
              .inputs = {value("x", {2}, type_int64)},
              .outputs = {value("y", {2}, type_int64)},
              .initializers = {integers("a", {7, -7}), integers("b", {0, 0})}});
    const Sizes x{10, 20};
    net.set_input("x", x.data(), x.size() * sizeof(x[0]));
    net.forward();
    Sizes y(2);
    net.output("y").copy_to_host(y.data(), y.size() * sizeof(y[0]));
    CHECK(y == x);
}

TEST_CASE("load_model() fills an empty Net, and takes the place of another network") {
    Model model{.nodes = {node("Add", {"x", "w"}, {"y"})},
                .inputs = {value("x", {2})},
                .outputs = {value("y", {2})},
                .initializers = {floats("w", {2}, {1, 2})}};
    const Folder folder;
    dlprim::Net net(dlprim::Context("cpu"));
    CHECK(net.input_names().empty());
    CHECK_THROWS_AS(net.forward(), dlprim::Error);
    CHECK_THROWS_AS(net.load_model(dlprim::ONNXModel()), dlprim::Error);
    dlprim::ONNXModel loaded;
    loaded.load(folder.write("a.onnx", model.str()));
    CHECK(loaded.inputs().size() == 1);
    CHECK(loaded.inputs()[0].dims == std::vector<std::int64_t>{2});
    CHECK(loaded.output_names() == std::vector<std::string>{"y"});
    net.load_model(loaded);
    CHECK(run(net, {{"x", {10, 20}}}) == Values{11, 22});
    model.nodes = {node("Mul", {"x", "w"}, {"y"})};
    net.load_model(dlprim::ONNXModel(folder.write("b.onnx", model.str())));
    CHECK(run(net, {{"x", {10, 20}}}) == Values{10, 40});
}

TEST_CASE("a converted model gives the same bits") {
    Model model;
    model.nodes = {node("Conv", {"x", "w"}, {"c"}),
                   node("Add", {"c", "/a//shift"}, {"s"}),
                   node("Gather", {"s", "back"}, {"g"}, {{attribute("axis", 1)}}),
                   node("Clip", {"g", "low"}, {"clipped"}),
                   node("Max", {"clipped", "none"}, {"m"}),
                   node("Add", {"m", "none"}, {"lost"}),
                   node("Max", {"m", "lost"}, {"y"})};
    // A bound alone and an infinite number survive as JSON.
    model.initializers = {floats("w", {2, 1, 1, 1}, {0.1f, 3}), integers("back", {1, 0}),
                          floats("low", {}, {0.5}), floats("none", {1}, {-INFINITY}),
                          floats("/a//shift", {2, 1, 1}, {0.25f, -1e9f})};
    model.inputs = {value("x", {1, 1, 1, 2})};
    model.outputs = {value("y", {1, 2, 1, 2})};
    const Folder folder;
    const std::string path = folder.write("model.onnx", model.str());
    dlprim::ONNXModel(path).convert(folder.file("net.json"), folder.file("w.h5"));
    const dlprim::Context host("cpu");
    dlprim::Net direct = dlprim::Net::from_onnx_file(host, path);
    dlprim::Net converted = dlprim::Net::from_json_file(host, folder.file("net.json"));
    converted.load_weights(folder.file("w.h5"));
    const std::map<std::string, Values> x{{"x", {1.7f, -0.3f}}};
    CHECK(run(converted, x) == run(direct, x));
}

TEST_CASE("an imported network trains") {
    Model model{.nodes = {node("Gemm", {"x", "w", "b"}, {"y"}, {{attribute("transB", 1)}})},
                .inputs = {value("x", {1, 2})},
                .outputs = {value("y", {1, 1})},
                .initializers = {floats("w", {1, 2}, {1, 1}), floats("b", {1}, {0})}};
    dlprim::NetOptions options;
    options.mode = dlprim::Mode::training;
    options.output_gradients = true;
    dlprim::Net net = open(model, options);
    CHECK(net.is_trainable("w"));
    CHECK(run(net, {{"x", {3, 4}}}) == Values{7});
    net.output_gradient("y").fill(1);
    net.backward();
    Values gradient(2);
    net.gradient("w").copy_to_host(gradient.data(), 8);
    CHECK(gradient == Values{3, 4});
}

TEST_CASE("a net refuses shapes for which a large constant of the model is another one") {
    // y = x + sum(range(5000) * the batch)
    Model model{.nodes = {node("Shape", {"x"}, {"shape"}, {{attribute("end", 1)}}),
                          node("Cast", {"shape"}, {"batch"}, {{attribute("to", 1)}}),
                          node("Range", {"zero", "limit", "one"}, {"places"}),
                          node("Mul", {"places", "batch"}, {"scaled"}),
                          node("Add", {"x", "scaled"}, {"y"})},
                .inputs = {value("x", {-1, 5000})},
                .outputs = {value("y", {-1, 5000})},
                .initializers = {floats("zero", {}, {0}), floats("limit", {}, {5000}),
                                 floats("one", {}, {1})}};
    dlprim::Net net = open(model);
    CHECK(run(net, {{"x", Values(5000)}})[4999] == 4999);
    const std::string text = dlprim::testing::message_of([&] { net.reshape(2); });
    CHECK(has(text, "the model makes another constant"));
    CHECK(run(net, {{"x", Values(5000)}})[4999] == 4999);
    dlprim::NetOptions options;
    options.batch = 2;
    net = open(model, options);
    CHECK(run(net, {{"x", Values(10000)}})[4999] == 9998);
}

TEST_CASE("infinite options survive as JSON") {
    Model model{.nodes = {node("Pad", {"x", "pads", "fill"}, {"y"})},
                .inputs = {value("x", {2})},
                .outputs = {value("y", {3})},
                .initializers = {integers("pads", {1, 0}),
                                 floats("fill", {}, {-std::numeric_limits<float>::infinity()})}};
    const Folder folder;
    dlprim::ONNXModel(folder.write("model.onnx", model.str()))
        .convert(folder.file("net.json"), folder.file("w.h5"));
    dlprim::Net net = dlprim::Net::from_json_file(dlprim::Context("cpu"), folder.file("net.json"));
    net.initialize();
    const Values y = run(net, {{"x", {1, 2}}});
    CHECK(y == Values{-std::numeric_limits<float>::infinity(), 1, 2});
}
