// SPDX-License-Identifier: MIT
// Spans of cumulative lengths, on devices and on the host.
#include "ops/attention/spans.hpp"

#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>

namespace dlprim::attention {

namespace {

constexpr const char* spans_path = "attention/spans.cl";

void check_row(std::span<const std::int64_t> lengths, std::int64_t first_place, std::int64_t rows) {
    const std::string refused = refused_lengths(lengths, first_place, rows);
    require(refused.empty(), refused);
}

}  // namespace

SpanSizes::SpanSizes(const Problem& problem, const Heads& heads) {
    const Operand& lengths = problem.inputs[static_cast<std::size_t>(heads.lengths_operand)];
    sequences = lengths.shape[-1] - 1;
    keys_row = lengths.shape.rank() == 2 ? lengths.shape[-1] : 0;
    dtype = lengths.dtype;
}

std::uint64_t spans_bytes(const Heads& heads) {
    if (heads.masks != Heads::Mask::spans) return 0;
    return static_cast<std::uint64_t>(heads.length + heads.positions) * span_bytes;
}

void add_spans_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                    const Heads& heads) {
    if (heads.masks != Heads::Mask::spans) return;
    const SpanSizes of(problem, heads);
    const bool lower_right = problem.attrs.boolean("lower_right");
    const std::string index = of.dtype == DType::i64 ? "long" : "int";
    KernelCall call(
        context.build({spans_path, kernel_source(spans_path),
                       cat(" -DINDEX=", index, define("LOWER_RIGHT", lower_right ? 1 : 0))}),
        "attention_spans",
        line_range(context.traits(),
                   std::max(heads.length + heads.positions, 2 * of.sequences + 2)));
    call.tensor("lengths", heads.lengths_operand, size_of(of.dtype))
        .tensor("spans", heads.workspace, span_bytes)
        .sizes({{"length", heads.length},
                {"positions", heads.positions},
                {"sequences", of.sequences},
                {"keys_row", of.keys_row}})
        .refuses(context);
    launch.add(std::move(call));
}

std::vector<std::int32_t> host_spans(const Heads& heads, const SpanSizes& of, bool lower_right,
                                     const std::vector<std::int64_t>& lengths) {
    const std::int64_t *const queries = lengths.data(), *const keys = queries + of.keys_row;
    const auto count = static_cast<std::size_t>(of.sequences + 1);
    check_row({queries, count}, 0, heads.length);
    check_row({keys, count}, of.keys_row, heads.positions);
    std::vector<std::int32_t> spans;
    spans.reserve(static_cast<std::size_t>(heads.length + heads.positions) * 4);
    const auto add = [&](const std::int64_t* own, const std::int64_t* other) {
        for (std::int64_t n = 0; n < of.sequences; ++n) {
            const std::int64_t aligned = lower_right ? n + 1 : n,
                               place = keys[aligned] - queries[aligned];
            for (std::int64_t row = own[n]; row < own[n + 1]; ++row)
                for (const std::int64_t value : {other[n], other[n + 1], place, std::int64_t{0}})
                    spans.push_back(static_cast<std::int32_t>(value));
        }
    };
    add(queries, keys);
    add(keys, queries);
    return spans;
}

}  // namespace dlprim::attention
