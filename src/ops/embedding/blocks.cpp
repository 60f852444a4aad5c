// SPDX-License-Identifier: MIT
// embedding.blocks and embedding.host_blocks: rows of a table that is stored in GGUF's blocks are
// unpacked as they are looked up.
#include "base/text.hpp"
#include "engine/block_defines.hpp"
#include "engine/host_blocks.hpp"
#include "engine/kernel_type.hpp"
#include "ops/embedding/operators.hpp"
#include "ops/embedding/options.hpp"
#include "ops/embedding/row_at.hpp"

#include <algorithm>

namespace dlprim::embedding {

namespace {

constexpr const char* blocks_source = "embedding/blocks.cl";

class InBlocks : public Engine {
  public:
    InBlocks(std::string name, bool on_host) : Engine(std::move(name), forward_type, on_host) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (problem.attrs.text("blocks").empty())
            return Verdict::no("it reads tables in blocks, and this one is not");
        Problem of_floats = problem;
        of_floats.inputs[1].dtype = DType::f32;
        return check(device, of_floats);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const double bytes = 8.0 * static_cast<double>(problem.outputs[0].shape.numel());
        return bytes / (std::max(device.gbytes_per_s, 1.0) * 0.5e9) + device.launch_us * 1e-6;
    }
};

class Blocks : public InBlocks {
  public:
    Blocks() : InBlocks("embedding.blocks", false) {}
    std::vector<std::string> sources() const override { return {blocks_source}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Options options = Options::read(problem.attrs);
        const GgufType& type = block_type(options.blocks);
        const std::int64_t blocks = options.embedding_dim / block_size(type).weights;
        const std::int64_t count = problem.inputs[0].shape.numel() * blocks;
        const std::string index = cat("#define INDEX ", kernel_type(problem.inputs[0].dtype), "\n");
        KernelCall call(context.build({blocks_source, index + kernel_source(blocks_source),
                                       block_options(context.traits(), type)}),
                        "embedding_blocks", line_range(context.traits(), count));
        call.tensor("indices", 0, size_of(problem.inputs[0].dtype))
            .tensor("weight", 1, 1)
            .tensor("y", 2)
            .scalar("count", count)
            .scalar("rows", options.num_embeddings)
            .scalar("blocks", blocks)
            .refuses(context);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

class HostBlocks : public InBlocks {
  public:
    HostBlocks() : InBlocks("embedding.host_blocks", true) {}

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Options options = Options::read(problem.attrs);
        return std::make_unique<HostLaunch>(
            [options, dtype = problem.inputs[0].dtype, count = problem.inputs[0].shape.numel(),
             &kernels = host_block_kernels(block_type(options.blocks))](
                HostPool& pool, std::span<const BufferRef> operands) {
                const std::byte *indices = operands[0].host(), *table = operands[1].host();
                auto* y = reinterpret_cast<float*>(operands[2].host());
                const std::int64_t dim = options.embedding_dim, bytes = options.table()[1];
                pool.parallel_for(count, 1 + 4096 / dim, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                        const std::int64_t row = row_at(indices, dtype, i, options.num_embeddings);
                        kernels.unpack(dim, table + row * bytes, y + i * dim);
                    }
                });
            });
    }
};

}  // namespace

void add_block_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Blocks>());
    engines.add(std::make_unique<HostBlocks>());
}

}  // namespace dlprim::embedding
