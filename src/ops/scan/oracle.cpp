// SPDX-License-Identifier: MIT
// Scan's oracles. Results are made from the front of each line; the gradient is the sum over all k
// of dy_k times the derivative of result k.
#include "ops/scan/operator.hpp"

#include "graph/oracle_loops.hpp"
#include "ops/scan/options.hpp"

#include <cmath>
#include <limits>

namespace dlprim::scan {

namespace {

/// One line in the order in which it is walked.
using Line = std::vector<double>;

/// Of all factors but number `without`.
double product_of(const Line& x, std::size_t count, std::size_t without) {
    double product = 1;
    for (std::size_t j = 0; j < count; ++j)
        if (j != without) product *= x[j];
    return product;
}

/// What the elements from the front on come to.
struct Front {
    long double sum = 0, product = 1;
    double most = -std::numeric_limits<double>::infinity();
    long double exponentials = 0;  ///< the sum of exp(x - most)
    std::size_t extreme = 0;

    void add(const Line& x, std::size_t j, bool largest) {
        sum += x[j];
        product *= x[j];
        const double before = most;
        most = std::fmax(most, x[j]);
        if (before != most) exponentials *= std::exp(before - most);
        exponentials += x[j] == most ? 1 : std::exp(x[j] - most);
        const bool is_beyond = largest ? x[j] >= x[extreme] : x[j] <= x[extreme];
        if (std::isnan(x[j]) || (is_beyond && !std::isnan(x[extreme]))) extreme = j;
    }
    double result(Method method, const Line& x) const {
        if (method == Method::sum) return static_cast<double>(sum);
        if (method == Method::prod) return static_cast<double>(product);
        if (method == Method::logsumexp) return most + static_cast<double>(std::log(exponentials));
        return x[extreme];
    }
};

std::size_t extreme_of(const Line& x, std::size_t count, bool largest) {
    std::size_t best = 0;
    for (std::size_t j = 1; j < count; ++j) {
        const bool is_beyond = largest ? x[j] >= x[best] : x[j] <= x[best];
        if (std::isnan(x[j]) || (is_beyond && !std::isnan(x[best]))) best = j;
    }
    return best;
}

Line line_of(const HostArray& x, const Options& options, std::int64_t line) {
    Line elements;
    for (std::int64_t k = 0; k < options.lines.length; ++k)
        elements.push_back(x.data[static_cast<std::size_t>(options.at(line, k))]);
    return elements;
}

}  // namespace

void oracle(OracleCall& call) {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape, x.dtype);
    call.outputs.resize(options.has_positions() ? 2 : 1);
    make_array(call.outputs, 0, x.shape, options.result);
    if (options.has_positions()) make_array(call.outputs, 1, x.shape, DType::i64);
    for (std::int64_t line = 0; line < options.lines.count(); ++line) {
        const Line elements = line_of(x, options, line);
        Front front;
        for (std::size_t k = 0; k < elements.size(); ++k) {
            const auto at =
                static_cast<std::size_t>(options.at(line, static_cast<std::int64_t>(k)));
            double& y = call.outputs[0].data[at];
            if (options.exclusive) y = front.result(options.method, elements);
            front.add(elements, k, options.method == Method::max);
            if (!options.exclusive) y = front.result(options.method, elements);
            if (!options.has_positions()) continue;
            const std::size_t best =
                options.reverse ? elements.size() - 1 - front.extreme : front.extreme;
            call.outputs[1].data[at] = static_cast<double>(best);
        }
    }
}

void oracle_backward(OracleBackwardCall& call) {
    const HostArray& x = call.inputs[0];
    const Options options(call.attrs, x.shape, x.dtype);
    HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
    HostArray& terms = make_array(call.terms, 0, x.shape, x.dtype);
    const bool largest = options.method == Method::max;
    for (std::int64_t line = 0; line < options.lines.count(); ++line) {
        const Line elements = line_of(x, options, line);
        const Line gradients = line_of(call.output_gradients[0], options, line);
        const Line results = line_of(call.outputs[0], options, line);
        for (std::size_t k = 0; k < elements.size(); ++k) {
            const std::size_t count = options.exclusive ? k : k + 1;
            for (std::size_t j = 0; j < count; ++j) {
                double slope = 1;
                if (options.method == Method::prod) slope = product_of(elements, count, j);
                if (options.method == Method::logsumexp) slope = std::exp(elements[j] - results[k]);
                if (options.has_positions())
                    slope = extreme_of(elements, count, largest) == j ? 1 : 0;
                const auto at =
                    static_cast<std::size_t>(options.at(line, static_cast<std::int64_t>(j)));
                dx.data[at] += gradients[k] * slope;
                terms.data[at] += std::abs(gradients[k] * slope);
            }
        }
    }
}

}  // namespace dlprim::scan
