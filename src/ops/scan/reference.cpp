// SPDX-License-Identifier: MIT
// scan.reference: Scan on OpenCL devices. Where there are many lines a work-item walks along each,
// in one launch. Else lines are cut into chunks, and the chunks' totals are scanned in the same
// way, level by level (Blelloch, "Prefix sums and their applications", 1990). The same elements are
// always added in the same order.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/element.hpp"
#include "engine/element_types.hpp"
#include "engine/kernel_type.hpp"
#include "ops/scan/operator.hpp"

#include <algorithm>

namespace dlprim::scan {

namespace {

constexpr const char* source = "scan/reference.cl";
constexpr std::uint64_t slot = 8;  ///< bytes of the workspace for each of a state's two parts

/// Level 0 are the elements, level n + 1 the totals of the chunks of level n.
struct Level {
    std::int64_t length, chunk;  ///< of a line, in elements or totals
    std::uint64_t offset;        ///< where the workspace has the states; not of level 0
    std::int64_t chunks() const { return ceil_div(length, chunk); }
};

/// Bytes of each of the two parts of a level's states.
std::uint64_t part_bytes(const Options& options, const Level& level) {
    return static_cast<std::uint64_t>(options.lines.count() * level.length) * slot;
}

/// Elements of a chunk: as many as keep all compute units busy. A CPU wants long chunks.
std::int64_t chunk_of(const Traits& device, const Options& options) {
    const std::int64_t units = std::max(device.compute_units, 1), lines = options.lines.count();
    const std::int64_t wanted = device.wide_vectors ? 2 * units : 512 * units;
    const std::int64_t least = device.wide_vectors ? 1024 : 32;
    const std::int64_t length = std::max<std::int64_t>(options.lines.length, 1);
    if (lines >= wanted || length <= least) return length;
    return std::clamp(ceil_div(length * lines, wanted), least, length);
}

std::vector<Level> levels_of(const Traits& device, const Options& options) {
    const std::int64_t most = device.wide_vectors ? 1024 : 64;  // that one work-item walks along
    std::vector<Level> levels{{options.lines.length, chunk_of(device, options), 0}};
    std::uint64_t offset = 0;
    while (levels.back().chunks() > 1) {
        const std::int64_t length = levels.back().chunks();
        levels.push_back(
            {length, length <= most ? length : std::min<std::int64_t>(most, 32), offset});
        offset += 2 * part_bytes(options, levels.back());
    }
    return levels;
}

/// Whether sums of floats are in double. GPUs may have few units for it.
bool in_double(const Traits& device, const Options& options, DType dtype) {
    return options.method == Method::sum && device.wide_vectors && device.fp64 && is_float(dtype) &&
           dtype != DType::f64;
}

/// The calls of one problem.
struct Calls {
    KernelLaunch& launch;
    ContextImpl& context;
    const Options& options;
    DType dtype;
    std::shared_ptr<Program> program;
    std::vector<Level> levels;
    int positions, workspace;

    KernelCall call(const char* kernel, const Level& level) const {
        const std::int64_t count = options.lines.count() * level.chunks();
        KernelCall made(program, kernel, line_range(context.traits(), count));
        made.scalar("count", count).scalar("length", level.length);
        made.scalar("inner", options.lines.inner).scalar("chunks", level.chunks());
        made.scalar("chunk", level.chunk);
        return made;
    }
    void bind(KernelCall& made, const std::string& prefix, std::size_t level) const {
        const bool is_double = in_double(context.traits(), options, dtype);
        const bool is_wide = is_double || (options.method <= Method::prod && !is_float(dtype));
        const std::size_t value = dtype == DType::f16 || dtype == DType::bf16 ? 4 : size_of(dtype);
        std::size_t second = is_float(dtype) && !is_double ? value : 4;
        if (options.has_positions()) second = 8;
        const std::uint64_t at = levels[level].offset;
        made.tensor_at(prefix + "firsts", workspace, at, is_wide ? 8 : value);
        made.tensor_at(prefix + "seconds", workspace, at + part_bytes(options, levels[level]),
                       second);
    }

    void add() {
        const std::size_t top = levels.size() - 1;
        const std::int32_t reverse = options.reverse ? 1 : 0;
        for (std::size_t level = 0; level < top; ++level) {
            KernelCall total = call(level == 0 ? "total_elements" : "total_totals", levels[level]);
            if (level == 0) {
                total.tensor("x", 0, size_of(dtype)).scalar("reverse", reverse);
                bind(total, "", 1);
            } else {
                bind(total, "", level);
                bind(total, "next_", level + 1);
            }
            launch.add(std::move(total));
        }
        for (std::size_t level = top; level > 0; --level) {
            KernelCall scan = call("scan_totals", levels[level]);
            bind(scan, "", level);
            bind(scan, "next_", std::min(level + 1, top));
            scan.scalar("has_before", std::int32_t{level < top});
            launch.add(std::move(scan));
        }
        KernelCall scan = call("scan_elements", levels[0]);
        scan.tensor("x", 0, size_of(dtype)).tensor("y", 1, size_of(options.result));
        scan.tensor("positions", positions, 8);
        if (top > 0) {
            bind(scan, "", 1);
        } else {  // any operand stands for the totals, which are not read
            scan.tensor("firsts", 0, size_of(dtype)).tensor("seconds", 0, size_of(dtype));
        }
        scan.scalar("has_before", std::int32_t{top > 0});
        scan.scalar("exclusive", std::int32_t{options.exclusive}).scalar("reverse", reverse);
        launch.add(std::move(scan));
    }
};

class Reference : public Engine {
  public:
    Reference() : Engine("scan.reference", type, false) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        Verdict verdict = has_double(device, problem.inputs[0].dtype);
        return verdict ? check(problem) : verdict;
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Options options = options_of(problem);
        const std::vector<Level> levels = levels_of(device, options);
        if (levels.size() == 1) return 0;
        return levels.back().offset + 2 * part_bytes(options, levels.back());
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.2);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        if (problem.outputs[0].shape.empty()) return launch;
        const Options options = options_of(problem);
        const DType dtype = problem.inputs[0].dtype;
        const auto program = context.build(
            {source, kernel_source(source),
             cat(element_defines(dtype), " -DMETHOD=", static_cast<int>(options.method),
                 " -DRESULT=", kernel_type(options.result),
                 " -DTRUTH=", options.result == DType::boolean ? 1 : 0,
                 " -DDOUBLE=", in_double(context.traits(), options, dtype) ? 1 : 0)});
        const int positions = options.has_positions() ? 2 : 1;
        Calls{*launch,   context,      options,
              dtype,     program,      levels_of(context.traits(), options),
              positions, positions + 1}
            .add();
        return launch;
    }
    std::vector<std::string> sources() const override { return {source}; }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::scan
