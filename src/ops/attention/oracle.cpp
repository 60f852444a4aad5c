// SPDX-License-Identifier: MIT
// Attention row by row, in double. Dropout factors come from the Dropout operator. Where
// sequences lie behind each other, the others' positions are left out of a row.
#include "ops/attention/operator.hpp"
#include "ops/attention/options.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim::attention {

namespace {

/// The offset in x of batch number `batch` of `to`. x is broadcast to `to`, except in its last two
/// dimensions.
std::int64_t batch_offset(const Shape& x, const Shape& to, std::int64_t batch) {
    const auto strides = x.strides();
    std::int64_t at = 0;
    for (int d = to.rank() - 3; d >= 0; --d) {
        const std::int64_t index = batch % to[d];
        batch /= to[d];
        const int own = d - to.rank() + x.rank();
        if (own >= 0 && x[own] > 1) at += index * strides[static_cast<std::size_t>(own)];
    }
    return at;
}

/// One row of scores: the offsets of its operands, the weights after the softmax, the factors of
/// dropout, and the derivatives of the soft cap.
struct Row {
    std::int64_t q, k, v, y, mask = 0, mask_step = 0;
    std::vector<double> weights, factors, slopes;
};

/// The oracle's operands in the shapes in which they are broadcast.
std::vector<HostArray> shaped(const Attrs& attrs, const std::vector<HostArray>& inputs) {
    std::vector<Shape> given;
    for (const HostArray& input : inputs) given.push_back(input.shape);
    const std::vector<Shape> shapes = operand_shapes(attrs, given);
    std::vector<HostArray> operands = inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) operands[i].shape = shapes[i];
    return operands;
}

/// The result's shape [..., L, E] for operands of shaped().
Shape result_shape(const std::vector<HostArray>& in) {
    const auto batch = [](const Shape& x) {
        return Shape(x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
    };
    const Shape scores = scores_shape(in[0].shape, in[1].shape);
    std::vector<std::int64_t> dims = broadcast(batch(scores), batch(in[2].shape)).to_vector();
    dims.push_back(in[0].shape[-2]);
    dims.push_back(in[2].shape[-1]);
    return Shape(dims);
}

class Rows {
  public:
    template <typename Call>
    explicit Rows(const Call& call)
        : in_(shaped(call.attrs, call.inputs)),
          y_(result_shape(in_)),
          scores_(scores_shape(in_[0].shape, in_[1].shape)),
          options_(Options::read(call.attrs, in_[0].shape)) {
        length = in_[0].shape[-2];
        positions = in_[1].shape[-2];
        depth = in_[0].shape[-1];
        features = in_[2].shape[-1];
        if (!call.training || options_.dropout_p == 0) return;
        const dlprim::Operator& dropout = OperatorRegistry::instance().get("Dropout");
        const Attrs attrs = dropout.schema().complete(
            {{"p", options_.dropout_p}, {"stream", options_.stream}}, "Dropout");
        OracleCall inner{attrs, true, {}, {}, {}, call.seed, call.step};
        inner.inputs.push_back(
            {scores_, std::vector<double>(static_cast<std::size_t>(scores_.numel()), 1.0)});
        inner.outputs.resize(1);
        dropout.oracle(inner);
        factors_ = inner.outputs[0].data;
    }
    std::int64_t length, positions, depth, features;
    double scale() const { return options_.scale; }
    std::int64_t batches() const { return y_.product(0, y_.rank() - 2); }

    Row row(std::int64_t batch, std::int64_t i) const {
        Row r;
        r.q = batch_offset(in_[0].shape, y_, batch) + i * depth;
        r.k = batch_offset(in_[1].shape, y_, batch);
        r.v = batch_offset(in_[2].shape, y_, batch);
        r.y = (batch * length + i) * features;
        if (is_masked()) {
            const Shape& given = in_[3].shape;
            std::vector<std::int64_t> dims = given.to_vector();
            while (dims.size() < 2) dims.insert(dims.begin(), 1);
            const Shape mask(dims);
            r.mask = batch_offset(mask, y_, batch) + (mask[-2] > 1 ? i * mask[-1] : 0);
            r.mask_step = mask[-1] > 1 ? 1 : 0;
        }
        double largest = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = 0; j < positions; ++j) {
            double score = 0;
            for (std::int64_t d = 0; d < depth; ++d)
                score += at(0, r.q + d) * at(1, r.k + j * depth + d);
            score *= options_.scale;
            const double bent = options_.softcap > 0 ? std::tanh(score / options_.softcap) : 0;
            r.slopes.push_back(1 - bent * bent);
            if (options_.softcap > 0) score = options_.softcap * bent;
            if (is_masked()) {
                const double mask = at(3, r.mask + j * r.mask_step);
                if (chooses())
                    score = mask != 0 ? score : -std::numeric_limits<double>::infinity();
                else
                    score += mask;
            }
            if (!sees(i, j)) score = -std::numeric_limits<double>::infinity();
            largest = std::max(largest, score);
            r.weights.push_back(score);
        }
        double sum = 0;
        for (double& w : r.weights)  // all scores are -inf if a bool mask excludes the whole row
            sum += w = std::isinf(largest) ? 0 : std::exp(w - largest);
        for (double& w : r.weights) w /= sum == 0 ? 1 : sum;
        r.factors.assign(r.weights.size(), 1.0);
        const std::int64_t first = batch_offset(scores_, y_, batch) + i * positions;
        for (std::size_t j = 0; j < r.factors.size() && !factors_.empty(); ++j)
            r.factors[j] = factors_[static_cast<std::size_t>(first) + j];
        return r;
    }
    bool sees(std::int64_t i, std::int64_t j) const {
        if (!has_lengths()) return sees(i, j, length, positions);
        const std::int64_t sequences = in_[3].shape[-1] - 1,
                           keys = in_[3].shape.rank() == 2 ? in_[3].shape[-1] : 0;
        const auto begin = [&](std::int64_t n) { return static_cast<std::int64_t>(at(3, n)); };
        for (std::int64_t n = 0; n < sequences; ++n) {
            const std::int64_t query = begin(n), key = begin(keys + n);
            if (i >= query && i < begin(n + 1) && j >= key && j < begin(keys + n + 1))
                return sees(i - query, j - key, begin(n + 1) - query, begin(keys + n + 1) - key);
        }
        return false;
    }
    /// The same of a sequence of so many queries and positions.
    bool sees(std::int64_t i, std::int64_t j, std::int64_t queries, std::int64_t keys) const {
        const std::int64_t at = options_.lower_right ? i + keys - queries : i;
        return (!options_.is_causal || j <= at) &&
               (options_.sliding_window < 0 || j > at - options_.sliding_window);
    }
    bool has_lengths() const { return in_.size() > 3 && are_lengths(in_[3].dtype); }
    bool is_masked() const { return in_.size() > 3 && !has_lengths(); }
    /// Whether the mask is of bool.
    bool chooses() const { return is_masked() && in_[3].dtype == DType::boolean; }
    double at(std::size_t input, std::int64_t i) const {
        return in_[input].data[static_cast<std::size_t>(i)];
    }

  private:
    std::vector<HostArray> in_;
    Shape y_, scores_;
    Options options_;
    std::vector<double> factors_;  ///< for all scores; empty if there is no dropout
};

}  // namespace

void Operator::oracle(OracleCall& call) const {
    std::vector<TensorSpec> specs;
    for (const HostArray& input : call.inputs) specs.push_back({input.shape, input.dtype});
    HostArray& y = call.outputs[0];
    y.shape = infer(call.attrs, specs)[0].shape;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0);
    const Rows rows(call);
    for (std::int64_t b = 0; b < rows.batches(); ++b)
        for (std::int64_t i = 0; i < rows.length; ++i) {
            const Row r = rows.row(b, i);
            for (std::int64_t j = 0; j < rows.positions; ++j)
                for (std::int64_t e = 0; e < rows.features; ++e)
                    y.data[static_cast<std::size_t>(r.y + e)] +=
                        r.weights[static_cast<std::size_t>(j)] *
                        r.factors[static_cast<std::size_t>(j)] *
                        rows.at(2, r.v + j * rows.features + e);
        }
}

void Operator::oracle_backward(OracleBackwardCall& call) const {
    call.input_gradients.resize(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        call.input_gradients[i].shape = call.inputs[i].shape;
        call.input_gradients[i].dtype = call.inputs[i].dtype;
        if (is_float(call.inputs[i].dtype))
            call.input_gradients[i].data.assign(call.inputs[i].data.size(), 0);
    }
    // Gradients of scores are differences of a row's own gradient and its mean.
    call.terms = call.input_gradients;
    call.terms[2].data.clear();
    const auto d = [&](std::size_t input, std::int64_t i) -> double& {
        return call.input_gradients[input].data[static_cast<std::size_t>(i)];
    };
    const HostArray& dy = call.output_gradients[0];
    const Rows rows(call);
    std::vector<double> dw(static_cast<std::size_t>(rows.positions));
    for (std::int64_t b = 0; b < rows.batches(); ++b)
        for (std::int64_t i = 0; i < rows.length; ++i) {
            const Row r = rows.row(b, i);
            double mean = 0;
            for (std::int64_t j = 0; j < rows.positions; ++j) {
                const double w = r.weights[static_cast<std::size_t>(j)];
                const double factor = r.factors[static_cast<std::size_t>(j)];
                double sum = 0;
                for (std::int64_t e = 0; e < rows.features; ++e) {
                    const double g = dy.data[static_cast<std::size_t>(r.y + e)];
                    sum += g * rows.at(2, r.v + j * rows.features + e);
                    d(2, r.v + j * rows.features + e) += w * factor * g;
                }
                dw[static_cast<std::size_t>(j)] = factor * sum;
                mean += w * factor * sum;
            }
            for (std::int64_t j = 0; j < rows.positions; ++j) {
                const double ds = r.weights[static_cast<std::size_t>(j)] *
                                  (dw[static_cast<std::size_t>(j)] - mean);
                const double terms = r.weights[static_cast<std::size_t>(j)] *
                                     (std::abs(dw[static_cast<std::size_t>(j)]) + std::abs(mean));
                const auto add = [&](std::size_t input, std::int64_t at, double factor) {
                    d(input, at) += ds * factor;
                    call.terms[input].data[static_cast<std::size_t>(at)] +=
                        terms * std::abs(factor);
                };
                if (rows.is_masked() && !rows.chooses()) add(3, r.mask + j * r.mask_step, 1);
                for (std::int64_t p = 0; p < rows.depth; ++p) {
                    const std::int64_t key = r.k + j * rows.depth + p;
                    const double scale = rows.scale() * r.slopes[static_cast<std::size_t>(j)];
                    add(0, r.q + p, scale * rows.at(1, key));
                    add(1, key, scale * rows.at(0, r.q + p));
                }
            }
        }
}

}  // namespace dlprim::attention
