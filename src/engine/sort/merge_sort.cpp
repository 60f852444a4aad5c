// SPDX-License-Identifier: MIT
// Merge sort on OpenCL devices; see merge_sort.hpp.
#include "engine/sort/merge_sort.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// So that every buffer begins where any key may.
std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

}  // namespace

MergeSort::MergeSort(std::int64_t lines, std::int64_t length, std::int64_t keep,
                     std::size_t key_bytes)
    : lines_(lines),
      length_(length),
      keep_(std::clamp<std::int64_t>(keep, 1, std::max<std::int64_t>(length, 1))),
      key_bytes_(key_bytes) {
    for (Runs runs = first_runs(); runs.count > 1; runs = runs.merged(keep_)) ++passes_;
}

MergeSort::Runs MergeSort::first_runs() const {
    const std::int64_t count = divide_up(length_, first_run);
    return {count, std::min(first_run, keep_), std::min(length_ - (count - 1) * first_run, keep_)};
}

MergeSort::Runs MergeSort::Runs::merged(std::int64_t keep) const {
    const std::int64_t pairs = divide_up(count, 2);
    const std::int64_t longest_run = std::min(2 * run, keep);
    return {pairs, longest_run, count % 2 == 0 ? std::min(run + last, keep) : last};
}

std::uint64_t MergeSort::keys_bytes() const {
    return aligned(static_cast<std::uint64_t>(lines_ * length_) * key_bytes_);
}

std::uint64_t MergeSort::positions_bytes() const {
    return aligned(static_cast<std::uint64_t>(lines_ * length_) * sizeof(std::int32_t));
}

void MergeSort::add_calls(KernelLaunch& launch, ContextImpl& context, int workspace,
                          std::uint64_t offset) const {
    const std::int64_t piece = context.traits().wide_vectors ? 512 : 8;
    const std::string options =
        cat("-DKEY=", key_bytes_ == 4 ? "uint" : "ulong", " -DRUN=", first_run, " -DPIECE=", piece);
    const auto program =
        context.build({merge_sort_source, kernel_source(merge_sort_source), options});
    const auto bind = [&](KernelCall& call, const char* keys, const char* positions, int passes) {
        call.tensor_at(keys, workspace, offset + buffer(passes) * keys_bytes(), key_bytes_);
        call.tensor_at(positions, workspace,
                       offset + 2 * keys_bytes() + buffer(passes) * positions_bytes());
    };
    Runs runs = first_runs();
    KernelCall first(program, "sort_runs", line_range(context.traits(), lines_ * runs.count));
    first.tensor_at("keys", workspace, offset, key_bytes_);
    bind(first, "sorted", "positions", 0);
    first.scalar("runs", runs.count).scalar("count", lines_ * runs.count);
    first.scalar("length", length_).scalar("run", runs.run).scalar("line", runs.elements());
    launch.add(std::move(first));
    for (int pass = 1; pass <= passes_; ++pass) {
        const Runs next = runs.merged(keep_);
        const std::int64_t pieces = divide_up(next.run, piece);
        const std::int64_t count = lines_ * next.count * pieces;
        KernelCall call(program, "merge_runs", line_range(context.traits(), count));
        bind(call, "keys", "positions", pass - 1);
        bind(call, "merged", "merged_positions", pass);
        call.scalar("count", count).scalar("pieces", pieces).scalar("pairs", next.count);
        call.scalar("line", runs.elements()).scalar("run", runs.run);
        call.scalar("merged_line", next.elements()).scalar("merged_run", next.run);
        launch.add(std::move(call));
        runs = next;
    }
}

}  // namespace dlprim
