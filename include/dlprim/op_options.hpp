// SPDX-License-Identifier: MIT
// The options of operators as typed values, for eager calls (dlprim/ops.hpp):
//   ops::call(ops::Convolution2D{.channels_out = 64, .kernel = 3, .pad = 1}, {x}, {weight, bias})
//
// There is a struct for each operator of docs/json.md. Its fields have the names, meanings and
// defaults of the options in JSON, and docs/json.md has the operators' inputs, outputs and
// parameters. A field that is marked "required" has no default: without it a call throws
// Error(invalid_argument), as it does for values that do not fit.
//
// The structs are plain values. They hold no memory of a device, and any thread may use them.
// Images are NCHW. Sizes, strides and paddings count elements.
#pragma once

#include <dlprim/dtype.hpp>
#include <dlprim/error.hpp>
#include <dlprim/namespace.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::ops {

/// One integer or a list: `2`, or `{2, 1}`. For a kernel, stride, padding or dilation one integer
/// means both dimensions, a list of two is height and width, and a padding may also be
/// `{top, left, bottom, right}`. Empty means that the option is not given.
class IntList {
  public:
    static constexpr std::size_t most = 16;

    constexpr IntList() = default;
    constexpr IntList(std::int64_t value) : values_{value}, size_(1) {}
    /// Throws Error(invalid_argument) for more than `most` integers.
    IntList(std::initializer_list<std::int64_t> values)
        : IntList(std::span(values.begin(), values.size())) {}
    explicit IntList(std::span<const std::int64_t> values) : size_(values.size()) {
        if (values.size() > most)
            throw Error(ErrorKind::invalid_argument,
                        "a list in an operator's options has at most 16 integers, not " +
                            std::to_string(values.size()));
        std::copy(values.begin(), values.end(), values_.begin());
    }

    std::span<const std::int64_t> values() const noexcept { return {values_.data(), size_}; }
    bool empty() const noexcept { return size_ == 0; }
    bool operator==(const IntList&) const = default;

  private:
    std::array<std::int64_t, most> values_{};
    std::size_t size_ = 0;
};

// Convolutions and products.

struct Convolution2D {
    static constexpr std::string_view type = "Convolution2D";
    std::int64_t channels_out = 0;        ///< required
    std::int64_t channels_in = -1;        ///< -1: the input's
    std::int64_t groups = 1;              ///< groups of channels, each convolved on its own
    bool bias = true;                     ///< whether a bias is added to each channel
    IntList kernel = {};                  ///< required: size of the window
    IntList stride = 1;                   ///< step of the window
    IntList pad = 0;                      ///< zeros around the image
    IntList dilate = 1;                   ///< distance between the kernel's elements
    std::string activation = "identity";  ///< applied to the result
};

struct TransposedConvolution2D {
    static constexpr std::string_view type = "TransposedConvolution2D";
    std::int64_t channels_out = 0;        ///< required
    std::int64_t channels_in = -1;        ///< -1: the input's
    std::int64_t groups = 1;              ///< groups of channels, each convolved on its own
    bool bias = true;                     ///< whether a bias is added to each channel
    IntList kernel = {};                  ///< required: size of the window
    IntList stride = 1;                   ///< factor by which the image grows
    IntList pad = 0;                      ///< cut off around the output
    IntList dilate = 1;                   ///< distance between the kernel's elements
    IntList output_pad = 0;               ///< added to the output's size at the bottom and right
    std::string activation = "identity";  ///< applied to the result
};

/// Images of one to three dimensions, [N, C, ...]. Lists have one entry for each.
struct ConvolutionND {
    static constexpr std::string_view type = "ConvolutionND";
    std::int64_t channels_out = 0;  ///< required
    std::int64_t channels_in = -1;  ///< -1: the input's
    std::int64_t groups = 1;        ///< groups of channels, each convolved on its own
    bool bias = true;               ///< whether a bias is added to each channel
    IntList kernel = {};            ///< required: size of the window
    IntList stride = 1;             ///< step of the window
    IntList pad = 0;                ///< zeros in front and behind, or first all in front
    IntList dilate = 1;             ///< distance between the kernel's elements
};

struct TransposedConvolutionND {
    static constexpr std::string_view type = "TransposedConvolutionND";
    std::int64_t channels_out = 0;  ///< required
    std::int64_t channels_in = -1;  ///< -1: the input's
    std::int64_t groups = 1;        ///< groups of channels, each convolved on its own
    bool bias = true;               ///< whether a bias is added to each channel
    IntList kernel = {};            ///< required: size of the window
    IntList stride = 1;             ///< factor by which images grow
    IntList pad = 0;                ///< cut off around the output
    IntList dilate = 1;             ///< distance between the kernel's elements
    IntList output_pad = 0;         ///< added to the ends of the output
};

/// y = x W^T + b, of rows of features.
struct InnerProduct {
    static constexpr std::string_view type = "InnerProduct";
    std::int64_t outputs = 0;             ///< required: features of the output
    std::int64_t inputs = -1;             ///< features of the input; -1: the input's
    bool bias = true;                     ///< whether a bias is added
    std::string activation = "identity";  ///< applied to the result
    /// The first dimension of the features; those before it are kept. -1: the last dimension.
    std::int64_t axis = 1;
};

/// The product of two tensors' matrices, with numpy's broadcasting of leading dimensions.
struct MatMul {
    static constexpr std::string_view type = "MatMul";
    bool transpose_a = false;
    bool transpose_b = false;
    double alpha = 1;   ///< factor of the product
    bool bias = false;  ///< whether a third input is added
};

/// alpha * op(a) op(b) + beta * c, where c is broadcast.
struct MatMulAdd {
    static constexpr std::string_view type = "MatMulAdd";
    bool transpose_a = false;
    bool transpose_b = false;
    double alpha = 1;  ///< factor of the product
    double beta = 1;   ///< factor of the third input, which is not read if this is 0
};

// Normalisations.

struct BatchNorm {
    static constexpr std::string_view type = "BatchNorm";
    std::int64_t features = -1;     ///< channels; -1: the input's
    double eps = 1e-5;              ///< added to the variance
    double momentum = 0.1;          ///< share of the new batch in the running statistics
    bool affine = true;             ///< whether it has a scale and an offset for each channel
    bool use_global_stats = false;  ///< whether it uses running statistics in training, too
    /// Whether two more outputs have the mean by which it normalised and 1 / sqrt(variance + eps).
    bool return_statistics = false;
    bool sync = false;  ///< whether a team takes statistics of all shards; no matter in calls
};

struct LayerNorm {
    static constexpr std::string_view type = "LayerNorm";
    IntList normalized_shape = {};   ///< the last dimensions' sizes; empty: as `dims` says
    std::int64_t dims = 1;           ///< number of last dimensions that are normalised together
    double eps = 1e-5;               ///< added to the variance
    bool elementwise_affine = true;  ///< whether it has a weight
    bool bias = true;                ///< with elementwise_affine: whether it has a bias, too
    /// Whether two more outputs have the mean and 1 / sqrt(variance + eps).
    bool return_statistics = false;
};

struct GroupNorm {
    static constexpr std::string_view type = "GroupNorm";
    std::int64_t num_groups = 0;     ///< required: groups of channels
    std::int64_t num_channels = -1;  ///< -1: the input's
    double eps = 1e-5;               ///< added to the variance
    bool affine = true;              ///< whether it has a weight and a bias for each channel
    /// Whether two more outputs, of shape [N, groups], have the mean and 1 / sqrt(variance + eps).
    bool return_statistics = false;
};

// Pooling and sizes of images.

struct Pooling2D {
    static constexpr std::string_view type = "Pooling2D";
    std::string mode = "max";        ///< "max" or "avg"
    IntList kernel = {};             ///< required: the window
    IntList stride = 1;              ///< step of the window
    IntList pad = 0;                 ///< padding around the image
    bool count_include_pad = false;  ///< whether "avg" counts the padding as elements
    bool ceil_mode = false;          ///< whether output sizes round up
    bool return_indices = false;     ///< for "max": a second output has the maxima's positions
};

/// Pooling2D with mode "max", whose second output has the positions of the maxima in their planes,
/// row * width + column, as int64.
struct MaxPooling2D {
    static constexpr std::string_view type = "MaxPooling2D";
    IntList kernel = {};     ///< required: the window
    IntList stride = 1;      ///< step of the window
    IntList pad = 0;         ///< padding around the image
    bool ceil_mode = false;  ///< whether output sizes round up
};

/// Images of one to three dimensions, [N, C, ...]. Lists have one entry for each.
struct PoolingND {
    static constexpr std::string_view type = "PoolingND";
    std::string mode = "max";           ///< "max" or "avg"
    IntList kernel = {};                ///< required: the window
    IntList stride = 1;                 ///< step of the window
    IntList pad = 0;                    ///< padding: in front and behind, or first all in front
    IntList dilate = 1;                 ///< for "max": distance between the window's elements
    bool count_include_pad = false;     ///< whether "avg" counts the padding as elements
    bool ceil_mode = false;             ///< whether output sizes round up
    std::int64_t divisor_override = 0;  ///< what "avg" divides by; 0: the number of elements
    bool return_indices = false;        ///< for "max": a second output, int64, has the positions of
                                        ///< the maxima in their image, flattened
};

/// Divides images of one to three dimensions, [N, C, ...], into parts as nn.AdaptiveAvgPool2d does.
struct AdaptivePooling {
    static constexpr std::string_view type = "AdaptivePooling";
    std::string mode = "max";     ///< "max" or "avg"
    IntList output = {};          ///< required: sizes of the result; -1 keeps the input's
    bool return_indices = false;  ///< as for PoolingND
};

struct GlobalPooling {
    static constexpr std::string_view type = "GlobalPooling";
    std::string mode = "max";  ///< "max" or "avg"
};

/// Images of one to three dimensions, [N, C, ...], in another size. Lists have one entry for each.
struct Resize {
    static constexpr std::string_view type = "Resize";
    std::string method = "nearest";   ///< "nearest", "nearest-exact", "linear" or "cubic"
    IntList output = {};              ///< sizes of the result; empty: from the scales
    std::vector<double> scales = {};  ///< output size over input size; empty: from the sizes
    bool align_corners = false;       ///< whether corner elements fall on corner elements
    bool antialias = false;           ///< whether a filter as wide as the step shrinks images
};

/// Takes images [N, C, H, W] and places [N, h, w, 2], x before y, from -1 to 1 -> [N, C, h, w].
struct GridSample {
    static constexpr std::string_view type = "GridSample";
    std::string mode = "bilinear";       ///< "bilinear", "nearest" or "bicubic"
    std::string padding_mode = "zeros";  ///< "zeros", "border" or "reflection"
    bool align_corners = false;          ///< whether -1 and 1 are the centers of corner pixels
};

/// Sizes come from the scales or from out_h and out_w.
struct Interpolation {
    static constexpr std::string_view type = "Interpolation";
    std::string method = "nearest";  ///< "nearest", "nearest-exact" or "bilinear"
    double scale_y = -1;             ///< -1: not given
    double scale_x = -1;             ///< -1: not given
    std::int64_t out_h = -1;         ///< -1: not given
    std::int64_t out_w = -1;         ///< -1: not given
    bool align_corners = false;
};

// One element at a time.

/// docs/json.md lists the activations and says what alpha and beta mean for each of them. The other
/// fields are PyTorch's names for these two. A field without a value means the activation's own
/// default.
struct Activation {
    static constexpr std::string_view type = "Activation";
    std::string activation = {};  ///< required
    std::optional<double> alpha = {};
    std::optional<double> beta = {};
    std::optional<double> negative_slope = {};  ///< alpha of leaky_relu
    std::optional<double> min_val = {};         ///< alpha of hardtanh
    std::optional<double> max_val = {};         ///< beta of hardtanh
    std::optional<double> lambd = {};           ///< alpha of softshrink and hardshrink
    std::optional<double> threshold = {};       ///< alpha of threshold, beta of softplus
    std::optional<double> value = {};           ///< beta of threshold
};

struct PReLU {
    static constexpr std::string_view type = "PReLU";
    std::int64_t num_parameters = 1;  ///< 1, or the number of channels
    double init = 0.25;               ///< the weight's first value, in a network
};

/// activation(operation(coef1 x, coef2 y)) of two tensors that are broadcast.
struct Elementwise {
    static constexpr std::string_view type = "Elementwise";
    std::string operation = "sum";  ///< "sum", "prod" or "max"
    double coef1 = 1;
    double coef2 = 1;
    std::string activation = "identity";
};

/// x > threshold ? 1 : 0.
struct Threshold {
    static constexpr std::string_view type = "Threshold";
    double threshold = 0;
};

/// min(max(x, min_val), max_val).
struct Hardtanh {
    static constexpr std::string_view type = "Hardtanh";
    double min_val = -1;
    double max_val = 1;
};

struct Abs {
    static constexpr std::string_view type = "Abs";
};

struct Cast {
    static constexpr std::string_view type = "Cast";
    std::optional<DType> dtype = {};  ///< required
    bool reinterpret = false;         ///< whether it keeps the bits; the types must be of one size
};

struct Dropout {
    static constexpr std::string_view type = "Dropout";
    double p = 0.5;  ///< share of the elements that become 0 in training
    /// The number of its stream of random numbers; -1: a number made from the operator's name.
    std::int64_t stream = -1;
};

/// One generated kernel; docs/pointwise.md has the language.
struct Pointwise {
    static constexpr std::string_view type = "Pointwise";
    std::string code = {};             ///< required
    std::vector<double> scalars = {};  ///< values of p0, p1, ...
    std::vector<DType> dtypes = {};    ///< of the outputs: one for all, or one each; empty: float
    bool keep_dim = true;              ///< whether reduced dimensions stay, with size 1
    IntList shape = {};                ///< a shape to which the inputs are broadcast, too
};

// Reductions, softmax and losses.

struct Reduction {
    static constexpr std::string_view type = "Reduction";
    std::string method = "sum";   ///< "sum", "sumsq", "abssum" or "mean"
    bool keep_dim = true;         ///< whether reduced dimensions stay, with size 1
    double output_scale = 1;      ///< factor of the result
    IntList dims = {};            ///< dimensions to reduce; empty: all from start_axis on
    std::int64_t start_axis = 0;  ///< used without dims
};

struct Softmax {
    static constexpr std::string_view type = "Softmax";
    bool log = false;       ///< whether the result is the logarithm of the softmax
    std::int64_t axis = 1;  ///< negative: counts from the end
};

struct SoftmaxWithLoss {
    static constexpr std::string_view type = "SoftmaxWithLoss";
    std::optional<std::int64_t> ignore_index = {};  ///< a label that does not count
};

struct NLLLoss {
    static constexpr std::string_view type = "NLLLoss";
    std::string reduce = "mean";                    ///< "mean", "sum" or "none"
    std::optional<std::int64_t> ignore_index = {};  ///< a label that does not count
    bool return_weight = false;  ///< whether a second output has the sum of the labels' weights
};

struct MSELoss {
    static constexpr std::string_view type = "MSELoss";
    std::string reduce = "mean";  ///< "mean", "sum" or "none"
};

// Shapes and copies. A negative dimension counts from the end.

struct Concat {
    static constexpr std::string_view type = "Concat";
    std::int64_t dim = 1;
};

/// Elements [begin, end) of a dimension.
struct Slice {
    static constexpr std::string_view type = "Slice";
    std::int64_t dim = 1;
    std::int64_t begin = 0;  ///< negative: counts from the end
    std::int64_t end = -1;   ///< -1: the dimension's end; below -1: counts from the end
};

/// Cuts a tensor into equal parts.
struct Split {
    static constexpr std::string_view type = "Split";
    std::int64_t dim = 1;
    std::int64_t parts = 0;  ///< required: number of parts
};

struct Flatten {
    static constexpr std::string_view type = "Flatten";
};

struct Reshape {
    static constexpr std::string_view type = "Reshape";
    IntList dims = {};  ///< required; 0 keeps the input's size, and one -1 is deduced
};

struct Squeeze {
    static constexpr std::string_view type = "Squeeze";
    IntList dims = {};  ///< the dimensions to drop where their size is 1; empty: as `all`
    bool all = false;   ///< whether every dimension of size 1 is dropped
};

struct Transpose {
    static constexpr std::string_view type = "Transpose";
    IntList dims = {};  ///< a permutation: output dimension i is input dimension dims[i]
    std::int64_t dim0 = -2, dim1 = -1;  ///< used without dims: the two that are exchanged
};

/// Reverses the order of the elements along dimensions. (Pad in mode "circular" with pads {n, -n}
/// moves them by n places, as torch.roll does.)
struct Flip {
    static constexpr std::string_view type = "Flip";
    IntList dims = {};  ///< negative counts from the end
};

struct Pad {
    static constexpr std::string_view type = "Pad";
    IntList pads = {};  ///< required: {before, after} of the last dimension, then of the one before
    std::string mode = "constant";  ///< "constant", "reflect", "replicate" or "circular"
    double value = 0;               ///< the value of "constant"
};

/// A parameter as an output. In a network the output is the parameter itself; an eager call copies
/// it.
struct Parameter {
    static constexpr std::string_view type = "Parameter";
    IntList shape = {};  ///< required
    DType dtype = DType::f32;
    bool is_trainable = true;  ///< whether a solver changes it
    double value = 0;          ///< its first value, in a network
};

struct Embedding {
    static constexpr std::string_view type = "Embedding";
    std::int64_t num_embeddings = 0;               ///< required: rows of the table
    std::int64_t embedding_dim = 0;                ///< required: features of a row
    std::optional<std::int64_t> padding_idx = {};  ///< a row that gets no gradient; -1: the last
};

/// Copies the parts of a tensor that indices (int32 or int64) name. "rows": index i names row i of
/// dimension `dim`, as in torch.index_select. "elements": the indices have the tensor's rank and
/// name elements of dimension `dim`, as in torch.gather. "tuples": the first batch_dims dimensions
/// are common to tensor and indices; the last dimension of the indices holds positions in the
/// tensor's next dimensions, as in ONNX's GatherND. "dims": the last dimension of the indices holds
/// positions in the dimensions `dims`; in the result the dimensions of the indices replace these
/// where they lie side by side, and else come first, as in PyTorch's x[:, i, j].
struct Gather {
    static constexpr std::string_view type = "Gather";
    std::string mode = "rows";    ///< "rows", "elements", "tuples" or "dims"
    std::int64_t dim = 0;         ///< of rows and elements; negative counts from the end
    std::int64_t batch_dims = 0;  ///< of tuples
    IntList dims = {};            ///< of dims: in rising order, counted from 0
    bool from_end = true;  ///< whether an index below 0 counts from the end; false: it is an error
};

/// A copy of a tensor in which updates change the parts that indices name, in the order of the
/// indices: if several replace a part, the last one counts. The tensor may be left out; then
/// `shape` is required, and the updates change zeros. In a call it may also be the result
/// (CallOptions::out), which saves a copy.
struct Scatter {
    static constexpr std::string_view type = "Scatter";
    std::string mode = "rows";    ///< as in Gather
    std::int64_t dim = 0;         ///< as in Gather
    std::int64_t batch_dims = 0;  ///< as in Gather
    IntList dims = {};            ///< as in Gather
    bool from_end = true;         ///< as in Gather
    /// "none" (replaces), "add", "mul", "max", "min", or "mean", of integers rounded down.
    std::string reduction = "none";
    bool include_self = true;  ///< whether the tensor's own element is combined with the updates
    IntList shape = {};        ///< of the result, where the tensor is left out
};

/// The k largest or smallest values along a dimension, in order, and their positions (int64). Of
/// equal values the one with the lower position comes first.
struct TopK {
    static constexpr std::string_view type = "TopK";
    std::int64_t k = 0;  ///< required
    std::int64_t dim = -1;
    bool largest = true;  ///< whether the largest values are taken; false: the smallest
    bool sorted = true;   ///< without effect: values always come in order
};

/// All values along a dimension in order, and their positions (int64). Equal values keep their
/// order.
struct Sort {
    static constexpr std::string_view type = "Sort";
    std::int64_t dim = -1;
    bool descending = false;
};

/// The largest or smallest value of each line along a dimension, or of all elements, and its
/// position (int64). Of equal values the first counts, and a NaN is more extreme than every number.
struct ArgReduce {
    static constexpr std::string_view type = "ArgReduce";
    std::string method = "max";  ///< "max" or "min"
    IntList dim = {};            ///< one dimension; empty: all elements are one line
    bool keep_dim = false;       ///< whether that dimension stays, with size 1
    bool values = true;          ///< whether the first output has the values; false: positions only
};

/// Of each element the sum (or another method) of the elements of its line up to itself. "max" and
/// "min" have a second output: their positions (int64), of equal values the last. A NaN is more
/// extreme than every number.
struct Scan {
    static constexpr std::string_view type = "Scan";
    std::string method = "sum";  ///< "sum", "prod", "max", "min" or "logsumexp"
    std::int64_t dim = -1;
    bool reverse = false;    ///< whether lines are walked from their end
    bool exclusive = false;  ///< of "sum" and "prod": whether the element itself is left out
    /// Of "sum" and "prod" of integers and bool: the integer type of the results. Without it the
    /// input's.
    std::optional<DType> dtype = {};
};

/// The positions of the elements that are not 0, in row-major order, as rows of an int64 tensor of
/// `size` rows, and their number (int64 [1]). dlprim/selection.hpp has calls whose result has as
/// many rows as there are such elements.
struct Nonzero {
    static constexpr std::string_view type = "Nonzero";
    std::int64_t size = -1;  ///< rows of the result; -1: as many as elements
    bool flat = false;       ///< one number for each element, its position among all
    std::int64_t fill = -1;  ///< what rows behind the last element hold
};

// Sequences.

struct Attention {
    static constexpr std::string_view type = "Attention";
    double scale = 0;          ///< factor of q k^T; 0: 1 / sqrt(features)
    bool is_causal = false;    ///< whether position i attends only to positions up to i
    bool enable_gqa = false;   ///< whether several query heads share one head of keys and values
    double dropout_p = 0;      ///< share of the weights that become 0 in training
    std::int64_t stream = -1;  ///< as in Dropout
};

struct LSTM {
    static constexpr std::string_view type = "LSTM";
    std::int64_t hidden_size = 0;  ///< required: features of the state
    std::int64_t num_layers = 1;
    bool bidirectional = false;
    bool bias = true;
    bool batch_first = false;  ///< [N, T, features] in place of [T, N, features]
    double dropout = 0;        ///< share dropped after each layer but the last, in training
    std::int64_t stream = -1;  ///< as in Dropout
};

struct GRU {
    static constexpr std::string_view type = "GRU";
    std::int64_t hidden_size = 0;  ///< required: features of the state
    std::int64_t num_layers = 1;
    bool bidirectional = false;
    bool bias = true;
    bool batch_first = false;  ///< [N, T, features] in place of [T, N, features]
    double dropout = 0;        ///< share dropped after each layer but the last, in training
    std::int64_t stream = -1;  ///< as in Dropout
};

// Gradients from what forward calls returned, for programs that keep that themselves. Where nothing
// is kept, ops::backward() computes it again.

/// dx of Softmax from dy and the result.
struct SoftmaxBackward {
    static constexpr std::string_view type = "SoftmaxBackward";
    bool log = false;       ///< as of Softmax, like the next
    std::int64_t axis = 1;  ///< negative: counts from the end
};

/// dx of Activation from dy and the result, for relu, relu6, sigmoid, tanh, and leaky_relu and elu
/// with alpha above 0.
struct ActivationBackward {
    static constexpr std::string_view type = "ActivationBackward";
    std::string activation = {};  ///< required; as of Activation, like the rest
    std::optional<double> alpha = {};
    std::optional<double> beta = {};
    std::optional<double> negative_slope = {};
    std::optional<double> min_val = {};
    std::optional<double> max_val = {};
    std::optional<double> lambd = {};
    std::optional<double> threshold = {};
    std::optional<double> value = {};
};

/// The gradients of BatchNorm's x, scale and offset from dy, x, the two statistics that BatchNorm
/// returned, and the scale where there is one. With CallOptions::training the statistics are the
/// batch's, on which x has an influence.
struct BatchNormBackward {
    static constexpr std::string_view type = "BatchNormBackward";
    bool use_global_stats = false;  ///< whether the statistics are constants, in training too
};

/// The gradients of LayerNorm's x, weight and bias from dy, x, the two statistics that LayerNorm
/// returned, and the weight where there is one.
struct LayerNormBackward {
    static constexpr std::string_view type = "LayerNormBackward";
    IntList normalized_shape = {};  ///< the last dimensions' sizes; empty: as `dims` says
    std::int64_t dims = 1;          ///< number of last dimensions that are normalised together
};

/// The gradients of GroupNorm's x, weight and bias from dy, x, the two statistics that GroupNorm
/// returned, and the weight where there is one.
struct GroupNormBackward {
    static constexpr std::string_view type = "GroupNormBackward";
    std::int64_t num_groups = 0;  ///< required: groups of channels
};

/// dx of MaxPooling2D from dy and the positions that it returned, as int64 or int32.
struct MaxPooling2DBackward {
    static constexpr std::string_view type = "MaxPooling2DBackward";
    IntList kernel = {};     ///< required; as of MaxPooling2D, like the next
    IntList stride = 1;      ///< step of the window
    IntList pad = 0;         ///< padding around the image
    bool ceil_mode = false;  ///< whether output sizes round up
    IntList sizes = {};      ///< required: height and width of x
};

/// dx of NLLLoss from dy, the labels, their total weight (which NLLLoss returned), and the weight
/// of each class where there is one.
struct NLLLossBackward {
    static constexpr std::string_view type = "NLLLossBackward";
    std::string reduce = "mean";                    ///< as of NLLLoss, like the next
    std::optional<std::int64_t> ignore_index = {};  ///< a label that does not count
    std::int64_t classes = 0;                       ///< required: number of classes
};

}  // namespace dlprim::ops
