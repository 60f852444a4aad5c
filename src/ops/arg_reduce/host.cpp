// SPDX-License-Identifier: MIT
// arg_reduce.host: ArgReduce on the host's threads. Each walks along whole lines, or along pieces
// of lines where there are few, whose results are compared at the end.
#include "base/integers.hpp"
#include "engine/element.hpp"
#include "ops/arg_reduce/operator.hpp"
#include "ops/arg_reduce/options.hpp"

#include <algorithm>

namespace dlprim::arg_reduce {

namespace {

/// Whether `a` is more extreme than `b`: a NaN more than every number, none more than a NaN.
template <typename Value>
bool is_beyond(Value a, Value b, bool largest) {
    if (is_nan(b)) return false;
    return is_nan(a) || (largest ? a > b : a < b);
}

constexpr std::int64_t piece = 65536;  ///< elements of a line that one thread compares

template <typename E>
struct Search {
    using Value = typename E::Value;
    struct Found {
        Value value;
        std::int64_t at;
    };

    static Found in_piece(const Options& options, const std::byte* x, std::int64_t line,
                          std::int64_t begin) {
        const std::int64_t end = std::min(begin + piece, options.lines.length);
        const std::int64_t step = options.lines.inner;
        std::int64_t place = options.lines.at(line, begin);
        Found best{E::load(x, place), begin};
        for (std::int64_t j = begin + 1; j < end; ++j) {
            const Value value = E::load(x, place += step);
            if (is_beyond(value, best.value, options.largest)) best = {value, j};
        }
        return best;
    }

    static void run(HostPool& pool, const Options& options, const std::byte* x, std::byte* values,
                    std::byte* positions) {
        const std::int64_t pieces = ceil_div(options.lines.length, piece);
        const std::int64_t lines = options.lines.count();
        std::vector<Found> found(static_cast<std::size_t>(lines * pieces));
        const std::int64_t grain = 1 + 16384 / options.lines.length;
        pool.parallel_for(lines * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t n = begin; n < end; ++n)
                found[static_cast<std::size_t>(n)] =
                    in_piece(options, x, n / pieces, n % pieces * piece);
        });
        for (std::int64_t line = 0; line < lines; ++line) {
            Found best = found[static_cast<std::size_t>(line * pieces)];
            for (std::int64_t p = 1; p < pieces; ++p) {
                const Found& next = found[static_cast<std::size_t>(line * pieces + p)];
                if (is_beyond(next.value, best.value, options.largest)) best = next;
            }
            if (values != nullptr) E::store(values, line, best.value);
            PlainElement<std::int64_t>::store(positions, line, best.at);
        }
    }
};

class Host : public Engine {
  public:
    Host() : Engine("arg_reduce.host", type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.3);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Options options(problem.attrs, problem.inputs[0].shape);
        return std::make_unique<HostLaunch>(
            [options, dtype = problem.inputs[0].dtype](HostPool& pool,
                                                       std::span<const BufferRef> operands) {
                visit_element(dtype, [&](auto element) {
                    std::byte* const values = options.values ? operands[1].host() : nullptr;
                    Search<decltype(element)>::run(pool, options, operands[0].host(), values,
                                                   operands[options.values ? 2 : 1].host());
                });
            });
    }
};

}  // namespace

Verdict check(const Problem& problem) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    const bool values = problem.attrs.boolean("values");
    if (values && problem.outputs[0].dtype != problem.inputs[0].dtype)
        return Verdict::no("it does not store values in another type than the input's");
    return Verdict::yes();
}

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::arg_reduce
