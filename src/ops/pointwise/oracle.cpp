// SPDX-License-Identifier: MIT
// The oracle of Pointwise: computes every element in double, and gradients by the definition of the
// derivative.
#include "base/scalar_value.hpp"
#include "base/text.hpp"
#include "ops/pointwise/options.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::pointwise {
namespace {

/// Walks a broadcast shape and computes the offset of each operand's element.
class Walker {
  public:
    explicit Walker(Shape whole)
        : whole_(std::move(whole)), index_(static_cast<std::size_t>(whole_.rank()), 0) {}
    const Shape& shape() const { return whole_; }
    const std::int64_t* index() const { return index_.data(); }
    std::int64_t linear() const { return linear_; }
    /// The offset of the current element in a tensor of shape `own`, which broadcasts to the whole
    /// shape.
    std::size_t offset(const Shape& own) const {
        const int lead = whole_.rank() - own.rank();
        std::int64_t at = 0;
        for (int d = 0; d < own.rank(); ++d)
            at = at * own[d] + (own[d] == 1 ? 0 : index_[static_cast<std::size_t>(d + lead)]);
        return static_cast<std::size_t>(at);
    }
    void next() {
        ++linear_;
        for (int d = whole_.rank() - 1; d >= 0; --d) {
            auto& i = index_[static_cast<std::size_t>(d)];
            if (++i < whole_[d]) return;
            i = 0;
        }
    }

  private:
    Shape whole_;
    std::vector<std::int64_t> index_;
    std::int64_t linear_ = 0;
};

struct Elements {
    const std::vector<HostArray>& inputs;
    std::vector<double> at;
    const double* gather(const Walker& walker) {
        at.resize(inputs.size());
        for (std::size_t i = 0; i < inputs.size(); ++i)
            at[i] = inputs[i].data[walker.offset(inputs[i].shape)];
        return at.data();
    }
};

/// Whether kernels compute the program in signed integers of 64 bits.
bool is_whole(const OracleCall& call, const Options& options) {
    Problem problem;
    problem.attrs = call.attrs;
    for (const HostArray& input : call.inputs)
        problem.inputs.push_back({input.shape, input.dtype, Layout::plain(), false});
    for (const HostArray& output : call.outputs)
        problem.outputs.push_back({output.shape, output.dtype, Layout::plain(), false});
    return compute_type(problem, options.program, true) == Compute::i64;
}

/// What an integer tensor keeps of an integer of 64 bits: its low bits.
double kept_bits(double value, DType dtype) {
    const std::int64_t bits = whole_of(value);
    switch (dtype) {
        case DType::i8:
            return static_cast<std::int8_t>(bits);
        case DType::u8:
            return static_cast<std::uint8_t>(bits);
        case DType::i16:
            return static_cast<std::int16_t>(bits);
        case DType::u16:
            return static_cast<std::uint16_t>(bits);
        case DType::i32:
            return static_cast<std::int32_t>(bits);
        case DType::u32:
            return static_cast<std::uint32_t>(bits);
        default:
            return value;
    }
}

Shape whole_shape(const std::vector<HostArray>& inputs, const Ints& shape) {
    std::vector<Shape> shapes;
    for (const HostArray& input : inputs) shapes.push_back(input.shape);
    return broadcast_shape(shapes, shape);
}

double fold(const Output& output, const Tape* combine, double a, double b,
            std::vector<double>& scratch) {
    switch (output.kind) {
        case Output::Kind::prod:
            return a * b;
        case Output::Kind::max:
            return apply(Op::max, a, b);
        case Output::Kind::min:
            return apply(Op::min, a, b);
        case Output::Kind::custom: {
            const double both[] = {a, b};
            const Shape scalar;
            run(*combine, {both, nullptr, nullptr, &scalar, 0}, scratch);
            return scratch[static_cast<std::size_t>(combine->results[0])];
        }
        default:
            return a + b;
    }
}

double start(const Output& output) {
    switch (output.kind) {
        case Output::Kind::prod:
            return 1;
        case Output::Kind::max:
            return -INFINITY;
        case Output::Kind::min:
            return INFINITY;
        case Output::Kind::custom:
            return output.init;
        default:
            return 0;
    }
}

std::vector<double> values_of(const Options& options, const std::vector<HostArray>& inputs,
                              const Output& output, bool whole = false) {
    Walker walker(whole_shape(inputs, options.shape));
    Elements elements{inputs, {}};
    const Tape tape = compile(std::span(&output.value, 1));
    std::vector<double> values, result;
    for (std::int64_t n = walker.shape().numel(); n-- > 0; walker.next()) {
        run(tape,
            {elements.gather(walker), options.scalars.data(), walker.index(), &walker.shape(),
             walker.linear(), whole},
            values);
        result.push_back(values[static_cast<std::size_t>(tape.results[0])]);
    }
    return result;
}

std::vector<double> reduce(const Output& output, const Shape& whole,
                           const std::vector<double>& values) {
    const Shape kept = output_shape(output, whole, true);
    std::vector<double> result(static_cast<std::size_t>(kept.numel()), start(output)), scratch;
    const Tape combine = output.combine ? compile(std::span(&output.combine, 1)) : Tape{};
    Walker walker(whole);
    for (double value : values) {
        double& into = result[walker.offset(kept)];
        into = fold(output, &combine, into, value, scratch);
        walker.next();
    }
    if (output.kind == Output::Kind::mean) {
        const double count = static_cast<double>(whole.numel()) / static_cast<double>(kept.numel());
        for (double& value : result) value /= count;
    }
    return result;
}

}  // namespace

void pointwise_oracle(OracleCall& call) {
    const Options options = read_options(call.attrs);
    const Shape whole = whole_shape(call.inputs, options.shape);
    std::vector<TensorSpec> specs;
    for (const HostArray& input : call.inputs) specs.push_back({input.shape, input.dtype});
    call.outputs.resize(options.program.outputs.size());
    for (std::size_t k = 0; k < options.program.outputs.size(); ++k) {
        const Output& output = options.program.outputs[k];
        HostArray& out = call.outputs[k];
        out.shape = output_shape(output, whole, options.keep_dim);
        out.dtype = options.dtypes.empty()
                        ? promoted(options, specs)
                        : parse_dtype(options.dtypes[options.dtypes.size() == 1 ? 0 : k]);
    }
    const bool integers = is_whole(call, options);
    for (std::size_t k = 0; k < options.program.outputs.size(); ++k) {
        const Output& output = options.program.outputs[k];
        HostArray& out = call.outputs[k];
        out.data = values_of(options, call.inputs, output, integers);
        if (output.kind != Output::Kind::elementwise) out.data = reduce(output, whole, out.data);
        if (integers)
            for (double& value : out.data) value = kept_bits(value, out.dtype);
    }
}

void pointwise_oracle_backward(OracleBackwardCall& call) {
    const Options options = read_options(call.attrs);
    const Shape whole = whole_shape(call.inputs, options.shape);
    call.input_gradients.resize(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        HostArray& into = call.input_gradients[i];
        into = {call.inputs[i].shape, {}, call.inputs[i].dtype};
        if (is_float(call.inputs[i].dtype))
            into.data.assign(static_cast<std::size_t>(into.shape.numel()), 0.0);
    }
    for (std::size_t k = 0; k < options.program.outputs.size(); ++k) {
        const Output& output = options.program.outputs[k];
        const std::vector<double>& dy = call.output_gradients[k].data;
        if (dy.empty()) continue;
        const Output::Kind kind = combination(output);
        require(kind != Output::Kind::custom,
                "a reduction with its own combination has no gradient");
        const Shape kept = output_shape(output, whole, true);
        const std::vector<double> f = values_of(options, call.inputs, output);
        const bool reduces = output.kind != Output::Kind::elementwise;
        const std::vector<double> y = reduces ? reduce(output, whole, f) : f;
        // d y / d f for every element.
        std::vector<double> local(f.size(), 0.0);
        std::vector<double> ties(y.size(), 0.0), zeros(y.size(), 0.0),
            rest(y.size(), output.kind == Output::Kind::custom ? output.init : 1.0);
        Walker walker(whole);
        for (double value : f) {
            const std::size_t at = walker.offset(kept);
            ties[at] += value == y[at];
            zeros[at] += value == 0;
            if (value != 0) rest[at] *= value;
            walker.next();
        }
        Walker again(whole);
        const double count =
            static_cast<double>(whole.numel()) / std::max(1.0, static_cast<double>(kept.numel()));
        for (std::size_t e = 0; e < f.size(); ++e, again.next()) {
            const std::size_t at = again.offset(kept);
            switch (kind) {
                case Output::Kind::mean:
                    local[e] = 1 / count;
                    break;
                case Output::Kind::max:
                case Output::Kind::min:
                    local[e] = f[e] == y[at] ? 1 / ties[at] : 0;
                    break;
                case Output::Kind::prod:
                    if (zeros[at] == 0)
                        local[e] = rest[at] / f[e];
                    else
                        local[e] = zeros[at] == 1 && f[e] == 0 ? rest[at] : 0;
                    break;
                default:
                    local[e] = 1;
            }
            local[e] *= dy[at];
        }
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            HostArray& into = call.input_gradients[i];
            const ExprPtr derivative = differentiate(output.value, static_cast<int>(i));
            if (!derivative || into.data.empty()) continue;
            Output slope;
            slope.value = derivative;
            const std::vector<double> d = values_of(options, call.inputs, slope);
            Walker place(whole);
            for (std::size_t e = 0; e < d.size(); ++e, place.next())
                into.data[place.offset(into.shape)] += local[e] * d[e];
        }
    }
}

}  // namespace dlprim::pointwise
