// SPDX-License-Identifier: MIT
// embedding.reference and embedding_backward.reference: the engines of OpenCL devices. The gradient
// is gathered: each work-item owns rows of the table and scans the indices, so no atomics are
// needed.
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "engine/kernel_type.hpp"
#include "ops/embedding/operators.hpp"
#include "ops/embedding/options.hpp"

#include <algorithm>

namespace dlprim::embedding {

namespace {

std::shared_ptr<Program> program(ContextImpl& context, const Problem& problem) {
    const std::string define = cat("#define INDEX ", kernel_type(problem.inputs[0].dtype), "\n");
    return context.build({"embedding/reference.cl",
                          define + kernel_source("embedding/reference.cl"),
                          element_options(problem.inputs[1].dtype)});
}

class Base : public Engine {
  public:
    Base(std::string name, std::string_view op) : Engine(std::move(name), op, false) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return check(device, problem);
    }
    std::vector<std::string> sources() const override { return {"embedding/reference.cl"}; }
};

class Forward : public Base {
  public:
    Forward() : Base("embedding.reference", forward_type) {}
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const double bytes = 2.0 * static_cast<double>(size_of(problem.outputs[0].dtype)) *
                             static_cast<double>(problem.outputs[0].shape.numel());
        return bytes / (std::max(device.gbytes_per_s, 1.0) * 0.5e9) + device.launch_us * 1e-6;
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Options options = Options::read(problem.attrs);
        const std::int64_t count = problem.outputs[0].shape.numel();
        KernelCall call(program(context, problem), "embedding_forward",
                        line_range(context.traits(), count));
        call.tensor("indices", 0, size_of(problem.inputs[0].dtype))
            .tensor("weight", 1, size_of(problem.inputs[1].dtype))
            .tensor("y", 2, size_of(problem.outputs[0].dtype));
        call.scalar("count", count);
        call.scalar("rows", options.num_embeddings).scalar("dim", options.embedding_dim);
        call.refuses(context);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

class Backward : public Base {
  public:
    Backward() : Base("embedding_backward.reference", backward_type) {}
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const double elements = static_cast<double>(problem.outputs[0].shape.numel() +
                                                    2 * problem.inputs[1].shape.numel());
        const double indices = static_cast<double>(problem.inputs[0].shape.numel());
        return std::max(4.0 * elements / (std::max(device.gbytes_per_s, 1.0) * 0.3e9),
                        serial_loop_seconds(device, indices)) +
               device.launch_us * 1e-6;
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Options options = Options::read(problem.attrs);
        const Traits& device = context.traits();
        // On a CPU a block has one lane. On a GPU a work-group reads many neighbouring features.
        const std::size_t most = static_cast<std::size_t>(
            std::min<std::uint64_t>(64, std::max<std::uint64_t>(device.max_work_group, 1)));
        std::size_t lanes = 1;
        while (!device.wide_vectors && lanes * 2 <= most &&
               static_cast<std::int64_t>(lanes) < options.embedding_dim)
            lanes *= 2;
        const std::int64_t blocks_wanted =
            std::max(device.compute_units, 1) * std::int64_t{device.wide_vectors ? 4 : 8};
        const std::int64_t block_rows =
            std::max<std::int64_t>(1, (options.num_embeddings + blocks_wanted - 1) / blocks_wanted);
        NDRange range;
        range.dims = 2;
        range.global = {
            lanes, static_cast<std::size_t>((options.num_embeddings + block_rows - 1) / block_rows),
            1};
        range.local = {lanes, 1, 1};
        KernelCall call(program(context, problem), "embedding_backward", range);
        call.tensor("indices", 0, size_of(problem.inputs[0].dtype))
            .tensor("dy", 1, size_of(problem.inputs[1].dtype))
            .tensor("dw", 2, size_of(problem.outputs[0].dtype));
        call.scalar("rows", options.num_embeddings).scalar("dim", options.embedding_dim);
        call.scalar("count", problem.inputs[0].shape.numel()).scalar("block_rows", block_rows);
        call.scalar("padding", options.padding_idx).refuses(context);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_reference_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Forward>());
    engines.add(std::make_unique<Backward>());
}

}  // namespace dlprim::embedding
