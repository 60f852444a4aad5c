// SPDX-License-Identifier: MIT
// embedding.host and embedding_backward.host: the operators on the host's threads.
#include "ops/embedding/operators.hpp"
#include "ops/embedding/options.hpp"
#include "ops/embedding/row_at.hpp"

#include <algorithm>

namespace dlprim::embedding {

namespace {

/// The rows of the table that indices [begin, end) name.
template <typename T>
void copy_rows(const Options& options, const std::byte* indices, DType dtype, std::int64_t begin,
               std::int64_t end, const T* weight, T* y) {
    const std::int64_t dim = options.embedding_dim;
    for (std::int64_t i = begin; i < end; ++i)
        std::copy_n(weight + row_at(indices, dtype, i, options.num_embeddings) * dim, dim,
                    y + i * dim);
}

/// Rows [begin, end) of the gradient: each sum is in the order of the indices.
template <typename T>
void add_rows(const Options& options, const std::byte* indices, DType dtype, std::int64_t count,
              std::int64_t begin, std::int64_t end, const T* dy, T* dw) {
    const std::int64_t dim = options.embedding_dim;
    std::fill(dw + begin * dim, dw + end * dim, T(0));
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = row_at(indices, dtype, i, options.num_embeddings);
        if (row < begin || row >= end || row == options.padding_idx) continue;
        for (std::int64_t d = 0; d < dim; ++d) dw[row * dim + d] += dy[i * dim + d];
    }
}

class Host : public Engine {
  public:
    explicit Host(bool is_backward)
        : Engine(is_backward ? "embedding_backward.host" : "embedding.host",
                 is_backward ? backward_type : forward_type, true),
          is_backward_(is_backward) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return check(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (problem.outputs[0].dtype == DType::f64) return launch<double>(problem);
        return launch<float>(problem);
    }

  private:
    template <typename T>
    std::unique_ptr<Launch> launch(const Problem& problem) const {
        const Options options = Options::read(problem.attrs);
        const DType dtype = problem.inputs[0].dtype;
        const std::int64_t count = problem.inputs[0].shape.numel(), rows = options.num_embeddings;
        return std::make_unique<HostLaunch>(
            [=, is_backward = is_backward_](HostPool& pool, std::span<const BufferRef> operands) {
                const std::byte* indices = operands[0].host();
                const T* from = reinterpret_cast<const T*>(operands[1].host());
                T* to = reinterpret_cast<T*>(operands[2].host());
                const std::int64_t grain =
                    is_backward ? std::max<std::int64_t>(1, rows / (4 * pool.threads()))
                                : 1 + 4096 / options.embedding_dim;
                pool.parallel_for(
                    is_backward ? rows : count, grain, [&](std::int64_t begin, std::int64_t end) {
                        if (is_backward)
                            add_rows(options, indices, dtype, count, begin, end, from, to);
                        else
                            copy_rows(options, indices, dtype, begin, end, from, to);
                    });
            });
    }
    bool is_backward_;
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>(false));
    engines.add(std::make_unique<Host>(true));
}

}  // namespace dlprim::embedding
