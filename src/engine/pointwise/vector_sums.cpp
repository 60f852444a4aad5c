// SPDX-License-Identifier: MIT
// Reductions in kernels for CPUs: totals, runs that are added to them, and the results of a task.
//
// Long sums are compensated: sums of a few steps are added to the total by Kahan's method (W.
// Kahan, 1965), which keeps them accurate.
#include "base/text.hpp"
#include "engine/pointwise/kernels.hpp"
#include "engine/pointwise/vector_kernel.hpp"

#include <algorithm>

namespace dlprim::pointwise {

bool VectorKernel::compensated(std::size_t k) const {
    return output(k).kind == Output::Kind::sum && !job_.is_whole();
}

bool VectorKernel::compensates() const {
    for (std::size_t k = 0; k < job_.outputs.size(); ++k)
        if (compensated(k)) return true;
    return false;
}

std::string VectorKernel::declared(const char* name, std::size_t k) const {
    return cat(name, k, shape_.multi ? cat("[", max_vectors, "]") : "");
}

/// Declares the totals of the task with their initial values.
void VectorKernel::accumulators() {
    std::string clear;
    const auto add = [&](std::string& declarations, const std::string& type, const char* name,
                         std::size_t k, const std::string& start) {
        declarations += cat(declarations.empty() ? "" : " ", type, " ", declared(name, k), ";");
        clear += cat(clear.empty() ? "" : " ", each(name, k), " = ", start, ";");
    };
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (!output(k).reduces()) continue;
        std::string declarations;
        add(declarations, vector_, "acc", k, emit_.splat(emit_.neutral(output(k))));
        if (compensated(k)) add(declarations, vector_, "low", k, emit_.splat("0"));
        if (is_custom(k)) add(declarations, mask_, "has", k, cat("(", mask_, ")(0)"));
        out_.line(declarations);
    }
    if (!shape_.reduces) return;
    if (shape_.multi)
        out_.line(each_vector_, "{ ", clear, " }");
    else
        out_.line(clear);
}

void VectorKernel::start_runs() {
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (!compensated(k)) continue;
        out_.line(vector_, " ", declared("sum", k), ";");
        out_.line(each_vector_, each("sum", k), " = ", emit_.splat("0"), ";");
    }
}

/// acc + low is the total. The rounding error of each addition goes into low, unless the total
/// overflows.
std::string VectorKernel::joined(std::size_t k, const std::string& value) const {
    const std::string acc = each("acc", k), low = each("low", k);
    return cat("{ const ", vector_, " add = ", value, " - ", low, ", all = ", acc, " + add; ", low,
               " = select((all - ", acc, ") - add, ", emit_.splat("0"),
               ", all - all != ", emit_.splat("0"), "); ", acc, " = all; }");
}

/// A total of one run is that run.
void VectorKernel::join_runs() {
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (!compensated(k)) continue;
        const std::string sum = each("sum", k);
        out_.line("if (one_run) ", each_vector_, each("acc", k), " = ", sum, ";");
        out_.line("else ", each_vector_, joined(k, sum));
    }
}

/// Adds the value of the step to its run or its total. Lanes past the end or in padding contribute
/// the neutral element. In a custom reduction they are skipped.
void VectorKernel::add_element(std::size_t k) {
    const JobOutput& out = output(k);
    const bool cut = shape_.tail() || pad_;
    const std::string fresh = cat("e", k), function = emit_.combine(k, false);
    out_.line(vector_, " ", fresh, " = ", emit_.value(out.value), ";");
    if (is_custom(k)) {
        const std::string acc = each("acc", k), has = each("has", k);
        const std::string counted = emit_.counted(out, cut);
        out_.line(acc, " = select(", acc, ", select(", fresh, ", ", function, "(", acc, ", ", fresh,
                  "), ", has, "), ", counted, ");");
        out_.line(has, " |= ", counted, ";");
        return;
    }
    if (cut)
        out_.line("if (nv < ", shape_.width, ") ", fresh, " = select(",
                  emit_.splat(emit_.neutral(out)), ", ", fresh, ", live);");
    const std::string into = each(compensated(k) ? "sum" : "acc", k);
    out_.line(into, " = ", function, "(", into, ", ", fresh, ");");
}

/// Stores the results of a task, or where it is a part of them, the partial results.
void VectorKernel::results() {
    workspace_place();
    if (shape_.multi) {
        out_.open("for (int v = 0; v < vectors; ++v)");
        out_.line("const int nt = (int)min(n", shape_.last, " - first - v * ", shape_.width,
                  ", (long)", shape_.width, ");");
    }
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (!output(k).reduces()) continue;
        if (!shape_.inner_kept) {
            store_total(k);
            continue;
        }
        merge_lanes(k);
        out_.open("if (is_part)");
        store_partial_lanes(k);
        out_.close();
        out_.open("else");
        store_lanes(k);
        out_.close();
    }
    if (shape_.multi) out_.close();
}

/// Combines the parts of a unit in a second launch. Each lane is a separate result.
void VectorKernel::merge_lanes(std::size_t k) {
    const DType own = dtype_of(job_.type);
    const std::string place =
        cat("other * kept + place", shape_.multi ? cat(" + (long)v * ", shape_.width) : "");
    const auto loaded = [&](const char* region) {
        return emit_.load_lanes_of(cat(region, k), own, place, "nt", shape_.multi);
    };
    out_.open("for (long other = 0; ", merging, " && other < parts; ++other)");
    const std::string acc = each("acc", k), function = emit_.combine(k, false);
    if (compensated(k)) {
        out_.line(joined(k, cat("(", loaded("w"), ")")));
    } else if (is_custom(k)) {
        const std::string has = each("has", k);
        out_.line("const ", vector_, " w = ", loaded("w"), ", f = ", loaded("f"), ";");
        out_.line("const ", mask_, " counts = f != ", emit_.splat("0"), ";");
        out_.line(acc, " = select(", acc, ", select(w, ", function, "(", acc, ", w), ", has,
                  "), counts);");
        out_.line(has, " |= counts;");
    } else {
        out_.line(acc, " = ", function, "(", acc, ", ", loaded("w"), ");");
    }
    out_.close();
}

/// The same for a unit's only result, h[0].
void VectorKernel::merge_total(std::size_t k) {
    const std::string type = emit_.scalar_type(), function = emit_.combine(k, true);
    if (compensated(k)) out_.line(type, " rest = 0;");
    out_.open("for (long other = 0; ", merging, " && other < parts; ++other)");
    out_.line("const ", type, " w = w", k, "[other * kept + place];");
    if (compensated(k)) {
        out_.line("const ", type, " add = w - rest, all = h[0] + add;");
        out_.line("rest = all - all != 0 ? 0 : (all - h[0]) - add; h[0] = all;");
    } else if (is_custom(k)) {
        out_.line("if (f", k, "[other * kept + place] == 0) continue;");
        out_.line("h[0] = g[0] ? ", function, "(h[0], w) : w; g[0] = -1;");
    } else {
        out_.line("h[0] = ", function, "(h[0], w);");
    }
    out_.close();
}

/// Declares `place`, the position of the task's partial results in a region of the workspace, whose
/// shape is [parts, kept positions].
void VectorKernel::workspace_place() {
    std::string position = "0";
    std::int64_t below = 1;
    for (int dim = shape_.last; dim >= 0; --dim) {
        if (job_.reduced[static_cast<std::size_t>(dim)]) continue;
        if (dim == shape_.last)
            position += shape_.multi ? " + first" : "";
        else if (below == 1)
            position += cat(" + u", dim);
        else
            position += cat(" + u", dim, " * ", numbers_.name(cat("k", dim), below));
        below *= job_.sizes[static_cast<std::size_t>(dim)];
    }
    out_.line("const long place = part * kept + ", position, ";");
    out_.line("const bool is_part = parts > 1 && !", merging, ";");
}

std::string VectorKernel::vector_offset(int klass) {
    std::string offset = unit_offset(klass);
    if (shape_.multi) offset += numbers_.step(cat("(long)v * ", shape_.width), klass, shape_.last);
    return offset;
}

/// Each lane is a separate result.
void VectorKernel::store_lanes(std::size_t k) {
    const JobOutput& out = output(k);
    std::string lanes = "nt";
    if (pad_)
        lanes = channels_from(cat("(", vector_offset(job_.channel_class), ")"),
                              shape_.multi ? "nt" : cat(shape_.width));
    const std::string finished = emit_.finish(k, each("acc", k), each("has", k), false);
    const std::string offset = vector_offset(out.klass);
    out_.line(emit_.store(static_cast<int>(k), cat("y", k), out.dtype, offset, finished,
                          lane(out.klass), lanes, shape_.multi || pad_));
}

void VectorKernel::store_partial_lanes(std::size_t k) {
    const DType own = dtype_of(job_.type);
    const std::string place = shape_.multi ? cat("place + (long)v * ", shape_.width) : "place";
    const auto store = [&](const char* region, const std::string& value) {
        out_.line(emit_.store(static_cast<int>(k), cat(region, k), own, place, value, "1", "nt",
                              shape_.multi));
    };
    store("w", each("acc", k));
    if (is_custom(k))
        store("f",
              cat("select(", emit_.splat("0"), ", ", emit_.splat("1"), ", ", each("has", k), ")"));
}

/// All lanes are combined to one result.
void VectorKernel::store_total(std::size_t k) {
    const JobOutput& out = output(k);
    out_.open();
    fold_lanes(k);
    merge_total(k);
    out_.open("if (is_part)");
    out_.line("w", k, "[place] = h[0];");
    if (is_custom(k)) out_.line("f", k, "[place] = g[0] != 0 ? 1 : 0;");
    out_.close();
    std::string guard;
    if (pad_ && job_.stride(job_.channel_class, shape_.last) == 0)
        guard = cat(" if (", unit_offset(job_.channel_class), " < channels)");
    const std::string has = cat("(", emit_.mask_scalar(), ")g[0]");
    out_.line("else", guard, " ",
              emit_.store_one(out.dtype, cat("y", k), unit_offset(out.klass),
                              emit_.finish(k, "h[0]", has, true)));
    out_.close();
}

/// Combines the lanes of a total into h[0], halving their number in each step. For custom
/// reductions, g tells which lanes have a value.
void VectorKernel::fold_lanes(std::size_t k) {
    const int width = shape_.width;
    if (!is_custom(k)) {
        fold_vector(k);
        return;
    }
    const std::string both = emit_.combine(k, true) + "(h[l], h[l + half_])";
    out_.line(emit_.scalar_type(), " h[", width, "]; vstore", width, "(acc", k, ", 0, h);");
    out_.line(emit_.mask_scalar(), " g[", width, "]; vstore", width, "(has", k, ", 0, g);");
    out_.line("for (int half_ = ", width / 2, "; half_ > 0; half_ /= 2)");
    out_.deeper();
    out_.open("for (int l = 0; l < half_; ++l)");
    out_.line("if (g[l + half_]) h[l] = g[l] ? ", both, " : h[l + half_];");
    out_.line("g[l] |= g[l + half_];");
    out_.close();
    out_.shallower();
}

/// Moves the upper half of the lanes in use onto the lower half and combines whole vectors, since
/// compilers keep those in registers. Lanes that are no longer in use have any value.
void VectorKernel::fold_vector(std::size_t k) {
    const int width = shape_.width;
    static const char digits[] = "0123456789abcdef";
    for (int half = width / 2; half > 0; half /= 2) {
        std::string upper;
        for (int l = 0; l < width; ++l) upper += digits[half + l % half];
        out_.line("acc", k, " = ", emit_.combine(k, false), "(acc", k, ", acc", k, ".s", upper,
                  ");");
    }
    out_.line(emit_.scalar_type(), " h[1] = {acc", k, ".s0};");
}

}  // namespace dlprim::pointwise
