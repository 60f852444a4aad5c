// SPDX-License-Identifier: MIT
// Reductions of kernels for GPUs.
//
// A work-group reduces kx kept positions with ry threads each. The threads of a position share its
// elements, and are numbered so that neighbours read neighbouring memory. A tree in local memory
// adds up their sums. A thread with many elements first sums short runs and then adds up the runs,
// because the rounding error of a sum grows with the square root of its terms. The loop is unrolled
// so that several loads are in flight. If there are few results, the reduction is divided into
// parts, which get_group_id(1) numbers.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/pointwise/group_kernel.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

constexpr int run_turns = 32;  ///< iterations of a run; a power of two
constexpr int unrolled = 4;    ///< iterations per unrolled step; divides run_turns

}  // namespace

bool GroupKernel::in_runs(std::size_t k) const {
    const bool many = ceil_div(shape_.reduction, shape_.parts * shape_.ry) > 2 * run_turns;
    return many && output(k).kind == Output::Kind::sum && !job_.is_whole();
}

bool GroupKernel::long_sums() const {
    const std::vector<std::size_t> all = reductions();
    return std::any_of(all.begin(), all.end(), [&](std::size_t k) { return in_runs(k); });
}

std::vector<std::size_t> GroupKernel::reductions() const {
    std::vector<std::size_t> all;
    for (std::size_t k = 0; k < job_.outputs.size(); ++k)
        if (output(k).reduces()) all.push_back(k);
    return all;
}

/// Values that depend only on the kept position are computed before the loop.
std::vector<bool> GroupKernel::levels() const {
    return emit_.levels([&](int klass) {
        for (const int dim : shape_.reduced_dims)
            if (job_.stride(klass, dim) != 0) return true;
        return pad_;  // the guard of padding lanes is per element
    });
}

void GroupKernel::reduction() {
    numbers_.name("kept", shape_.kept);
    numbers_.name("reduction", shape_.reduction);
    numbers_.name("parts", shape_.parts);
    const std::vector<bool> levels = this->levels();
    local_arrays();
    place();
    emit_.instructions(
        out_, levels, false, [](int c) { return cat("(long)b", c); },
        [&](int c) { return lane(c); }, false);
    accumulators();
    count_turns();
    start_digits("step");
    turns(levels);
    fold_vectors();
    tree();
    results();
}

void GroupKernel::local_arrays() {
    const std::int64_t threads = shape_.kx * shape_.ry;
    for (const std::size_t k : reductions()) {
        out_.line("local ", scalar_, " h", k, "[", threads, "];");
        if (is_custom(k)) out_.line("local ", emit_.mask_scalar(), " g", k, "[", threads, "];");
    }
}

/// Declares the thread's kept position and its offsets. Threads beyond the last position compute
/// the first one and discard the result.
void GroupKernel::place() {
    out_.line("const ", index_, " id = (", index_, ")get_local_id(0), lx = id % ", shape_.kx,
              ", ly = id / ", shape_.kx, ";");
    out_.line("const ", index_, " place = (", index_, ")get_group_id(0) * ", shape_.kx, " + lx;");
    out_.line("const bool mine = place < Nkept;");
    out_.line("const ulong part = get_group_id(1);");
    out_.line(index_, " unit = mine ? place : 0;");
    decompose(shape_.kept_dims, "unit", 1);
    offsets("b", nullptr, shape_.kept_dims);
}

void GroupKernel::accumulators() {
    for (const std::size_t k : reductions()) {
        out_.line(vector_, " acc", k, " = ", emit_.splat(emit_.neutral(output(k))), ";");
        if (is_custom(k)) out_.line(mask_, " has", k, " = (", mask_, ")(0);");
        if (in_runs(k)) out_.line(vector_, " run", k, " = ", emit_.splat("0"), ";");
    }
}

/// `step` is the thread's first position in its part, and `left` its number of iterations. The loop
/// needs a known number of iterations, since compilers do not unroll others. The type is signed:
/// for unsigned types LLVM makes saturated subtractions, which Oclgrind does not support.
void GroupKernel::count_turns() {
    const std::string& number = signed_index_;
    out_.line("const ", index_, " stop = mine ? (", index_,
              ")((ulong)Nreduction * (part + 1) / Nparts) : 0;");
    out_.line("const ", index_, " step = (", index_, ")((ulong)Nreduction * part / Nparts) + ly;");
    out_.line(number, " left = (", number, ")step < (", number, ")stop ? ((", number, ")stop - (",
              number, ")step + ", shape_.ry - 1, ") / ", shape_.ry, " : 0;");
}

/// The loop over the thread's elements. Long sums are computed in runs.
void GroupKernel::turns(const std::vector<bool>& levels) {
    const bool runs = long_sums();
    if (runs) {  // its body is not indented further
        out_.line("while (left > 0) {");
        out_.line("const ", signed_index_, " turns = min(left, (", signed_index_, ")", run_turns,
                  ");");
        out_.line("left -= turns;");
    }
    out_.directive("#pragma unroll ", unrolled);
    out_.open("for (", index_, " turn = 0; turn < ", runs ? "turns" : "left", "; ++turn)");
    digits_to_coordinates();
    offsets("o", "b", shape_.reduced_dims);
    element(levels);
    for (const std::size_t k : reductions()) add_element(k);
    next_digits();
    out_.close();
    if (!runs) return;
    join_runs();
    out_.line("}");
}

/// Adds the element to its run or its total. Lanes past the end or in padding contribute the
/// neutral element. In a custom reduction they are skipped.
void GroupKernel::add_element(std::size_t k) {
    const JobOutput& out = output(k);
    const bool cut = shape_.tail || pad_;
    const std::string value = emit_.value(out.value), function = emit_.combine(k, false);
    if (is_custom(k)) {
        const std::string acc = cat("acc", k), has = cat("has", k);
        const std::string counted = emit_.counted(out, cut);
        out_.line(acc, " = select(", acc, ", select(", value, ", ", function, "(", acc, ", ", value,
                  "), ", has, "), ", counted, ");");
        out_.line(has, " |= ", counted, ";");
        return;
    }
    const std::string neutral = emit_.splat(emit_.neutral(out));
    const std::string fresh = cut ? cat("select(", neutral, ", ", value, ", live)") : value;
    const std::string into = cat(in_runs(k) ? "run" : "acc", k);
    out_.line(into, " = ", function, "(", into, ", ", fresh, ");");
}

void GroupKernel::join_runs() {
    for (const std::size_t k : reductions())
        if (in_runs(k)) out_.line("acc", k, " += run", k, "; run", k, " = ", emit_.splat("0"), ";");
}

/// Reduces each thread's vector to one value in local memory.
void GroupKernel::fold_vectors() {
    for (const std::size_t k : reductions()) {
        const std::string one = emit_.combine(k, true), acc = cat("acc", k);
        if (is_custom(k))
            fold_custom(k);
        else if (shape_.width == 4)
            out_.line("h", k, "[id] = ", one, "(", one, "(", acc, ".s0, ", acc, ".s2), ", one, "(",
                      acc, ".s1, ", acc, ".s3));");
        else
            out_.line("h", k, "[id] = ", acc, ";");
    }
}

void GroupKernel::fold_custom(std::size_t k) {
    const std::string one = emit_.combine(k, true);
    const char* const first = shape_.width > 1 ? ".s0" : "";
    out_.line(scalar_, " a", k, " = acc", k, first, "; ", emit_.mask_scalar(), " q", k, " = has", k,
              first, ";");
    for (int lane = 1; lane < shape_.width; ++lane) {
        const std::string value = cat("acc", k, ".s", lane), has = cat("has", k, ".s", lane);
        out_.line("if (", has, ") a", k, " = q", k, " ? ", one, "(a", k, ", ", value, ") : ", value,
                  ";");
        out_.line("q", k, " |= ", has, ";");
    }
    out_.line("h", k, "[id] = a", k, "; g", k, "[id] = q", k, ";");
}

/// The tree: in each step, half of a position's threads add the values of the other half. Thread 0
/// gets the result.
void GroupKernel::tree() {
    out_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    out_.open("for (", index_, " half_ = ", shape_.ry / 2, "; half_ > 0; half_ /= 2)");
    out_.open("if (ly < half_)");
    out_.line("const ", index_, " other = id + half_ * ", shape_.kx, ";");
    for (const std::size_t k : reductions()) {
        const std::string both = cat(emit_.combine(k, true), "(h", k, "[id], h", k, "[other])");
        if (is_custom(k)) {
            out_.line("if (g", k, "[other]) h", k, "[id] = g", k, "[id] ? ", both, " : h", k,
                      "[other];");
            out_.line("g", k, "[id] |= g", k, "[other];");
        } else {
            out_.line("h", k, "[id] = ", both, ";");
        }
    }
    out_.close();
    out_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    out_.close();
    out_.line("if (ly != 0 || !mine) return;");
}

void GroupKernel::results() {
    for (const std::size_t k : reductions()) {
        if (shape_.partial())
            store_partial(k);
        else
            store_result(k);
    }
}

void GroupKernel::store_result(std::size_t k) {
    const JobOutput& out = output(k);
    const std::string guard = pad_ ? cat("if (b", job_.channel_class, " < Nchannels) ") : "";
    const std::string has = cat("(", emit_.mask_scalar(), ")(g", k, "[id] != 0)");
    out_.line(guard, emit_.store_one(out.dtype, cat("y", k), cat("(long)b", out.klass),
                                     emit_.finish(k, cat("h", k, "[id]"), has, true)));
}

/// Stores to the workspace, whose shape is [parts, kept positions].
void GroupKernel::store_partial(std::size_t k) {
    const DType own = dtype_of(job_.type);
    const std::string at = "(long)(part * Nkept + place)";
    out_.line(emit_.store_one(own, cat("w", k), at, cat("h", k, "[id]")));
    if (is_custom(k))
        out_.line(emit_.store_one(own, cat("f", k), at,
                                  cat("(", scalar_, ")(g", k, "[id] != 0 ? 1 : 0)")));
}

}  // namespace dlprim::pointwise
