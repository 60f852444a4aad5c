// SPDX-License-Identifier: MIT
// Indices that are out of range where a model computes them.
#include "onnx/device_support.hpp"

using namespace onnx_test;

TEST_CASE("an index that a model computes is checked on every device") {
    Model model{.nodes = {node("Mul", {"i", "ten"}, {"tens"}),
                          node("Gather", {"table", "tens"}, {"row"}, {{}, "reader"}),
                          node("NonZero", {"row"}, {"places"}),
                          node("GatherElements", {"table", "i"}, {"y"})},
                .inputs = {value("i", {2}, type_int64)},
                .outputs = {value("places", {1, -1}, type_int64), value("y", {2})},
                .initializers = {integers("ten", {10}), floats("table", {12}, Values(12, 1))}};
    for (const dlprim::Context& device : dlprim::testing::test_devices()) {
        INFO(device.info().name);
        Session session = open_session(model, {}, device);
        CHECK(session.run({{"i", sizes({1, -1})}}) == "float [2]: 1 1");
        // It is found in front of NonZero, whose count the host must know.
        CHECK(has(session.error({{"i", sizes({1, 2})}}),
                  "[Gather 'reader'] index 20 at position 1 is outside of a dimension of 12"));
        CHECK(session.run({{"i", sizes({0, 1})}}) == "float [2]: 1 1");
        CHECK(has(session.error({{"i", sizes({11, 0})}}), "[Gather 'reader'] index 110"));
    }
}
