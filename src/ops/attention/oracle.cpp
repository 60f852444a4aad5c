// SPDX-License-Identifier: MIT
// Attention row by row, in double.
#include "ops/attention/operator.hpp"
#include "ops/attention/options.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::attention {

namespace {

/// Element offset in x (broadcast to `to` but for its last two dimensions) of batch number `batch`
/// of `to`.
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

/// One row of scores: where its operands lie, and the weights after the softmax.
struct Row {
    std::int64_t q, k, v, y, mask = 0, mask_step = 0;
    std::vector<double> weights;
};

class Rows {
  public:
    Rows(const Attrs& attrs, const std::vector<HostArray>& inputs, const Shape& output)
        : in_(inputs), y_(output), options_(Options::read(attrs, inputs[0].shape)) {
        length = inputs[0].shape[-2];
        positions = inputs[1].shape[-2];
        depth = inputs[0].shape[-1];
        features = inputs[2].shape[-1];
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
        if (in_.size() > 3) {
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
            if (in_.size() > 3) score += at(3, r.mask + j * r.mask_step);
            if (options_.is_causal && j > i) score = -std::numeric_limits<double>::infinity();
            largest = std::max(largest, score);
            r.weights.push_back(score);
        }
        double sum = 0;
        for (double& w : r.weights) sum += w = std::exp(w - largest);
        for (double& w : r.weights) w /= sum;
        return r;
    }
    double at(std::size_t input, std::int64_t i) const {
        return in_[input].data[static_cast<std::size_t>(i)];
    }

  private:
    const std::vector<HostArray>& in_;
    Shape y_;
    Options options_;
};

}  // namespace

void Operator::oracle(OracleCall& call) const {
    std::vector<TensorSpec> specs;
    for (const HostArray& input : call.inputs) specs.push_back({input.shape, DType::f32});
    HostArray& y = call.outputs[0];
    y.shape = infer(call.attrs, specs)[0].shape;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0);
    const Rows rows(call.attrs, call.inputs, y.shape);
    for (std::int64_t b = 0; b < rows.batches(); ++b)
        for (std::int64_t i = 0; i < rows.length; ++i) {
            const Row r = rows.row(b, i);
            for (std::int64_t j = 0; j < rows.positions; ++j)
                for (std::int64_t e = 0; e < rows.features; ++e)
                    y.data[static_cast<std::size_t>(r.y + e)] +=
                        r.weights[static_cast<std::size_t>(j)] *
                        rows.at(2, r.v + j * rows.features + e);
        }
}

void Operator::oracle_backward(OracleBackwardCall& call) const {
    call.input_gradients.resize(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        call.input_gradients[i].shape = call.inputs[i].shape;
        call.input_gradients[i].data.assign(call.inputs[i].data.size(), 0);
    }
    const auto d = [&](std::size_t input, std::int64_t i) -> double& {
        return call.input_gradients[input].data[static_cast<std::size_t>(i)];
    };
    const HostArray& dy = call.output_gradients[0];
    const Rows rows(call.attrs, call.inputs, dy.shape);
    std::vector<double> dw(static_cast<std::size_t>(rows.positions));
    for (std::int64_t b = 0; b < rows.batches(); ++b)
        for (std::int64_t i = 0; i < rows.length; ++i) {
            const Row r = rows.row(b, i);
            double mean = 0;
            for (std::int64_t j = 0; j < rows.positions; ++j) {
                const double w = r.weights[static_cast<std::size_t>(j)];
                double sum = 0;
                for (std::int64_t e = 0; e < rows.features; ++e) {
                    const double g = dy.data[static_cast<std::size_t>(r.y + e)];
                    sum += g * rows.at(2, r.v + j * rows.features + e);
                    d(2, r.v + j * rows.features + e) += w * g;
                }
                dw[static_cast<std::size_t>(j)] = sum;
                mean += w * sum;
            }
            for (std::int64_t j = 0; j < rows.positions; ++j) {
                const double ds = r.weights[static_cast<std::size_t>(j)] *
                                  (dw[static_cast<std::size_t>(j)] - mean);
                if (call.inputs.size() > 3) d(3, r.mask + j * r.mask_step) += ds;
                for (std::int64_t p = 0; p < rows.depth; ++p) {
                    d(0, r.q + p) += rows.scale() * ds * rows.at(1, r.k + j * rows.depth + p);
                    d(1, r.k + j * rows.depth + p) += rows.scale() * ds * rows.at(0, r.q + p);
                }
            }
        }
}

}  // namespace dlprim::attention
