// SPDX-License-Identifier: MIT
// dp::ops: the public face of eager calls.
#include <dlprim/ops.hpp>

#include "exec/eager.hpp"
#include "formats/json_net.hpp"

namespace dlprim::ops {

std::vector<Tensor> call(std::string_view type, std::string_view options_json, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& params, const CallOptions& options) {
    return eager_call(type, parse_options_json(options_json), inputs, params, options);
}

std::vector<Tensor> backward(std::string_view type, std::string_view options_json, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& params, const std::vector<Tensor>& output_gradients,
                             const CallOptions& options) {
    return eager_backward(type, parse_options_json(options_json), inputs, params, output_gradients, options);
}

std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs, const std::vector<double>& scalars,
                              const CallOptions& options) {
    const Attrs attrs{{"code", std::string(code)}, {"scalars", Doubles(scalars)}};
    return eager_call("Pointwise", attrs, inputs, {}, options);
}

Tensor relu(const Tensor& x) { return call("Activation", R"({"activation": "relu"})", {x}).at(0); }
Tensor add(const Tensor& a, const Tensor& b) { return call("Elementwise", "{}", {a, b}).at(0); }
Tensor matmul(const Tensor& a, const Tensor& b) { return call("MatMul", "{}", {a, b}).at(0); }
Tensor softmax(const Tensor& x) { return call("Softmax", "{}", {x}).at(0); }

}  // namespace dlprim::ops
