// SPDX-License-Identifier: MIT
// scan.host: Scan on the host's threads, each of which walks along whole lines. Floats are computed
// in double, and the roundings of sums are added again (two-sum, Knuth).
#include "engine/element.hpp"
#include "ops/scan/operator.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace dlprim::scan {

namespace {

struct Sum {
    double sum = 0, lost = 0;
    void add(double x) {
        const double next = sum + x, part = next - sum;
        const double all = lost + ((sum - (next - part)) + (x - part));
        // Beyond the largest number nothing is lost that could be added again.
        sum = std::isfinite(next) ? next + all : next;
        lost = std::isfinite(next) ? all - (sum - next) : 0;
    }
    double result() const { return sum + lost; }
};

struct Product {
    double product = 1;
    void add(double x) { product *= x; }
    double result() const { return product; }
};

struct LogSumExp {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    void add(double x) {
        if (x == most) {  // infinities, too
            sum += 1;
        } else if (x < most) {
            sum += std::exp(x - most);
        } else {
            sum = sum * std::exp(most - x) + 1;
            most = x;
        }
    }
    double result() const { return most + std::log(sum); }
};

/// Integers wrap around.
struct IntegerSum {
    std::uint64_t sum = 0;
    void add(std::uint64_t x) { sum += x; }
    std::uint64_t result() const { return sum; }
};

struct IntegerProduct {
    std::uint64_t product = 1;
    void add(std::uint64_t x) { product *= x; }
    std::uint64_t result() const { return product; }
};

/// The results of one line in the order in which it is walked, in place of its elements.
template <typename State, typename Number>
void scan_numbers(bool exclusive, std::vector<Number>& line) {
    State state;
    for (Number& x : line) {
        const Number own = x;
        if (exclusive) x = state.result();
        state.add(own);
        if (!exclusive) x = state.result();
    }
}

void scan_numbers(const Options& options, std::vector<double>& line) {
    if (options.method == Method::sum) return scan_numbers<Sum>(options.exclusive, line);
    if (options.method == Method::prod) return scan_numbers<Product>(options.exclusive, line);
    scan_numbers<LogSumExp>(options.exclusive, line);
}

void scan_numbers(const Options& options, std::vector<std::uint64_t>& line) {
    if (options.method == Method::sum) return scan_numbers<IntegerSum>(options.exclusive, line);
    scan_numbers<IntegerProduct>(options.exclusive, line);
}

/// Sums, products and logarithms of one line. `Number`: double or uint64.
template <typename Number>
void scan_line(const Options& options, DType dtype, std::int64_t line, const std::byte* x,
               std::byte* y, std::vector<Number>& buffer) {
    const std::int64_t length = options.lines.length;
    buffer.resize(static_cast<std::size_t>(length));
    visit_element(dtype, [&](auto element) {
        for (std::int64_t k = 0; k < length; ++k)
            // By an int, so that the sign of a char is kept.
            buffer[static_cast<std::size_t>(k)] =
                static_cast<Number>(+element.load(x, options.at(line, k)));
    });
    scan_numbers(options, buffer);
    visit_element(options.result, [&](auto element) {
        using E = decltype(element);
        for (std::int64_t k = 0; k < length; ++k) {
            const Number number = buffer[static_cast<std::size_t>(k)];
            const std::int64_t at = options.at(line, k);
            if constexpr (std::is_same_v<E, TruthElement>)
                E::store(y, at, number != 0 ? 1 : 0);
            else
                E::store(y, at, static_cast<typename E::Value>(number));
        }
    });
}

/// Extremes of one line, and their positions: the last of equal ones, and the last NaN.
void extreme_line(const Options& options, DType dtype, std::int64_t line, const std::byte* x,
                  std::byte* y, std::byte* positions) {
    const bool largest = options.method == Method::max;
    visit_element(dtype, [&](auto element) {
        using E = decltype(element);
        typename E::Value best = E::load(x, options.at(line, 0));
        std::int64_t best_at = 0;
        for (std::int64_t k = 0; k < options.lines.length; ++k) {
            const std::int64_t at = options.at(line, k);
            const typename E::Value value = E::load(x, at);
            const bool is_beyond = largest ? value >= best : value <= best;
            if (is_nan(value) || (is_beyond && !is_nan(best))) {
                best = value;
                best_at = options.reverse ? options.lines.length - 1 - k : k;
            }
            E::store(y, at, best);
            PlainElement<std::int64_t>::store(positions, at, best_at);
        }
    });
}

class Host : public Engine {
  public:
    Host() : Engine("scan.host", type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.1);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (problem.outputs[0].shape.empty()) return std::make_unique<HostLaunch>([](auto&&...) {});
        return std::make_unique<HostLaunch>(
            [options = options_of(problem), dtype = problem.inputs[0].dtype](
                HostPool& pool, std::span<const BufferRef> operands) {
                const std::byte* x = operands[0].host();
                std::byte* y = operands[1].host();
                const std::int64_t grain = 1 + 8192 / options.lines.length;
                pool.parallel_for(
                    options.lines.count(), grain, [&](std::int64_t begin, std::int64_t end) {
                        std::vector<double> floats;  // of one line after the other
                        std::vector<std::uint64_t> integers;
                        for (std::int64_t line = begin; line < end; ++line) {
                            if (options.has_positions())
                                extreme_line(options, dtype, line, x, y, operands[2].host());
                            else if (is_float(dtype))
                                scan_line(options, dtype, line, x, y, floats);
                            else
                                scan_line(options, dtype, line, x, y, integers);
                        }
                    });
            });
    }
};

}  // namespace

Verdict check(const Problem& problem) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    if (problem.outputs[0].dtype != options_of(problem).result)
        return Verdict::no("it does not store results in another type than the operator's");
    return Verdict::yes();
}

Options options_of(const Problem& problem) {
    return {problem.attrs, problem.inputs[0].shape, problem.inputs[0].dtype};
}

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::scan
