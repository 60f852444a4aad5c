// SPDX-License-Identifier: MIT
// Options of eager calls as structs: they have the options of every operator, with the same names
// and defaults, and a call with a struct computes what the call with the text does.
#include "exec/typed_options.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"
#include "net/support.hpp"

#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Calls `visit` with a default-made struct of each operator.
template <typename Visit>
void each_struct(Visit&& visit) {
    std::apply([&](const auto&... options) { (visit(options), ...); }, AllOptions());
}

const Schema& schema_of(std::string_view type) {
    return OperatorRegistry::instance().get(type).schema();
}

/// The option's default, and a field's value as that option.
bool same_value(OptionSpec option, const Attr& field) {
    option.required = false;
    const Attrs none, given{{option.name, field}};
    return Schema{option}.complete(given, "") == Schema{option}.complete(none, "");
}

template <typename T>
void check_default(const OptionSpec& option, const T& field) {
    INFO(option.name);
    if constexpr (requires { field.has_value(); }) {
        CHECK(!field.has_value());
    } else {
        CHECK(same_value(option, attr_of(field)));
    }
}

template <typename Options>
void check_defaults(const Options& options) {
    const std::vector<OptionSpec>& wanted = schema_of(Options::type).options();
    CHECK(wanted.size() == option_names<Options>.size());
    for (const OptionSpec& option : wanted) {
        const auto& names = option_names<Options>;
        const auto found = std::find(names.begin(), names.end(), option.name);
        INFO(option.name << " is a field");
        REQUIRE(found != names.end());
        if (option.required) continue;  // the struct's default says that it is not given
        auto position = static_cast<std::ptrdiff_t>(found - names.begin());
        std::apply(
            [&](const auto&... field) {
                ((position-- == 0 ? check_default(option, field) : void()), ...);
            },
            option_fields(options));
    }
    CHECK(attrs_of(options).items().empty());
}

/// Every field is set, to a value of its own, and all arrive under their names.
class Arrivals {
  public:
    template <typename Options>
    void check(const Options& options, std::string_view json) {
        INFO(Options::type);
        const Schema& schema = schema_of(Options::type);
        CHECK(attrs_of(options).items().size() == option_names<Options>.size());
        CHECK(schema.complete(attrs_of(options), "") ==
              schema.complete(parse_options_json(json), ""));
        types_.insert(Options::type);
    }
    const std::set<std::string_view>& types() const { return types_; }

  private:
    std::set<std::string_view> types_;
};

void check_layers(Arrivals& arrivals) {
    arrivals.check(
        ops::Convolution2D{.channels_out = 8,
                           .channels_in = 6,
                           .groups = 2,
                           .bias = false,
                           .kernel = {3, 5},
                           .stride = 2,
                           .pad = {1, 2, 3, 4},
                           .dilate = {2, 3},
                           .activation = "relu"},
        R"({"channels_out": 8, "channels_in": 6, "groups": 2, "bias": false, "kernel": [3, 5],
            "stride": 2, "pad": [1, 2, 3, 4], "dilate": [2, 3], "activation": "relu"})");
    arrivals.check(
        ops::TransposedConvolution2D{.channels_out = 8,
                                     .channels_in = 6,
                                     .groups = 2,
                                     .bias = false,
                                     .kernel = {3, 5},
                                     .stride = {2, 3},
                                     .pad = {1, 2},
                                     .dilate = {3, 4},
                                     .output_pad = {1, 0},
                                     .activation = "relu"},
        R"({"channels_out": 8, "channels_in": 6, "groups": 2, "bias": false, "kernel": [3, 5],
            "stride": [2, 3], "pad": [1, 2], "dilate": [3, 4], "output_pad": [1, 0],
            "activation": "relu"})");
    arrivals.check(
        ops::InnerProduct{
            .outputs = 5, .inputs = 7, .bias = false, .activation = "tanh", .axis = -1},
        R"({"outputs": 5, "inputs": 7, "bias": false, "activation": "tanh", "axis": -1})");
    arrivals.check(
        ops::MatMul{.transpose_a = true, .transpose_b = true, .alpha = 0.5, .bias = true},
        R"({"transpose_a": true, "transpose_b": true, "alpha": 0.5, "bias": true})");
    arrivals.check(
        ops::MatMulAdd{.transpose_a = true, .transpose_b = true, .alpha = 0.5, .beta = 2},
        R"({"transpose_a": true, "transpose_b": true, "alpha": 0.5, "beta": 2})");
    arrivals.check(
        ops::ConvolutionND{.channels_out = 8,
                           .channels_in = 6,
                           .groups = 2,
                           .bias = false,
                           .kernel = {3, 5, 2},
                           .stride = 2,
                           .pad = {1, 2, 3},
                           .dilate = {2, 3, 1}},
        R"({"channels_out": 8, "channels_in": 6, "groups": 2, "bias": false, "kernel": [3, 5, 2],
            "stride": 2, "pad": [1, 2, 3], "dilate": [2, 3, 1]})");
    arrivals.check(
        ops::TransposedConvolutionND{.channels_out = 8,
                                     .channels_in = 6,
                                     .groups = 2,
                                     .bias = false,
                                     .kernel = {3, 5, 2},
                                     .stride = {2, 3, 1},
                                     .pad = {1, 2, 0},
                                     .dilate = {3, 4, 1},
                                     .output_pad = {1, 0, 0}},
        R"({"channels_out": 8, "channels_in": 6, "groups": 2, "bias": false, "kernel": [3, 5, 2],
            "stride": [2, 3, 1], "pad": [1, 2, 0], "dilate": [3, 4, 1],
            "output_pad": [1, 0, 0]})");
    arrivals.check(ops::BatchNorm{.features = 4,
                                  .eps = 1e-3,
                                  .momentum = 0.5,
                                  .affine = false,
                                  .use_global_stats = true,
                                  .return_statistics = true,
                                  .sync = true},
                   R"({"features": 4, "eps": 1e-3, "momentum": 0.5, "affine": false,
            "use_global_stats": true, "return_statistics": true, "sync": true})");
    arrivals.check(
        ops::LayerNorm{.normalized_shape = {2, 3},
                       .dims = 2,
                       .eps = 1e-3,
                       .elementwise_affine = false,
                       .bias = false,
                       .return_statistics = true},
        R"({"normalized_shape": [2, 3], "dims": 2, "eps": 1e-3, "elementwise_affine": false,
            "bias": false, "return_statistics": true})");
    arrivals.check(ops::GroupNorm{.num_groups = 2,
                                  .num_channels = 4,
                                  .eps = 1e-3,
                                  .affine = false,
                                  .return_statistics = true},
                   R"({"num_groups": 2, "num_channels": 4, "eps": 1e-3, "affine": false,
            "return_statistics": true})");
    arrivals.check(
        ops::MaxPooling2D{.kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .ceil_mode = true},
        R"({"kernel": [3, 2], "stride": [2, 1], "pad": [1, 0], "ceil_mode": true})");
    arrivals.check(ops::Pooling2D{.mode = "avg",
                                  .kernel = {3, 2},
                                  .stride = {2, 1},
                                  .pad = {1, 0},
                                  .count_include_pad = true,
                                  .ceil_mode = true,
                                  .return_indices = true},
                   R"({"mode": "avg", "kernel": [3, 2], "stride": [2, 1], "pad": [1, 0],
            "count_include_pad": true, "ceil_mode": true, "return_indices": true})");
}

void check_images(Arrivals& arrivals) {
    arrivals.check(ops::PoolingND{.mode = "avg",
                                  .kernel = {3, 2, 4},
                                  .stride = {2, 1, 3},
                                  .pad = {1, 0, 2},
                                  .dilate = {2, 3, 1},
                                  .count_include_pad = true,
                                  .ceil_mode = true,
                                  .divisor_override = 5,
                                  .return_indices = true},
                   R"({"mode": "avg", "kernel": [3, 2, 4], "stride": [2, 1, 3],
            "pad": [1, 0, 2], "dilate": [2, 3, 1], "count_include_pad": true, "ceil_mode": true,
            "divisor_override": 5, "return_indices": true})");
    arrivals.check(ops::AdaptivePooling{.mode = "avg", .output = {3, 2}, .return_indices = true},
                   R"({"mode": "avg", "output": [3, 2], "return_indices": true})");
    arrivals.check(ops::GlobalPooling{.mode = "avg"}, R"({"mode": "avg"})");
    arrivals.check(ops::Resize{.method = "cubic",
                               .output = {3, 2},
                               .scales = {1.5, 2.5},
                               .align_corners = true,
                               .antialias = true},
                   R"({"method": "cubic", "output": [3, 2], "scales": [1.5, 2.5],
            "align_corners": true, "antialias": true})");
    arrivals.check(
        ops::GridSample{.mode = "bicubic", .padding_mode = "border", .align_corners = true},
        R"({"mode": "bicubic", "padding_mode": "border", "align_corners": true})");
    arrivals.check(ops::Interpolation{.method = "bilinear",
                                      .scale_y = 2,
                                      .scale_x = 3,
                                      .out_h = 8,
                                      .out_w = 9,
                                      .align_corners = true},
                   R"({"method": "bilinear", "scale_y": 2, "scale_x": 3, "out_h": 8, "out_w": 9,
            "align_corners": true})");
}

void check_gradients(Arrivals& arrivals) {
    arrivals.check(ops::SoftmaxBackward{.log = true, .axis = -1}, R"({"log": true, "axis": -1})");
    arrivals.check(
        ops::ActivationBackward{.activation = "elu",
                                .alpha = 1,
                                .beta = 2,
                                .negative_slope = 3,
                                .min_val = 4,
                                .max_val = 5,
                                .lambd = 6,
                                .threshold = 7,
                                .value = 8},
        R"({"activation": "elu", "alpha": 1, "beta": 2, "negative_slope": 3, "min_val": 4,
            "max_val": 5, "lambd": 6, "threshold": 7, "value": 8})");
    arrivals.check(ops::BatchNormBackward{.use_global_stats = true},
                   R"({"use_global_stats": true})");
    arrivals.check(ops::LayerNormBackward{.normalized_shape = {2, 3}, .dims = 2},
                   R"({"normalized_shape": [2, 3], "dims": 2})");
    arrivals.check(ops::GroupNormBackward{.num_groups = 2}, R"({"num_groups": 2})");
    arrivals.check(
        ops::MaxPooling2DBackward{
            .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .ceil_mode = true, .sizes = {7, 9}},
        R"({"kernel": [3, 2], "stride": [2, 1], "pad": [1, 0], "ceil_mode": true,
            "sizes": [7, 9]})");
    arrivals.check(ops::NLLLossBackward{.reduce = "sum", .ignore_index = -1, .classes = 5},
                   R"({"reduce": "sum", "ignore_index": -1, "classes": 5})");
}

void check_elements(Arrivals& arrivals) {
    arrivals.check(
        ops::Activation{.activation = "elu",
                        .alpha = 1,
                        .beta = 2,
                        .negative_slope = 3,
                        .min_val = 4,
                        .max_val = 5,
                        .lambd = 6,
                        .threshold = 7,
                        .value = 8},
        R"({"activation": "elu", "alpha": 1, "beta": 2, "negative_slope": 3, "min_val": 4,
            "max_val": 5, "lambd": 6, "threshold": 7, "value": 8})");
    arrivals.check(ops::PReLU{.num_parameters = 3, .init = 0.5},
                   R"({"num_parameters": 3, "init": 0.5})");
    arrivals.check(
        ops::Elementwise{.operation = "prod", .coef1 = 2, .coef2 = 3, .activation = "relu"},
        R"({"operation": "prod", "coef1": 2, "coef2": 3, "activation": "relu"})");
    arrivals.check(ops::Threshold{.threshold = 0.5}, R"({"threshold": 0.5})");
    arrivals.check(ops::Hardtanh{.min_val = -2, .max_val = 3}, R"({"min_val": -2, "max_val": 3})");
    arrivals.check(ops::Cast{.dtype = DType::i32, .reinterpret = true},
                   R"({"dtype": "int32", "reinterpret": true})");
    arrivals.check(ops::Dropout{.p = 0.25, .stream = 9}, R"({"p": 0.25, "stream": 9})");
    arrivals.check(ops::Pointwise{.code = "y0 = x0 * p0",
                                  .scalars = {0.1, 2},
                                  .dtypes = {DType::f16, DType::bf16},
                                  .keep_dim = false,
                                  .shape = {2, 3}},
                   R"({"code": "y0 = x0 * p0", "scalars": [0.1, 2], "dtypes": ["half", "bfloat16"],
            "keep_dim": false, "shape": [2, 3]})");
    arrivals.check(ops::Reduction{.method = "mean",
                                  .keep_dim = false,
                                  .output_scale = 2,
                                  .dims = {0, -1},
                                  .start_axis = 1},
                   R"({"method": "mean", "keep_dim": false, "output_scale": 2, "dims": [0, -1],
            "start_axis": 1})");
    arrivals.check(ops::Softmax{.log = true, .axis = -1}, R"({"log": true, "axis": -1})");
    arrivals.check(ops::SoftmaxWithLoss{.ignore_index = 255}, R"({"ignore_index": 255})");
    arrivals.check(ops::NLLLoss{.reduce = "sum", .ignore_index = 3, .return_weight = true},
                   R"({"reduce": "sum", "ignore_index": 3, "return_weight": true})");
    arrivals.check(ops::MSELoss{.reduce = "none"}, R"({"reduce": "none"})");
}

void check_shapes(Arrivals& arrivals) {
    arrivals.check(ops::Concat{.dim = 0}, R"({"dim": 0})");
    arrivals.check(ops::Slice{.dim = 2, .begin = 3, .end = 5},
                   R"({"dim": 2, "begin": 3, "end": 5})");
    arrivals.check(ops::Split{.dim = 2, .parts = 3}, R"({"dim": 2, "parts": 3})");
    arrivals.check(ops::Reshape{.dims = {0, -1}}, R"({"dims": [0, -1]})");
    arrivals.check(ops::Squeeze{.dims = 2, .all = true}, R"({"dims": 2, "all": true})");
    arrivals.check(ops::Transpose{.dims = {2, 0, 1}, .dim0 = 0, .dim1 = 2},
                   R"({"dims": [2, 0, 1], "dim0": 0, "dim1": 2})");
    arrivals.check(ops::Pad{.pads = {1, 2, 0, 3}, .mode = "reflect", .value = 7},
                   R"({"pads": [1, 2, 0, 3], "mode": "reflect", "value": 7})");
    arrivals.check(
        ops::Parameter{.shape = {2, 3}, .dtype = DType::f64, .is_trainable = false, .value = 0.5},
        R"({"shape": [2, 3], "dtype": "double", "is_trainable": false, "value": 0.5})");
    arrivals.check(ops::Embedding{.num_embeddings = 9, .embedding_dim = 4, .padding_idx = -1},
                   R"({"num_embeddings": 9, "embedding_dim": 4, "padding_idx": -1})");
    arrivals.check(
        ops::Gather{.mode = "tuples", .dim = 2, .batch_dims = 1, .dims = {0, 2}, .from_end = false},
        R"({"mode": "tuples", "dim": 2, "batch_dims": 1, "dims": [0, 2], "from_end": false})");
    arrivals.check(ops::Scatter{.mode = "elements",
                                .dim = 2,
                                .batch_dims = 1,
                                .dims = {0, 2},
                                .from_end = false,
                                .reduction = "max",
                                .include_self = false,
                                .shape = {4, 3}},
                   R"({"mode": "elements", "dim": 2, "batch_dims": 1, "dims": [0, 2],
            "from_end": false, "reduction": "max", "include_self": false, "shape": [4, 3]})");
    arrivals.check(ops::TopK{.k = 3, .dim = 0, .largest = false, .sorted = false},
                   R"({"k": 3, "dim": 0, "largest": false, "sorted": false})");
    arrivals.check(ops::Sort{.dim = 0, .descending = true}, R"({"dim": 0, "descending": true})");
    arrivals.check(ops::ArgReduce{.method = "min", .dim = 1, .keep_dim = true, .values = false},
                   R"({"method": "min", "dim": 1, "keep_dim": true, "values": false})");
    arrivals.check(ops::Nonzero{.size = 5, .flat = true, .fill = 0},
                   R"({"size": 5, "flat": true, "fill": 0})");
    arrivals.check(ops::Flip{.dims = {0, -1}}, R"({"dims": [0, -1]})");
    arrivals.check(
        ops::Scan{
            .method = "prod", .dim = 0, .reverse = true, .exclusive = true, .dtype = DType::i64},
        R"({"method": "prod", "dim": 0, "reverse": true, "exclusive": true, "dtype": "int64"})");
}

void check_sequences(Arrivals& arrivals) {
    arrivals.check(
        ops::Attention{
            .scale = 0.5, .is_causal = true, .enable_gqa = true, .dropout_p = 0.25, .stream = 3},
        R"({"scale": 0.5, "is_causal": true, "enable_gqa": true, "dropout_p": 0.25, "stream": 3})");
    const char* const recurrent =
        R"({"hidden_size": 5, "num_layers": 2, "bidirectional": true, "bias": false,
            "batch_first": true, "dropout": 0.25, "stream": 3})";
    arrivals.check(ops::LSTM{.hidden_size = 5,
                             .num_layers = 2,
                             .bidirectional = true,
                             .bias = false,
                             .batch_first = true,
                             .dropout = 0.25,
                             .stream = 3},
                   recurrent);
    arrivals.check(ops::GRU{.hidden_size = 5,
                            .num_layers = 2,
                            .bidirectional = true,
                            .bias = false,
                            .batch_first = true,
                            .dropout = 0.25,
                            .stream = 3},
                   recurrent);
}

std::vector<Bytes> all_bits(const std::vector<Tensor>& tensors) {
    std::vector<Bytes> all;
    all.reserve(tensors.size());
    for (const Tensor& tensor : tensors) all.push_back(bits(tensor));
    return all;
}

}  // namespace

TEST_CASE("there is a struct of options for every operator", "[typed_options]") {
    // An eager call takes its device from a tensor, and Constant has neither inputs nor parameters.
    std::set<std::string> structs{"Constant"};
    each_struct([&](const auto& options) { structs.emplace(options.type); });
    const std::vector<std::string> types = OperatorRegistry::instance().types();
    CHECK(structs == std::set<std::string>(types.begin(), types.end()));
}

TEST_CASE("structs have the options of their operators, and their defaults", "[typed_options]") {
    each_struct([](const auto& options) {
        INFO(options.type);
        check_defaults(options);
    });
}

TEST_CASE("every field arrives as the option of its name", "[typed_options]") {
    Arrivals arrivals;
    check_layers(arrivals);
    check_images(arrivals);
    check_elements(arrivals);
    check_gradients(arrivals);
    check_shapes(arrivals);
    check_sequences(arrivals);
    each_struct([&](const auto& options) {
        using Options = std::remove_cvref_t<decltype(options)>;
        INFO(Options::type);
        CHECK(arrivals.types().count(Options::type) == (option_names<Options>.empty() ? 0 : 1));
    });
}

TEST_CASE("a call with a struct gives the bits of the call with its text", "[typed_options]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {2, 4, 9, 8}, random_floats(2 * 4 * 9 * 8, 1));
        const Tensor weight(device, {6, 4, 3, 3}, random_floats(6 * 4 * 9, 2));
        const Tensor bias(device, {6}, random_floats(6, 3));
        const char* const text =
            R"({"channels_out": 6, "kernel": 3, "stride": 2, "pad": [1, 0], "activation": "relu"})";
        const ops::Convolution2D options{
            .channels_out = 6, .kernel = 3, .stride = 2, .pad = {1, 0}, .activation = "relu"};
        const std::vector<Tensor> y = ops::call("Convolution2D", text, {x}, {weight, bias});
        const Bytes right = bits(y.at(0));
        const Counters before = device.counters();
        CHECK(bits(ops::call(options, {x}, {weight, bias}).at(0)) == right);
        CHECK(device.counters().compiles == before.compiles);  // both are one call
        CHECK(device.counters().cache_hits == before.cache_hits);
        // A shorthand takes the sizes from the weight.
        const Tensor brief =
            ops::conv2d(x, weight, bias, {.stride = 2, .pad = {1, 0}, .activation = "relu"});
        CHECK(bits(brief) == right);
        CHECK(all_bits(ops::backward(options, {x}, {weight, bias}, y)) ==
              all_bits(ops::backward("Convolution2D", text, {x}, {weight, bias}, y)));

        CHECK(bits(ops::softmax(x, {.log = true})) ==
              bits(ops::call("Softmax", R"({"log": true})", {x}).at(0)));
        CHECK(bits(ops::pooling2d(x, {.mode = "avg", .kernel = {3, 2}, .pad = 1})) ==
              bits(ops::call("Pooling2D", R"({"mode": "avg", "kernel": [3, 2], "pad": 1})", {x})
                       .at(0)));
        CHECK(bits(ops::matmul(x, x, {.transpose_b = true})) ==
              bits(ops::call("MatMul", R"({"transpose_b": true})", {x, x}).at(0)));
        CHECK(all_bits(ops::call(ops::Split{.parts = 2}, {x})) ==
              all_bits(ops::call("Split", R"({"parts": 2})", {x})));
    }
}

TEST_CASE("shorthands take sizes from the weight, and check those that are given",
          "[typed_options]") {
    const Context context("cpu");
    const Tensor image(context, {1, 4, 5, 5}, random_floats(100, 1));
    const Tensor kernel(context, {2, 4, 1, 3}, random_floats(24, 2));
    CHECK(ops::conv2d(image, kernel).shape() == Shape{1, 2, 5, 3});
    const Tensor x(context, {3, 4}, random_floats(12, 3));
    const Tensor weight(context, {5, 4}, random_floats(20, 4));
    const Tensor bias(context, {5}, random_floats(5, 5));
    CHECK(ops::inner_product(x, weight).shape() == Shape{3, 5});
    CHECK(bits(ops::inner_product(x, weight, bias, {.activation = "relu"})) ==
          bits(ops::call("InnerProduct", R"({"outputs": 5, "activation": "relu"})", {x},
                         {weight, bias})
                   .at(0)));
    check_error(ErrorKind::invalid_argument, {"Convolution2D", "weight"},
                [&] { ops::conv2d(image, weight); });
    check_error(ErrorKind::invalid_argument, {"Convolution2D"},
                [&] { ops::conv2d(image, kernel, {.kernel = 5}); });
    check_error(ErrorKind::invalid_argument, {"InnerProduct"},
                [&] { ops::inner_product(x, weight, {.outputs = 6}); });
}

TEST_CASE("a struct without what is required is refused as the text is", "[typed_options]") {
    const Context context("cpu");
    const Tensor x(context, {1, 2, 4, 4}, random_floats(32, 1));
    check_error(ErrorKind::invalid_argument, {"Pooling2D", "'kernel' is missing"},
                [&] { ops::call(ops::Pooling2D{}, {x}); });
    check_error(ErrorKind::invalid_argument, {"Cast", "'dtype' is missing"},
                [&] { ops::call(ops::Cast{}, {x}); });
    check_error(ErrorKind::invalid_argument, {"Activation", "'activation' is missing"},
                [&] { ops::call(ops::Activation{}, {x}); });
    check_error(ErrorKind::invalid_argument, {"at most 16 integers", "17"},
                [] { ops::IntList(std::vector<std::int64_t>(17, 1)); });
}
