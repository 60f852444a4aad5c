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
#include <span>
#include <vector>

namespace dlprim {

namespace {

constexpr std::int64_t chunk_size = 256;

}  // namespace

HostActivation::HostActivation(std::string_view name, double alpha, double beta)
    : alpha_(alpha), beta_(beta) {
    const auto program = pointwise::parse(
        cat("x = x0; alpha = p0; beta = p1; y0 = ", find_activation(name).expression));
    tape_ = pointwise::compile(std::span(&program.outputs[0].value, 1));
}

void HostActivation::apply(float* v, std::int64_t count) const {
    static thread_local std::vector<float> lines;
    lines.resize(std::max(lines.size(), tape_.code.size() * chunk_size));
    for (std::int64_t at = 0; at < count; at += chunk_size)
        apply_chunk(v + at, std::min(chunk_size, count - at), lines.data());
}

void HostActivation::apply_chunk(float* v, std::int64_t count, float* lines) const {
    using pointwise::Op;
    const auto line = [&](int i) { return i < 0 ? nullptr : lines + i * chunk_size; };
    for (std::size_t i = 0; i < tape_.code.size(); ++i) {
        const pointwise::Instruction& in = tape_.code[i];
        float* const y = line(static_cast<int>(i));
        if (in.op == Op::input)
            std::copy_n(v, count, y);
        else if (in.op == Op::constant)
            std::fill_n(y, count, static_cast<float>(in.value));
        else if (in.op == Op::scalar)
            std::fill_n(y, count, static_cast<float>(in.number == 0 ? alpha_ : beta_));
        else
            pointwise::lines::compute(in.op, line(in.a), line(in.b), line(in.c), y, count);
    }
    std::copy_n(line(tape_.results[0]), count, v);
}

}  // namespace dlprim
