// SPDX-License-Identifier: MIT
// A generator an operator type. Sizes are small and odd on purpose: they fill no tile.
#include "support/random_cases.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

namespace dlprim::testing {

namespace {

using Json = nlohmann::json;

/// Random choices, the same with every compiler.
class Dice {
  public:
    explicit Dice(unsigned seed) : random_(seed) {}
    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool coin() { return random_() % 2 == 0; }
    template <typename T>
    const T& of(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
    }
    double number(double low, double high) {
        // Few digits, which JSON keeps.
        return static_cast<double>(pick(static_cast<std::int64_t>(low * 64),
                                        static_cast<std::int64_t>(high * 64))) /
               64;
    }
    std::vector<std::int64_t> dims(std::int64_t rank, std::int64_t most) {
        std::vector<std::int64_t> result;
        for (std::int64_t i = 0; i < rank; ++i) result.push_back(pick(1, most));
        return result;
    }

  private:
    std::mt19937 random_;
};

/// What a generator fills.
struct Draft {
    Dice& dice;
    Case& one;
    Json options = Json::object();

    CaseTensor& input(const std::vector<std::int64_t>& dims, const std::string& fill = "normal") {
        CaseTensor tensor;
        tensor.shape = Shape(dims);
        tensor.fill = fill;
        one.inputs.push_back(tensor);
        return one.inputs.back();
    }
    CaseTensor& labels(const std::vector<std::int64_t>& dims, std::int64_t classes) {
        CaseTensor& tensor = input(dims, "labels");
        tensor.classes = classes;
        tensor.dtype = dice.of<DType>({DType::f32, DType::i32, DType::i64});
        return tensor;
    }
    /// Sets an option now and then; else it keeps its default.
    void maybe(const char* name, const Json& value) {
        if (dice.coin()) options[name] = value;
    }
};

const std::vector<std::string>& activations() {
    static const std::vector<std::string> names = {"relu", "relu6", "sigmoid",   "tanh",
                                                   "gelu", "silu",  "hardswish", "leaky_relu",
                                                   "elu",  "mish",  "softplus"};
    return names;
}

/// Two shapes that broadcast to each other.
std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> broadcast_pair(Dice& dice) {
    std::vector<std::int64_t> a = dice.dims(dice.pick(1, 4), 9), b = a;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (dice.pick(0, 3) == 0) a[i] = 1;
        if (dice.pick(0, 3) == 0) b[i] = 1;
    }
    while (b.size() > 1 && dice.pick(0, 3) == 0) b.erase(b.begin());
    return {a, b};
}

/// A size or [height, width].
Json one_or_two(Dice& dice, std::int64_t low, std::int64_t high) {
    if (dice.coin()) return dice.pick(low, high);
    return Json::array({dice.pick(low, high), dice.pick(low, high)});
}

std::int64_t at(const Json& value, int axis) {
    return value.is_array() ? value[static_cast<std::size_t>(axis)].get<std::int64_t>()
                            : value.get<std::int64_t>();
}

void convolution(Draft& draft, bool transposed) {
    Dice& dice = draft.dice;
    const std::int64_t groups = dice.of<std::int64_t>({1, 1, 1, 2, 3, 8});
    const std::int64_t in = groups * dice.of<std::int64_t>({1, 1, 2, 3, 5, 16});
    const std::int64_t out = groups * dice.of<std::int64_t>({1, 1, 2, 4, 7, 16});
    const Json kernel = one_or_two(dice, 1, 5), stride = one_or_two(dice, 1, 3),
               dilate = one_or_two(dice, 1, 2);
    std::vector<std::int64_t> shape{dice.pick(1, 3), in, 0, 0};
    Json pad = Json::array();
    for (int axis = 0; axis < 2; ++axis) {
        const std::int64_t span = (at(kernel, axis) - 1) * at(dilate, axis) + 1;
        pad.push_back(dice.pick(0, std::min<std::int64_t>(2, at(kernel, axis) - 1)));
        shape[static_cast<std::size_t>(2 + axis)] =
            transposed ? dice.pick(2, 8) : span + dice.pick(0, 9);
    }
    draft.options = {{"channels_out", out}, {"kernel", kernel}, {"groups", groups}, {"pad", pad}};
    draft.maybe("stride", stride);
    if (dice.pick(0, 2) == 0) draft.options["dilate"] = dilate;
    draft.maybe("bias", dice.coin());
    if (dice.pick(0, 2) == 0) draft.options["activation"] = dice.of(activations());
    draft.input(shape);
}

void pooling(Draft& draft) {
    Dice& dice = draft.dice;
    const Json kernel = one_or_two(dice, 1, 4);
    Json pad = Json::array();
    std::vector<std::int64_t> shape{dice.pick(1, 3), dice.of<std::int64_t>({1, 3, 8, 17}), 0, 0};
    for (int axis = 0; axis < 2; ++axis) {
        pad.push_back(dice.pick(0, at(kernel, axis) / 2));
        shape[static_cast<std::size_t>(2 + axis)] = at(kernel, axis) + dice.pick(0, 8);
    }
    const bool average = dice.coin();
    draft.options = {{"kernel", kernel},
                     {"pad", pad},
                     {"mode", average ? "avg" : "max"},
                     {"stride", one_or_two(dice, 1, 3)}};
    draft.maybe("ceil_mode", dice.coin());
    if (average) draft.maybe("count_include_pad", dice.coin());
    draft.input(shape, "distinct");
}

void matmul(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t m = dice.pick(1, 40), n = dice.pick(1, 40), k = dice.pick(1, 60);
    const bool ta = dice.coin(), tb = dice.coin();
    std::vector<std::int64_t> batch = dice.dims(dice.pick(0, 2), 3), a = batch, b = batch;
    if (dice.coin()) b.clear();
    for (std::int64_t& size : b)
        if (dice.pick(0, 2) == 0) size = 1;
    a.insert(a.end(), {ta ? k : m, ta ? m : k});
    b.insert(b.end(), {tb ? n : k, tb ? k : n});
    draft.options = {{"transpose_a", ta}, {"transpose_b", tb}};
    draft.maybe("alpha", dice.number(-2, 2) + 0.01);
    draft.input(a);
    draft.input(b);
    if (dice.coin()) {
        draft.options["bias"] = true;
        draft.input({n});
    }
}

void recurrent(Draft& draft, int states) {
    Dice& dice = draft.dice;
    const std::int64_t hidden = dice.pick(1, 6), layers = dice.pick(1, 2), batch = dice.pick(1, 3),
                       time = dice.pick(1, 4);
    const bool both = dice.coin(), first = dice.coin();
    draft.options = {{"hidden_size", hidden},
                     {"num_layers", layers},
                     {"bidirectional", both},
                     {"batch_first", first},
                     {"bias", dice.coin()}};
    const std::int64_t in = dice.pick(1, 5);
    draft.input(first ? std::vector<std::int64_t>{batch, time, in}
                      : std::vector<std::int64_t>{time, batch, in});
    if (dice.coin())
        for (int i = 0; i < states; ++i) draft.input({layers * (both ? 2 : 1), batch, hidden});
}

void pad(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(2, 4), 8);
    const std::string mode = dice.of<std::string>({"constant", "reflect", "replicate"});
    Json pads = Json::array();
    const std::int64_t padded =
        dice.pick(1, std::min<std::int64_t>(3, static_cast<std::int64_t>(shape.size()) - 1));
    for (std::int64_t i = 0; i < padded; ++i) {
        const std::int64_t size = shape[shape.size() - 1 - static_cast<std::size_t>(i)];
        for (int side = 0; side < 2; ++side)
            pads.push_back(
                dice.pick(0, mode == "reflect" ? std::min<std::int64_t>(3, size - 1) : 3));
    }
    draft.options = {{"pads", pads}, {"mode", mode}};
    if (mode == "constant") draft.maybe("value", dice.number(-2, 2));
    draft.input(shape);
}

void slice(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 4), 9);
    const std::int64_t dim = dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
    const std::int64_t size = shape[static_cast<std::size_t>(dim)], begin = dice.pick(0, size - 1);
    draft.options = {{"dim", dim}, {"begin", begin}};
    draft.maybe("end", dice.pick(begin + 1, size));
    draft.input(shape);
}

void reduction(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 4), 11);
    const auto rank = static_cast<std::int64_t>(shape.size());
    draft.options = {{"method", dice.of<std::string>({"sum", "sumsq", "abssum", "mean"})}};
    draft.maybe("keep_dim", dice.coin());
    draft.maybe("output_scale", dice.number(0.5, 2));
    if (dice.coin()) {
        Json dims = Json::array();
        for (std::int64_t d = 0; d < rank; ++d)
            if (dice.coin()) dims.push_back(dice.coin() ? d : d - rank);
        if (dims.empty()) dims.push_back(0);
        draft.options["dims"] = dims;
    } else {
        draft.maybe("start_axis", dice.pick(0, rank - 1));
    }
    draft.input(shape);
}

void pointwise(Draft& draft) {
    Dice& dice = draft.dice;
    const auto [a, b] = broadcast_pair(dice);
    const std::string term =
        dice.of<std::string>({"x0 * x1", "x0 + x1 * p0", "tanh(x0) - x1", "x0 * sigmoid(x1)",
                              "max(x0, x1)", "x0 / (1 + x1 * x1)", "exp(-x0 * x0) * x1"});
    Json axes = Json::array();
    const std::size_t rank = std::max(a.size(), b.size());
    for (std::size_t d = 0; d < rank; ++d)
        if (dice.coin()) axes.push_back(d);
    const std::string method = dice.of<std::string>({"sum", "mean", "sum"});
    std::string code = "t = " + term + "; y0 = ";
    const std::int64_t form = dice.pick(0, 2);
    if (form == 0) code += "t + x0";
    if (form == 1) code += method + axes.dump() + "(t)";
    if (form == 2) code += "t; y1 = " + method + axes.dump() + "(t * t)";
    draft.options = {{"code", code}, {"scalars", Json::array({dice.number(-2, 2)})}};
    draft.input(a);
    draft.input(b);
}

void interpolation(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = {dice.pick(1, 2), dice.of<std::int64_t>({1, 3, 16, 21}),
                                             dice.pick(1, 9), dice.pick(1, 9)};
    const std::string method = dice.of<std::string>({"nearest", "nearest-exact", "bilinear"});
    draft.options = {{"method", method}};
    if (dice.coin()) {
        draft.options["out_h"] = dice.pick(1, 12);
        draft.options["out_w"] = dice.pick(1, 12);
    } else {
        draft.options["scale_y"] = dice.number(1, 3);
        draft.options["scale_x"] = dice.number(1, 3);
    }
    if (method == "bilinear") draft.maybe("align_corners", dice.coin());
    draft.input(shape);
}

void attention(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t n = dice.pick(1, 2), heads = dice.pick(1, 3), q = dice.pick(1, 9),
                       k = dice.pick(1, 9), d = dice.pick(1, 9);
    draft.input({n, heads, q, d});
    draft.input({n, heads, k, d});
    draft.input({n, heads, k, dice.pick(1, 9)});
    draft.maybe("scale", dice.number(0.25, 2));
    if (dice.coin())
        draft.options["is_causal"] = true;
    else if (dice.coin())
        draft.input({q, k});
}

void permute(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(2, 5), 7);
    std::vector<std::int64_t> order;
    for (std::size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1],
                  order[static_cast<std::size_t>(dice.pick(0, static_cast<std::int64_t>(i) - 1))]);
    draft.options = {{"dims", order}};
    draft.input(shape);
}

/// [N, C, ...] of rank 2 to 4.
std::vector<std::int64_t> features(Dice& dice, std::int64_t channels) {
    std::vector<std::int64_t> shape{dice.pick(2, 5), channels};
    for (std::int64_t i = dice.pick(0, 2); i > 0; --i) shape.push_back(dice.pick(1, 7));
    return shape;
}

const std::map<std::string, std::function<void(Draft&)>, std::less<>>& generators() {
    using D = Draft&;
    static const std::map<std::string, std::function<void(Draft&)>, std::less<>> table = {
        {"Convolution2D", [](D d) { convolution(d, false); }},
        {"TransposedConvolution2D", [](D d) { convolution(d, true); }},
        {"InnerProduct",
         [](D d) {
             d.options = {{"outputs", d.dice.pick(1, 33)}};
             d.maybe("bias", d.dice.coin());
             d.maybe("activation", d.dice.of(activations()));
             d.input(features(d.dice, d.dice.pick(1, 20)));
         }},
        {"BatchNorm",
         [](D d) {
             d.one.training = d.dice.coin();
             d.maybe("eps", 0.01);
             d.maybe("momentum", 0.25);
             d.maybe("affine", d.dice.coin());
             d.input(features(d.dice, d.dice.pick(1, 20)));
             if (d.one.training)
                 d.one.inputs[0].shape = d.one.inputs[0].shape.with(0, d.dice.pick(4, 9));
             d.one.params = {{}, {}, {}, {}};
             d.one.params[1].fill = "positive";
         }},
        {"LayerNorm",
         [](D d) {
             std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(2, 4), 7);
             shape.back() = d.dice.pick(5, 40);
             d.options["dims"] = d.dice.pick(1, static_cast<std::int64_t>(shape.size()) - 1);
             d.maybe("eps", 0.01);
             d.maybe("elementwise_affine", d.dice.coin());
             d.input(shape);
         }},
        {"GroupNorm",
         [](D d) {
             const std::int64_t groups = d.dice.pick(1, 4);
             d.options["num_groups"] = groups;
             d.maybe("eps", 0.01);
             d.maybe("affine", d.dice.coin());
             d.input({d.dice.pick(1, 3), groups * d.dice.pick(2, 5), d.dice.pick(2, 6),
                      d.dice.pick(1, 6)});
         }},
        {"Pooling2D", pooling},
        {"GlobalPooling",
         [](D d) {
             d.maybe("mode", d.dice.coin() ? "avg" : "max");
             d.input({d.dice.pick(1, 3), d.dice.pick(1, 20), d.dice.pick(1, 9), d.dice.pick(1, 9)},
                     "distinct");
         }},
        {"Activation",
         [](D d) {
             d.options["activation"] = d.dice.of(activations());
             d.input(d.dice.dims(d.dice.pick(1, 4), 9));
         }},
        {"Elementwise",
         [](D d) {
             d.options["operation"] = d.dice.of<std::string>({"sum", "prod", "max"});
             d.maybe("coef1", d.dice.number(-2, 2));
             d.maybe("coef2", d.dice.number(-2, 2));
             if (d.dice.pick(0, 2) == 0) d.options["activation"] = d.dice.of(activations());
             const auto [a, b] = broadcast_pair(d.dice);
             d.input(a);
             d.input(b);
         }},
        {"Softmax",
         [](D d) {
             const std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(2, 4), 12);
             d.options["log"] = d.dice.coin();
             d.maybe("axis", d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1));
             d.input(shape);
         }},
        {"SoftmaxWithLoss",
         [](D d) {
             const std::int64_t n = d.dice.pick(1, 9), classes = d.dice.pick(1, 40);
             d.input({n, classes});
             d.labels({n}, classes);
         }},
        {"NLLLoss",
         [](D d) {
             const std::int64_t n = d.dice.pick(1, 9), classes = d.dice.pick(1, 40);
             d.maybe("reduce", d.dice.of<std::string>({"mean", "sum", "none"}));
             d.input({n, classes});
             d.labels({n}, classes);
         }},
        {"MSELoss",
         [](D d) {
             const auto shape = d.dice.dims(d.dice.pick(1, 4), 9);
             d.maybe("reduce", d.dice.of<std::string>({"mean", "sum", "none"}));
             d.input(shape);
             d.input(shape);
         }},
        {"Concat",
         [](D d) {
             auto shape = d.dice.dims(d.dice.pick(1, 4), 8);
             const std::int64_t dim = d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
             d.options["dim"] = dim;
             for (std::int64_t i = d.dice.pick(1, 4); i > 0; --i) {
                 shape[static_cast<std::size_t>(dim)] = d.dice.of<std::int64_t>({1, 3, 5, 16});
                 d.input(shape);
             }
         }},
        {"Split",
         [](D d) {
             auto shape = d.dice.dims(d.dice.pick(1, 4), 8);
             const std::int64_t dim = d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1),
                                parts = d.dice.pick(1, 4);
             shape[static_cast<std::size_t>(dim)] = parts * d.dice.pick(1, 4);
             d.options = {{"dim", dim}, {"parts", parts}};
             d.input(shape);
         }},
        {"Slice", slice},
        {"Flatten", [](D d) { d.input(d.dice.dims(d.dice.pick(2, 5), 6)); }},
        {"Reshape",
         [](D d) {
             const auto shape = d.dice.dims(d.dice.pick(2, 4), 6);
             d.options["dims"] =
                 d.dice.coin() ? Json::array({0, -1}) : Json::array({-1, shape.back()});
             d.input(shape);
         }},
        {"Squeeze",
         [](D d) {
             auto shape = d.dice.dims(d.dice.pick(2, 5), 5);
             for (auto& size : shape)
                 if (d.dice.coin()) size = 1;
             d.input(shape);
         }},
        {"Transpose", permute},
        {"Pad", pad},
        {"Reduction", reduction},
        {"Threshold",
         [](D d) {
             d.maybe("threshold", d.dice.number(-1, 1));
             d.input(d.dice.dims(d.dice.pick(1, 4), 9));
             d.one.gradient = false;
         }},
        {"Hardtanh",
         [](D d) {
             d.maybe("min_val", d.dice.number(-2, 0));
             d.maybe("max_val", d.dice.number(0, 2));
             d.input(d.dice.dims(d.dice.pick(1, 4), 9));
         }},
        {"Abs", [](D d) { d.input(d.dice.dims(d.dice.pick(1, 4), 9)); }},
        {"Parameter", [](D d) { d.options["shape"] = d.dice.dims(d.dice.pick(1, 4), 9); }},
        {"Interpolation", interpolation},
        {"Dropout",
         [](D d) {
             d.options = {{"p", d.dice.number(0, 1)}, {"stream", d.dice.pick(0, 1000)}};
             d.one.training = d.dice.coin();
             d.input(d.dice.dims(d.dice.pick(1, 4), 9));
         }},
        {"PReLU",
         [](D d) {
             const std::int64_t channels = d.dice.pick(1, 20);
             d.options["num_parameters"] = d.dice.coin() ? 1 : channels;
             d.input(features(d.dice, channels));
         }},
        {"Embedding",
         [](D d) {
             const std::int64_t rows = d.dice.pick(1, 30);
             d.options = {{"num_embeddings", rows}, {"embedding_dim", d.dice.pick(1, 40)}};
             d.maybe("padding_idx", d.dice.pick(0, rows - 1));
             d.labels(d.dice.dims(d.dice.pick(1, 3), 7), rows);
         }},
        {"MatMul", matmul},
        {"Attention", attention},
        {"LSTM", [](D d) { recurrent(d, 2); }},
        {"GRU", [](D d) { recurrent(d, 1); }},
        {"Cast",
         [](D d) {
             CaseTensor& x = d.input(d.dice.dims(d.dice.pick(1, 3), 9), "uniform");
             x.min = 0;
             x.max = 100;
             x.dtype = d.dice.of<DType>({DType::f32, DType::i32, DType::u8, DType::i64});
             d.options["dtype"] =
                 d.dice.of<std::string>({"float", "int32", "int64", "uint8", "int16"});
             d.one.gradient = false;
         }},
        {"Pointwise", pointwise},
    };
    return table;
}

}  // namespace

bool has_random_cases(std::string_view type) {
    return generators().find(type) != generators().end();
}

Case random_case(const std::string& type, unsigned number) {
    // A generator may make what the operator refuses (an empty output, say): the next draw follows.
    std::string refusal;
    for (unsigned attempt = 0; attempt < 50; ++attempt) {
        Dice dice(number * 7919 + attempt * 104729 + 17);
        Case one;
        one.file = "random";
        one.name = "random" + std::to_string(number);
        one.type = type;
        Draft draft{dice, one};
        generators().find(type)->second(draft);
        one.options = draft.options.dump();
        try {
            const Operator& op = OperatorRegistry::instance().get(type);
            const CaseData data = make_case_data(one, 1);
            std::vector<TensorSpec> specs;
            for (const auto* list : {&data.inputs, &data.params})
                for (const HostArray& operand : *list)
                    specs.push_back({operand.shape, operand.dtype});
            for (const TensorSpec& output : op.infer(data.attrs, specs))
                if (output.shape.empty()) throw std::runtime_error("an empty output");
            return one;
        } catch (const std::exception& error) {
            refusal = error.what();
        }
    }
    throw std::runtime_error("50 draws refused, the last because " + refusal);
}

}  // namespace dlprim::testing
