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
Convolution2D completed(const Convolution2D& given, const Tensor& weight, bool bias) {
    check_rank(given.type, weight, 4);
    Convolution2D options = given;
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

#define DLPRIM_CALLS_OF(T)                                                                        \
    template std::vector<Tensor> call(const T&, const std::vector<Tensor>&,                       \
                                      const std::vector<Tensor>&, const CallOptions&);            \
    template std::vector<Tensor> backward(const T&, const std::vector<Tensor>&,                   \
                                          const std::vector<Tensor>&, const std::vector<Tensor>&, \
                                          const CallOptions&);
DLPRIM_CALLS_OF(Convolution2D)
DLPRIM_CALLS_OF(TransposedConvolution2D)
DLPRIM_CALLS_OF(InnerProduct)
DLPRIM_CALLS_OF(MatMul)
DLPRIM_CALLS_OF(MatMulAdd)
DLPRIM_CALLS_OF(ConvolutionND)
DLPRIM_CALLS_OF(TransposedConvolutionND)
DLPRIM_CALLS_OF(BatchNorm)
DLPRIM_CALLS_OF(LayerNorm)
DLPRIM_CALLS_OF(GroupNorm)
DLPRIM_CALLS_OF(Pooling2D)
DLPRIM_CALLS_OF(PoolingND)
DLPRIM_CALLS_OF(AdaptivePooling)
DLPRIM_CALLS_OF(GlobalPooling)
DLPRIM_CALLS_OF(Resize)
DLPRIM_CALLS_OF(GridSample)
DLPRIM_CALLS_OF(Interpolation)
DLPRIM_CALLS_OF(Activation)
DLPRIM_CALLS_OF(PReLU)
DLPRIM_CALLS_OF(Elementwise)
DLPRIM_CALLS_OF(Threshold)
DLPRIM_CALLS_OF(Hardtanh)
DLPRIM_CALLS_OF(Abs)
DLPRIM_CALLS_OF(Cast)
DLPRIM_CALLS_OF(Dropout)
DLPRIM_CALLS_OF(Pointwise)
DLPRIM_CALLS_OF(Reduction)
DLPRIM_CALLS_OF(Softmax)
DLPRIM_CALLS_OF(SoftmaxWithLoss)
DLPRIM_CALLS_OF(NLLLoss)
DLPRIM_CALLS_OF(MSELoss)
DLPRIM_CALLS_OF(Concat)
DLPRIM_CALLS_OF(Slice)
DLPRIM_CALLS_OF(Split)
DLPRIM_CALLS_OF(Flatten)
DLPRIM_CALLS_OF(Reshape)
DLPRIM_CALLS_OF(Squeeze)
DLPRIM_CALLS_OF(Transpose)
DLPRIM_CALLS_OF(Pad)
DLPRIM_CALLS_OF(Parameter)
DLPRIM_CALLS_OF(Embedding)
DLPRIM_CALLS_OF(Gather)
DLPRIM_CALLS_OF(Scatter)
DLPRIM_CALLS_OF(TopK)
DLPRIM_CALLS_OF(Sort)
DLPRIM_CALLS_OF(ArgReduce)
DLPRIM_CALLS_OF(Scan)
DLPRIM_CALLS_OF(Nonzero)
DLPRIM_CALLS_OF(Flip)
DLPRIM_CALLS_OF(Attention)
DLPRIM_CALLS_OF(LSTM)
DLPRIM_CALLS_OF(GRU)
DLPRIM_CALLS_OF(MaxPooling2D)
DLPRIM_CALLS_OF(SoftmaxBackward)
DLPRIM_CALLS_OF(ActivationBackward)
DLPRIM_CALLS_OF(BatchNormBackward)
DLPRIM_CALLS_OF(LayerNormBackward)
DLPRIM_CALLS_OF(GroupNormBackward)
DLPRIM_CALLS_OF(MaxPooling2DBackward)
DLPRIM_CALLS_OF(NLLLossBackward)
#undef DLPRIM_CALLS_OF

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
    const Operator& op = OperatorRegistry::instance().get(type);
    return op.written_params(
        op.schema().complete(parsed(options_json)->attrs, cat("[", type, "] ")));
}

std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs,
                              const std::vector<double>& scalars, const CallOptions& how) {
    if (scalars.empty()) return eager_call("Pointwise", *pointwise_options(code), inputs, {}, how);
    require(how.scalars.empty(), "pointwise() got scalars twice, once of them beside the options");
    CallOptions with_scalars = how;
    with_scalars.scalars.assign(scalars.begin(), scalars.end());
    return eager_call("Pointwise", *pointwise_options(code), inputs, {}, with_scalars);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Convolution2D& options,
              const CallOptions& how) {
    return call(completed(options, weight, false), {x}, {weight}, how).at(0);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Convolution2D& options, const CallOptions& how) {
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
