// SPDX-License-Identifier: MIT
// Launches of kernels/interpolation/reference.cl; see kernel.hpp.
#include "ops/interpolation/kernel.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace dlprim::interpolation {

namespace {

constexpr const char* file = "interpolation/reference.cl";

void append(std::vector<std::int32_t>& table, const Axis& axis) {
    table.insert(table.end(), axis.low.begin(), axis.low.end());
    table.insert(table.end(), axis.high.begin(), axis.high.end());
    for (const float w : axis.weight) {
        std::int32_t bits;
        std::memcpy(&bits, &w, sizeof bits);
        table.push_back(bits);
    }
    table.insert(table.end(), axis.first.begin(), axis.first.end());
    table.insert(table.end(), axis.last.begin(), axis.last.end());
}

/// A kernel call with an additional buffer after the operands.
class TableLaunch : public Launch {
  public:
    TableLaunch(KernelCall call, std::shared_ptr<Buffer> table)
        : call_(std::move(call)), table_(std::move(table)) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const std::array<BufferRef, 3> all{operands[0], operands[1], BufferRef{table_.get(), 0}};
        call_.enqueue(queue, all);
    }
    void compile() override { call_.compile(); }

  private:
    KernelCall call_;
    std::shared_ptr<Buffer> table_;
};

}  // namespace

std::unique_ptr<Launch> build(ContextImpl& context, const Attrs& attrs, const Operand& x,
                              const Operand& y, const char* kernel, const char* source,
                              const char* target, const Shape& work) {
    const View view(x.shape, x.layout);
    if (view.outer == 0) return std::make_unique<KernelLaunch>();
    const bool rows = context.traits().wide_vectors;
    int vector = 1;
    for (const int v : {16, 8, 4})
        if (vector == 1 && (rows || v == 4) && view.inner % v == 0) vector = v;

    std::vector<std::int32_t> table;
    const std::vector<Axis> both = axes(attrs, x.shape, y.shape);
    append(table, both[0]);
    const auto columns = static_cast<std::int32_t>(table.size());
    append(table, both[1]);
    const std::uint64_t bytes = table.size() * sizeof(std::int32_t);
    std::shared_ptr<Buffer> buffer = context.allocate(bytes);
    context.queue().write({buffer.get(), 0}, table.data(), bytes, true);

    const bool nearest = Options(attrs).mode != Mode::bilinear;
    const std::int64_t lanes = view.inner / vector;
    const auto count =
        static_cast<std::size_t>(view.outer * work[2] * (rows ? 1 : work[3] * lanes));
    const ProgramSource program{file, kernel_source(file),
                                cat("-DV=", vector, " -DROWS=", rows ? 1 : 0, " -DNEAREST=",
                                    nearest ? 1 : 0, " -DCOUNT_T=", count_type(count))};
    const auto group = static_cast<std::size_t>(
        rows ? 1 : std::clamp<std::uint64_t>(context.traits().max_work_group, 1, 256));
    KernelCall call(context.build(program), kernel,
                    {1, {(count + group - 1) / group * group, 1, 1}, {group, 1, 1}});
    call.tensor(source, 0).tensor(target, 1).tensor("table", 2);
    call.scalar("count", static_cast<std::int64_t>(count)).scalar("columns", columns);
    const auto set = [&](const char* name, std::int64_t value) {
        call.scalar(name, static_cast<std::int32_t>(value));
    };
    set("ih", x.shape[2]);
    set("iw", x.shape[3]);
    set("oh", y.shape[2]);
    set("ow", y.shape[3]);
    set("lanes", lanes);
    call.check();
    return std::make_unique<TableLaunch>(std::move(call), std::move(buffer));
}

double seconds(const Traits& device, const Problem& problem) {
    return roofline_seconds(device, problem, 0, 1, 0.4);
}

}  // namespace dlprim::interpolation
