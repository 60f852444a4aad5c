// SPDX-License-Identifier: MIT
// embedding_backward.grouped: the gradient of the table on GPUs, whose work-groups read the indices
// together (kernels/embedding/grouped.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "engine/kernel_options.hpp"
#include "engine/kernel_type.hpp"
#include "ops/embedding/operators.hpp"
#include "ops/embedding/options.hpp"

#include <algorithm>

namespace dlprim::embedding {

namespace {

constexpr std::int64_t group_rows = 128;

std::int64_t items_of(const Traits& device) {
    return device.max_work_group >= 256 ? 256 : 64;
}

class Grouped : public Engine {
  public:
    Grouped() : Engine("embedding_backward.grouped", backward_type, false) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.wide_vectors)
            return Verdict::no("it is made for GPUs, and the device has wide vectors");
        if (device.max_work_group < 64)
            return Verdict::no(cat("it needs work-groups of 64 work-items, and the device has ",
                                   device.max_work_group));
        return check(device, problem);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        // A work-group goes through all indices, one after the other.
        const double indices = static_cast<double>(problem.inputs[0].shape.numel());
        return roofline_seconds(device, problem, 0, 1, 0.6) + indices * 5e-9;
    }

    std::vector<std::string> sources() const override { return {"embedding/grouped.cl"}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Options options = Options::read(problem.attrs);
        const std::int64_t items = items_of(context.traits());
        const std::int64_t blocks = ceil_div(options.num_embeddings, group_rows);
        const std::string index = cat("#define INDEX ", kernel_type(problem.inputs[0].dtype), "\n");
        KernelCall call(
            context.build({"embedding/grouped.cl", index + kernel_source("embedding/grouped.cl"),
                           cat(element_options(problem.inputs[1].dtype), define("ITEMS", items),
                               define("ROWS", group_rows))}),
            "embedding_backward",
            group_range(blocks * ceil_div(options.embedding_dim, items), items));
        call.tensor("indices", 0, size_of(problem.inputs[0].dtype))
            .tensor("dy", 1, size_of(problem.inputs[1].dtype))
            .tensor("dw", 2, size_of(problem.outputs[0].dtype));
        call.scalar("rows", options.num_embeddings)
            .scalar("dim", options.embedding_dim)
            .scalar("count", problem.inputs[0].shape.numel())
            .scalar("padding", options.padding_idx)
            .size("blocks", blocks)
            .refuses(context);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_grouped_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Grouped>());
}

}  // namespace dlprim::embedding
