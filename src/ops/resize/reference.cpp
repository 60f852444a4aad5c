// SPDX-License-Identifier: MIT
// resize.reference and resize_backward.reference: the engines of OpenCL devices, in all float types
// (kernels/resize/reference.cl).
#include "base/text.hpp"
#include "ops/resize/engines.hpp"

namespace dlprim::resize {

namespace {

constexpr const char* source = "resize/reference.cl";

/// A kernel call with additional buffers after the operands.
class TableLaunch : public Launch {
  public:
    TableLaunch(KernelCall call, std::vector<std::shared_ptr<Buffer>> tables)
        : call_(std::move(call)), tables_(std::move(tables)) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const std::array<BufferRef, 4> all{
            operands[0], operands[1], {tables_[0].get(), 0}, {tables_[1].get(), 0}};
        call_.enqueue(queue, all);
    }
    void compile() override { call_.compile(); }

  private:
    KernelCall call_;
    std::vector<std::shared_ptr<Buffer>> tables_;
};

template <typename T>
std::shared_ptr<Buffer> upload(ContextImpl& context, const std::vector<T>& table) {
    const std::uint64_t bytes = table.size() * sizeof(T);
    std::shared_ptr<Buffer> buffer = context.allocate(bytes);
    context.queue().write({buffer.get(), 0}, table.data(), bytes, true);
    return buffer;
}

class Reference : public Base {
  public:
    explicit Reference(bool is_backward) : Base("reference", is_backward) {}
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const DType dtype = problem.inputs[0].dtype;
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return std::make_unique<KernelLaunch>();
        KernelCall call(context.build({source, kernel_source(source), element_options(dtype)}),
                        backward() ? "resize_backward" : "resize_forward",
                        line_range(context.traits(), count));
        call.tensor(backward() ? "dy" : "x", 0, size_of(dtype))
            .tensor(backward() ? "dx" : "y", 1, size_of(dtype))
            .tensor("table", 2)
            .tensor("weights", 3, dtype == DType::f64 ? 8 : 4)
            .scalar("count", count);
        std::vector<std::int32_t> table;
        std::vector<double> weights;
        const std::array<Axis, 3> all = axes(problem);
        const char* const names[] = {"d", "h", "w"};
        for (std::size_t i = 0; i < 3; ++i) {
            const Axis& axis = all[i];
            const std::pair<const char*, std::size_t> sizes[] = {
                {"_in", static_cast<std::size_t>(axis.in)},
                {"_out", static_cast<std::size_t>(axis.out)},
                {"_taps", static_cast<std::size_t>(axis.taps)},
                {"_table", table.size()},
                {"_weights", weights.size()}};
            for (const auto& [name, value] : sizes)
                call.scalar(cat(names[i], name), static_cast<std::int32_t>(value));
            for (const auto* part : {&axis.start, &axis.count, &axis.first, &axis.last})
                table.insert(table.end(), part->begin(), part->end());
            weights.insert(weights.end(), axis.weight.begin(), axis.weight.end());
        }
        call.check();
        std::vector<std::shared_ptr<Buffer>> tables{upload(context, table)};
        if (dtype == DType::f64)
            tables.push_back(upload(context, weights));
        else
            tables.push_back(upload(context, std::vector<float>(weights.begin(), weights.end())));
        return std::make_unique<TableLaunch>(std::move(call), std::move(tables));
    }
};

}  // namespace

void add_reference_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>(false));
    engines.add(std::make_unique<Reference>(true));
}

}  // namespace dlprim::resize
