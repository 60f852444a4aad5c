// SPDX-License-Identifier: MIT
// HostActivation: each instruction of the activation's tape is applied to a chunk of elements, with
// the functions of the host's Pointwise engine.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#endif
#include "engine/host_activation.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"
#include "engine/pointwise/host_lines.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

namespace dlprim {

namespace {

constexpr std::int64_t chunk_size = 256;

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

// A thread's lines, one for each instruction, and the activation for which they hold constants.
struct Lines {
    std::vector<float> values;
    std::uint64_t owner = 0;
};

}  // namespace

HostActivation::HostActivation(std::string_view name, double alpha, double beta)
    : alpha_(alpha), beta_(beta), id_(next_id()) {
    const auto program = pointwise::parse(
        cat("x = x0; alpha = p0; beta = p1; y0 = ", find_activation(name).expression));
    tape_ = pointwise::compile(std::span(&program.outputs[0].value, 1));
}

void HostActivation::apply(float* v, std::int64_t count) const {
    static thread_local Lines lines;
    if (lines.owner != id_) {
        lines.values.resize(std::max(lines.values.size(), tape_.code.size() * chunk_size));
        fill_constants(lines.values.data());
        lines.owner = id_;
    }
    for (std::int64_t at = 0; at < count; at += chunk_size)
        apply_chunk(v + at, std::min(chunk_size, count - at), lines.values.data());
}

void HostActivation::fill_constants(float* lines) const {
    using pointwise::Op;
    for (const pointwise::Instruction& in : tape_.code) {
        if (in.op == Op::constant)
            std::fill_n(lines, chunk_size, static_cast<float>(in.value));
        else if (in.op == Op::scalar)
            std::fill_n(lines, chunk_size, static_cast<float>(in.number == 0 ? alpha_ : beta_));
        lines += chunk_size;
    }
}

void HostActivation::apply_chunk(float* v, std::int64_t count, float* lines) const {
    using pointwise::Op;
    const auto line = [&](int i) -> float* {
        if (i < 0) return nullptr;
        return tape_.code[static_cast<std::size_t>(i)].op == Op::input ? v : lines + i * chunk_size;
    };
    const auto result = static_cast<std::size_t>(tape_.results[0]);
    for (std::size_t i = 0; i < tape_.code.size(); ++i) {
        const pointwise::Instruction& in = tape_.code[i];
        if (in.op == Op::input || in.op == Op::constant || in.op == Op::scalar) continue;
        // Nothing reads the input after the result, so that may take its place.
        float* const y = i == result ? v : line(static_cast<int>(i));
        pointwise::lines::compute(in.op, line(in.a), line(in.b), line(in.c), y, count);
    }
    const Op last = tape_.code[result].op;
    if (last == Op::constant || last == Op::scalar) std::copy_n(line(tape_.results[0]), count, v);
}

}  // namespace dlprim
