// SPDX-License-Identifier: MIT
// resize.reference and resize_backward.reference: the engines of OpenCL devices, in all float types
// and in plain, channels_last and blocked layouts (kernels/resize/reference.cl).
#include "base/text.hpp"
#include "ops/resize/engines.hpp"

namespace dlprim::resize {

namespace {

constexpr const char* source = "resize/reference.cl";

/// A kernel call with additional buffers after the operands.
class LaunchWithTables : public Launch {
  public:
    LaunchWithTables(KernelCall call, std::vector<std::shared_ptr<Buffer>> tables)
        : call_(std::move(call)), tables_(std::move(tables)) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const std::array<BufferRef, 4> all{
            operands[0], operands[1], {tables_[0].get(), 0}, {tables_[1].get(), 0}};
        call_.enqueue(queue, all);
    }
    void compile() override { call_.compile(); }
    std::span<const KernelCall> reported_calls() const override { return {&call_, 1}; }

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
    explicit Reference(bool is_backward) : Base(is_backward, false) {}
    std::vector<std::string> sources() const override { return {source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const DType dtype = problem.inputs[0].dtype;
        const std::array<Axis, 3> all = axes(problem);
        const View view(problem.inputs[0]);
        if (problem.outputs[0].shape.numel() == 0) return std::make_unique<KernelLaunch>();
        const bool rows = context.traits().wide_vectors;
        const int vector = lanes_at_once(view.inner, rows, dtype);
        std::int64_t count = view.outer * all[0].out * all[1].out;
        if (!rows) count *= all[2].out * (view.inner / vector);
        const std::string options =
            cat(element_options(dtype), " -DV=", vector, " -DROWS=", rows ? 1 : 0,
                " -DCOUNT_T=", count_type(static_cast<std::uint64_t>(count)),
                " -DDEEP=", all[0].in * all[0].out > 1 ? 1 : 0, " -DD_TAPS=", all[0].option_taps,
                " -DH_TAPS=", all[1].option_taps, " -DW_TAPS=", all[2].option_taps);
        KernelCall call(context.build({source, kernel_source(source), options}), "resize",
                        line_range(context.traits(), count, rows ? 1 : 256));
        call.tensor("x", 0, size_of(dtype))
            .tensor("y", 1, size_of(dtype))
            .tensor("table", 2)
            .tensor("weights", 3, dtype == DType::f64 ? 8 : 4)
            .scalar("count", count)
            .scalar("lanes", static_cast<std::int32_t>(view.inner / vector));
        std::vector<std::int32_t> table;
        std::vector<double> weights;
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
            for (const auto* part : {&axis.position, &axis.count})
                table.insert(table.end(), part->begin(), part->end());
            weights.insert(weights.end(), axis.weight.begin(), axis.weight.end());
        }
        call.check();
        std::vector<std::shared_ptr<Buffer>> tables{upload(context, table)};
        if (dtype == DType::f64)
            tables.push_back(upload(context, weights));
        else
            tables.push_back(upload(context, std::vector<float>(weights.begin(), weights.end())));
        return std::make_unique<LaunchWithTables>(std::move(call), std::move(tables));
    }

  private:
    /// How many of the `inner` elements of a pixel a work-item takes together.
    static int lanes_at_once(std::int64_t inner, bool rows, DType dtype) {
        if (dtype == DType::f64) return 1;
        for (const int vector : {16, 8, 4})
            if ((rows || vector == 4) && inner % vector == 0) return vector;
        return 1;
    }
};

}  // namespace

void add_reference_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>(false));
    engines.add(std::make_unique<Reference>(true));
}

}  // namespace dlprim::resize
