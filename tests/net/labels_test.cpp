// SPDX-License-Identifier: MIT
// Class numbers and indices of wide types: 2^32 + 4 is out of range and is never read as 4.
#include "net/support.hpp"

#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr std::int64_t wide = (std::int64_t{1} << 32) + 4;

template <typename T>
Tensor indices(const Context& device, DType dtype, const std::vector<T>& values) {
    Tensor tensor(device, Shape{static_cast<std::int64_t>(values.size())}, dtype);
    tensor.copy_from_host(values.data(), values.size() * sizeof(T));
    return tensor;
}

/// An Embedding of eight rows after `before`, which makes "index" from the input "given".
std::string embedding(const std::string& dtype, const std::string& before) {
    return R"({"inputs": [{"name": "given", "shape": [3], "dtype": ")" + dtype +
           R"("}], "outputs": ["y"], "operators": [)" + before + R"(
      {"name": "table", "type": "Embedding", "inputs": ["index"], "outputs": ["y"],
       "options": {"num_embeddings": 8, "embedding_dim": 2}}]})";
}

template <typename T>
void set(Net& net, const std::string& name, const std::vector<T>& values) {
    net.set_input(name, values.data(), values.size() * sizeof(T));
}

}  // namespace

TEST_CASE("a wide label is out of range", "[labels]") {
    ON_EVERY_DEVICE(device) {
        const auto network = [](const std::string& dtype) {
            std::string json = small_network;
            return json.replace(json.find("\"int\""), 5, "\"" + dtype + "\"");
        };
        Net wide_net = make_net(device, network("int64"));
        set<std::int64_t>(wide_net, "label", {0, 4, 3, 2});
        wide_net.input("data").fill(0);
        wide_net.forward();
        check_error(invalid, {"'label'", "4294967300", "position 1", "0 to 4"}, [&] {
            set<std::int64_t>(wide_net, "label", {0, wide, 3, 2});
        });
        check_error(invalid, {"'label'", "9223372036854775807", "position 3"}, [&] {
            set<std::int64_t>(wide_net, "label",
                              {0, 1, 3, std::numeric_limits<std::int64_t>::max()});
        });
        check_error(invalid, {"'label'", "-4294967292"}, [&] {
            set<std::int64_t>(wide_net, "label", {0, 4 - (std::int64_t{1} << 32), 3, 2});
        });
        Net unsigned_net = make_net(device, network("uint32"));
        check_error(invalid, {"'label'", "4294967295"}, [&] {
            set<std::uint32_t>(unsigned_net, "label", {0, 1, 0xffffffffu, 2});
        });
        Net float_net = make_net(device, network("float"));
        check_error(invalid, {"'label'", "4294967296"}, [&] {
            set<float>(float_net, "label", {0, 1, 0x1p32f, 2});
        });
        check_error(invalid, {"'label'", "2.5"}, [&] {
            set<float>(float_net, "label", {0, 1, 2.5f, 2});
        });
    }
}

TEST_CASE("an index is checked before a cast makes another of it", "[labels]") {
    const std::string cast = R"({"name": "cast", "type": "Cast", "inputs": ["given"],
        "outputs": ["index"], "options": {"dtype": "int"}},)";
    const std::string narrow = R"({"name": "cast", "type": "Cast", "inputs": ["given"],
        "outputs": ["index"], "options": {"dtype": "int8"}},)";
    ON_EVERY_DEVICE(device) {
        for (const std::string& before : {cast, narrow}) {
            Net net = make_net(device, embedding("int64", before));
            CHECK(net.label_classes("given") == 8);
            set<std::int64_t>(net, "given", {1, 4, 7});
            net.forward();
            const std::vector<float> y = net.output("y").to_floats();
            const std::vector<float> table = net.param("table.0").to_floats();
            CHECK(y ==
                  std::vector<float>{table[2], table[3], table[8], table[9], table[14], table[15]});
            check_error(invalid, {"'given'", "4294967300", "position 1"}, [&] {
                set<std::int64_t>(net, "given", {1, wide, 7});
            });
            check_error(invalid, {"'given'", "260"}, [&] {
                set<std::int64_t>(net, "given", {1, 4, 260});
            });
        }
    }
}

TEST_CASE("eager calls take a wide label for no class", "[labels]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<float> scores = random_floats(3 * 8, 2);
        const Tensor x(device, Shape{3, 8}, scores);
        const auto loss = [&](const Tensor& label) {
            return ops::call("NLLLoss", R"({"reduce": "none"})", {x, label}).at(0).to_floats();
        };
        const auto near = indices<std::int64_t>(device, DType::i64, {1, 4, 7});
        CHECK(loss(near) == std::vector<float>{-scores[1], -scores[12], -scores[23]});
        const auto far = indices<std::int64_t>(device, DType::i64, {1, wide, 7});
        CHECK(loss(far) == std::vector<float>{-scores[1], 0, -scores[23]});
        const auto gradient = ops::backward("NLLLoss", R"({"reduce": "none"})", {x, far}, {},
                                            {Tensor(device, Shape{3}, {1, 1, 1})})
                                  .at(0)
                                  .to_floats();
        CHECK(gradient[12] == 0);
        CHECK(gradient[1] == -1);
    }
}

namespace {

/// A Gather of rows of "x" [4, 2] by "index", which `before` makes from the input "given".
std::string gather(const std::string& dtype, const std::string& before,
                   const std::string& options = "{}") {
    return R"({"inputs": [{"name": "x", "shape": [4, 2]}, {"name": "given", "shape": [3], "dtype": ")" +
           dtype + R"("}], "outputs": ["y"], "operators": [)" + before + R"(
      {"name": "rows", "type": "Gather", "inputs": ["x", "index"], "outputs": ["y"],
       "options": )" +
           options + "}]}";
}

}  // namespace

TEST_CASE("indices of inputs are checked", "[labels]") {
    ON_EVERY_DEVICE(device) {
        const std::string wider = R"({"name": "wide", "type": "Cast", "inputs": ["given"],
            "outputs": ["index"], "options": {"dtype": "int64"}},)";
        Net net = make_net(device, gather("int", wider), with_mode(Mode::inference));
        set<float>(net, "x", {0, 1, 2, 3, 4, 5, 6, 7});
        set<std::int32_t>(net, "given", {3, -4, -1});
        net.forward();
        CHECK(net.output("y").to_floats() == std::vector<float>{6, 7, 0, 1, 6, 7});
        check_error(invalid, {"[Gather 'rows']", "'given'", "index 4", "position 1", "-4 to 3"},
                    [&] {
                        set<std::int32_t>(net, "given", {0, 4, 3});
                    });
        check_error(invalid, {"[Gather 'rows']", "index -5", "position 2"}, [&] {
            set<std::int32_t>(net, "given", {0, 3, -5});
        });
        Net from_front = make_net(device, gather("int", wider, R"({"from_end": false})"),
                                  with_mode(Mode::inference));
        check_error(invalid, {"[Gather 'rows']", "index -1", "position 2", "0 to 3"}, [&] {
            set<std::int32_t>(from_front, "given", {0, 3, -1});
        });
    }
}

TEST_CASE("computed indices read nothing outside", "[labels]") {
    const std::string moved = R"({"name": "moved", "type": "Pointwise", "inputs": ["given"],
        "outputs": ["index"], "options": {"code": "y0 = x0 * 1000000007"}},)";
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, gather("int64", moved), with_mode(Mode::inference));
        set<float>(net, "x", {0, 1, 2, 3, 4, 5, 6, 7});
        const auto refuses = [&](const std::vector<std::int64_t>& given, const char* what,
                                 const char* where) {
            set<std::int64_t>(net, "given", given);
            check_error(invalid, {"[Gather 'rows']", what, where, "-4 to 3"}, [&] {
                net.forward();
                device.finish();  // OpenCL devices say it where the program waits
            });
        };
        refuses({1, 0, 0}, "index 1000000007", "position 0");
        // The engine is as good as before.
        set<std::int64_t>(net, "given", {0, 0, 0});
        net.forward();
        CHECK(net.output("y").to_floats() == std::vector<float>{0, 1, 0, 1, 0, 1});
        refuses({0, 0, -1}, "index -1000000007", "position 2");
    }
}

namespace {

/// Attention of sequences behind each other, 12 queries and `positions` positions, whose cumulative
/// lengths `before` makes of the input "given" of a shape.
std::string sequences(int positions, const std::string& shape, const std::string& before) {
    const std::string keys = R"(", "shape": [2, )" + std::to_string(positions) + R"(, 4]}, )";
    return R"({"inputs": [{"name": "q", "shape": [2, 12, 4]}, {"name": "k)" + keys +
           R"({"name": "v)" + keys + R"({"name": "given", "shape": )" + shape +
           R"(, "dtype": "int"}], "outputs": ["y"], "operators": [)" + before + R"(
      {"name": "heads", "type": "Attention", "inputs": ["q", "k", "v", "lengths"],
       "outputs": ["y"]}]})";
}

}  // namespace

TEST_CASE("lengths of sequences are checked", "[labels]") {
    const std::string reshape = R"({"name": "pair", "type": "Reshape", "inputs": ["given"],
        "outputs": ["pair"], "options": {"dims": [2, 4]}},)";
    const auto cast = [](const std::string& from) {
        return R"({"name": "wide", "type": "Cast", "inputs": [")" + from +
               R"("], "outputs": ["lengths"], "options": {"dtype": "int64"}},)";
    };
    const char* const rule = "cumulative lengths begin with 0";
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, sequences(14, "[8]", reshape + cast("pair")),
                           with_mode(Mode::inference));
        for (const char* const name : {"q", "k", "v"}) net.input(name).fill(1);
        set<std::int32_t>(net, "given", {0, 4, 9, 12, 0, 0, 9, 14});
        net.forward();
        CHECK(net.output("y").to_floats()[0] == 0);  // the first sequence has no positions
        struct Hostile {
            std::vector<std::int32_t> given;
            const char *rows, *what;
        };
        const std::vector<Hostile> all{
            {{0, 9, 4, 12, 0, 3, 9, 14}, "rows, 12,", "position 2 is 4"},
            {{1, 4, 9, 12, 0, 3, 9, 14}, "rows, 12,", "position 0 is 1"},
            {{0, 4, 9, 11, 0, 3, 9, 14}, "rows, 12,", "position 3 is 11"},
            {{0, 4, 9, 12, 0, 3, 9, 15}, "rows, 14,", "position 7 is 15"},
            {{0, 4, 9, 12, 0, -3, 9, 14}, "rows, 14,", "position 5 is -3"}};
        for (const Hostile& hostile : all)
            check_error(invalid,
                        {"[Attention 'heads'] input 'given': ", rule, hostile.rows, hostile.what},
                        [&] { set<std::int32_t>(net, "given", hostile.given); });
        Net alike =
            make_net(device, sequences(12, "[3]", cast("given")), with_mode(Mode::inference));
        set<std::int32_t>(alike, "given", {0, 5, 12});
        check_error(invalid, {"'given'", rule, "position 1 is 13"}, [&] {
            set<std::int32_t>(alike, "given", {0, 13, 12});
        });
    }
}
