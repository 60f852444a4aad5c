// SPDX-License-Identifier: MIT
// topk.host: TopK on the host's threads, each of which selects lines: by a heap where few elements
// are wanted, else by sorting.
#include "base/text.hpp"
#include "engine/strided_copy.hpp"
#include "ops/topk/lines.hpp"
#include "ops/topk/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace dlprim::topk {

namespace {

struct Candidate {
    std::uint64_t key;
    std::int64_t at;
    bool operator<(const Candidate& other) const {
        return key != other.key ? key < other.key : at < other.at;
    }
};

/// The raw bits of an element, in the lowest ones of the result.
template <std::size_t bytes>
std::uint64_t bits_at(const std::byte* data, std::int64_t i) {
    using T = std::conditional_t<
        bytes == 1, std::uint8_t,
        std::conditional_t<bytes == 2, std::uint16_t,
                           std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
    T bits;
    std::memcpy(&bits, data + static_cast<std::size_t>(i) * bytes, bytes);
    return bits;
}

template <std::size_t bytes>
void select(const Lines& lines, const KeyForm& form, std::int64_t line, const std::byte* x,
            std::byte* values, std::byte* positions, std::vector<Candidate>& all) {
    const std::int64_t o = line / lines.inner, i = line % lines.inner;
    all.resize(static_cast<std::size_t>(lines.length));
    for (std::int64_t j = 0; j < lines.length; ++j)
        all[static_cast<std::size_t>(j)] = {
            form.key(bits_at<bytes>(x, lines.at(line, j)), lines.largest), j};
    const auto end = all.begin() + lines.k;
    if (lines.k < lines.length / 8)
        std::partial_sort(all.begin(), end, all.end());
    else
        std::sort(all.begin(), all.end());
    for (std::int64_t j = 0; j < lines.k; ++j) {
        const auto to = static_cast<std::size_t>((o * lines.k + j) * lines.inner + i);
        const std::int64_t at = all[static_cast<std::size_t>(j)].at;
        const auto from = static_cast<std::size_t>(lines.at(line, at));
        std::memcpy(values + to * bytes, x + from * bytes, bytes);
        std::memcpy(positions + to * sizeof(at), &at, sizeof(at));
    }
}

using Select = void (*)(const Lines&, const KeyForm&, std::int64_t, const std::byte*, std::byte*,
                        std::byte*, std::vector<Candidate>&);

Select select_of(std::size_t bytes) {
    return bytes == 1 ? select<1> : bytes == 2 ? select<2> : bytes == 4 ? select<4> : select<8>;
}

class Host : public Engine {
  public:
    Host() : Engine("topk.host", type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Lines lines(problem.attrs, problem.inputs[0].shape);
        return seconds(device, problem, 3 + 2 * std::log2(1.0 + static_cast<double>(lines.k)));
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const DType dtype = problem.inputs[0].dtype;
        const Lines lines(problem.attrs, problem.inputs[0].shape);
        const KeyForm form(dtype);
        return std::make_unique<HostLaunch>(
            [=, select = select_of(size_of(dtype))](HostPool& pool,
                                                    std::span<const BufferRef> operands) {
                if (lines.k == 0) return;
                const std::int64_t grain = 1 + 8192 / std::max<std::int64_t>(lines.length, 1);
                pool.parallel_for(lines.count(), grain, [&](std::int64_t begin, std::int64_t end) {
                    std::vector<Candidate> all;  // of one line after the other
                    for (std::int64_t line = begin; line < end; ++line)
                        select(lines, form, line, operands[0].host(), operands[1].host(),
                               operands[2].host(), all);
                });
            });
    }
};

}  // namespace

Verdict check(const Problem& problem) {
    if (Verdict verdict = copy_verdict(problem, 1); !verdict) return verdict;
    const Lines lines(problem.attrs, problem.inputs[0].shape);
    if (lines.length >= (std::int64_t{1} << 31) - 1)
        return Verdict::no(
            cat("it supports lines of fewer than 2^31 elements, not ", lines.length));
    return Verdict::yes();
}

double seconds(const Traits& device, const Problem& problem, double steps) {
    const double elements = static_cast<double>(problem.inputs[0].shape.numel());
    return elements * steps / (1e9 * std::max(device.compute_units, 1)) + device.launch_us * 1e-6;
}

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::topk
