// SPDX-License-Identifier: MIT
// Eager calls on half, bfloat16 and double tensors: results have the operands' type and are rounded
// once, and where devices store 16 bits an operator reads and writes them itself, without casts.
#include "check/compare.hpp"
#include "exec/eager.hpp"
#include "formats/json_net.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"

#include <dlprim/ops.hpp>

#include <cmath>
#include <cstddef>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

Tensor filled(const Context& device, const Shape& shape, DType dtype, double step) {
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(step * static_cast<double>(i + 1));
    const Bytes bytes = stored_as(dtype, values);
    Tensor tensor(device, shape, dtype);
    tensor.copy_from_host(bytes.data(), bytes.size());
    return tensor;
}

/// Launches of the plan, by engine.
std::vector<std::string> launched(const std::string& type, const std::string& options,
                                  const std::vector<Tensor>& inputs,
                                  const std::vector<Tensor>& params) {
    std::vector<std::string> names;
    for (const Step& step :
         eager_plan(type, parse_options_json(options), inputs, params, {}, {}).steps)
        if (step.engine != nullptr) names.emplace_back(step.engine->name());
    return names;
}

}  // namespace

TEST_CASE("products of halves are rounded once", "[half_calls][narrow]") {
    ON_EVERY_DEVICE(device) {
        for (const DType dtype : {DType::f16, DType::bf16}) {
            INFO(name_of(dtype));
            const Tensor a = filled(device, {64, 96}, dtype, 0.3),
                         b = filled(device, {96, 80}, dtype, 0.7);
            const Tensor c = ops::matmul(a, b);
            REQUIRE(c.dtype() == dtype);
            const std::vector<double> left = a.to_doubles(), right = b.to_doubles(),
                                      found = c.to_doubles();
            const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
            for (std::size_t i = 0; i < found.size(); ++i) {
                double sum = 0, size = 0;
                for (std::size_t k = 0; k < 96; ++k) {
                    const double product = left[i / 80 * 96 + k] * right[k * 80 + i % 80];
                    sum += product;
                    size += std::abs(product);
                }
                REQUIRE(std::abs(found[i] - sum) <= 1.01 * unit * std::abs(sum) + 1e-5 * size);
            }
            const auto names = launched("MatMul", "{}", {a, b}, {});
            if (stores_narrow(device.traits())) CHECK(names.size() == 1);
        }
    }
}

TEST_CASE("convolutions and pooling of halves give halves", "[half_calls]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = filled(device, {1, 3, 9, 8}, DType::f16, 0.3),
                     weight = filled(device, {4, 3, 3, 3}, DType::f16, 0.7);
        const Tensor y = ops::conv2d(x, weight, {.pad = 1});
        CHECK(y.dtype() == DType::f16);
        CHECK(ops::pooling2d(y, {.kernel = 2, .stride = 2}).dtype() == DType::f16);
        CHECK(ops::softmax(y).dtype() == DType::f16);
        const auto gradients = ops::backward(
            ops::Convolution2D{.channels_out = 4, .bias = false, .kernel = 3, .pad = 1}, {x},
            {weight}, {y});
        for (const Tensor& gradient : gradients) CHECK(gradient.dtype() == DType::f16);
    }
}

TEST_CASE("an embedding of doubles", "[half_calls]") {
    ON_EVERY_DEVICE(device) {
        if (!device.traits().fp64) continue;
        const Tensor table = filled(device, {5, 3}, DType::f64, 0.3);
        Tensor rows(device, {4}, DType::i64);
        const std::vector<std::int64_t> indices{4, 0, 2, 4};
        rows.copy_from_host(indices.data(), indices.size() * sizeof(std::int64_t));
        const ops::Embedding options{.num_embeddings = 5, .embedding_dim = 3};
        const Tensor y = ops::call(options, {rows}, {table}).at(0);
        REQUIRE(y.dtype() == DType::f64);
        const std::vector<double> all = table.to_doubles(), found = y.to_doubles();
        for (std::size_t i = 0; i < found.size(); ++i)
            CHECK(found[i] == all[static_cast<std::size_t>(indices[i / 3]) * 3 + i % 3]);
        const auto gradients = ops::backward(options, {rows}, {table}, {y});
        REQUIRE(gradients.back().dtype() == DType::f64);
        CHECK(gradients.back().to_doubles()[12] == 2 * all[12]);
        const Tensor halves = filled(device, {5, 3}, DType::f16, 0.3);
        CHECK(ops::call(options, {rows}, {halves}).at(0).dtype() == DType::f16);
    }
}

TEST_CASE("doubles where the device has none", "[half_calls]") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().fp64) continue;
        const Tensor a(device, {2, 2}, DType::f64);
        check_error(ErrorKind::unsupported, {"MatMul", "double precision"},
                    [&] { ops::matmul(a, a); });
    }
}
