// SPDX-License-Identifier: MIT
// An index that a network or an earlier call computes, and that is out of range: on the host an
// error of the run, on OpenCL devices one of the next wait.
#include "base/text.hpp"
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

template <typename T>
Tensor integers(const Context& device, const std::vector<T>& values) {
    Tensor tensor(device, Shape{static_cast<std::int64_t>(values.size())},
                  sizeof(T) == 8 ? DType::i64 : DType::i32);
    tensor.copy_from_host(values.data(), values.size() * sizeof(T));
    return tensor;
}

/// Runs and waits, which is where either kind of device has to complain.
template <typename Call>
void check_refused(const Context& device, const std::vector<std::string>& words, Call&& call) {
    check_error(invalid, words, [&] {
        call();
        device.finish();
    });
}

/// Gather and Scatter of a network whose indices are those of its input times ten.
std::string reading_json() {
    return R"({"inputs": [{"name": "x", "shape": [4, 2]}, {"name": "given", "shape": [2], "dtype": "int64"}],
      "outputs": ["read", "written", "summed"], "operators": [
      {"name": "tens", "type": "Pointwise", "inputs": ["given"], "outputs": ["index"], "options": {"code": "y0 = x0 * 10"}},
      {"name": "reader", "type": "Gather", "inputs": ["x", "index"], "outputs": ["read"]},
      {"name": "writer", "type": "Scatter", "inputs": ["x", "index", "read"], "outputs": ["written"]},
      {"name": "adder", "type": "Scatter", "inputs": ["x", "index", "read"], "outputs": ["summed"],
       "options": {"reduction": "add"}}]})";
}

}  // namespace

TEST_CASE("a network's own index that is out of range is an error of the next wait", "[refusals]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, reading_json(), with_mode(Mode::inference));
        set_floats(net, "x", {0, 1, 2, 3, 4, 5, 6, 7});
        const auto run = [&](std::vector<std::int64_t> given) {
            net.set_input("given", given.data(), given.size() * sizeof(std::int64_t));
            net.forward();
        };
        check_error(invalid, {"[Gather 'reader'] index 70 at position 1", "-4 to 3"}, [&] {
            run({0, 7});
            net.output("read").to_floats();
        });
        // It is reported once, and what comes after it works.
        device.finish();
        run({0, 0});
        CHECK(net.output("read").to_floats() == std::vector<float>{0, 1, 0, 1});
        CHECK(net.output("summed").to_floats() == std::vector<float>{0, 3, 2, 3, 4, 5, 6, 7});
        check_refused(device, {"[Gather 'reader'] index -10 at position 0"}, [&] { run({-1, 0}); });
    }
}

TEST_CASE("eager calls with an index that is out of range", "[refusals]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
        const Tensor updates(device, Shape{3, 2}, {1, 1, 1, 1, 1, 1});
        const Tensor wrong = integers<std::int64_t>(device, {1, (std::int64_t{1} << 32) + 2, 0});
        check_refused(device, {"[Gather '", "index 4294967298 at position 1", "-4 to 3"}, [&] {
            ops::call("Gather", "{}", {x, wrong});
        });
        const Tensor low = integers<std::int32_t>(device, {3, -4, -5});
        for (const char* const reduction : {"none", "add", "mul", "max", "min"})
            check_refused(device, {"[Scatter '", "index -5 at position 2"}, [&] {
                ops::call("Scatter", std::string(R"({"reduction": ")") + reduction + "\"}",
                          {x, low, updates});
            });
        // A tuple's entries have dimensions of their own.
        Tensor pair(device, Shape{2, 2}, DType::i32);
        const std::int32_t pairs[] = {3, 1, 1, 3};
        pair.copy_from_host(pairs, sizeof(pairs));
        check_refused(device, {"index 3 at position 3", "dimension of 2 elements", "-2 to 1"}, [&] {
            ops::call("Gather", R"({"mode": "tuples"})", {x, pair});
        });
        CHECK(ops::call("Gather", R"({"mode": "elements"})", {x, pair}).at(0).to_floats() ==
              std::vector<float>{6, 3, 2, 7});
    }
}

TEST_CASE("an index below 0 is out of range where none counts from the end", "[refusals]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<float> rows{0, 1, 2, 3, 4, 5, 6, 7};
        const Tensor x(device, Shape{4, 2}, rows), updates(device, Shape{2, 2}, {8, 8, 9, 9});
        const Tensor low = integers<std::int64_t>(device, {1, -1});
        Tensor pairs(device, Shape{2, 2}, DType::i32);
        const std::int32_t given[] = {3, 1, -1, 0};
        pairs.copy_from_host(given, sizeof(given));
        const std::vector<std::string> first{"index -1 at position 1", "indices are 0 to 3"};
        check_refused(device, first, [&] {
            ops::call("Gather", R"({"from_end": false})", {x, low});
        });
        const std::vector<std::string> second{"index -1 at position 2", "indices are 0 to 3"};
        for (const char* const mode : {"elements", "tuples"})
            check_refused(device, second, [&] {
                ops::call("Gather", cat(R"({"from_end": false, "mode": ")", mode, "\"}"),
                          {x, pairs});
            });
        for (const char* const reduction : {"none", "add", "mul", "max", "min", "mean"}) {
            const std::string options =
                cat(R"({"from_end": false, "reduction": ")", reduction, "\"}");
            Tensor into(device, Shape{4, 2}, rows);
            check_refused(device, first, [&] {
                ops::call("Scatter", options, {into, low, updates}, {}, {.out = {into}});
            });
            const std::vector<float> after = into.to_floats();
            CHECK(std::vector<float>(after.begin() + 6, after.end()) == std::vector<float>{6, 7});
            // Of a gradient, as well.
            if (std::string_view(reduction) == "none" || std::string_view(reduction) == "add")
                check_refused(device, first, [&] {
                    ops::backward("Scatter", options, {x, low, updates}, {}, {x});
                });
        }
        check_refused(device, first, [&] {
            ops::backward("Gather", R"({"from_end": false})", {x, low}, {}, {updates});
        });
    }
}

TEST_CASE("an Embedding's index that is out of range", "[refusals]") {
    const char* const options = R"({"num_embeddings": 4, "embedding_dim": 2})";
    ON_EVERY_DEVICE(device) {
        const Tensor table(device, Shape{4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
        const Tensor dy(device, Shape{3, 2}, {1, 2, 3, 4, 5, 6});
        const auto check = [&](const Tensor& index, const std::string& said) {
            check_refused(device, {said, "dimension of 4 elements", "indices are 0 to 3"},
                          [&] { ops::call("Embedding", options, {index}, {table}); });
            check_refused(device, {said, "dimension of 4 elements", "indices are 0 to 3"},
                          [&] { ops::backward("Embedding", options, {index}, {table}, {dy}); });
        };
        check(integers<std::int64_t>(device, {1, 0, -1}), "index -1 at position 2");
        check(integers<std::int32_t>(device, {1, 4, 0}), "index 4 at position 1");
        check(integers<std::int64_t>(device, {(std::int64_t{1} << 32) + 2, 1, 0}),
              "index 4294967298 at position 0");
        check(Tensor(device, Shape{3}, {1, 2, -3}), "index -3 at position 2");
        CHECK(ops::call("Embedding", options, {integers<std::int32_t>(device, {3, 0, 3})}, {table})
                  .at(0)
                  .to_floats() == std::vector<float>{6, 7, 0, 1, 6, 7});
    }
}

TEST_CASE("what is refused is refused by its own context", "[refusals]") {
    for (const Context& device : test_devices()) {
        if (device.traits().host) continue;
        const Context other(device.info().id);
        const Tensor x(device, Shape{2}, {1, 2}), y(other, Shape{2}, {3, 4});
        ops::call("Gather", "{}", {x, integers<std::int32_t>(device, {2})});
        const Tensor found =
            ops::call("Gather", "{}", {y, integers<std::int32_t>(other, {1})}).at(0);
        CHECK(found.to_floats() == std::vector<float>{4});
        other.finish();
        check_error(invalid, {"index 2 at position 0"}, [&] { device.finish(); });
    }
}

TEST_CASE("nobody waits for what may be refused", "[refusals]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, reading_json(), with_mode(Mode::inference));
        set_floats(net, "x", {0, 1, 2, 3, 4, 5, 6, 7});
        const std::int64_t given[] = {0, 0};
        net.set_input("given", given, sizeof(given));
        net.forward();
        device.finish();
        const Counters before = device.counters();
        net.forward();
        net.forward();
        CHECK(device.counters().waits == before.waits);
        net.output("read").to_floats();
        CHECK(device.counters().waits == before.waits + 1);
        CHECK(device.counters().allocations == before.allocations);
    }
}
