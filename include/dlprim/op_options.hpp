// SPDX-License-Identifier: MIT
// The options of operators as typed values, for eager calls (dlprim/ops.hpp):
//   ops::call(ops::Convolution{.channels_out = 64, .kernel = 3, .pad = 1}, {x}, {weight, bias})
//
// There is a struct for each operator. It is the declaration of the operator's options: the fields
// have the options' types and defaults, and the table in fields() has their names, what they mean,
// and which values they take. JSON is read and checked by it, and docs/json.md lists it. A field
// that is `required()` has no default: without it a call throws Error(invalid_argument), as it does
// for values that do not fit.
//
// `takes` says what the operator's inputs, outputs and parameters are. `group` is the kind of work
// that it does, by which plots choose colours.
//
// `other_names` are those that it had before. A struct with a function meant() is an alias: another
// name of an operator, with options of its own that meant() turns into the operator's.
//
// The structs are plain values. They hold no memory of a device, and any thread may use them.
// Images are NCHW. Sizes, strides and paddings count elements. A negative dimension counts from the
// end.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/option_table.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dlprim::ops {

// Convolutions and products.

/// The rows that both convolutions have.
template <typename T>
constexpr auto convolution_fields(std::string_view stride, std::string_view pad,
                                  double least_pad = 0) {
    constexpr double most = 1 << 28;  // kernels count in 32 bits, and add a few such sizes
    return option_table(
        required<&T::channels_out>("channels of the output").at_least(1),
        option<&T::channels_in>("channels of the input; -1: as it has"),
        option<&T::groups>("groups of channels, each convolved on its own").at_least(1),
        option<&T::bias>("whether a bias is added to each channel"),
        required<&T::kernel>("size of the window").between(1, most),
        option<&T::stride>(stride).between(1, most), option<&T::pad>(pad).between(least_pad, most),
        option<&T::dilate>("distance between the kernel's elements").between(1, most),
        option<&T::activation>("applied to the result"));
}

/// Of sequences, images or volumes.
struct Convolution {
    static constexpr std::string_view type = "Convolution", group = "convolution";
    static constexpr std::array<std::string_view, 2> other_names{"Convolution2D", "ConvolutionND"};
    static constexpr std::string_view takes =
        "[N, C, ...] with one to three dimensions of images; a list has an entry for each; "
        "weight [out, in/groups, kernel...], bias [out]";
    std::int64_t channels_out = 0, channels_in = -1, groups = 1;
    bool bias = true;
    IntList kernel = {}, stride = 1, pad = 0, dilate = 1;
    std::string activation = "identity";
    static constexpr auto fields() {
        return convolution_fields<Convolution>(
            // Gradients of a transposed convolution have negative pads, which crop.
            "step of the window",
            "zeros in front and behind, or first all in front and then all behind", -(1 << 28));
    }
};

/// The gradient of a convolution with respect to its input, as an operator of its own.
struct TransposedConvolution {
    static constexpr std::string_view type = "TransposedConvolution", group = "convolution";
    static constexpr std::array<std::string_view, 2> other_names{"TransposedConvolution2D",
                                                                 "TransposedConvolutionND"};
    static constexpr std::string_view takes =
        "[N, C, ...] as Convolution; weight [in, out/groups, kernel...], bias [out]";
    std::int64_t channels_out = 0, channels_in = -1, groups = 1;
    bool bias = true;
    IntList kernel = {}, stride = 1, pad = 0, dilate = 1, output_pad = 0;
    std::string activation = "identity";
    static constexpr auto fields() {
        return joined(
            convolution_fields<TransposedConvolution>(
                "factor by which images grow", "cut off around the output, as Convolution's"),
            option_table(option<&TransposedConvolution::output_pad>(
                             "added to the output's size at the end of each dimension")
                             .between(0, 1 << 28)));
    }
};

// Its other names.
using Convolution2D = Convolution;
using ConvolutionND = Convolution;
using TransposedConvolution2D = TransposedConvolution;
using TransposedConvolutionND = TransposedConvolution;

/// What the option `blocks` of products and tables means.
inline constexpr std::string_view blocks_meaning =
    "GGUF's type of the blocks that the weight is stored in, see [below](#weights-in-blocks)";

/// y = x W^T + b, of rows of features.
struct InnerProduct {
    static constexpr std::string_view type = "InnerProduct", group = "product";
    static constexpr std::string_view takes =
        "[N, ...] -> [N, outputs], or with axis -1 [N, ..., inputs] -> [N, ..., outputs]; "
        "weight [outputs, inputs], bias [outputs]";
    std::int64_t outputs = 0, inputs = -1;
    bool bias = true;
    std::string activation = "identity";
    std::int64_t axis = 1;
    std::string blocks = {};
    static constexpr auto fields() {
        return option_table(required<&InnerProduct::outputs>("features of the output").at_least(1),
                            option<&InnerProduct::inputs>("features of the input; -1: as it has"),
                            option<&InnerProduct::bias>("whether a bias is added"),
                            option<&InnerProduct::activation>("applied to the result"),
                            option<&InnerProduct::axis>(
                                "the first dimension of the features; those before it are kept"),
                            option<&InnerProduct::blocks>(blocks_meaning));
    }
};

/// The product of two tensors' matrices.
struct MatMul {
    static constexpr std::string_view type = "MatMul", group = "product";
    static constexpr std::string_view takes =
        "two tensors, with numpy's broadcasting of leading "
        "dimensions; with `bias` a third of one "
        "row";
    bool transpose_a = false, transpose_b = false;
    double alpha = 1;
    bool bias = false;
    std::string blocks = {};
    static constexpr auto fields() {
        return option_table(option<&MatMul::transpose_a>(
                                "whether the first tensor's last two dimensions are swapped"),
                            option<&MatMul::transpose_b>("the same of the second"),
                            option<&MatMul::alpha>("factor of the product"),
                            option<&MatMul::bias>("whether a third input is added to every row"),
                            option<&MatMul::blocks>(blocks_meaning));
    }
};

/// alpha * op(a) op(b) + beta * c, where c is broadcast.
struct MatMulAdd {
    static constexpr std::string_view type = "MatMulAdd", group = "product";
    static constexpr std::string_view takes =
        "tensors a, b and c -> alpha a b + beta c, where c is broadcast to the product's shape";
    bool transpose_a = false, transpose_b = false;
    double alpha = 1, beta = 1;
    static constexpr auto fields() {
        return option_table(
            option<&MatMulAdd::transpose_a>("whether the last two dimensions of a are swapped"),
            option<&MatMulAdd::transpose_b>("the same of b"),
            option<&MatMulAdd::alpha>("factor of the product"),
            option<&MatMulAdd::beta>("factor of c, which is not read if this is 0"));
    }
};

// Normalisations.

struct BatchNorm {
    static constexpr std::string_view type = "BatchNorm", group = "normalisation";
    static constexpr std::string_view takes =
        "running mean, running variance, then scale and offset when `affine`";
    std::int64_t features = -1;
    double eps = 1e-5, momentum = 0.1;
    bool affine = true, use_global_stats = false, return_statistics = false, sync = false;
    static constexpr auto fields() {
        return option_table(
            option<&BatchNorm::features>("channels; -1: as the input has"),
            option<&BatchNorm::eps>("added to the variance"),
            option<&BatchNorm::momentum>("share of the new batch in the running statistics"),
            option<&BatchNorm::affine>("whether there are a scale and an offset for each channel"),
            option<&BatchNorm::use_global_stats>(
                "whether the running statistics are used in training, too"),
            option<&BatchNorm::return_statistics>(
                "whether two more outputs have the mean by which it normalised and "
                "1 / sqrt(variance + eps)"),
            option<&BatchNorm::sync>(
                "when trained in [shards](training.md#shards): whether statistics are of the "
                "whole batch"));
    }
};

struct LayerNorm {
    static constexpr std::string_view type = "LayerNorm", group = "normalisation";
    static constexpr std::string_view takes = "weight, bias, of the normalised dimensions' shape";
    IntList normalized_shape = {};
    std::int64_t dims = 1;
    double eps = 1e-5;
    bool elementwise_affine = true, bias = true, return_statistics = false;
    static constexpr auto fields() {
        return option_table(
            option<&LayerNorm::normalized_shape>(
                "the last dimensions' sizes; empty: as `dims` says"),
            option<&LayerNorm::dims>("how many last dimensions are normalised together"),
            option<&LayerNorm::eps>("added to the variance"),
            option<&LayerNorm::elementwise_affine>("whether there is a weight"),
            option<&LayerNorm::bias>("with a weight: whether there is a bias, too"),
            option<&LayerNorm::return_statistics>(
                "whether two more outputs have the mean and 1 / sqrt(variance + eps)"));
    }
};

struct GroupNorm {
    static constexpr std::string_view type = "GroupNorm", group = "normalisation";
    static constexpr std::string_view takes = "weight, bias, one for each channel";
    std::int64_t num_groups = 0, num_channels = -1;
    double eps = 1e-5;
    bool affine = true, return_statistics = false;
    static constexpr auto fields() {
        return option_table(required<&GroupNorm::num_groups>("groups of channels").at_least(1),
                            option<&GroupNorm::num_channels>("channels; -1: as the input has"),
                            option<&GroupNorm::eps>("added to the variance"),
                            option<&GroupNorm::affine>("whether there are a weight and a bias"),
                            option<&GroupNorm::return_statistics>(
                                "whether two more outputs, [N, groups], have the mean and "
                                "1 / sqrt(variance + eps)"));
    }
};

/// LayerNorm without the mean and the bias.
struct RMSNorm {
    static constexpr std::string_view type = "RMSNorm", group = "normalisation";
    static constexpr std::string_view takes =
        "x -> x / sqrt(mean of x^2 + eps) times the weight, of the normalised dimensions' shape";
    IntList normalized_shape = {};
    std::int64_t dims = 1;
    double eps = 1e-5;
    bool elementwise_affine = true, return_statistics = false;
    static constexpr auto fields() {
        return joined(
            same_options<LayerNorm, &RMSNorm::normalized_shape, &RMSNorm::dims>(),
            option_table(option<&RMSNorm::eps>("added to the mean of squares").at_least(0),
                         option<&RMSNorm::elementwise_affine>("whether there is a weight"),
                         option<&RMSNorm::return_statistics>(
                             "whether one more output has 1 / sqrt(mean of x^2 + eps)")));
    }
};

// Pooling and sizes of images.

/// The maximum or mean of windows, of the parts into which `output` divides images, or of whole
/// images.
struct Pooling {
    static constexpr std::string_view type = "Pooling", group = "pooling";
    static constexpr std::string_view takes =
        "[N, C, ...] with one to three dimensions of images; a list has an entry for each. Give "
        "`kernel`, `output` or `global`";
    std::string mode = "max";
    IntList kernel = {}, stride = 1, pad = 0, dilate = 1;
    bool count_include_pad = false, ceil_mode = false;
    std::int64_t divisor_override = 0;
    IntList output = {};
    bool global = false;
    std::string positions = "none";
    static constexpr auto fields() {
        constexpr double most = (1 << 24) - 1;
        return option_table(
            option<&Pooling::mode>("what an output is of its window").one_of("max", "avg"),
            option<&Pooling::kernel>("the window").between(1, most),
            option<&Pooling::stride>("step of the window").between(1, most),
            option<&Pooling::pad>(
                "padding in front and behind, or first all in front and then all behind")
                .between(0, most),
            option<&Pooling::dilate>("distance between the window's elements").between(1, most),
            option<&Pooling::count_include_pad>("whether avg counts the padding as elements"),
            option<&Pooling::ceil_mode>("whether output sizes round up"),
            option<&Pooling::divisor_override>("what avg divides by; 0: the number of elements")
                .at_least(0),
            option<&Pooling::output>(
                "sizes of the result, in place of a window, as of nn.AdaptiveAvgPool2d; -1 keeps "
                "the input's")
                .between(-1, most),
            option<&Pooling::global>("whether the window is the whole image"),
            option<&Pooling::positions>(
                "of max: whether a second output has each maximum's position in its window, row * "
                "width + column, or, as int64, in its image, flattened")
                .one_of("none", "window", "image"));
    }
};

/// Pooling of [N, C, H, W].
struct Pooling2D {
    static constexpr std::string_view type = "Pooling2D", group = "pooling";
    static constexpr std::string_view takes = "as Pooling, NCHW -> NCHW";
    std::string mode = "max";
    IntList kernel = {}, stride = 1, pad = 0;
    bool count_include_pad = false, ceil_mode = false, return_indices = false;
    Pooling meant() const {
        Pooling meant = same_values<Pooling>(*this);
        meant.kernel = kernel.for_two();
        if (return_indices) meant.positions = "window";
        return meant;
    }
    static constexpr auto fields() {
        return joined(
            same_options<Pooling, &Pooling2D::mode, &Pooling2D::stride, &Pooling2D::pad,
                         &Pooling2D::count_include_pad, &Pooling2D::ceil_mode>(),
            option_table(required<Pooling, &Pooling2D::kernel>(),
                         option<&Pooling2D::return_indices>("`positions` in the window")));
    }
};

/// Pooling2D with mode max and PyTorch's positions.
struct MaxPooling2D {
    static constexpr std::string_view type = "MaxPooling2D", group = "eager";
    static constexpr std::string_view takes =
        "as Pooling with `positions` in the image, NCHW -> NCHW";
    IntList kernel = {}, stride = 1, pad = 0;
    bool ceil_mode = false;
    Pooling meant() const {
        Pooling meant = same_values<Pooling>(*this);
        meant.kernel = kernel.for_two();
        meant.positions = "image";
        return meant;
    }
    static constexpr auto fields() {
        return joined(same_options<Pooling, &MaxPooling2D::stride, &MaxPooling2D::pad,
                                   &MaxPooling2D::ceil_mode>(),
                      option_table(required<Pooling, &MaxPooling2D::kernel>()));
    }
};

struct PoolingND {
    static constexpr std::string_view type = "PoolingND", group = "pooling";
    static constexpr std::string_view takes = "as Pooling";
    std::string mode = "max";
    IntList kernel = {}, stride = 1, pad = 0, dilate = 1;
    bool count_include_pad = false, ceil_mode = false;
    std::int64_t divisor_override = 0;
    bool return_indices = false;
    Pooling meant() const {
        Pooling meant = same_values<Pooling>(*this);
        if (return_indices) meant.positions = "image";
        return meant;
    }
    static constexpr auto fields() {
        return joined(same_options<Pooling, &PoolingND::mode, &PoolingND::stride, &PoolingND::pad,
                                   &PoolingND::dilate, &PoolingND::count_include_pad,
                                   &PoolingND::ceil_mode, &PoolingND::divisor_override>(),
                      option_table(required<Pooling, &PoolingND::kernel>(),
                                   option<&PoolingND::return_indices>("`positions` in the image")));
    }
};

struct AdaptivePooling {
    static constexpr std::string_view type = "AdaptivePooling", group = "pooling";
    static constexpr std::string_view takes = "as Pooling";
    std::string mode = "max";
    IntList output = {};
    bool return_indices = false;
    Pooling meant() const {
        return {.mode = mode, .output = output, .positions = return_indices ? "image" : "none"};
    }
    static constexpr auto fields() {
        return joined(
            same_options<Pooling, &AdaptivePooling::mode>(),
            option_table(required<Pooling, &AdaptivePooling::output>(),
                         option<&AdaptivePooling::return_indices>("`positions` in the image")));
    }
};

struct GlobalPooling {
    static constexpr std::string_view type = "GlobalPooling", group = "pooling";
    static constexpr std::string_view takes =
        "as Pooling with `global`, [N, C, H, W] -> [N, C, 1, 1]";
    std::string mode = "max";
    Pooling meant() const { return {.mode = mode, .global = true}; }
    static constexpr auto fields() { return same_options<Pooling, &GlobalPooling::mode>(); }
};

struct Resize {
    static constexpr std::string_view type = "Resize", group = "pooling";
    static constexpr std::string_view takes =
        "[N, C, ...] with one to three dimensions of images; a list has an entry for each. "
        "Give "
        "sizes or scales, or both: positions then come from the scales";
    std::string method = "nearest";
    IntList output = {};
    std::vector<double> scales = {};
    bool align_corners = false, antialias = false;
    static constexpr auto fields() {
        return option_table(
            option<&Resize::method>("how elements are mixed")
                .one_of("nearest", "nearest-exact", "linear", "cubic"),
            option<&Resize::output>("sizes of the result; empty: from the scales")
                .between(1, 2147483647),
            option<&Resize::scales>("output size over input size; empty: from the sizes"),
            option<&Resize::align_corners>(
                "of linear and cubic: whether corner elements fall on corner elements"),
            option<&Resize::antialias>(
                "of linear and cubic: whether a filter as wide as the step shrinks images"));
    }
};

struct GridSample {
    static constexpr std::string_view type = "GridSample", group = "pooling";
    static constexpr std::string_view takes =
        "images [N, C, H, W] and places [N, h, w, 2], x before y, from -1 to 1 -> [N, C, h, w]";
    std::string mode = "bilinear", padding_mode = "zeros";
    bool align_corners = false;
    static constexpr auto fields() {
        return option_table(
            option<&GridSample::mode>("how pixels are mixed")
                .one_of("bilinear", "nearest", "bicubic"),
            option<&GridSample::padding_mode>("what lies outside of images")
                .one_of("zeros", "border", "reflection"),
            option<&GridSample::align_corners>(
                "whether -1 and 1 are the centers of corner pixels, not their edges"));
    }
};

/// The rows that Unfold and Fold have.
template <typename T>
constexpr auto column_fields() {
    constexpr double most = (1 << 24) - 1;
    return option_table(
        required<&T::kernel>("the window").between(1, most),
        option<&T::stride>("step of the window").between(1, most),
        option<&T::pad>("zeros around images").between(0, most),
        option<&T::dilate>("distance between the window's elements").between(1, most));
}

/// The windows of images as columns of a matrix (im2col).
struct Unfold {
    static constexpr std::string_view type = "Unfold", group = "movement";
    static constexpr std::string_view takes =
        "[N, C, H, W] -> [N, C kernel kernel, windows], a column for each window; a list is "
        "[height, width]";
    IntList kernel = {}, stride = 1, pad = 0, dilate = 1;
    static constexpr auto fields() { return column_fields<Unfold>(); }
};

/// The images whose windows are columns of a matrix, added where they overlap (col2im).
struct Fold {
    static constexpr std::string_view type = "Fold", group = "movement";
    static constexpr std::string_view takes =
        "[N, C kernel kernel, windows] -> [N, C, H, W]: the sum of Unfold's columns, each where "
        "its "
        "window is";
    IntList output = {}, kernel = {}, stride = 1, pad = 0, dilate = 1;
    static constexpr auto fields() {
        return joined(
            option_table(required<&Fold::output>("size of the images").between(1, (1 << 24) - 1)),
            column_fields<Fold>());
    }
};

/// An alias of Resize.
struct Interpolation {
    static constexpr std::string_view type = "Interpolation", group = "pooling";
    static constexpr std::string_view takes =
        "as Resize, NCHW -> NCHW. Give scale_y and scale_x, or out_h and out_w";
    std::string method = "nearest";
    double scale_y = -1, scale_x = -1;
    std::int64_t out_h = -1, out_w = -1;
    bool align_corners = false;
    static constexpr auto fields() {
        return option_table(
            option<&Interpolation::method>("how pixels are mixed")
                .one_of("nearest", "nearest-exact", "bilinear"),
            option<&Interpolation::scale_y>("output height over input height; -1: not given"),
            option<&Interpolation::scale_x>("output width over input width; -1: not given"),
            option<&Interpolation::out_h>("output height; -1: not given"),
            option<&Interpolation::out_w>("output width; -1: not given"),
            option<&Interpolation::align_corners>(
                "of bilinear: whether corner pixels fall on corner pixels"));
    }
    Resize meant() const {
        const bool sizes = out_h != -1 && out_w != -1, scales = scale_y != -1 && scale_x != -1;
        const bool any_size = out_h != -1 || out_w != -1,
                   any_scale = scale_y != -1 || scale_x != -1;
        if (any_size == any_scale || sizes == scales)
            throw Error(ErrorKind::invalid_argument,
                        "give either scale_y and scale_x, or out_h and out_w");
        Resize made{.method = method == "bilinear" ? "linear" : method,
                    .align_corners = align_corners};
        if (sizes) made.output = {out_h, out_w};
        if (scales) made.scales = {scale_y, scale_x};
        return made;
    }
};

// One element at a time.

template <typename T>
constexpr auto activation_fields() {
    return option_table(required<&T::activation>("one of [these](#activations)"),
                        option<&T::alpha>("its first parameter; not given: the function's default"),
                        option<&T::beta>("its second parameter, likewise"),
                        option<&T::negative_slope>("alpha of leaky_relu"),
                        option<&T::min_val>("alpha of hardtanh"),
                        option<&T::max_val>("beta of hardtanh"),
                        option<&T::lambd>("alpha of softshrink and hardshrink"),
                        option<&T::threshold>("alpha of threshold, beta of softplus"),
                        option<&T::value>("beta of threshold"));
}

struct Activation {
    static constexpr std::string_view type = "Activation", group = "elementwise";
    static constexpr std::string_view takes = "a tensor";
    std::string activation = {};
    std::optional<double> alpha = {}, beta = {}, negative_slope = {}, min_val = {}, max_val = {},
                          lambd = {}, threshold = {}, value = {};
    static constexpr auto fields() { return activation_fields<Activation>(); }
};

/// SwiGLU, GEGLU and others of Shazeer's "GLU Variants Improve Transformer" (2020), behind one
/// product that makes both halves.
struct GatedActivation {
    static constexpr std::string_view type = "GatedActivation", group = "elementwise";
    static constexpr std::string_view takes =
        "a tensor -> one half of `axis` times the activation of the other: silu makes SwiGLU, gelu "
        "GEGLU, sigmoid PyTorch's glu";
    std::string activation = "silu", gate = "first";
    std::int64_t axis = -1;
    static constexpr auto fields() {
        return option_table(
            option<&GatedActivation::activation>("applied to the gate"),
            option<&GatedActivation::gate>("which half is the gate").one_of("first", "second"),
            option<&GatedActivation::axis>("the dimension that is halved").also("dim"));
    }
};

struct PReLU {
    static constexpr std::string_view type = "PReLU", group = "elementwise";
    static constexpr std::string_view takes = "a tensor -> x > 0 ? x : weight x; weight";
    std::int64_t num_parameters = 1;
    double init = 0.25;
    static constexpr auto fields() {
        return option_table(option<&PReLU::num_parameters>("1, or the number of channels"),
                            option<&PReLU::init>("the weight's first value, in a network"));
    }
};

struct Elementwise {
    static constexpr std::string_view type = "Elementwise", group = "elementwise";
    static constexpr std::string_view takes =
        "two tensors, broadcast -> activation(operation(coef1 x, coef2 y))";
    std::string operation = "sum";
    double coef1 = 1, coef2 = 1;
    std::string activation = "identity";
    static constexpr auto fields() {
        return option_table(
            option<&Elementwise::operation>("how the two are joined").one_of("sum", "prod", "max"),
            option<&Elementwise::coef1>("factor of the first tensor"),
            option<&Elementwise::coef2>("factor of the second tensor"),
            option<&Elementwise::activation>("applied to the result"));
    }
};

struct Threshold {
    static constexpr std::string_view type = "Threshold", group = "elementwise";
    static constexpr std::string_view takes = "a tensor -> x > threshold ? 1 : 0";
    double threshold = 0;
    static constexpr auto fields() {
        return option_table(option<&Threshold::threshold>("what elements are compared with"));
    }
};

struct Hardtanh {
    static constexpr std::string_view type = "Hardtanh", group = "elementwise";
    static constexpr std::string_view takes = "a tensor -> min(max(x, min_val), max_val)";
    double min_val = -1, max_val = 1;
    static constexpr auto fields() {
        return option_table(option<&Hardtanh::min_val>("smallest output"),
                            option<&Hardtanh::max_val>("largest output"));
    }
};

struct Abs {
    static constexpr std::string_view type = "Abs", group = "elementwise";
    static constexpr std::string_view takes = "a tensor";
    static constexpr auto fields() { return option_table(); }
};

struct Cast {
    static constexpr std::string_view type = "Cast", group = "movement";
    static constexpr std::string_view takes = "a tensor";
    std::optional<DType> dtype = {};
    bool reinterpret = false;
    static constexpr auto fields() {
        return option_table(required<&Cast::dtype>("the type of the result"),
                            option<&Cast::reinterpret>(
                                "whether elements keep their bits, in a type of the same size"));
    }
};

struct Dropout {
    static constexpr std::string_view type = "Dropout", group = "elementwise";
    static constexpr std::string_view takes = "a tensor; changes nothing outside training";
    double p = 0.5;
    std::int64_t stream = -1;
    static constexpr auto fields() {
        return option_table(
            option<&Dropout::p>("share of the elements that become 0 in training").between(0, 1),
            option<&Dropout::stream>(
                "number of its stream of random numbers, up to 2^24 - 1; two operators with "
                "the same number drop the same elements. -1: made from the operator's name")
                .between(-1, (1 << 24) - 1));
    }
};

/// One generated kernel; docs/pointwise.md has the language.
struct Pointwise {
    static constexpr std::string_view type = "Pointwise", group = "elementwise";
    static constexpr std::string_view takes =
        "any tensors, broadcast -> y0, y1, ...: one kernel from an expression, see "
        "[below](#pointwise)";
    std::string code = {};
    std::vector<double> scalars = {};
    std::vector<DType> dtypes = {};
    bool keep_dim = true;
    IntList shape = {};
    static constexpr auto fields() {
        return option_table(
            required<&Pointwise::code>("the program"),
            option<&Pointwise::scalars>("values of p0, p1, ..."),
            option<&Pointwise::dtypes>(
                "types of the outputs: one for all, or one each; empty: float, or the inputs'"),
            option<&Pointwise::keep_dim>("whether reduced dimensions stay, with size 1"),
            option<&Pointwise::shape>("a shape to which the inputs are broadcast, too"));
    }
};

// Reductions, softmax and losses.

struct Reduction {
    static constexpr std::string_view type = "Reduction", group = "pooling";
    static constexpr std::string_view takes = "a tensor";
    std::string method = "sum";
    bool keep_dim = true;
    double output_scale = 1;
    IntList dims = {};
    std::int64_t start_axis = 0;
    static constexpr auto fields() {
        return option_table(
            option<&Reduction::method>("sumsq adds squares, abssum absolute values")
                .one_of("sum", "sumsq", "abssum", "mean"),
            option<&Reduction::keep_dim>("whether reduced dimensions stay, with size 1"),
            option<&Reduction::output_scale>("factor of the result"),
            option<&Reduction::dims>("dimensions to reduce; empty: all from `start_axis` on"),
            option<&Reduction::start_axis>("used without `dims`"));
    }
};

template <typename T>
constexpr auto softmax_fields() {
    return option_table(option<&T::log>("whether the result is the logarithm of the softmax"),
                        option<&T::axis>("the dimension along which results sum to 1").also("dim"));
}

struct Softmax {
    static constexpr std::string_view type = "Softmax", group = "elementwise";
    static constexpr std::string_view takes = "a tensor";
    bool log = false;
    std::int64_t axis = 1;
    static constexpr auto fields() { return softmax_fields<Softmax>(); }
};

template <typename T>
constexpr auto ignore_index_field() {
    return option<&T::ignore_index>("a label that does not count");
}

template <typename T>
constexpr auto reduce_field() {
    return option<&T::reduce>("how the loss joins its terms").one_of("mean", "sum", "none");
}

struct SoftmaxWithLoss {
    static constexpr std::string_view type = "SoftmaxWithLoss", group = "loss";
    static constexpr std::string_view takes =
        "logits [N, C, ...], label [N, ...] -> [1], the mean over the labels that count; as "
        "PyTorch's cross entropy. NaN if none counts";
    std::optional<std::int64_t> ignore_index = {};
    static constexpr auto fields() { return option_table(ignore_index_field<SoftmaxWithLoss>()); }
};

/// The last product of a language model and its loss, without all logits in memory at once.
struct LinearCrossEntropy {
    static constexpr std::string_view type = "LinearCrossEntropy", group = "loss";
    static constexpr std::string_view takes =
        "x [..., features], label [...]; weight [outputs, features], bias [outputs] -> the cross "
        "entropy of x weight^T + bias, as InnerProduct and SoftmaxWithLoss";
    std::int64_t outputs = 0;
    bool bias = false;
    std::string reduce = "mean";
    std::optional<std::int64_t> ignore_index = {};
    std::int64_t chunk_bytes = 268435456;
    static constexpr auto fields() {
        return option_table(
            required<&LinearCrossEntropy::outputs>("number of classes").at_least(1),
            option<&LinearCrossEntropy::bias>("whether a bias is added"),
            reduce_field<LinearCrossEntropy>(), ignore_index_field<LinearCrossEntropy>(),
            option<&LinearCrossEntropy::chunk_bytes>(
                "logits are computed for as many rows at a time as take so many bytes, and again "
                "in backward")
                .at_least(1));
    }
};

struct NLLLoss {
    static constexpr std::string_view type = "NLLLoss", group = "loss";
    static constexpr std::string_view takes =
        "log probabilities [N, C, ...], labels [N, ...], and "
        "optionally a weight for each class, "
        "by which the mean divides, too";
    std::string reduce = "mean";
    std::optional<std::int64_t> ignore_index = {};
    bool return_weight = false;
    static constexpr auto fields() {
        return option_table(reduce_field<NLLLoss>(), ignore_index_field<NLLLoss>(),
                            option<&NLLLoss::return_weight>(
                                "whether a second output has the labels' total weight"));
    }
};

struct MSELoss {
    static constexpr std::string_view type = "MSELoss", group = "loss";
    static constexpr std::string_view takes = "two tensors";
    std::string reduce = "mean";
    static constexpr auto fields() { return option_table(reduce_field<MSELoss>()); }
};

/// Squares of small differences, and the absolute value of large ones.
struct HuberLoss {
    static constexpr std::string_view type = "HuberLoss", group = "loss";
    static constexpr std::string_view takes =
        "tensors a and b of one shape -> with d = abs(a - b): d <= delta ? 0.5 d d : "
        "delta (d - 0.5 delta)";
    std::string reduce = "mean";
    double delta = 1;
    static constexpr auto fields() {
        return option_table(
            reduce_field<HuberLoss>(),
            option<&HuberLoss::delta>("the difference, above 0, from which on the loss is linear"));
    }
};

// Shapes and copies.

struct Concat {
    static constexpr std::string_view type = "Concat", group = "movement";
    static constexpr std::string_view takes = "any number of tensors";
    std::int64_t dim = 1;
    static constexpr auto fields() {
        return option_table(option<&Concat::dim>("the dimension that grows"));
    }
};

struct Slice {
    static constexpr std::string_view type = "Slice", group = "movement";
    static constexpr std::string_view takes = "a tensor -> its elements [begin, end) of `dim`";
    std::int64_t dim = 1, begin = 0, end = -1;
    static constexpr auto fields() {
        return option_table(
            option<&Slice::dim>("the dimension to cut"),
            option<&Slice::begin>("the first element; negative: counts from the end"),
            option<&Slice::end>(
                "the element behind the last; -1: the dimension's end, below -1: counts from "
                "the end"));
    }
};

struct Split {
    static constexpr std::string_view type = "Split", group = "movement";
    static constexpr std::string_view takes = "a tensor -> `parts` equal ones";
    std::int64_t dim = 1, parts = 0;
    static constexpr auto fields() {
        return option_table(option<&Split::dim>("the dimension to cut"),
                            required<&Split::parts>("number of parts").between(1, 100000));
    }
};

struct Flatten {
    static constexpr std::string_view type = "Flatten", group = "movement";
    static constexpr std::string_view takes = "[N, ...] -> [N, the product of the others]";
    static constexpr auto fields() { return option_table(); }
};

struct Reshape {
    static constexpr std::string_view type = "Reshape", group = "movement";
    static constexpr std::string_view takes = "a tensor";
    IntList dims = {};
    static constexpr auto fields() {
        return option_table(
            required<&Reshape::dims>("the new sizes; 0 keeps the input's, and one -1 is deduced"));
    }
};

struct Squeeze {
    static constexpr std::string_view type = "Squeeze", group = "movement";
    static constexpr std::string_view takes = "a tensor";
    IntList dims = {};
    bool all = false;
    static constexpr auto fields() {
        return option_table(option<&Squeeze::dims>("the dimensions to drop where their size is 1"),
                            option<&Squeeze::all>("whether every dimension of size 1 is dropped"));
    }
};

struct Transpose {
    static constexpr std::string_view type = "Transpose", group = "movement";
    static constexpr std::string_view takes = "a tensor";
    IntList dims = {};
    std::int64_t dim0 = -2, dim1 = -1;
    static constexpr auto fields() {
        return option_table(
            option<&Transpose::dims>(
                "a permutation: output dimension i is input dimension dims[i]"),
            option<&Transpose::dim0>("without `dims`: the dimension that changes places"),
            option<&Transpose::dim1>("with this one"));
    }
};

/// (Pad in mode circular with pads {n, -n} moves elements by n places, as torch.roll does.)
struct Flip {
    static constexpr std::string_view type = "Flip", group = "movement";
    static constexpr std::string_view takes = "a tensor";
    IntList dims = {};
    static constexpr auto fields() {
        return option_table(option<&Flip::dims>("the dimensions to reverse"));
    }
};

struct Pad {
    static constexpr std::string_view type = "Pad", group = "movement";
    static constexpr std::string_view takes = "a tensor";
    IntList pads = {};
    std::string mode = "constant";
    double value = 0;
    static constexpr auto fields() {
        return option_table(
            required<&Pad::pads>(
                "in front and behind, from the last dimension backward; negative crops")
                .also("pad"),
            option<&Pad::mode>("what is added")
                .one_of("constant", "reflect", "replicate", "circular"),
            option<&Pad::value>("the value of constant"));
    }
};

/// In a network the output is the parameter itself; an eager call copies it.
struct Parameter {
    static constexpr std::string_view type = "Parameter", group = "source";
    static constexpr std::string_view takes = "no input; its parameter is its output";
    IntList shape = {};
    DType dtype = DType::f32;
    bool is_trainable = true;
    double value = 0;
    static constexpr auto fields() {
        return option_table(required<&Parameter::shape>("its sizes"),
                            option<&Parameter::dtype>("its type"),
                            option<&Parameter::is_trainable>("whether a solver changes it"),
                            option<&Parameter::value>("its first value, where no file gives one"));
    }
};

struct Embedding {
    static constexpr std::string_view type = "Embedding", group = "product";
    static constexpr std::string_view takes =
        "integer indices from 0 on -> a last dimension more; weight [num_embeddings, "
        "embedding_dim]";
    std::int64_t num_embeddings = 0, embedding_dim = 0;
    std::optional<std::int64_t> padding_idx = {};
    std::string blocks = {};
    static constexpr auto fields() {
        return option_table(
            required<&Embedding::num_embeddings>("rows of the table").at_least(1),
            required<&Embedding::embedding_dim>("features of a row").at_least(1),
            option<&Embedding::padding_idx>("a row that gets no gradient; -1 is the last"),
            option<&Embedding::blocks>(blocks_meaning));
    }
};

template <typename T>
constexpr auto index_fields() {
    return option_table(
        option<&T::mode>("what an index names, see [below](#gather-and-scatter)")
            .one_of("rows", "elements", "tuples", "dims"),
        option<&T::dim>("of rows and elements: the dimension that is indexed"),
        option<&T::batch_dims>(
            "of tuples: leading dimensions that data and indices have in common"),
        option<&T::dims>(
            "of dims: the dimensions that are indexed, in rising order, counted from 0"),
        option<&T::from_end>(
            "whether an index below 0 counts from the end; false: it is an error"));
}

/// Copies the parts of a tensor that indices (int32 or int64) name. "rows": index i names row i of
/// dimension `dim`, as in torch.index_select. "elements": the indices have the tensor's rank and
/// name elements of dimension `dim`, as in torch.gather. "tuples": the first batch_dims dimensions
/// are common to tensor and indices; the last dimension of the indices holds positions in the
/// tensor's next dimensions, as in ONNX's GatherND. "dims": the last dimension of the indices holds
/// positions in the dimensions `dims`; in the result the dimensions of the indices replace these
/// where they lie side by side, and else come first, as in PyTorch's x[:, i, j].
struct Gather {
    static constexpr std::string_view type = "Gather", group = "movement";
    static constexpr std::string_view takes =
        "data of any type, int32 or int64 indices -> the parts of data that they name";
    std::string mode = "rows";
    std::int64_t dim = 0, batch_dims = 0;
    IntList dims = {};
    bool from_end = true;
    static constexpr auto fields() { return index_fields<Gather>(); }
};

/// A copy of a tensor in which updates change the parts that indices name, in the order of the
/// indices: if several replace a part, the last one counts. In a call the tensor may also be the
/// result (CallOptions::out), which saves a copy.
struct Scatter {
    static constexpr std::string_view type = "Scatter", group = "movement";
    static constexpr std::string_view takes =
        "data, or nothing, then indices, updates -> data with updates";
    std::string mode = "rows";
    std::int64_t dim = 0, batch_dims = 0;
    IntList dims = {};
    bool from_end = true;
    std::string reduction = "none";
    bool include_self = true;
    IntList shape = {};
    static constexpr auto fields() {
        return joined(
            index_fields<Scatter>(),
            option_table(option<&Scatter::reduction>(
                             "how updates change data; none replaces it, and a mean of integers is "
                             "rounded down")
                             .one_of("none", "add", "mul", "max", "min", "mean"),
                         option<&Scatter::include_self>(
                             "whether data's own element is combined with the updates"),
                         option<&Scatter::shape>("of zeros in the place of data")));
    }
};

template <typename T>
constexpr auto line_field() {
    return option<&T::dim>("the dimension along which lines lie");
}

struct TopK {
    static constexpr std::string_view type = "TopK", group = "movement";
    static constexpr std::string_view takes =
        "a tensor -> values in order and their int64 positions; "
        "of equal values the one with the "
        "lower position comes first";
    std::int64_t k = 0, dim = -1;
    bool largest = true, sorted = true;
    static constexpr auto fields() {
        return option_table(required<&TopK::k>("how many elements of each line"),
                            line_field<TopK>(), option<&TopK::largest>("false: the smallest"),
                            option<&TopK::sorted>("without effect: values always come in order"));
    }
};

struct Sort {
    static constexpr std::string_view type = "Sort", group = "movement";
    static constexpr std::string_view takes =
        "a tensor -> values and their int64 positions; equal values keep their order";
    std::int64_t dim = -1;
    bool descending = false;
    static constexpr auto fields() {
        return option_table(line_field<Sort>(),
                            option<&Sort::descending>("whether the largest come first"));
    }
};

struct ArgReduce {
    static constexpr std::string_view type = "ArgReduce", group = "pooling";
    static constexpr std::string_view takes =
        "a tensor -> the extreme value of each line and its "
        "int64 position; of equal values the "
        "first, and a NaN before all numbers";
    std::string method = "max";
    IntList dim = {};
    bool keep_dim = false, values = true;
    static constexpr auto fields() {
        return option_table(
            option<&ArgReduce::method>("which value of a line").one_of("max", "min"),
            option<&ArgReduce::dim>(
                "one dimension along which lines lie; empty: all elements are one line"),
            option<&ArgReduce::keep_dim>("whether that dimension stays, with size 1"),
            option<&ArgReduce::values>(
                "whether the first output has the values; false: positions only"));
    }
};

struct Scan {
    static constexpr std::string_view type = "Scan", group = "pooling";
    static constexpr std::string_view takes =
        "a tensor -> for each element the sum, ... of its line up to itself; of max and min "
        "also "
        "the int64 positions, of equal values the last, and a NaN before all numbers";
    std::string method = "sum";
    std::int64_t dim = -1;
    bool reverse = false, exclusive = false;
    std::optional<DType> dtype = {};
    static constexpr auto fields() {
        return option_table(
            option<&Scan::method>("what is taken of the elements up to each")
                .one_of("sum", "prod", "max", "min", "logsumexp"),
            line_field<Scan>(), option<&Scan::reverse>("whether lines are walked from their end"),
            option<&Scan::exclusive>("of sum and prod: whether the element itself is left out"),
            option<&Scan::dtype>(
                "of sum and prod of integers and bool: the results' integer type; not given: "
                "the input's"));
    }
};

/// dlprim/selection.hpp has calls whose result has as many rows as there are such elements.
struct Nonzero {
    static constexpr std::string_view type = "Nonzero", group = "movement";
    static constexpr std::string_view takes =
        "a tensor -> the int64 positions [size, rank] of the "
        "elements that are not 0, in row-major "
        "order, and their number [1]";
    std::int64_t size = -1;
    bool flat = false;
    std::int64_t fill = -1;
    static constexpr auto fields() {
        return option_table(
            option<&Nonzero::size>("rows of the result; -1: as many as elements"),
            option<&Nonzero::flat>("whether a position is one number, that among all elements"),
            option<&Nonzero::fill>("what stands behind the last position"));
    }
};

// Sequences.

template <typename T>
constexpr auto stream_field() {
    return option<&T::stream>("as of Dropout");
}

struct Attention {
    static constexpr std::string_view type = "Attention", group = "product";
    static constexpr std::string_view takes =
        "query, key, value, and perhaps a mask: of floats to "
        "add, of bool true where a position "
        "takes part";
    double scale = 0;
    bool is_causal = false, lower_right = false;
    std::int64_t sliding_window = -1;
    double softcap = 0;
    bool enable_gqa = false;
    double dropout_p = 0;
    std::int64_t stream = -1;
    static constexpr auto fields() {
        return option_table(
            option<&Attention::scale>("factor of q k^T; 0: 1 / sqrt(features)"),
            option<&Attention::is_causal>("whether position i attends only to positions up to i"),
            option<&Attention::lower_right>(
                "whether the last query stands at the last position and not the first one at the "
                "first, for is_causal and sliding_window"),
            option<&Attention::sliding_window>(
                "w: position i attends only to positions above i - w; -1: to all"),
            option<&Attention::softcap>(
                "c: scores s become c tanh(s / c) before the mask; 0: they stay")
                .between(0, 1e30),
            option<&Attention::enable_gqa>(
                "whether several query heads share one head of keys and values"),
            option<&Attention::dropout_p>("share of the weights that become 0 in training")
                .between(0, 1),
            stream_field<Attention>());
    }
};

/// Turns pairs of features by angles that depend on the position.
struct RotaryEmbedding {
    static constexpr std::string_view type = "RotaryEmbedding", group = "elementwise";
    static constexpr std::string_view takes =
        "x [..., features], cosines and sines [..., rotary_dim / 2] that broadcast to x but for "
        "the last dimension, and perhaps positions, which pick rows of the tables of cosines and "
        "sines [positions, rotary_dim / 2]";
    bool interleaved = false;
    std::int64_t rotary_dim = 0;
    static constexpr auto fields() {
        return option_table(
            option<&RotaryEmbedding::interleaved>(
                "whether pairs are neighbours (GPT-J); else features of two halves (GPT-NeoX)"),
            option<&RotaryEmbedding::rotary_dim>(
                "how many first features are turned; 0: all. The others stay")
                .at_least(0));
    }
};

template <typename T>
constexpr auto recurrent_fields() {
    return option_table(
        required<&T::hidden_size>("features of the state").between(1, 2147483647),
        option<&T::num_layers>("layers, each of which reads the one below").between(1, 1000),
        option<&T::bidirectional>("whether a second run goes from the last step to the first"),
        option<&T::bias>("whether there are biases"),
        option<&T::batch_first>("[N, T, features] in place of [T, N, features]"),
        option<&T::dropout>("share dropped after each layer but the last, in training")
            .between(0, 1),
        stream_field<T>());
}

struct LSTM {
    static constexpr std::string_view type = "LSTM", group = "product";
    static constexpr std::string_view takes =
        "[T, N, features] and the first states -> output and the last states; parameters in "
        "PyTorch's order";
    std::int64_t hidden_size = 0, num_layers = 1;
    bool bidirectional = false, bias = true, batch_first = false;
    double dropout = 0;
    std::int64_t stream = -1;
    static constexpr auto fields() { return recurrent_fields<LSTM>(); }
};

struct GRU {
    static constexpr std::string_view type = "GRU", group = "product";
    static constexpr std::string_view takes = LSTM::takes;
    std::int64_t hidden_size = 0, num_layers = 1;
    bool bidirectional = false, bias = true, batch_first = false;
    double dropout = 0;
    std::int64_t stream = -1;
    static constexpr auto fields() { return recurrent_fields<GRU>(); }
};

// Gradients from what forward calls returned, for programs that keep that themselves. Where nothing
// is kept, ops::backward() computes it again.

struct SoftmaxBackward {
    static constexpr std::string_view type = "SoftmaxBackward", group = "eager";
    static constexpr std::string_view takes = "dy, Softmax's result -> dx";
    bool log = false;
    std::int64_t axis = 1;
    static constexpr auto fields() { return softmax_fields<SoftmaxBackward>(); }
};

struct ActivationBackward {
    static constexpr std::string_view type = "ActivationBackward", group = "eager";
    static constexpr std::string_view takes =
        "dy, the activation's result -> dx, for relu, relu6, "
        "sigmoid, tanh, and leaky_relu and elu "
        "with alpha above 0";
    std::string activation = {};
    std::optional<double> alpha = {}, beta = {}, negative_slope = {}, min_val = {}, max_val = {},
                          lambd = {}, threshold = {}, value = {};
    static constexpr auto fields() { return activation_fields<ActivationBackward>(); }
};

/// With CallOptions::training the statistics are the batch's, on which x has an influence.
struct BatchNormBackward {
    static constexpr std::string_view type = "BatchNormBackward", group = "eager";
    static constexpr std::string_view takes =
        "dy, x, mean, 1 / sqrt(variance + eps), and optionally "
        "the scale -> gradients of x, scale, "
        "offset";
    bool use_global_stats = false;
    static constexpr auto fields() {
        return option_table(option<&BatchNormBackward::use_global_stats>(
            "whether the statistics are constants in training, too, as they are outside it"));
    }
};

struct LayerNormBackward {
    static constexpr std::string_view type = "LayerNormBackward", group = "eager";
    static constexpr std::string_view takes =
        "dy, x, mean, 1 / sqrt(variance + eps), and optionally the weight -> gradients of x, "
        "weight, bias";
    IntList normalized_shape = {};
    std::int64_t dims = 1;
    static constexpr auto fields() {
        return option_table(option<&LayerNormBackward::normalized_shape>("as of LayerNorm"),
                            option<&LayerNormBackward::dims>("likewise"));
    }
};

struct RMSNormBackward {
    static constexpr std::string_view type = "RMSNormBackward", group = "eager";
    static constexpr std::string_view takes =
        "dy, x, 1 / sqrt(mean of x^2 + eps), and optionally the weight -> gradients of x, weight";
    IntList normalized_shape = {};
    std::int64_t dims = 1;
    static constexpr auto fields() {
        return option_table(option<&RMSNormBackward::normalized_shape>("as of RMSNorm"),
                            option<&RMSNormBackward::dims>("likewise"));
    }
};

struct GroupNormBackward {
    static constexpr std::string_view type = "GroupNormBackward", group = "eager";
    static constexpr std::string_view takes = LayerNormBackward::takes;
    std::int64_t num_groups = 0;
    static constexpr auto fields() {
        return option_table(
            required<&GroupNormBackward::num_groups>("groups of channels").at_least(1));
    }
};

struct PoolingBackward {
    static constexpr std::string_view type = "PoolingBackward", group = "eager";
    static constexpr std::string_view takes =
        "dy and, of max, the positions that Pooling returned, those in the image as int64 or int32 "
        "-> dx";
    std::string mode = "max";
    IntList kernel = {}, stride = 1, pad = 0, dilate = 1;
    bool count_include_pad = false, ceil_mode = false;
    std::int64_t divisor_override = 0;
    IntList output = {};
    std::string positions = "image";
    IntList sizes = {};
    static constexpr auto fields() {
        return joined(
            same_options<Pooling, &PoolingBackward::mode, &PoolingBackward::kernel,
                         &PoolingBackward::stride, &PoolingBackward::pad, &PoolingBackward::dilate,
                         &PoolingBackward::count_include_pad, &PoolingBackward::ceil_mode,
                         &PoolingBackward::divisor_override, &PoolingBackward::output>(),
            option_table(
                option<&PoolingBackward::positions>("of max: what the positions count in")
                    .one_of("none", "window", "image"),
                required<&PoolingBackward::sizes>("sizes of the images x, without N and C")));
    }
};

struct MaxPooling2DBackward {
    static constexpr std::string_view type = "MaxPooling2DBackward", group = "eager";
    static constexpr std::string_view takes =
        "as PoolingBackward: dy, the positions that MaxPooling2D returned (int64 or int32) -> dx";
    IntList kernel = {}, stride = 1, pad = 0;
    bool ceil_mode = false;
    IntList sizes = {};
    PoolingBackward meant() const {
        PoolingBackward meant = same_values<PoolingBackward>(*this);
        meant.kernel = kernel.for_two();
        return meant;
    }
    static constexpr auto fields() {
        return joined(
            same_options<PoolingBackward, &MaxPooling2DBackward::stride, &MaxPooling2DBackward::pad,
                         &MaxPooling2DBackward::ceil_mode>(),
            option_table(required<PoolingBackward, &MaxPooling2DBackward::kernel>(),
                         required<&MaxPooling2DBackward::sizes>("height and width of x")));
    }
};

struct NLLLossBackward {
    static constexpr std::string_view type = "NLLLossBackward", group = "eager";
    static constexpr std::string_view takes =
        "dy, labels, their total weight (which NLLLoss "
        "returned), and optionally a weight for each "
        "class -> dx";
    std::string reduce = "mean";
    std::optional<std::int64_t> ignore_index = {};
    std::int64_t classes = 0;
    static constexpr auto fields() {
        return option_table(reduce_field<NLLLossBackward>(), ignore_index_field<NLLLossBackward>(),
                            required<&NLLLossBackward::classes>("number of classes"));
    }
};

/// The structs of this header that declare operators, in the order of docs/json.md.
using AllOptions =
    std::tuple<Convolution, TransposedConvolution, InnerProduct, MatMul, MatMulAdd, BatchNorm,
               LayerNorm, GroupNorm, RMSNorm, Pooling, Activation, GatedActivation, PReLU,
               Elementwise, Softmax, SoftmaxWithLoss, LinearCrossEntropy, NLLLoss, MSELoss,
               HuberLoss, Dropout, Concat, Slice, Split, Flatten, Reshape, Squeeze, Transpose, Flip,
               Pad, Cast, Reduction, Threshold, Hardtanh, Abs, Resize, GridSample, Unfold, Fold,
               Parameter, Embedding, Gather, Scatter, TopK, Sort, ArgReduce, Scan, Nonzero,
               Attention, RotaryEmbedding, LSTM, GRU, Pointwise, SoftmaxBackward,
               ActivationBackward, BatchNormBackward, LayerNormBackward, RMSNormBackward,
               GroupNormBackward, PoolingBackward, NLLLossBackward>;

/// Those that are aliases, other names of operators with options of their own. Their meant() is the
/// operator's struct.
using AllAliases = std::tuple<Pooling2D, PoolingND, AdaptivePooling, GlobalPooling, MaxPooling2D,
                              MaxPooling2DBackward, Interpolation>;

}  // namespace dlprim::ops
