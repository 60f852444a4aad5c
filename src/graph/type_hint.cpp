// SPDX-License-Identifier: MIT
// Names of operator types in other frameworks, and their names here.
#include "graph/type_hint.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"

#include <algorithm>

namespace dlprim {
namespace {

/// Names in PyTorch, Keras, ONNX and Caffe, in the form that plain() makes.
struct Alias {
    std::string_view name, type, option = {};
};

constexpr Alias aliases[] = {
    {"conv", "Convolution2D"},
    {"conv2d", "Convolution2D"},
    {"convolution", "Convolution2D"},
    {"depthwiseconv2d", "Convolution2D", R"("groups")"},
    {"convtranspose", "TransposedConvolution2D"},
    {"convtranspose2d", "TransposedConvolution2D"},
    {"conv2dtranspose", "TransposedConvolution2D"},
    {"deconv", "TransposedConvolution2D"},
    {"deconv2d", "TransposedConvolution2D"},
    {"deconvolution", "TransposedConvolution2D"},
    {"linear", "InnerProduct"},
    {"dense", "InnerProduct"},
    {"fullyconnected", "InnerProduct"},
    {"fc", "InnerProduct"},
    {"gemm", "InnerProduct"},
    {"affine", "InnerProduct"},
    {"mm", "MatMul"},
    {"bmm", "MatMul"},
    {"dot", "MatMul"},
    {"pooling", "Pooling2D"},
    {"maxpool", "Pooling2D", R"("mode": "max")"},
    {"maxpool1d", "PoolingND", R"("mode": "max")"},
    {"maxpool3d", "PoolingND", R"("mode": "max")"},
    {"maxpool2d", "Pooling2D", R"("mode": "max")"},
    {"maxpooling2d", "Pooling2D", R"("mode": "max")"},
    {"avgpool", "Pooling2D", R"("mode": "avg")"},
    {"avgpool1d", "PoolingND", R"("mode": "avg")"},
    {"avgpool3d", "PoolingND", R"("mode": "avg")"},
    {"avgpool2d", "Pooling2D", R"("mode": "avg")"},
    {"averagepool", "Pooling2D", R"("mode": "avg")"},
    {"averagepooling2d", "Pooling2D", R"("mode": "avg")"},
    {"adaptivemaxpool1d", "AdaptivePooling", R"("mode": "max")"},
    {"adaptivemaxpool2d", "AdaptivePooling", R"("mode": "max")"},
    {"adaptivemaxpool3d", "AdaptivePooling", R"("mode": "max")"},
    {"globalmaxpool", "GlobalPooling", R"("mode": "max")"},
    {"globalmaxpool2d", "GlobalPooling", R"("mode": "max")"},
    {"globalmaxpooling2d", "GlobalPooling", R"("mode": "max")"},
    {"adaptiveavgpool1d", "AdaptivePooling", R"("mode": "avg")"},
    {"adaptiveavgpool2d", "AdaptivePooling", R"("mode": "avg")"},
    {"adaptiveavgpool3d", "AdaptivePooling", R"("mode": "avg")"},
    {"globalavgpool", "GlobalPooling", R"("mode": "avg")"},
    {"globalavgpool2d", "GlobalPooling", R"("mode": "avg")"},
    {"globalaveragepool", "GlobalPooling", R"("mode": "avg")"},
    {"globalaveragepooling2d", "GlobalPooling", R"("mode": "avg")"},
    {"batchnorm1d", "BatchNorm"},
    {"batchnorm2d", "BatchNorm"},
    {"batchnormalization", "BatchNorm"},
    {"layernormalization", "LayerNorm"},
    {"groupnormalization", "GroupNorm"},
    {"add", "Elementwise", R"("operation": "sum")"},
    {"sum", "Elementwise", R"("operation": "sum")"},
    {"eltwise", "Elementwise", R"("operation": "sum")"},
    {"sub", "Elementwise", R"("coef2": -1)"},
    {"subtract", "Elementwise", R"("coef2": -1)"},
    {"mul", "Elementwise", R"("operation": "prod")"},
    {"multiply", "Elementwise", R"("operation": "prod")"},
    {"prod", "Elementwise", R"("operation": "prod")"},
    {"max", "Elementwise", R"("operation": "max")"},
    {"maximum", "Elementwise", R"("operation": "max")"},
    {"div", "Pointwise"},
    {"divide", "Pointwise"},
    {"exp", "Pointwise"},
    {"log", "Pointwise"},
    {"sqrt", "Pointwise"},
    {"pow", "Pointwise"},
    {"where", "Pointwise"},
    {"swish", "Activation", R"("activation": "silu")"},
    {"clip", "Hardtanh"},
    {"clamp", "Hardtanh"},
    {"cat", "Concat"},
    {"concatenate", "Concat"},
    {"crop", "Slice"},
    {"narrow", "Slice"},
    {"split", "Slice"},
    {"chunk", "Slice"},
    {"permute", "Transpose"},
    {"view", "Reshape"},
    {"unsqueeze", "Reshape"},
    {"zeropad2d", "Pad"},
    {"zeropadding2d", "Pad"},
    {"upsample", "Interpolation"},
    {"upsampling2d", "Interpolation"},
    {"interpolate", "Interpolation"},
    {"resize", "Interpolation"},
    {"mean", "Reduction", R"("method": "mean")"},
    {"reducemean", "Reduction", R"("method": "mean")"},
    {"reducesum", "Reduction", R"("method": "sum")"},
    {"logsoftmax", "Softmax", R"("log": true)"},
    {"crossentropy", "SoftmaxWithLoss"},
    {"crossentropyloss", "SoftmaxWithLoss"},
    {"softmaxcrossentropyloss", "SoftmaxWithLoss"},
    {"categoricalcrossentropy", "SoftmaxWithLoss"},
    {"mse", "MSELoss"},
    {"meansquarederror", "MSELoss"},
    {"nll", "NLLLoss"},
    {"multiheadattention", "Attention"},
    {"scaleddotproductattention", "Attention"},
};

/// The name in lower case without separators: "Max_Pool-2D" becomes "maxpool2d".
std::string plain(std::string_view name) {
    std::string text;
    for (const char c : name)
        if (ascii::is_letter(c) || ascii::is_digit(c)) text += ascii::lower(c);
    return text;
}

std::string hint(std::string_view type, std::string_view option) {
    return cat("; did you mean '", type, "'", option.empty() ? "" : " with ", option, "?");
}

}  // namespace

std::string type_hint(std::string_view name, std::span<const std::string> types) {
    constexpr std::size_t longest = 64;  // no type is longer; keeps hostile input cheap
    if (name.size() > longest) return {};
    const std::string wanted = plain(name);
    for (const std::string& type : types)
        if (plain(type) == wanted) return hint(type, {});
    for (const Alias& alias : aliases)
        if (alias.name == wanted) return hint(alias.type, alias.option);
    for (const std::string& activation : activation_names())
        if (plain(activation) == wanted)
            return hint("Activation", cat("\"activation\": \"", activation, "\""));
    return did_you_mean(name, types);
}

}  // namespace dlprim
