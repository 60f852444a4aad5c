// SPDX-License-Identifier: MIT
// dp::ops: the public face of eager calls.
#include <dlprim/ops.hpp>

#include "base/text.hpp"
#include "exec/typed_options.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"

namespace dlprim::ops {

namespace {

using Options = std::shared_ptr<const EagerOptions>;

Options parsed(std::string_view json) {
    static auto* known = new KnownOptions;
    return known->find(json, [&] { return parse_options_json(json); });
}

Options pointwise_options(std::string_view code) {
    static auto* known = new KnownOptions;
    return known->find(code, [&] { return Attrs{{"code", std::string(code)}}; });
}

void check_rank(std::string_view type, const Tensor& weight, int rank) {
    if (weight.shape().rank() == rank) return;  // no text without an error
    fail(ErrorKind::invalid_argument, type, ": weight has shape ", weight.shape().str(), ", wants ",
         rank, " dimensions");
}

/// What the weight says of the options.
Convolution completed(const Convolution& given, const Tensor& weight, bool bias) {
    check_rank(given.type, weight, 4);
    Convolution options = given;
    options.bias = bias;
    if (options.channels_out == 0) options.channels_out = weight.shape()[0];
    if (options.kernel.empty()) options.kernel = {weight.shape()[2], weight.shape()[3]};
    return options;
}

InnerProduct completed(const InnerProduct& given, const Tensor& weight, bool bias) {
    check_rank(given.type, weight, 2);
    InnerProduct options = given;
    options.bias = bias;
    if (options.outputs == 0) options.outputs = weight.shape()[0];
    return options;
}

}  // namespace

template <OperatorOptions T>
std::vector<Tensor> call(const T& options, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& params, const CallOptions& how) {
    return eager_call(T::type, *typed_options(options), inputs, params, how);
}

template <OperatorOptions T>
std::vector<Tensor> backward(const T& options, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients, const CallOptions& how) {
    return eager_backward(T::type, *typed_options(options), inputs, params, output_gradients, how);
}

namespace {

/// Whoever takes a function's address has it compiled, so these are call() and backward() of all
/// structs.
template <typename... Options>
constexpr auto calls_of(const std::tuple<Options...>*) {
    return std::tuple(std::pair(&call<Options>, &backward<Options>)...);
}

}  // namespace

using AllStructs = decltype(std::tuple_cat(AllOptions(), AllAliases()));
extern const decltype(calls_of(static_cast<const AllStructs*>(nullptr))) calls_of_all;
const decltype(calls_of_all) calls_of_all = calls_of(static_cast<const AllStructs*>(nullptr));

std::vector<Tensor> call(std::string_view type, std::string_view options_json,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                         const CallOptions& how) {
    return eager_call(type, *parsed(options_json), inputs, params, how);
}

std::vector<Tensor> backward(std::string_view type, std::string_view options_json,
                             const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients, const CallOptions& how) {
    return eager_backward(type, *parsed(options_json), inputs, params, output_gradients, how);
}

std::vector<std::size_t> written_params(std::string_view type, std::string_view options_json) {
    const CompleteType complete = OperatorRegistry::instance().complete(
        type, parsed(options_json)->attrs, cat("[", type, "] "));
    return complete.op.written_params(complete.attrs);
}

std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs,
                              const std::vector<double>& scalars, const CallOptions& how) {
    if (scalars.empty()) return eager_call("Pointwise", *pointwise_options(code), inputs, {}, how);
    require(how.scalars.empty(), "pointwise() got scalars twice, once of them beside the options");
    CallOptions with_scalars = how;
    with_scalars.scalars.assign(scalars.begin(), scalars.end());
    return eager_call("Pointwise", *pointwise_options(code), inputs, {}, with_scalars);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Convolution& options,
              const CallOptions& how) {
    return call(completed(options, weight, false), {x}, {weight}, how).at(0);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Convolution& options,
              const CallOptions& how) {
    return call(completed(options, weight, true), {x}, {weight, bias}, how).at(0);
}
Tensor inner_product(const Tensor& x, const Tensor& weight, const InnerProduct& options,
                     const CallOptions& how) {
    return call(completed(options, weight, false), {x}, {weight}, how).at(0);
}
Tensor inner_product(const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const InnerProduct& options, const CallOptions& how) {
    return call(completed(options, weight, true), {x}, {weight, bias}, how).at(0);
}
Tensor matmul(const Tensor& a, const Tensor& b, const MatMul& options, const CallOptions& how) {
    return call(options, {a, b}, {}, how).at(0);
}
Tensor pooling2d(const Tensor& x, const Pooling2D& options, const CallOptions& how) {
    return call(options, {x}, {}, how).at(0);
}
Tensor add(const Tensor& a, const Tensor& b) {
    return call(Elementwise{}, {a, b}).at(0);
}
Tensor relu(const Tensor& x) {
    return call(Activation{.activation = "relu"}, {x}).at(0);
}
Tensor softmax(const Tensor& x, const Softmax& options, const CallOptions& how) {
    return call(options, {x}, {}, how).at(0);
}

}  // namespace dlprim::ops
