// SPDX-License-Identifier: MIT
// Compares Embedding, Attention, LSTM, GRU and Split in eager calls, forward and backward, with
// their oracles, and the oracles' gradients with finite differences, over the tables of cases on
// every device.
#include "check/compare.hpp"
#include "graph/operator.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/json_cases.hpp"

#include <dlprim/dlprim.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <random>

using namespace dlprim;

namespace {

using Json = nlohmann::json;

HostArray normals(const TensorSpec& spec, std::mt19937& random, float size = 1) {
    const Shape& shape = spec.shape;
    HostArray made{shape, {}, spec.dtype};
    std::normal_distribution<float> normal(0, size);
    for (std::int64_t i = 0; i < shape.numel(); ++i)
        made.data.push_back(static_cast<double>(normal(random)));
    return made;
}

Tensor upload(const Context& context, const HostArray& array) {
    Tensor tensor(context, array.shape, array.dtype);
    std::vector<std::byte> bytes(tensor.bytes());
    convert(array.data.data(), DType::f64, bytes.data(), array.dtype, array.data.size());
    tensor.copy_from_host(bytes.data(), bytes.size());
    return tensor;
}

struct Example {
    const Operator& op;
    Attrs attrs;
    std::vector<HostArray> inputs, outputs, gradients, wanted;
    std::size_t tensors;

    explicit Example(const Json& entry)
        : op(OperatorRegistry::instance().get(entry["type"].get<std::string>())) {
        std::mt19937 random(1);
        attrs = op.schema().complete(testing::attrs_of(entry["options"]), "test");
        for (const Json& input : entry["inputs"]) {
            HostArray array = normals(
                {Shape(input["shape"].get<Ints>()), parse_dtype(input.value("dtype", "float"))},
                random);
            if (input.value("fill", "") == "labels") {
                std::uniform_int_distribution<int> label(0, input["classes"].get<int>() - 1);
                for (double& v : array.data) v = label(random);
            }
            inputs.push_back(array);
        }
        tensors = inputs.size();
        for (const ParamSpec& param : op.params(attrs, specs()))
            inputs.push_back(normals(param.spec, random, 0.5f));
        const std::vector<TensorSpec> made = op.infer(attrs, specs());
        outputs = forward(inputs);
        REQUIRE(outputs.size() == made.size());
        for (std::size_t i = 0; i < made.size(); ++i) {
            REQUIRE(outputs[i].shape == made[i].shape);
            gradients.push_back(normals(made[i], random));
        }
        OracleBackwardCall call{attrs, false, inputs, outputs, gradients, {}};
        op.oracle_backward(call);
        wanted = call.input_gradients;
    }
    std::vector<TensorSpec> specs() const {
        std::vector<TensorSpec> all;
        for (const HostArray& input : inputs) all.push_back({input.shape, input.dtype});
        return all;
    }
    std::vector<HostArray> forward(const std::vector<HostArray>& in) const {
        OracleCall call{attrs,
                        false,
                        in,
                        std::vector<HostArray>(static_cast<std::size_t>(op.outputs(attrs))),
                        {}};
        op.oracle(call);
        return call.outputs;
    }
    double weighted(const std::vector<HostArray>& in) const {
        const std::vector<HostArray> made = forward(in);
        double sum = 0;
        for (std::size_t i = 0; i < made.size(); ++i)
            for (std::size_t j = 0; j < made[i].data.size(); ++j)
                sum += made[i].data[j] * gradients[i].data[j];
        return sum;
    }
    /// Compares the oracle's gradient along a random direction with a central difference.
    void check_differences() const {
        std::mt19937 random(9);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (wanted[i].data.empty()) continue;
            INFO("input " << i);
            const HostArray direction = normals({inputs[i].shape, inputs[i].dtype}, random);
            std::vector<HostArray> up = inputs, down = inputs;
            double slope = 0;
            for (std::size_t j = 0; j < direction.data.size(); ++j) {
                up[i].data[j] += 1e-5 * direction.data[j];
                down[i].data[j] -= 1e-5 * direction.data[j];
                slope += wanted[i].data[j] * direction.data[j];
            }
            const double difference = (weighted(up) - weighted(down)) / 2e-5;
            CHECK(std::abs(difference - slope) < 1e-6 * (1 + std::abs(slope)));
        }
    }
    void check(const Context& context, const std::string& options) const {
        std::vector<Tensor> in, params, dy;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            (i < tensors ? in : params).push_back(upload(context, inputs[i]));
        for (const HostArray& gradient : gradients) dy.push_back(upload(context, gradient));
        const std::vector<Tensor> made = ops::call(op.type(), options, in, params);
        REQUIRE(made.size() == outputs.size());
        for (std::size_t i = 0; i < made.size(); ++i) {
            INFO("output " << i);
            CHECK(made[i].shape() == outputs[i].shape);
            CHECK(relative_error(made[i].to_doubles(), outputs[i].data, 1e-15) < 1e-5);
        }
        const std::vector<Tensor> found = ops::backward(op.type(), options, in, params, dy);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            INFO("gradient " << i);
            if (wanted[i].data.empty()) {
                if (found[i].defined())
                    CHECK(found[i].to_doubles() == std::vector<double>(inputs[i].data.size(), 0));
            } else {
                REQUIRE(found[i].defined());
                CHECK(relative_error(found[i].to_doubles(), wanted[i].data, 1e-15) < 1e-5);
            }
        }
    }
};

/// Whether it computes with whole numbers, which have no gradient.
bool is_of_integers(const Json& entry) {
    for (const Json& input : entry["inputs"])
        if (input.value("fill", "") != "labels" &&
            !is_float(parse_dtype(input.value("dtype", "float"))))
            return true;
    return false;
}

void check_table(const std::string& name) {
    std::ifstream file(CASES_DIR "/" + name + ".json");
    for (const Json& entry : Json::parse(file)) {
        if (entry.value("speed", false) || testing::has_narrow_inputs(entry) ||
            is_of_integers(entry))
            continue;
        INFO(name << " " << entry["name"].get<std::string>());
        const Example e(entry);
        if (name != "embedding") e.check_differences();  // padding_idx changes it
        for (const Context& context : testing::test_devices()) {
            INFO(context.info().name);
            e.check(context, entry["options"].dump());
        }
    }
}

}  // namespace

TEST_CASE("MatMul by eager calls") {
    check_table("matmul");
}
TEST_CASE("InnerProduct by eager calls") {
    check_table("inner_product");
}
TEST_CASE("Split") {
    check_table("split");
}
TEST_CASE("Embedding") {
    check_table("embedding");
}
TEST_CASE("Attention") {
    check_table("attention");
}
TEST_CASE("LSTM") {
    check_table("lstm");
}
TEST_CASE("GRU") {
    check_table("gru");
}
