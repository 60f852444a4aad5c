// SPDX-License-Identifier: MIT
// Results whose sizes depend on values: NonZero, Unique, NonMaxSuppression, and elements of wide
// integers at computed indices.
#include "onnx/session_support.hpp"

using namespace onnx_test;

TEST_CASE("positions that are not zero feed later nets, which serve all of the same count") {
    Session session = open_session(
        {.nodes = {node("NonZero", {"x"}, {"places"}), node("Transpose", {"places"}, {"rows"}),
                   node("GatherND", {"table", "rows"}, {"found"}), node("Neg", {"found"}, {"y"})},
         .inputs = {value("x", {2, 2})},
         .outputs = {value("y", {-1})},
         .initializers = {floats("table", {2, 2}, {1, 2, 3, 4})}});
    CHECK(session.run({{"x", tensor({2, 2}, {0, 1, 1, 0})}}) == "float [2]: -2 -3");
    const std::int64_t made = session.nets();
    CHECK(session.run({{"x", tensor({2, 2}, {5, 0, 0, 5})}}) == "float [2]: -1 -4");
    CHECK(session.nets() == made);
    CHECK(session.run({{"x", tensor({2, 2}, {1, 1, 1, 0})}}) == "float [3]: -1 -2 -3");
    CHECK(session.nets() > made);
    CHECK(session.run({{"x", tensor({2, 2}, {0, 0, 0, 0})}}) == "float [0]:");
}

TEST_CASE("different elements, in order or as they come") {
    Model model;
    const auto run = [&](std::vector<std::string> attributes, const ONNXValue& x) {
        model.nodes = {
            node("Unique", {"x"}, {"y", "first", "inverse", "counts"}, {std::move(attributes)})};
        Session session = open_session(model);
        session.run({{"x", x}});
        return session.output("y") + "; " + session.output("first") + "; " +
               session.output("inverse") + "; " + session.output("counts");
    };
    model.inputs = {value("x", {-1})};
    model.outputs = {value("y", {-1}), value("first", {-1}, type_int64),
                     value("inverse", {-1}, type_int64), value("counts", {-1}, type_int64)};
    const auto x = tensor({5}, {3, 1, 3, 2, 1});
    CHECK(run({}, x) ==
          "float [3]: 1 2 3; int64 [3]: 1 3 0; int64 [5]: 2 0 2 1 0; int64 [3]: 2 1 2");
    CHECK(run({attribute("sorted", 0)}, x) ==
          "float [3]: 3 1 2; int64 [3]: 0 1 3; int64 [5]: 0 1 0 2 1; int64 [3]: 2 2 1");
    model.inputs = {value("x", {2, 3})};
    CHECK(run({attribute("axis", 1)}, tensor({2, 3}, {1, 0, 1, 2, 9, 2})) ==
          "float [2, 2]: 0 1 9 2; int64 [2]: 1 0; int64 [3]: 1 0 1; int64 [2]: 1 2");
}

TEST_CASE("of boxes that overlap the best stays") {
    Session session = open_session(
        {.nodes = {node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"y"})},
         .inputs = {value("boxes", {1, 3, 4}), value("scores", {1, 1, 3})},
         .outputs = {value("y", {-1, 3}, type_int64)},
         .initializers = {integers("most", {2}), floats("overlap", {1}, {0.5f})}});
    const auto boxes = tensor({1, 3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11});
    CHECK(session.run({{"boxes", boxes}, {"scores", tensor({1, 1, 3}, {0.8f, 0.9f, 0.5f})}}) ==
          "int64 [2, 3]: 0 0 1 0 0 2");
    CHECK(session.run({{"boxes", boxes}, {"scores", tensor({1, 1, 3}, {0.9f, 0.8f, 0.5f})}}) ==
          "int64 [2, 3]: 0 0 0 0 0 2");
}

TEST_CASE("wide integers at indices that are computed") {
    Model model{
        .nodes = {node("ArgMax", {"x"}, {"i"}, {{attribute("axis", 0), attribute("keepdims", 0)}}),
                  node("Gather", {"table", "i"}, {"y"})}};
    const std::int64_t wide = (std::int64_t{1} << 60) + 1;
    model.initializers = {integers("table", {7, wide})};
    model.inputs = {value("x", {2})};
    model.outputs = {value("y", {}, type_int64)};
    const Folder folder;
    const std::string path = folder.write("model.onnx", model.str());
    dlprim::ONNXSession session(dlprim::Context("cpu"), dlprim::ONNXModel(path));
    const ONNXValue y = session.run({{"x", tensor({2}, {1, 2})}}).at("y");
    std::int64_t number = 0;
    std::memcpy(&number, y.tensor().data.data(), sizeof(number));
    CHECK(number == wide);
    // One static network has them, too.
    dlprim::Net net = dlprim::Net::from_onnx_file(dlprim::Context("cpu"), path);
    const float x[] = {1, 2};
    net.set_input("x", x, sizeof(x));
    net.forward();
    net.output("y").copy_to_host(&number, sizeof(number));
    CHECK(number == wide);
}
