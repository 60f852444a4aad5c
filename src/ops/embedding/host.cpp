// SPDX-License-Identifier: MIT
// embedding.host and embedding_backward.host: the operators on the host's threads.
#include "base/text.hpp"
#include "ops/embedding/operators.hpp"
#include "ops/embedding/options.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>
#include <cstring>

namespace dlprim::embedding {

namespace {

/// The index at position `i` of an array of `dtype`.
std::int64_t index_at(const std::byte* data, DType dtype, std::int64_t i) {
    const auto as = [&]<typename T>(T) {
        T value;
        std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
        return static_cast<std::int64_t>(value);
    };
    switch (dtype) {
        case DType::i8:
            return as(std::int8_t{});
        case DType::u8:
            return as(std::uint8_t{});
        case DType::i16:
            return as(std::int16_t{});
        case DType::u16:
            return as(std::uint16_t{});
        case DType::i32:
            return as(std::int32_t{});
        case DType::u32:
            return as(std::uint32_t{});
        case DType::i64:
        case DType::u64:  // what is too large for int64 becomes negative, which is no valid row
                          // either
            return as(std::int64_t{});
        default: {
            float value;
            std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(value), sizeof(value));
            constexpr float most = 0x1p62f;  // larger values are no valid rows either
            return value >= -most && value <= most ? static_cast<std::int64_t>(value) : -1;
        }
    }
}

/// The row that the index at position `i` names. Throws Error(invalid_argument) if there is none.
std::int64_t row_at(const std::byte* data, DType dtype, std::int64_t i, std::int64_t rows) {
    const std::int64_t row = index_at(data, dtype, i);
    if (row < 0 || row >= rows)
        fail(ErrorKind::invalid_argument, outside_text(row, i, rows, false));
    return row;
}

class Base : public Engine {
  public:
    bool on_host() const override { return true; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return check(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1);
    }
};

class Forward : public Base {
  public:
    std::string_view name() const override { return "embedding.host"; }
    std::string_view op() const override { return forward_type; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (problem.outputs[0].dtype == DType::f64) return launch_of<double>(problem);
        return launch_of<float>(problem);
    }

  private:
    template <typename T>
    static std::unique_ptr<Launch> launch_of(const Problem& problem) {
        const Options options = Options::read(problem.attrs);
        const DType dtype = problem.inputs[0].dtype;
        const std::int64_t count = problem.inputs[0].shape.numel();
        return std::make_unique<HostLaunch>(
            [=](HostPool& pool, std::span<const BufferRef> operands) {
                const std::byte* indices = operands[0].host();
                const T* weight = reinterpret_cast<const T*>(operands[1].host());
                T* y = reinterpret_cast<T*>(operands[2].host());
                const std::int64_t dim = options.embedding_dim;
                pool.parallel_for(count, 1 + 4096 / dim, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                        const std::int64_t row = row_at(indices, dtype, i, options.num_embeddings);
                        std::copy_n(weight + row * dim, dim, y + i * dim);
                    }
                });
            });
    }
};

class Backward : public Base {
  public:
    std::string_view name() const override { return "embedding_backward.host"; }
    std::string_view op() const override { return backward_type; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (problem.outputs[0].dtype == DType::f64) return launch_of<double>(problem);
        return launch_of<float>(problem);
    }

  private:
    template <typename T>
    static std::unique_ptr<Launch> launch_of(const Problem& problem) {
        const Options options = Options::read(problem.attrs);
        const DType dtype = problem.inputs[0].dtype;
        const std::int64_t count = problem.inputs[0].shape.numel();
        return std::make_unique<HostLaunch>(
            [=](HostPool& pool, std::span<const BufferRef> operands) {
                const std::byte* indices = operands[0].host();
                const T* dy = reinterpret_cast<const T*>(operands[1].host());
                T* dw = reinterpret_cast<T*>(operands[2].host());
                const std::int64_t dim = options.embedding_dim, rows = options.num_embeddings;
                // Each range owns its rows, so every sum is in the order of the indices.
                const std::int64_t grain = std::max<std::int64_t>(1, rows / (4 * pool.threads()));
                pool.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
                    std::fill(dw + begin * dim, dw + end * dim, T(0));
                    for (std::int64_t i = 0; i < count; ++i) {
                        const std::int64_t row = row_at(indices, dtype, i, rows);
                        if (row < begin || row >= end || row == options.padding_idx) continue;
                        for (std::int64_t d = 0; d < dim; ++d) dw[row * dim + d] += dy[i * dim + d];
                    }
                });
            });
    }
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<Forward>());
    engines.add(std::make_unique<Backward>());
}

}  // namespace dlprim::embedding
