// SPDX-License-Identifier: MIT
// concat.join: Concat on GPUs, up to eight inputs per launch, by kernels/concat/join.cl. Elements
// of any type are copied as raw bits.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/concat/operator.hpp"
#include "ops/concat/options.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::concat {

namespace {

constexpr const char* join_source = "concat/join.cl";
constexpr std::size_t joined_inputs = 8;  // per launch

/// A concatenation as the kernel sees it: rows of inputs, side by side in rows of the output.
struct Rows {
    std::int64_t rows = 1, line = 0;
    std::vector<std::int64_t> widths;

    explicit Rows(const Problem& problem) {
        const Operand& output = problem.outputs[0];
        const int dim = physical_dimension(problem);
        const Shape to = physical_shape(output.shape, output.layout);
        rows = to.product(0, dim);
        line = to.product(dim, to.rank());
        for (const Operand& input : problem.inputs)
            widths.push_back(physical_shape(input.shape, output.layout).product(dim, to.rank()));
    }
    /// Elements per work-item. It is 4 if every input begins and ends at a multiple of 4, else 1.
    int vector() const {
        const bool fours = std::all_of(widths.begin(), widths.end(),
                                       [](std::int64_t width) { return width % 4 == 0; });
        return fours ? 4 : 1;
    }
};

/// The inputs [begin, end), which start at element `first` of each row of the output.
struct Part {
    std::size_t begin, end;
    std::int64_t first;
};

/// Adds the call for the inputs of one part.
void add_join(KernelLaunch& launch, ContextImpl& context, const Problem& problem, const Rows& shape,
              const Part& part) {
    const int vector = shape.vector();
    std::int64_t steps = 0;
    std::vector<std::int64_t> begins;
    for (std::size_t i = part.begin; i < part.end; ++i) {
        begins.push_back(steps);
        steps += shape.widths[i] / vector;
    }
    const std::int64_t count = shape.rows * steps;
    if (count == 0) return;
    begins.resize(joined_inputs, steps);

    const std::size_t bytes = size_of(problem.outputs[0].dtype);
    const std::string options = cat("-DT=", raw_type(bytes), " -DVECTOR=", vector,
                                    " -DINDEX=", count_type(static_cast<std::uint64_t>(count)));
    KernelCall call(context.build({join_source, kernel_source(join_source), options}), "join",
                    line_range(context.traits(), count, 256));
    for (std::size_t i = 0; i < joined_inputs; ++i)
        call.tensor(cat("x", i), static_cast<int>(std::min(part.begin + i, part.end - 1)), bytes);
    call.tensor("y", static_cast<int>(problem.inputs.size()), bytes);
    call.scalar("count", count).scalar("line", shape.line / vector);
    call.scalar("first", part.first / vector).scalar("part", static_cast<std::int32_t>(steps));
    for (std::size_t i = 1; i < joined_inputs; ++i)
        call.scalar(cat("b", i), static_cast<std::int32_t>(begins[i]));
    launch.add(std::move(call));
}

class ConcatJoin : public Engine {
  public:
    ConcatJoin() : Engine("concat.join", "Concat", false) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.wide_vectors)
            return Verdict::no("it is made for GPUs; CPUs copy rows one input at a time");
        Verdict verdict = copy_verdict(problem);
        if (!verdict.ok) return verdict;
        if (Rows(problem).line > std::numeric_limits<std::int32_t>::max())
            return Verdict::no("a row of the output has too many elements for its 32-bit indices");
        return verdict;
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return concat::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const auto inputs = static_cast<std::int64_t>(problem.inputs.size());
        return copy_seconds(device, problem, static_cast<int>(ceil_div(inputs, joined_inputs)));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const Rows shape(problem);
        std::int64_t first = 0;
        for (std::size_t begin = 0; begin < shape.widths.size(); begin += joined_inputs) {
            const std::size_t end = std::min(begin + joined_inputs, shape.widths.size());
            add_join(*launch, context, problem, shape, {begin, end, first});
            for (std::size_t i = begin; i < end; ++i) first += shape.widths[i];
        }
        return launch;
    }
    std::vector<std::string> sources() const override { return {join_source}; }
};

}  // namespace

void add_join_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<ConcatJoin>());
}

}  // namespace dlprim::concat
