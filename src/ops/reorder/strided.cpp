// SPDX-License-Identifier: MIT
// reorder.strided and reorder.strided_host: between strided views and plain or channels_last
// memory, as one strided copy (engine/strided_copy.hpp).
#include "base/text.hpp"
#include "engine/strided_copy.hpp"
#include "ops/reorder/operator.hpp"
#include "ops/reorder/sides.hpp"

namespace dlprim::reorder {

namespace {

StridedCopy copy_of(const Problem& problem) {
    const Operand &from = problem.inputs[0], &to = problem.outputs[0];
    StridedCopy copy;
    copy.sizes = to.shape.to_vector();
    copy.x_strides = logical_strides(from.shape, from.layout);
    copy.y_strides = logical_strides(to.shape, to.layout);
    copy.element_bytes = size_of(to.dtype);
    return copy;
}

class Strided : public Engine {
  public:
    explicit Strided(bool host)
        : Engine(host ? "reorder.strided_host" : "reorder.strided", type, host) {}

    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        const Layout &from = problem.inputs[0].layout, &to = problem.outputs[0].layout;
        if (!from.is_strided() && !to.is_strided())
            return Verdict::no("it is made for strided views, and neither layout is one");
        for (const Layout* layout : {&from, &to})
            if (layout->kind == Layout::Kind::blocked || layout->kind == Layout::Kind::packed)
                return Verdict::no(
                    cat("layout ", layout->str(), " does not put elements at strides"));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return {{{problem.inputs[0].layout}, {problem.outputs[0].layout}}};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const StridedCopy copy = copy_of(problem);
        if (on_host())
            return std::make_unique<HostLaunch>(
                [copy](HostPool& pool, std::span<const BufferRef> operands) {
                    host_copy(pool, copy, operands[0].host(), operands[1].host());
                });
        auto launch = std::make_unique<KernelLaunch>();
        add_copy(*launch, context, copy, 0, 1);
        return launch;
    }

    std::vector<std::string> sources() const override {
        if (on_host()) return {};
        return {strided_copy_source};
    }
};

}  // namespace

void add_strided_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Strided>(false));
    engines.add(std::make_unique<Strided>(true));
}

}  // namespace dlprim::reorder
