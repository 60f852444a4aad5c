// SPDX-License-Identifier: MIT
// arg_reduce.reference: ArgReduce on OpenCL devices, in one launch where there are many lines. Long
// lines are divided into parts, whose results a second launch compares.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/element.hpp"
#include "engine/element_types.hpp"
#include "ops/arg_reduce/operator.hpp"
#include "ops/arg_reduce/options.hpp"

#include <algorithm>

namespace dlprim::arg_reduce {

namespace {

constexpr const char* source = "arg_reduce/reference.cl";
constexpr std::size_t slot = 8;  ///< bytes of the workspace for a value, and for a position

/// How many parts each line has, so that all compute units have work. A second launch compares the
/// parts of a line one after the other, so there are not many.
std::int64_t parts_of(const Traits& device, const Options& options) {
    const std::int64_t units = std::max(device.compute_units, 1);
    const std::int64_t wanted = device.wide_vectors ? 4 * units : 1024 * units;
    const std::int64_t least = device.wide_vectors ? 8192 : 64;  // elements of a part
    const std::int64_t most = std::min<std::int64_t>(options.lines.length / least, 128);
    return std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(options.lines.count(), 1), 1,
                                    std::max<std::int64_t>(most, 1));
}

class Reference : public Engine {
  public:
    Reference() : Engine("arg_reduce.reference", type, false) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        Verdict verdict = has_double(device, problem.inputs[0].dtype);
        return verdict ? check(problem) : verdict;
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Options options(problem.attrs, problem.inputs[0].shape);
        const std::int64_t parts = parts_of(device, options);
        return parts == 1 ? 0
                          : static_cast<std::uint64_t>(parts * options.lines.count()) * 2 * slot;
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.3);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const Options options(problem.attrs, problem.inputs[0].shape);
        if (options.lines.count() == 0) return launch;
        const DType dtype = problem.inputs[0].dtype;
        const auto program =
            context.build({source, kernel_source(source),
                           cat(element_defines(dtype), " -DLARGEST=", options.largest ? 1 : 0,
                               " -DLANES=", context.traits().wide_vectors ? 16 : 1)});
        const std::int64_t parts = parts_of(context.traits(), options);
        const std::int64_t lines = options.lines.count(), count = lines * parts;
        const int positions = options.values ? 2 : 1, workspace = positions + 1;
        const std::uint64_t places = static_cast<std::uint64_t>(count) * slot;
        KernelCall find(program, "find_extremes", line_range(context.traits(), count));
        find.tensor("x", 0, size_of(dtype));
        if (parts == 1) {
            // Without values any operand stands for them, and is not written.
            find.tensor("values", 1, size_of(dtype)).tensor("positions", positions, 8);
        } else {
            find.tensor("values", workspace, size_of(dtype));
            find.tensor_at("positions", workspace, places, 8);
        }
        find.scalar("has_values", std::int32_t{options.values || parts > 1});
        find.scalar("count", count).scalar("parts", parts);
        find.scalar("length", options.lines.length).scalar("inner", options.lines.inner);
        // On a CPU a part is a piece of the line, on a GPU neighbours read neighbouring elements.
        const bool in_pieces = context.traits().wide_vectors;
        const std::int64_t span = ceil_div(options.lines.length, parts);
        find.scalar("step", in_pieces ? std::int64_t{1} : parts);
        find.scalar("begin", in_pieces ? span : std::int64_t{1});
        find.scalar("span", in_pieces ? span : options.lines.length);
        launch->add(std::move(find));
        if (parts > 1) launch->add(choose(context, program, options, dtype, parts));
        return launch;
    }
    std::vector<std::string> sources() const override { return {source}; }

  private:
    static KernelCall choose(ContextImpl& context, const std::shared_ptr<Program>& program,
                             const Options& options, DType dtype, std::int64_t parts) {
        const std::int64_t lines = options.lines.count();
        const int positions = options.values ? 2 : 1, workspace = positions + 1;
        KernelCall call(program, "choose_extremes", line_range(context.traits(), lines));
        call.tensor("found", workspace, size_of(dtype));
        call.tensor_at("places", workspace, static_cast<std::uint64_t>(lines * parts) * slot, 8);
        call.tensor("values", 1, size_of(dtype)).tensor("positions", positions, 8);
        call.scalar("has_values", std::int32_t{options.values});
        call.scalar("count", lines).scalar("parts", parts).scalar("inner", options.lines.inner);
        return call;
    }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::arg_reduce
