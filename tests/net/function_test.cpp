// SPDX-License-Identifier: MIT
// dp::Function: a graph of operators as one plan on the caller's tensors, beside the same operators
// called one by one.
#include "net/eager_support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const two_convolutions = R"({
    "inputs": [{"name": "x", "shape": [2, 3, 8, 8]}, {"name": "w", "shape": [4, 3, 3, 3]},
               {"name": "b", "shape": [4]}],
    "operators": [
        {"name": "first", "type": "Convolution", "inputs": ["x", "w", "b"], "outputs": ["a"],
         "options": {"channels_out": 4, "kernel": 3, "pad": 1}},
        {"name": "relu", "type": "Activation", "inputs": ["a"], "outputs": ["r"],
         "options": {"activation": "relu"}},
        {"name": "second", "type": "Convolution", "inputs": ["r"], "outputs": ["y"],
         "options": {"channels_out": 5, "kernel": 1}}],
    "outputs": ["y", "r"]})";

const ops::Convolution first{.channels_out = 4, .kernel = 3, .pad = 1};
const ops::Convolution second{.channels_out = 5, .kernel = 1};

struct Weights {
    explicit Weights(const Context& device)
        : w(random_tensor(device, Shape{4, 3, 3, 3}, 2)),
          b(random_tensor(device, Shape{4}, 3)),
          w2(random_tensor(device, Shape{5, 4, 1, 1}, 4)),
          b2(random_tensor(device, Shape{5}, 5)) {}
    Tensor w, b, w2, b2;
    std::vector<Tensor> eager(const Tensor& x) const {
        const Tensor r = ops::relu(ops::call(first, {x}, {w, b})[0]);
        return {ops::call(second, {r}, {w2, b2})[0], r};
    }
};

void check_same(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted) {
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].shape() == wanted[i].shape());
        check_close(found[i].to_floats(), doubles(wanted[i].to_floats()), 1e-5);
    }
}

}  // namespace

TEST_CASE("function: what operators compute one by one, for every shape", "[function]") {
    ON_EVERY_DEVICE(device) {
        const Weights weights(device);
        const Function f(device, two_convolutions, {.constants = {"w", "b"}});
        CHECK(f.input_names() == std::vector<std::string>{"x", "w", "b", "second.0", "second.1"});
        CHECK(f.output_names() == std::vector<std::string>{"y", "r"});
        const auto call = [&](const Tensor& x) {
            return f({x, weights.w, weights.b, weights.w2, weights.b2});
        };
        for (const std::int64_t batch : {2, 5, 2}) {
            const Tensor x = random_tensor(device, Shape{batch, 3, 8, 8}, 1);
            check_same(call(x), weights.eager(x));
        }
        const Tensor lying = random_tensor(device, Shape{8, 3, 8, 2}, 6).transpose(0, 3);
        check_same(call(lying), weights.eager(lying));
        const Tensor x = random_tensor(device, Shape{2, 3, 8, 8}, 1);
        CHECK(launches_of(device, [&] { call(x); }) <=
              launches_of(device, [&] { weights.eager(x); }));
        Tensor out(device, Shape{2, 5, 8, 8});
        const std::vector<Tensor> given{x, weights.w, weights.b, weights.w2, weights.b2};
        const std::vector<Tensor> made = f(given, 1, 0, {out});
        CHECK(bits(made[0]) == bits(out));
        check_same(made, weights.eager(x));
    }
}

TEST_CASE("function: constants are packed again when they have changed", "[function]") {
    ON_EVERY_DEVICE(device) {
        Weights weights(device);
        const Function f(device, two_convolutions, {.constants = {"w", "b"}});
        const Tensor x = random_tensor(device, Shape{2, 3, 8, 8}, 1);
        for (int time = 0; time < 3; ++time) {
            check_same(f({x, weights.w, weights.b, weights.w2, weights.b2}), weights.eager(x));
            weights.w.fill(0.25 * time);
            weights.b2.fill(time);
        }
    }
}

/// What a function of one operator's gradients makes, beside an eager call of backward.
template <typename Options>
void check_gradients(const Context& device, const Options& options, const std::string& json,
                     const std::vector<Shape>& shapes, std::size_t params, const Shape& result) {
    std::string inputs, names, made, numbers;
    std::vector<Tensor> given;
    for (const Shape& shape : shapes) given.push_back(random_tensor(device, shape, 1));
    for (std::size_t i = 0; i <= shapes.size(); ++i) {
        const Shape& shape = i < shapes.size() ? shapes[i] : result;
        std::string sizes;
        for (const std::int64_t size : shape.dims())
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
        const std::string name = "\"i" + std::to_string(i) + "\"", comma = i > 0 ? ", " : "";
        inputs += comma + "{\"name\": " + name + ", \"shape\": [" + sizes + "]}";
        names += comma + name;
        if (i == shapes.size()) break;
        made += comma + "\"d" + std::to_string(i) + "\"";
        numbers += comma + std::to_string(i);
    }
    const Function f(
        device, "{\"inputs\": [" + inputs + "], \"operators\": [{\"name\": \"g\", \"type\": \"" +
                    std::string(Options::type) + "\", \"inputs\": [" + names + "], \"outputs\": [" +
                    made + "], \"options\": " + json + ", \"gradients\": [" + numbers +
                    "]}], \"outputs\": [" + made + "]}");
    const Tensor dy = random_tensor(device, result, 2);
    const auto own = static_cast<std::ptrdiff_t>(given.size() - params);
    const std::vector<Tensor> wanted = ops::backward(options, {given.begin(), given.begin() + own},
                                                     {given.begin() + own, given.end()}, {dy});
    given.push_back(dy);
    check_same(f(given), wanted);
}

TEST_CASE("function: gradients of any operator", "[function]") {
    ON_EVERY_DEVICE(device) {
        check_gradients(device, ops::GroupNorm{.num_groups = 2}, R"({"num_groups": 2})",
                        {Shape{2, 4, 3, 3}, Shape{4}, Shape{4}}, 2, Shape{2, 4, 3, 3});
        ops::Convolution plain = first;
        plain.bias = false;
        check_gradients(device, plain,
                        R"({"kernel": 3, "pad": 1, "channels_out": 4, "bias": false})",
                        {Shape{2, 3, 8, 8}, Shape{4, 3, 3, 3}}, 1, Shape{2, 4, 8, 8});
        ops::Resize twice;
        twice.output = {6, 8};
        check_gradients(device, twice, R"({"output": [6, 8]})", {Shape{2, 4, 3, 4}}, 0,
                        Shape{2, 4, 6, 8});
        ops::TransposedConvolution bigger;
        bigger.channels_out = 5;
        bigger.kernel = {3};
        bigger.stride = {2};
        check_gradients(device, bigger, R"({"channels_out": 5, "kernel": [3], "stride": [2]})",
                        {Shape{2, 4, 6}, Shape{4, 5, 3}, Shape{5}}, 2, Shape{2, 5, 13});
    }
}

TEST_CASE("function: an input, and one result twice, as outputs", "[function]") {
    ON_EVERY_DEVICE(device) {
        const Function f(device, R"({
            "inputs": [{"name": "x", "shape": [4]}],
            "operators": [{"name": "relu", "type": "Activation", "inputs": ["x"], "outputs": ["loss"],
                           "options": {"activation": "relu"}},
                          {"name": "view", "type": "Reshape", "inputs": ["loss"], "outputs": ["v"],
                           "options": {"dims": [2, 2]}}],
            "outputs": ["x", "loss", "v"]})");
        const Tensor x = random_tensor(device, Shape{4}, 1);
        const Tensor y = ops::relu(x);
        check_same(f({x}), {x, y, y.reshape(Shape{2, 2})});
    }
}

TEST_CASE("function: errors are sentences", "[function]") {
    const Context host = Context("host");
    const Weights weights(host);
    const Function f(host, two_convolutions, {.name = "convolutions"});
    const Tensor x = random_tensor(host, Shape{2, 3, 8, 8}, 1);
    const auto says = [](const std::string& sentence, auto&& call) {
        check_error(invalid, {sentence}, call);
    };
    says("convolutions takes 5 tensors, got 1", [&] { f({x}); });
    says("convolutions: input 'x' is an empty tensor", [&] {
        f({Tensor(), weights.w, weights.b, weights.w2, weights.b2});
    });
    const Tensor whole(host, Shape{2, 3, 8, 8}, DType::i32);
    says("convolutions: input 'x' is int32, declared as float", [&] {
        f({whole, weights.w, weights.b, weights.w2, weights.b2});
    });
    says("convolutions: parameter 1 is float [5, 4, 1, 1], wants float [5]", [&] {
        f({x, weights.w, weights.b, weights.w2, weights.w2});
    });
    says("[Convolution 'first'] input 'w' is", [&] {
        f({x, weights.w2, weights.b, weights.w2, weights.b2});
    });
    says("function has no input 'bb', which is to be constant; did you mean 'b'?",
         [&] { Function(host, two_convolutions, {.constants = {"bb"}}); });
}

TEST_CASE("function: what gradients are given is checked", "[function]") {
    const Context host = Context("host");
    const auto says = [&](const std::string& sentence, const std::string& inputs,
                          const std::string& op) {
        check_error(invalid, {sentence}, [&] {
            Function(host, "{\"inputs\": [" + inputs + "], \"operators\": [{\"name\": \"g\", " +
                               op + "}], \"outputs\": [\"a\"]}");
        });
    };
    const std::string x = R"({"name": "x", "shape": [2, 4]}, {"name": "dy", "shape": [2, 3]})";
    const std::string softmax = R"("type": "Softmax", "inputs": ["x", "dy"], "outputs": ["a"], )";
    says("[Softmax 'g'] has no gradient of input 1", x, softmax + R"("gradients": [1])");
    says("[Softmax 'g'] the gradient of the output is float [2, 3], must be float [2, 4]", x,
         softmax + R"("gradients": [0])");
    says("[Softmax 'g'] makes 2 gradients, 1 outputs are named", x,
         softmax + R"("gradients": [0, 0])");
    says("[InnerProduct 'g'] takes 1 input, behind which its 2 parameters may stand, got 1", x,
         R"("type": "InnerProduct", "inputs": ["x", "dy"], "outputs": ["a"], "gradients": [0],
            "options": {"outputs": 3})");
    const std::string q = R"({"name": "q", "shape": [2, 3, 8]}, {"name": "r", "shape": [2, 3]},
                             {"name": "s", "shape": [2]}, {"name": "key", "shape": [1]})";
    const std::string made = R"("outputs": ["a", "b", "c"])";
    says("logarithms and sums must be floats [2, 3], got float [2]", q,
         R"("type": "AttentionBackward", "inputs": ["q", "q", "q", "r", "s", "q"], )" + made);
    says("int64 [1], got float [1]", q,
         R"("type": "AttentionBackward", "inputs": ["q", "q", "q", "r", "r", "q", "key", "key"],
            "options": {"dropout_p": 0.5}, )" +
             made);
}

TEST_CASE("function: networks have no gradients", "[function]") {
    const Context host = Context("host");
    check_error(invalid, {"makes gradients, which only functions have"}, [&] {
        Net::from_json(host, R"({"inputs": [{"name": "x", "shape": [2]}], "operators": [
            {"name": "g", "type": "Softmax", "inputs": ["x", "x"], "outputs": ["a"],
             "gradients": [0]}], "outputs": ["a"]})");
    });
}
