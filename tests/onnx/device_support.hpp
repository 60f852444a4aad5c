// SPDX-License-Identifier: MIT
// What tests share that run ONNX models on all devices: values by formulas, and runs.
#pragma once

#include "onnx/session_support.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onnx_test {

/// TensorProto.DataType.
constexpr int type_uint8 = 2, type_int8 = 3, type_int32 = 6;

/// Numbers that look random: 0 to range - 1.
inline std::vector<std::int64_t> scattered(std::int64_t count, std::int64_t range,
                                           std::uint64_t seed = 1) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < count; ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values.push_back(
            static_cast<std::int64_t>((seed >> 33) % static_cast<std::uint64_t>(range)));
    }
    return values;
}
template <typename T>
std::vector<T> as(const std::vector<std::int64_t>& values) {
    return {values.begin(), values.end()};
}
/// As text_of() writes a tensor.
template <typename T>
std::string text_of(const dlprim::Shape& shape, dlprim::DType dtype, const std::vector<T>& values) {
    return text_of(value_of(shape, dtype, values));
}

/// Checks the output "y" on every device.
inline void check_on_devices(const Model& model, const dlprim::ONNXSession::Values& inputs,
                             const std::string& expected) {
    for (const dlprim::Context& device : dlprim::testing::test_devices()) {
        INFO(device.info().name);
        Session session = open_session(model, {}, device);
        CHECK(session.run(inputs) == expected);
    }
}

/// Checks the output of a network on every device, up to rounding.
inline void check_near(const Model& model, const std::map<std::string, Values>& inputs,
                       const std::vector<double>& expected) {
    for (const dlprim::Context& device : dlprim::testing::test_devices()) {
        INFO(device.info().name);
        const Folder folder;
        dlprim::Net net =
            dlprim::Net::from_onnx_file(device, folder.write("model.onnx", model.str()));
        const Values y = run(net, inputs);
        REQUIRE(y.size() == expected.size());
        for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).margin(1e-5));
    }
}

}  // namespace onnx_test
