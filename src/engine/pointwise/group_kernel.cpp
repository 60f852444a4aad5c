// SPDX-License-Identifier: MIT
// Kernels for GPUs: a work-item an element or an aligned vector of four; reductions by work-groups.
//
// A reducing work-group is kx kept positions by ry threads that share a position's elements,
// numbered so that neighbours read neighbouring memory; their sums meet in a tree in local memory.
// A thread with many elements sums runs of them, and then the runs: the error of a sum grows with
// the root of its terms. Its place advances by the same digits at each step, without a division,
// and the loop is unrolled, so that reads of several steps are under way at once. Where results are
// few, get_group_id(1) counts parts of the reduction.
#include "engine/pointwise/kernels.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

constexpr int run_steps = 32;  ///< of a run; a power of two
constexpr int unrolled = 4;    ///< steps at once; divides run_steps
/// Steps of a thread that take no longer than the launch which a cut would cost.
constexpr std::int64_t few_steps = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::int64_t power_below(std::int64_t n) {
    std::int64_t p = 1;
    while (p * 2 <= n) p *= 2;
    return p;
}
std::int64_t power_above(std::int64_t n) {
    std::int64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

struct GroupKernel {
    const Job& job;
    std::vector<KernelNumber> numbers;
    std::string index;  ///< type of positions

    explicit GroupKernel(const Job& j) : job(j) {
        index = job.kept() * job.reduction() < (std::int64_t{1} << 31) ? "uint" : "ulong";
    }
    std::int64_t size(int dim) const { return job.sizes[static_cast<std::size_t>(dim)]; }
    std::string add(const std::string& name, std::int64_t value) {
        for (const KernelNumber& n : numbers)
            if (n.name == name) return "N" + name;
        numbers.push_back({name, false, value, 0});
        return "N" + name;
    }
    std::string stride(int klass, int dim) {
        const std::int64_t s = job.stride(klass, dim);
        if (s == 0 || s == 1) return s ? "1" : "0";
        return add(cat("s", klass, "_", dim), s);
    }
    std::string step(int klass, int dim) {
        const std::string s = stride(klass, dim);
        if (s == "0") return {};
        return s == "1" ? cat(" + i", dim) : cat(" + i", dim, " * ", s);
    }
    /// Declares i<dim> for `dims`, innermost last, from the variable `from`, which is used up.
    /// `unit` > 1: the last of them advances by so many.
    void decompose(TextWriter& os, const std::string& indent, const std::vector<int>& dims,
                   const std::string& from, int unit) {
        for (std::size_t n = dims.size(); n-- > 0;) {
            const int dim = dims[n];
            const std::int64_t count = n + 1 == dims.size() ? ceil_div(size(dim), unit) : size(dim);
            const std::string scale = n + 1 == dims.size() && unit > 1 ? cat(" * ", unit) : "";
            if (n == 0) {
                os << indent << "const " << index << " i" << dim << " = " << from << scale << ";\n";
            } else {
                const std::string name = add(cat("n", dim), std::max<std::int64_t>(1, count));
                os << indent << "const " << index << " i" << dim << " = " << from << " % " << name
                   << scale << "; " << from << " /= " << name << ";\n";
            }
        }
    }
    /// Declares j<dim>, the digits of `from` in the sizes of `dims` (innermost last, whose unit is
    /// `unit`), and d<dim>, those of `stride`.
    void start_digits(TextWriter& os, const std::string& indent, const std::vector<int>& dims,
                      const std::string& from, std::int64_t stride, int unit) {
        os << indent << index << " rest = " << from << ", advance = " << stride << ";\n";
        for (std::size_t n = dims.size(); n-- > 0;) {
            const int dim = dims[n];
            os << indent << index << " j" << dim << " = rest";
            if (n > 0) os << " % " << digit_size(dims, n, unit);
            os << ";\n" << indent << "const " << index << " d" << dim << " = advance";
            if (n > 0) {
                const std::string size = digit_size(dims, n, unit);
                os << " % " << size << ";\n"
                   << indent << "rest /= " << size << "; advance /= " << size;
            }
            os << ";\n";
        }
    }
    /// Adds d<dim> to j<dim>, with carries.
    void next_digits(TextWriter& os, const std::string& indent, const std::vector<int>& dims,
                     int unit) {
        for (std::size_t n = dims.size(); n-- > 0;) {
            const int dim = dims[n];
            os << indent << "j" << dim << " += d" << dim;
            if (n + 1 < dims.size()) os << " + carry" << dims[n + 1];
            os << ";\n";
            if (n == 0) continue;
            const std::string size = digit_size(dims, n, unit);
            os << indent << "const " << index << " carry" << dim << " = j" << dim << " >= " << size
               << " ? 1 : 0;\n"
               << indent << "if (carry" << dim << ") j" << dim << " -= " << size << ";\n";
        }
    }
    /// How many values digit n takes.
    std::string digit_size(const std::vector<int>& dims, std::size_t n, int unit) {
        const std::int64_t count =
            n + 1 == dims.size() ? ceil_div(size(dims[n]), unit) : size(dims[n]);
        return add(cat("n", dims[n]), std::max<std::int64_t>(1, count));
    }
};

}  // namespace

Generated group_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text) {
    GroupKernel k(job);
    const int last = job.dims() - 1;
    const bool reduces = job.reduces();
    const bool inner_reduced = reduces && job.reduced[static_cast<std::size_t>(last)];
    bool plain_lanes = true;
    for (const auto& strides : job.classes)
        plain_lanes = plain_lanes && strides[static_cast<std::size_t>(last)] <= 1;
    const std::int64_t inner = k.size(last);
    int W = 1;
    if (!reduces && plain_lanes && (inner % 4 == 0 || (job.dims() == 1 && inner >= 1024))) W = 4;
    if (inner_reduced && plain_lanes && inner % 4 == 0 && job.reduction() >= 1024) W = 4;
    const bool tail = inner % W != 0;

    const std::int64_t kept = reduces ? job.kept() : 1;
    const std::int64_t elements = job.kept() * job.reduction();
    std::int64_t largest = power_below(
        static_cast<std::int64_t>(std::clamp<std::uint64_t>(device.max_work_group, 1, 256)));
    Generated result;
    Emitter emit(job, W, true);
    result.partial_bytes = emit.element_bytes();
    std::vector<int> kept_dims, reduced_dims;
    for (int dim = 0; dim < job.dims(); ++dim)
        (reduces && job.reduced[static_cast<std::size_t>(dim)] ? reduced_dims : kept_dims)
            .push_back(dim);

    const std::int64_t reduction = reduces ? job.reduction() / (inner_reduced ? W : 1) : 1;
    std::int64_t kx = 1, ry = 1, groups = 1;
    if (reduces) {
        std::uint64_t bytes = 0;
        for (const JobOutput& out : job.outputs)
            if (out.reduces())
                bytes += emit.element_bytes() +
                         (out.kind == Output::Kind::custom ? emit.element_bytes() : 0);
        while (largest > 1 &&
               bytes * static_cast<std::uint64_t>(largest) * 4 > device.local_bytes * 3 &&
               device.local_bytes > 0)
            largest /= 2;
        kx = inner_reduced ? 1 : std::min<std::int64_t>({32, largest, power_above(k.size(last))});
        ry = std::min(largest / kx, power_below(std::max<std::int64_t>(1, reduction / 4)));
        kx = std::max(kx, std::min(largest / ry, power_above(kept)));
        groups = ceil_div(kept, kx);
        const std::int64_t wanted = std::int64_t{8} * std::max(1, device.compute_units);
        std::int64_t p = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(1, groups), 1,
                                                  std::max<std::int64_t>(1, reduction / (ry * 8)));
        // Two work-groups a compute unit have enough reads under way.
        if (groups * 4 >= wanted || reduction <= ry * few_steps) p = 1;
        p = std::max(p, ceil_div(reduction, ry * 1024));
        if (parts > 0) p = parts;
        result.parts = std::max<std::int64_t>(1, std::min(p, reduction));
        result.range.dims = 2;
        result.range.local = {static_cast<std::size_t>(kx * ry), 1, 0};
        result.range.global = {static_cast<std::size_t>(groups * kx * ry),
                               static_cast<std::size_t>(result.parts), 1};
    } else {
        const std::int64_t items = elements / inner * ceil_div(inner, W);
        const std::int64_t local = std::min(largest, power_above(items));
        k.add("items", items);
        result.range.local[0] = static_cast<std::size_t>(local);
        result.range.global[0] = static_cast<std::size_t>(ceil_div(items, local) * local);
    }
    if (!text) return result;
    const bool partial = reduces && result.parts > 1;
    const bool pad = job.channel_class >= 0;
    if (pad) k.add("channels", job.channels);

    const std::string& T = emit.scalar_type();
    const std::string& V = emit.vector_type();
    const std::string& M = emit.mask_type();
    const std::string mask_scalar = job.type == Compute::f32 ? "int" : "long";
    const auto classes = static_cast<int>(job.classes.size());
    const auto lane = [&](int c) { return k.stride(c, last); };
    const auto element = [&](int c) { return cat("(long)o", c); };
    const std::string local_size = cat(kx * ry);
    TextWriter os;
    // The position and arithmetic of one element (or vector), and its elementwise stores.
    const auto body = [&](const std::string& indent, const std::vector<bool>& levels) {
        if (tail) {
            os << indent << "const int nt = (int)min(" << k.add(cat("whole", last), inner) << " - i"
               << last << ", (" << k.index << ")" << W << ");\n";
            if (!pad) os << indent << "const int nv = nt;\n";
        }
        if (pad)
            os << indent << "const int nv = (int)clamp((long)Nchannels - (long)o"
               << job.channel_class << ", 0L, (long)" << (tail ? "nt" : cat(W)) << ");\n";
        emit.instructions(os, indent, levels, true, element, lane, tail);
        if (tail || pad) {
            if (W == 1)
                os << indent << "const " << M << " live = (" << M << ")(nv > 0);\n";
            else
                os << indent << "const " << M << " live = (" << M << ")(nv) > " << emit.iota()
                   << ";\n";
        }
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            const JobOutput& out = job.outputs[o];
            if (out.reduces()) continue;
            std::string v = emit.value(out.value);
            if (pad) v = cat("select(", emit.splat("0"), ", ", v, ", live)");
            os << indent
               << emit.store(static_cast<int>(o), cat("y", o), out.dtype, element(out.klass), v,
                             lane(out.klass), "nt", tail)
               << "\n";
        }
    };

    if (!reduces) {
        os << "    " << k.index << " item = (" << k.index
           << ")get_global_id(0);\n    if (item >= Nitems) return;\n";
        k.decompose(os, "    ", kept_dims, "item", W);
        for (int c = 0; c < classes; ++c) {
            os << "    const " << k.index << " o" << c << " = 0";
            for (int dim : kept_dims) os << k.step(c, dim);
            os << ";\n";
        }
        body("    ", std::vector<bool>(job.tape.code.size(), true));
    } else {
        k.add("kept", kept);
        k.add("reduction", reduction);
        k.add("parts", result.parts);
        const auto varies = [&](int c) {
            for (int dim : reduced_dims)
                if (job.stride(c, dim) != 0) return true;
            return pad;  // the guard of padding lanes is per element
        };
        const std::vector<bool> levels = emit.levels(varies);
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            if (!job.outputs[o].reduces()) continue;
            os << "    local " << T << " h" << o << "[" << local_size << "];\n";
            if (job.outputs[o].kind == Output::Kind::custom)
                os << "    local " << mask_scalar << " g" << o << "[" << local_size << "];\n";
        }
        os << "    const " << k.index << " id = (" << k.index << ")get_local_id(0), lx = id % "
           << kx << ", ly = id / " << kx << ";\n    const " << k.index << " place = (" << k.index
           << ")get_group_id(0) * " << kx << " + lx;\n"
           << "    const bool mine = place < Nkept;\n"
           << "    const ulong part = get_group_id(1);\n"
           << "    " << k.index << " unit = mine ? place : 0;\n";
        k.decompose(os, "    ", kept_dims, "unit", 1);
        for (int c = 0; c < classes; ++c) {
            os << "    const " << k.index << " b" << c << " = 0";
            for (int dim : kept_dims) os << k.step(c, dim);
            os << ";\n";
        }
        const auto base = [&](int c) { return cat("(long)b", c); };
        emit.instructions(os, "    ", levels, false, base, lane, false);
        const bool many_steps = ceil_div(reduction, result.parts * ry) > 2 * run_steps;
        const auto in_runs = [&](const JobOutput& out) {
            return many_steps && out.kind == Output::Kind::sum && job.type != Compute::i64;
        };
        const bool long_sums =
            std::any_of(job.outputs.begin(), job.outputs.end(),
                        [&](const JobOutput& out) { return out.reduces() && in_runs(out); });
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            const JobOutput& out = job.outputs[o];
            if (!out.reduces()) continue;
            os << "    " << V << " acc" << o << " = " << emit.splat(emit.neutral(out)) << ";\n";
            if (out.kind == Output::Kind::custom)
                os << "    " << M << " has" << o << " = (" << M << ")(0);\n";
            if (in_runs(out)) os << "    " << V << " run" << o << " = " << emit.splat("0") << ";\n";
        }
        const int unit = inner_reduced ? W : 1;
        // Steps are counted, as compilers unroll only loops whose turns they can tell beforehand.
        // With sign: LLVM makes saturated subtractions of the same without, which Oclgrind does not
        // know.
        const std::string number = k.index == "uint" ? "int" : "long";
        os << "    const " << k.index << " stop = mine ? (" << k.index
           << ")((ulong)Nreduction * (part + 1) / Nparts) : 0;\n"
           << "    const " << k.index << " step = (" << k.index
           << ")((ulong)Nreduction * part / Nparts) + ly;\n"
           << "    " << number << " left = (" << number << ")step < (" << number << ")stop ? (("
           << number << ")stop - (" << number << ")step + " << ry - 1 << ") / " << ry << " : 0;\n";
        k.start_digits(os, "    ", reduced_dims, "step", ry, unit);
        if (long_sums)
            os << "    while (left > 0) {\n    const " << number << " turns = min(left, (" << number
               << ")" << run_steps << ");\n    left -= turns;\n";
        os << "#pragma unroll " << unrolled << "\n    for (" << k.index << " turn = 0; turn < "
           << (long_sums ? "turns" : "left") << "; ++turn) {\n";
        for (std::size_t n = 0; n < reduced_dims.size(); ++n)
            os << "        const " << k.index << " i" << reduced_dims[n] << " = j"
               << reduced_dims[n]
               << (n + 1 == reduced_dims.size() && unit > 1 ? cat(" * ", unit) : "") << ";\n";
        for (int c = 0; c < classes; ++c) {
            os << "        const " << k.index << " o" << c << " = b" << c;
            for (int dim : reduced_dims) os << k.step(c, dim);
            os << ";\n";
        }
        body("        ", levels);
        const bool cut = tail || pad;
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            const JobOutput& out = job.outputs[o];
            if (!out.reduces()) continue;
            const std::string v = emit.value(out.value);
            if (out.kind == Output::Kind::custom) {
                std::string use = cut ? "live" : cat("(", M, ")(-1)");
                if (out.flag >= 0)
                    use = cut ? cat("(live & ", emit.truth(out.flag), ")") : emit.truth(out.flag);
                os << "        acc" << o << " = select(acc" << o << ", select(" << v << ", "
                   << emit.combine(o, false) << "(acc" << o << ", " << v << "), has" << o << "), "
                   << use << ");\n        has" << o << " |= " << use << ";\n";
                continue;
            }
            const std::string fresh =
                cut ? cat("select(", emit.splat(emit.neutral(out)), ", ", v, ", live)") : v;
            const std::string into = cat(in_runs(out) ? "run" : "acc", o);
            os << "        " << into << " = " << emit.combine(o, false) << "(" << into << ", "
               << fresh << ");\n";
        }
        k.next_digits(os, "        ", reduced_dims, unit);
        os << "    }\n";
        if (long_sums) {  // the run joins the total
            for (std::size_t o = 0; o < job.outputs.size(); ++o)
                if (job.outputs[o].reduces() && in_runs(job.outputs[o]))
                    os << "    acc" << o << " += run" << o << "; run" << o << " = "
                       << emit.splat("0") << ";\n";
            os << "    }\n";
        }
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            const JobOutput& out = job.outputs[o];
            if (!out.reduces()) continue;
            const std::string one = emit.combine(o, true);
            if (out.kind == Output::Kind::custom) {
                os << "    " << T << " a" << o << " = acc" << o << (W > 1 ? ".s0" : "") << "; "
                   << mask_scalar << " q" << o << " = has" << o << (W > 1 ? ".s0" : "") << ";\n";
                for (int l = 1; l < W; ++l)
                    os << "    if (has" << o << ".s" << l << ") a" << o << " = q" << o << " ? "
                       << one << "(a" << o << ", acc" << o << ".s" << l << ") : acc" << o << ".s"
                       << l << ";\n    q" << o << " |= has" << o << ".s" << l << ";\n";
                os << "    h" << o << "[id] = a" << o << "; g" << o << "[id] = q" << o << ";\n";
            } else if (W == 4) {
                os << "    h" << o << "[id] = " << one << "(" << one << "(acc" << o << ".s0, acc"
                   << o << ".s2), " << one << "(acc" << o << ".s1, acc" << o << ".s3));\n";
            } else {
                os << "    h" << o << "[id] = acc" << o << ";\n";
            }
        }
        os << "    barrier(CLK_LOCAL_MEM_FENCE);\n"
           << "    for (" << k.index << " half_ = " << ry / 2
           << "; half_ > 0; half_ /= 2) {\n        if (ly < half_) {\n"
           << "            const " << k.index << " other = id + half_ * " << kx << ";\n";
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            const JobOutput& out = job.outputs[o];
            if (!out.reduces()) continue;
            const std::string both = cat(emit.combine(o, true), "(h", o, "[id], h", o, "[other])");
            if (out.kind == Output::Kind::custom)
                os << "            if (g" << o << "[other]) h" << o << "[id] = g" << o << "[id] ? "
                   << both << " : h" << o << "[other];\n            g" << o << "[id] |= g" << o
                   << "[other];\n";
            else
                os << "            h" << o << "[id] = " << both << ";\n";
        }
        os << "        }\n        barrier(CLK_LOCAL_MEM_FENCE);\n    }\n    if (ly != 0 || !mine) "
              "return;\n";
        const DType own = job.type == Compute::f32   ? DType::f32
                          : job.type == Compute::f64 ? DType::f64
                                                     : DType::i64;
        for (std::size_t o = 0; o < job.outputs.size(); ++o) {
            const JobOutput& out = job.outputs[o];
            if (!out.reduces()) continue;
            const bool custom = out.kind == Output::Kind::custom;
            if (partial) {
                os << "    "
                   << emit.store_one(own, cat("w", o), "(long)(part * Nkept + place)",
                                     cat("h", o, "[id]"))
                   << "\n";
                if (custom)
                    os << "    "
                       << emit.store_one(own, cat("f", o), "(long)(part * Nkept + place)",
                                         cat("(", T, ")(g", o, "[id] != 0 ? 1 : 0)"))
                       << "\n";
                continue;
            }
            std::string guard;
            if (pad) guard = cat("if (b", job.channel_class, " < Nchannels) ");
            os << "    " << guard
               << emit.store_one(out.dtype, cat("y", o), base(out.klass),
                                 emit.finish(o, cat("h", o, "[id]"),
                                             cat("(", mask_scalar, ")(g", o, "[id] != 0)"), true))
               << "\n";
        }
    }
    os << "}\n";

    TextWriter head;
    head << "kernel void pointwise(";
    std::string comma, shifts;
    const auto tensor = [&](const std::string& name, const std::string& type) {
        head << comma << "global " << type << "* " << name << ", ulong " << name << "_offset";
        shifts += cat("    ", name, " += ", name, "_offset;\n");
        comma = ", ";
    };
    for (const JobInput& input : job.inputs)
        tensor(cat("x", input.number), "const " + Emitter::storage_type(input.dtype));
    for (std::size_t o = 0; o < job.outputs.size(); ++o) {
        const JobOutput& out = job.outputs[o];
        if (partial && out.reduces()) {
            tensor(cat("w", o), T);
            if (out.kind == Output::Kind::custom) tensor(cat("f", o), T);
        } else {
            tensor(cat("y", o), Emitter::storage_type(out.dtype));
        }
    }
    for (const KernelNumber& n : k.numbers)
        shifts += cat("    const ", k.index, " N", n.name, " = (", k.index, ")", n.name, ";\n");
    result.numbers = k.numbers;
    result.numbers.insert(result.numbers.end(), emit.numbers().begin(), emit.numbers().end());
    for (const KernelNumber& n : result.numbers)
        head << ", " << (n.real ? "float " : "long ") << n.name;
    result.source = cat(emit.preamble(), head.str(), ") {\n", shifts, os.str());
    return result;
}

}  // namespace dlprim::pointwise
