// SPDX-License-Identifier: MIT
// The fields of the structs in dlprim/op_options.hpp as tuples, with the options' names in JSON:
// what typed calls are made of, and the test that holds the structs against the operators' schemas.
#pragma once

#include <dlprim/op_options.hpp>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace dlprim {

/// The options' names, in the order of the struct's fields.
template <typename Options>
inline constexpr auto option_names = std::array<std::string_view, 0>{};

/// References to all fields of a struct. A field without a name is an error of the compiler, since
/// a structured binding takes exactly as many as there are.
template <typename Options>
auto option_fields(Options& options) {
    constexpr std::size_t count = option_names<std::remove_const_t<Options>>.size();
    static_assert(count > 0 || std::is_empty_v<Options>, "the struct's fields have no names");
    if constexpr (count == 0) return std::tuple<>();
    if constexpr (count == 1) {
        auto& [a] = options;
        return std::tie(a);
    }
    if constexpr (count == 2) {
        auto& [a, b] = options;
        return std::tie(a, b);
    }
    if constexpr (count == 3) {
        auto& [a, b, c] = options;
        return std::tie(a, b, c);
    }
    if constexpr (count == 4) {
        auto& [a, b, c, d] = options;
        return std::tie(a, b, c, d);
    }
    if constexpr (count == 5) {
        auto& [a, b, c, d, e] = options;
        return std::tie(a, b, c, d, e);
    }
    if constexpr (count == 6) {
        auto& [a, b, c, d, e, f] = options;
        return std::tie(a, b, c, d, e, f);
    }
    if constexpr (count == 7) {
        auto& [a, b, c, d, e, f, g] = options;
        return std::tie(a, b, c, d, e, f, g);
    }
    if constexpr (count == 8) {
        auto& [a, b, c, d, e, f, g, h] = options;
        return std::tie(a, b, c, d, e, f, g, h);
    }
    if constexpr (count == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = options;
        return std::tie(a, b, c, d, e, f, g, h, i);
    }
    if constexpr (count == 10) {
        auto& [a, b, c, d, e, f, g, h, i, j] = options;
        return std::tie(a, b, c, d, e, f, g, h, i, j);
    }
}

template <typename... Texts>
consteval std::array<std::string_view, sizeof...(Texts)> name_list(Texts... texts) {
    return {texts...};
}

template <>
inline constexpr auto option_names<ops::Convolution2D> = name_list("channels_out", "channels_in",
                                                                   "groups", "bias", "kernel",
                                                                   "stride", "pad", "dilate",
                                                                   "activation");
template <>
inline constexpr auto option_names<ops::TransposedConvolution2D> =
    name_list("channels_out", "channels_in", "groups", "bias", "kernel", "stride", "pad", "dilate",
              "output_pad", "activation");
template <>
inline constexpr auto option_names<ops::ConvolutionND> = name_list("channels_out", "channels_in",
                                                                   "groups", "bias", "kernel",
                                                                   "stride", "pad", "dilate");
template <>
inline constexpr auto option_names<ops::TransposedConvolutionND> =
    name_list("channels_out", "channels_in", "groups", "bias", "kernel", "stride", "pad", "dilate",
              "output_pad");
template <>
inline constexpr auto option_names<ops::InnerProduct> = name_list("outputs", "inputs", "bias",
                                                                  "activation", "axis");
template <>
inline constexpr auto option_names<ops::MatMul> = name_list("transpose_a", "transpose_b", "alpha",
                                                            "bias");
template <>
inline constexpr auto option_names<ops::MatMulAdd> = name_list("transpose_a", "transpose_b",
                                                               "alpha", "beta");
template <>
inline constexpr auto option_names<ops::BatchNorm> = name_list("features", "eps", "momentum",
                                                               "affine", "use_global_stats",
                                                               "return_statistics", "sync");
template <>
inline constexpr auto option_names<ops::LayerNorm> = name_list("normalized_shape", "dims", "eps",
                                                               "elementwise_affine", "bias",
                                                               "return_statistics");
template <>
inline constexpr auto option_names<ops::GroupNorm> = name_list("num_groups", "num_channels", "eps",
                                                               "affine", "return_statistics");
template <>
inline constexpr auto option_names<ops::Pooling2D> = name_list("mode", "kernel", "stride", "pad",
                                                               "count_include_pad", "ceil_mode",
                                                               "return_indices");
template <>
inline constexpr auto option_names<ops::PoolingND> = name_list("mode", "kernel", "stride", "pad",
                                                               "dilate", "count_include_pad",
                                                               "ceil_mode", "divisor_override",
                                                               "return_indices");
template <>
inline constexpr auto option_names<ops::AdaptivePooling> = name_list("mode", "output",
                                                                     "return_indices");
template <>
inline constexpr auto option_names<ops::GlobalPooling> = name_list("mode");
template <>
inline constexpr auto option_names<ops::Resize> = name_list("method", "output", "scales",
                                                            "align_corners", "antialias");
template <>
inline constexpr auto option_names<ops::GridSample> = name_list("mode", "padding_mode",
                                                                "align_corners");
template <>
inline constexpr auto option_names<ops::Interpolation> = name_list("method", "scale_y", "scale_x",
                                                                   "out_h", "out_w",
                                                                   "align_corners");
template <>
inline constexpr auto option_names<ops::Activation> = name_list("activation", "alpha", "beta",
                                                                "negative_slope", "min_val",
                                                                "max_val", "lambd", "threshold",
                                                                "value");
template <>
inline constexpr auto option_names<ops::PReLU> = name_list("num_parameters", "init");
template <>
inline constexpr auto option_names<ops::Elementwise> = name_list("operation", "coef1", "coef2",
                                                                 "activation");
template <>
inline constexpr auto option_names<ops::Threshold> = name_list("threshold");
template <>
inline constexpr auto option_names<ops::Hardtanh> = name_list("min_val", "max_val");
template <>
inline constexpr auto option_names<ops::Cast> = name_list("dtype", "reinterpret");
template <>
inline constexpr auto option_names<ops::Dropout> = name_list("p", "stream");
template <>
inline constexpr auto option_names<ops::Pointwise> = name_list("code", "scalars", "dtypes",
                                                               "keep_dim", "shape");
template <>
inline constexpr auto option_names<ops::Reduction> = name_list("method", "keep_dim", "output_scale",
                                                               "dims", "start_axis");
template <>
inline constexpr auto option_names<ops::Softmax> = name_list("log", "axis");
template <>
inline constexpr auto option_names<ops::SoftmaxWithLoss> = name_list("ignore_index");
template <>
inline constexpr auto option_names<ops::NLLLoss> = name_list("reduce", "ignore_index",
                                                             "return_weight");
template <>
inline constexpr auto option_names<ops::MSELoss> = name_list("reduce");
template <>
inline constexpr auto option_names<ops::Concat> = name_list("dim");
template <>
inline constexpr auto option_names<ops::Slice> = name_list("dim", "begin", "end");
template <>
inline constexpr auto option_names<ops::Split> = name_list("dim", "parts");
template <>
inline constexpr auto option_names<ops::Reshape> = name_list("dims");
template <>
inline constexpr auto option_names<ops::Squeeze> = name_list("dims", "all");
template <>
inline constexpr auto option_names<ops::Transpose> = name_list("dims", "dim0", "dim1");
template <>
inline constexpr auto option_names<ops::Pad> = name_list("pads", "mode", "value");
template <>
inline constexpr auto option_names<ops::Parameter> = name_list("shape", "dtype", "is_trainable",
                                                               "value");
template <>
inline constexpr auto option_names<ops::Embedding> = name_list("num_embeddings", "embedding_dim",
                                                               "padding_idx");
template <>
inline constexpr auto option_names<ops::Gather> = name_list("mode", "dim", "batch_dims", "dims",
                                                            "from_end");
template <>
inline constexpr auto option_names<ops::Scatter> = name_list("mode", "dim", "batch_dims", "dims",
                                                             "from_end", "reduction",
                                                             "include_self", "shape");
template <>
inline constexpr auto option_names<ops::TopK> = name_list("k", "dim", "largest", "sorted");
template <>
inline constexpr auto option_names<ops::Sort> = name_list("dim", "descending");
template <>
inline constexpr auto option_names<ops::ArgReduce> = name_list("method", "dim", "keep_dim",
                                                               "values");
template <>
inline constexpr auto option_names<ops::Nonzero> = name_list("size", "flat", "fill");
template <>
inline constexpr auto option_names<ops::Flip> = name_list("dims");
template <>
inline constexpr auto option_names<ops::Scan> = name_list("method", "dim", "reverse", "exclusive",
                                                          "dtype");
template <>
inline constexpr auto option_names<ops::Attention> = name_list("scale", "is_causal", "enable_gqa",
                                                               "dropout_p", "stream");
template <>
inline constexpr auto option_names<ops::LSTM> = name_list("hidden_size", "num_layers",
                                                          "bidirectional", "bias", "batch_first",
                                                          "dropout", "stream");
template <>
inline constexpr auto option_names<ops::GRU> = name_list("hidden_size", "num_layers",
                                                         "bidirectional", "bias", "batch_first",
                                                         "dropout", "stream");

template <>
inline constexpr auto option_names<ops::MaxPooling2D> = name_list("kernel", "stride", "pad",
                                                                  "ceil_mode");
template <>
inline constexpr auto option_names<ops::SoftmaxBackward> = name_list("log", "axis");
template <>
inline constexpr auto option_names<ops::ActivationBackward> = option_names<ops::Activation>;
template <>
inline constexpr auto option_names<ops::BatchNormBackward> = name_list("use_global_stats");
template <>
inline constexpr auto option_names<ops::LayerNormBackward> = name_list("normalized_shape", "dims");
template <>
inline constexpr auto option_names<ops::GroupNormBackward> = name_list("num_groups");
template <>
inline constexpr auto option_names<ops::MaxPooling2DBackward> = name_list("kernel", "stride", "pad",
                                                                          "ceil_mode", "sizes");
template <>
inline constexpr auto option_names<ops::NLLLossBackward> = name_list("reduce", "ignore_index",
                                                                     "classes");

using AllOptions =
    std::tuple<ops::Convolution2D, ops::TransposedConvolution2D, ops::InnerProduct, ops::MatMul,
               ops::MatMulAdd, ops::ConvolutionND, ops::TransposedConvolutionND, ops::BatchNorm,
               ops::LayerNorm, ops::GroupNorm, ops::Pooling2D, ops::PoolingND, ops::AdaptivePooling,
               ops::GlobalPooling, ops::Resize, ops::GridSample, ops::Interpolation,
               ops::Activation, ops::PReLU, ops::Elementwise, ops::Threshold, ops::Hardtanh,
               ops::Abs, ops::Cast, ops::Dropout, ops::Pointwise, ops::Reduction, ops::Softmax,
               ops::SoftmaxWithLoss, ops::NLLLoss, ops::MSELoss, ops::Concat, ops::Slice,
               ops::Split, ops::Flatten, ops::Reshape, ops::Squeeze, ops::Transpose, ops::Pad,
               ops::Parameter, ops::Embedding, ops::Gather, ops::Scatter, ops::TopK, ops::Sort,
               ops::Attention, ops::LSTM, ops::GRU, ops::MaxPooling2D, ops::SoftmaxBackward,
               ops::ActivationBackward, ops::BatchNormBackward, ops::LayerNormBackward,
               ops::GroupNormBackward, ops::MaxPooling2DBackward, ops::NLLLossBackward,
               ops::ArgReduce, ops::Scan, ops::Nonzero, ops::Flip>;

}  // namespace dlprim
