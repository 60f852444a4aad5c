// SPDX-License-Identifier: MIT
// Sums of exp(x - max(x)) over long rows on GPUs: they are computed in the pass of the maximum,
// which is their top (online softmax: M. Milakov, N. Gimelshein, "Online normalizer calculation for
// softmax", 2018). Memory is read once for both. CPUs, whose caches hold a row, would gain nothing,
// and threads that keep their elements in registers read no memory in another pass anyway.
//
//     for each run of the row:
//       steps        its elements -> top, the greatest of all elements of the lane so far
//       scale_sums   where it has grown, the lane's sum so far is multiplied by exp(before - top)
//       steps        exp(x - top) -> the run's sum, of elements that the cache has
//     then the tops of all lanes and threads -> the maximum, to which all sums are scaled
#include "base/text.hpp"
#include "engine/pointwise/row_kernel.hpp"

#include <algorithm>
#include <iterator>

namespace dlprim::pointwise {
namespace {

/// Steps of a run: so few that the elements of all threads of a compute unit stay in its cache.
constexpr int cached_steps = 8;

}  // namespace

void RowKernel::find_tops() {
    tops_.assign(rows_.reductions, -1);
    if (shape_.on_cpu || shape_.turns > 0) return;
    const auto at = [&](int i) -> const Instruction& {
        return job_.tape.code[static_cast<std::size_t>(i)];
    };
    for (std::size_t k = 0; k < rows_.reductions; ++k) {
        const Instruction& power = at(output(k).value);
        if (output(k).kind != Output::Kind::sum || power.op != Op::exp) continue;
        const Instruction& less = at(power.a);
        if (less.op != Op::sub || !is_reduction_value(at(less.b))) continue;
        const int top = at(less.b).number - rows_.inputs;
        const JobOutput& greatest = output(static_cast<std::size_t>(top));
        if (greatest.kind == Output::Kind::max && greatest.value == less.a) tops_[k] = top;
    }
}

std::vector<std::size_t> RowKernel::tops_among(const std::vector<std::size_t>& reductions) const {
    std::vector<std::size_t> tops;
    for (const std::size_t k : reductions)
        if (std::find(tops_.begin(), tops_.end(), static_cast<int>(k)) != tops_.end())
            tops.push_back(k);
    return tops;
}

/// Goes through the row for all reductions of a pass, among which are tops.
void RowKernel::reduce_with_tops(const std::vector<std::size_t>& all,
                                 const std::vector<std::size_t>& tops,
                                 const std::vector<std::size_t>& runs) {
    std::vector<std::size_t> others;
    std::set_difference(all.begin(), all.end(), tops.begin(), tops.end(),
                        std::back_inserter(others));
    open_runs(runs, cached_steps);
    for (const std::size_t k : tops) out_.line(vector_, " top", k, " = acc", k, ";");
    open_steps(true);
    element(needed_for(tops), true);
    for (const std::size_t k : tops) add_element(k, cat("top", k));
    out_.close();
    for (const std::size_t k : tops) {
        scale_sums(k, cat("top", k));
        out_.line("acc", k, " = top", k, ";");
        top_value(k);
    }
    open_steps(true);
    element(needed_for(others), true);
    for (const std::size_t k : others) add_element(k);
    close_turns(runs);
    fold_in_group(tops);
    for (const std::size_t k : tops) scale_sums(k, emit_.splat(cat("r", k)));
    fold_in_group(others);
}

/// Multiplies the sums whose top acc<top> was, and is to be `now`, where that is greater.
void RowKernel::scale_sums(std::size_t top, const std::string& now) {
    const std::string before = cat("acc", top), grown = cat(now, " > ", before);
    out_.open("if (", shape_.width > 1 ? cat("any(", grown, ")") : grown, ")");
    out_.line("const ", vector_, " factor = select(", emit_.splat("1"), ", ",
              emit_.exponential(cat(before, " - ", now)), ", ", grown, ");");
    for (std::size_t k = 0; k < tops_.size(); ++k)
        if (tops_[k] == static_cast<int>(top)) out_.line("acc", k, " *= factor;");
    out_.close();
}

/// Declares the value of the maximum for a run. While all elements are -infinity that is 0, so that
/// their exponentials are 0.
void RowKernel::top_value(std::size_t top) {
    for (std::size_t i = 0; i < job_.tape.code.size(); ++i) {
        const Instruction& in = job_.tape.code[i];
        if (is_reduction_value(in) && in.number - rows_.inputs == static_cast<int>(top))
            out_.line("const ", vector_, " t", i, " = select(acc", top, ", ", emit_.splat("0"),
                      ", acc", top, " == ", emit_.splat("-INFINITY"), ");");
    }
}

}  // namespace dlprim::pointwise
