// SPDX-License-Identifier: MIT
// Resize's oracles: the weight of every pair of an output and an input, from the definition of each
// method, in double.
#include "ops/resize/axis.hpp"
#include "ops/resize/operators.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::resize {

namespace {

double hat(double x) {
    return std::max(0.0, 1 - std::abs(x));
}
double keys(double x, double a) {
    const double d = std::abs(x);
    if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    if (d < 2) return a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
    return 0;
}

/// A row of the matrix by which one dimension is multiplied: the weights of output `o`.
std::vector<double> row(const Options& options, std::int64_t in, std::int64_t out, double scale,
                        std::int64_t o) {
    std::vector<double> weights(static_cast<std::size_t>(in), 0.0);
    const auto at = [&](std::int64_t i) -> double& {
        return weights[static_cast<std::size_t>(std::min(std::max<std::int64_t>(i, 0), in - 1))];
    };
    double step = scale > 0 ? 1 / scale : double(in) / double(out);
    if (options.align_corners) step = out > 1 ? double(in - 1) / double(out - 1) : 0;
    const bool cubic = options.method == Method::cubic;
    if (options.antialias) {
        const double stretch = std::max(step, 1.0), center = step * (double(o) + 0.5);
        const double reach = (cubic ? 2 : 1) * stretch;
        double sum = 0;
        for (std::int64_t i = std::max<std::int64_t>(0, std::int64_t(center - reach + 0.5));
             i < std::min(in, std::int64_t(center + reach + 0.5)); ++i) {
            const double x = (double(i) + 0.5 - center) / stretch;
            sum += at(i) = cubic ? keys(x, -0.5) : hat(x);
        }
        for (double& weight : weights) weight /= sum;
        return weights;
    }
    if (options.method == Method::nearest || options.method == Method::nearest_exact) {
        const double shift = options.method == Method::nearest ? 0 : 0.5;
        at(std::int64_t(std::floor((double(o) + shift) * step))) = 1;
        return weights;
    }
    double source = options.align_corners ? double(o) * step : (double(o) + 0.5) * step - 0.5;
    if (!cubic) source = std::max(0.0, source);
    const auto floor = std::int64_t(std::floor(source));
    for (std::int64_t i = floor - 1; i <= floor + 2; ++i)
        at(i) += cubic ? keys(source - double(i), -0.75) : hat(source - double(i));
    return weights;
}

/// Calls visit(output, input, weight) for all pairs of a plane with a weight other than 0.
template <typename Visit>
void each_pair(const Attrs& attrs, const Shape& x, const Shape& y, Visit&& visit) {
    const Options options(attrs);
    const int dims = x.rank() - 2;
    for (std::int64_t o = 0; o < y.product(2, y.rank()); ++o) {
        std::vector<std::pair<std::size_t, double>> inputs{{0, 1.0}};
        for (int i = 0; i < dims; ++i) {
            const auto index = static_cast<std::size_t>(i);
            const double scale = options.scales.empty()       ? 0
                                 : options.scales.size() == 1 ? options.scales[0]
                                                              : options.scales[index];
            const std::int64_t place = o / y.product(3 + i, y.rank()) % y[2 + i];
            const std::vector<double> weights = row(options, x[2 + i], y[2 + i], scale, place);
            std::vector<std::pair<std::size_t, double>> next;
            for (const auto& [at, weight] : inputs)
                for (std::size_t k = 0; k < weights.size(); ++k)
                    if (weights[k] != 0)
                        next.emplace_back(at * weights.size() + k, weight * weights[k]);
            inputs = next;
        }
        for (const auto& [at, weight] : inputs) visit(static_cast<std::size_t>(o), at, weight);
    }
}

}  // namespace

void oracle(OracleCall& call) {
    const HostArray& x = call.inputs[0];
    HostArray& y = call.outputs[0];
    y.shape = Options(call.attrs).output_shape(x.shape);
    y.dtype = x.dtype;
    y.data.assign(static_cast<std::size_t>(y.shape.numel()), 0.0);
    const auto planes = static_cast<std::size_t>(x.shape[0] * x.shape[1]);
    if (planes == 0) return;
    const std::size_t in = x.data.size() / planes, out = y.data.size() / planes;
    each_pair(call.attrs, x.shape, y.shape, [&](std::size_t to, std::size_t from, double weight) {
        for (std::size_t p = 0; p < planes; ++p)
            y.data[p * out + to] += weight * x.data[p * in + from];
    });
}

void oracle_backward(OracleBackwardCall& call) {
    const HostArray& dy = call.output_gradients[0];
    HostArray& dx = call.input_gradients[0];
    dx = call.inputs[0];
    dx.data.assign(dx.data.size(), 0.0);
    const auto planes = static_cast<std::size_t>(dx.shape[0] * dx.shape[1]);
    if (planes == 0) return;
    const std::size_t in = dx.data.size() / planes, out = dy.data.size() / planes;
    each_pair(call.attrs, dx.shape, dy.shape, [&](std::size_t to, std::size_t from, double weight) {
        for (std::size_t p = 0; p < planes; ++p)
            dx.data[p * in + from] += weight * dy.data[p * out + to];
    });
}

}  // namespace dlprim::resize
