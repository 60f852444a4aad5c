// SPDX-License-Identifier: MIT
// Kernels for CPUs: a work-item walks rows of the iteration space with explicit vectors.
//
// The last dimension gives the lanes. Work is cut in units (kept positions outside the vectors) and
// parts (ranges of rows); a work-item takes a contiguous share of units x parts. Inside a part,
// rows advance like an odometer; a row is a segment of the main loop, over the last dimension
// itself, or, where the last dimension is one vector (blocked layouts) or kept, over another one.
// Sums of a few steps are added to the total by Kahan's method (W. Kahan 1965), which keeps long
// sums accurate.
#include "engine/pointwise/kernels.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

constexpr int max_vectors = 16;  ///< kept vectors that a work-item sums side by side
/// Steps of the main loop that are summed plainly. The error of a sum grows with the root of it.
constexpr int plain_steps = 32;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

struct VectorKernel {
    const Job& job;
    const Traits& device;
    int width = 16;
    bool reduces = false;
    bool inner_kept = false;       ///< the lanes are kept positions
    bool whole = false;            ///< the last dimension is one vector
    bool multi = false;            ///< kept vectors side by side, looped inside
    int loop = -1;                 ///< dimension of the main loop, -1: one pass
    std::vector<int> units, rows;  ///< dimensions of the unit's and the row's coordinates
    std::vector<KernelNumber> numbers;

    VectorKernel(const Job& j, const Traits& d) : job(j), device(d) {
        const int last = job.dims() - 1;
        reduces = job.reduces();
        int lanes = std::max(4, device.vector_width);
        if (job.type != Compute::f32) lanes = std::max(2, lanes / 2);
        width = std::min(lanes, 16);
        const std::int64_t size = job.sizes[static_cast<std::size_t>(last)];
        inner_kept = reduces && !job.reduced[static_cast<std::size_t>(last)];
        if (job.dims() > 1 && (size == 4 || size == 8 || size == 16)) {
            whole = true;
            width = static_cast<int>(size);
        }
        if (inner_kept) {
            for (int dim = last - 1; dim >= 0 && loop < 0; --dim)
                if (job.reduced[static_cast<std::size_t>(dim)]) loop = dim;
            multi = !whole;
        } else if (whole) {
            const auto next = static_cast<std::size_t>(last - 1);
            if (!reduces || job.reduced[next]) loop = last - 1;
        } else {
            loop = last;
        }
        for (int dim = 0; dim < job.dims(); ++dim) {
            if (dim == loop || dim == last) continue;
            const bool kept = reduces && !job.reduced[static_cast<std::size_t>(dim)];
            (kept ? units : rows).push_back(dim);
        }
    }

    std::int64_t size(int dim) const { return job.sizes[static_cast<std::size_t>(dim)]; }
    std::int64_t chunk() const { return std::int64_t{max_vectors} * width; }

    std::string add(const std::string& name, std::int64_t value) {
        for (const KernelNumber& n : numbers)
            if (n.name == name) return name;
        numbers.push_back({name, false, value, 0});
        return name;
    }
    std::string size_name(int dim) {
        return add(cat("n", dim), std::max<std::int64_t>(1, size(dim)));
    }
    std::string stride(int klass, int dim) {
        const std::int64_t s = job.stride(klass, dim);
        if (s == 0 || s == 1) return s ? "1" : "0";
        return add(cat("s", klass, "_", dim), s);
    }
    /// " + i * stride", or nothing.
    std::string step(const std::string& i, int klass, int dim) {
        if (dim < 0) return {};
        const std::string s = stride(klass, dim);
        if (s == "0") return {};
        return s == "1" ? " + " + i : cat(" + ", i, " * ", s);
    }
};

bool compensated(const JobOutput& out, const Job& job) {
    return out.kind == Output::Kind::sum && job.type != Compute::i64;
}

}  // namespace

std::vector<Region> workspace_regions(const Job& job) {
    std::vector<Region> regions;
    for (std::size_t k = 0; k < job.outputs.size(); ++k) {
        if (!job.outputs[k].reduces()) continue;
        regions.push_back({k, false});
        if (job.outputs[k].kind == Output::Kind::custom) regions.push_back({k, true});
    }
    return regions;
}

Generated vector_kernel(const Job& job, const Traits& device, std::int64_t parts, bool text) {
    VectorKernel k(job, device);
    const int last = job.dims() - 1;
    const int W = k.width;
    const std::int64_t elements = job.kept() * job.reduction();
    const std::int64_t workers = std::int64_t{8} * std::max(1, device.compute_units);

    // Sizes: units, rows, segments of the main loop, parts.
    std::int64_t units = 1, rows = 1;
    for (int dim : k.units) units *= k.size(dim);
    for (int dim : k.rows) rows *= k.size(dim);
    if (k.multi) units *= ceil_div(k.size(last), k.chunk());
    const std::int64_t length = k.loop < 0 ? 1 : k.size(k.loop);
    const std::int64_t stride_of_loop = k.loop == last ? W : 1;
    const std::int64_t wanted_tasks = std::clamp<std::int64_t>(elements / 4096, 1, workers);
    std::int64_t wanted_parts =
        k.reduces ? ceil_div(wanted_tasks, std::max<std::int64_t>(units, 1)) : wanted_tasks;
    if (k.reduces && units >= std::int64_t{2} * device.compute_units) wanted_parts = 1;
    if (k.reduces && parts > 0) wanted_parts = parts;
    std::int64_t segments = 1;
    if (k.reduces) segments = ceil_div(length, 512 * stride_of_loop);
    if (rows * segments < wanted_parts && rows > 0) segments = ceil_div(wanted_parts, rows);
    segments = std::clamp<std::int64_t>(
        segments, 1, std::max<std::int64_t>(1, ceil_div(length, stride_of_loop)));
    std::int64_t segment = ceil_div(ceil_div(length, segments), stride_of_loop) * stride_of_loop;
    segment = std::max(segment, stride_of_loop);
    segments = ceil_div(length, segment);
    const std::int64_t all_rows = rows * segments;
    Generated result;
    result.parts = std::max<std::int64_t>(1, std::min(wanted_parts, all_rows));
    const bool partial = k.reduces && result.parts > 1;
    const std::int64_t tasks = units * result.parts;
    result.range.global[0] = static_cast<std::size_t>(std::min(tasks, wanted_tasks));
    result.range.local[0] = 1;
    Emitter emit(job, W, false);
    result.partial_bytes = emit.element_bytes();
    if (!text) return result;

    k.add("tasks", tasks);
    k.add("parts", result.parts);
    k.add("rows", all_rows);
    k.add("segments", std::max<std::int64_t>(1, segments));
    k.add("segment", segment);
    k.add("length", length);

    const bool tail = k.loop == last || k.multi;  // vectors may be cut at the end
    const bool pad = job.channel_class >= 0;
    const std::string& T = emit.scalar_type();
    const std::string& V = emit.vector_type();
    const std::string& M = emit.mask_type();
    const auto classes = static_cast<int>(job.classes.size());
    const auto varies = [&](int c) {
        if (k.loop >= 0 && job.stride(c, k.loop) != 0) return true;
        return k.multi && job.stride(c, last) != 0;
    };
    const bool pad_varies = pad && varies(job.channel_class);
    const auto input_varies = [&](int c) {
        return varies(c) || (pad_varies && job.stride(c, last) != 0);
    };
    const std::vector<bool> levels = emit.levels(input_varies);
    const auto lane = [&](int c) { return k.stride(c, last); };
    const std::string at = k.multi ? "[v]" : "";
    const auto acc_decl = [&](const char* name, std::size_t o) {
        return cat(name, o, k.multi ? cat("[", max_vectors, "]") : "");
    };
    TextWriter os;
    const auto in_units = [&](int c) {  // offset of the unit
        std::string sum = "0";
        for (int dim : k.units) sum += k.step(cat("u", dim), c, dim);
        if (k.multi && job.stride(c, last) != 0) sum += cat(" + first * ", lane(c));
        return sum;
    };

    // Body of the kernel.
    os << "    const long work = get_global_id(0), workers = get_global_size(0);\n"
       << "    const long end = tasks * (work + 1) / workers;\n"
       << "    for (long task = tasks * work / workers; task < end; ++task) {\n"
       << "        const long part = task % parts;\n        long unit = task / parts;\n";
    if (k.multi) {
        k.size_name(last);
        k.add("chunks", ceil_div(k.size(last), k.chunk()));
        os << "        const long first = unit % chunks * " << k.chunk() << "; unit /= chunks;\n"
           << "        const int vectors = (int)((min(n" << last << " - first, (long)" << k.chunk()
           << ") + " << W - 1 << ") / " << W << ");\n";
    }
    for (auto dim = k.units.rbegin(); dim != k.units.rend(); ++dim)
        os << "        const long u" << *dim << " = unit % " << k.size_name(*dim) << "; unit /= n"
           << *dim << ";\n";
    os << "        long row = rows * part / parts;\n        const long row_end = rows * (part + 1) "
          "/ parts;\n"
       << "        long rest = row;\n        long piece = rest % segments; rest /= segments;\n";
    for (auto dim = k.rows.rbegin(); dim != k.rows.rend(); ++dim)
        os << "        long i" << *dim << " = rest % " << k.size_name(*dim) << "; rest /= n" << *dim
           << ";\n";
    for (int c = 0; c < classes; ++c) {
        os << "        long r" << c << " = " << in_units(c);
        for (int dim : k.rows) os << k.step(cat("i", dim), c, dim);
        os << ";\n";
    }
    // Accumulators.
    TextWriter clear;
    for (std::size_t o = 0; o < job.outputs.size(); ++o) {
        const JobOutput& out = job.outputs[o];
        if (!out.reduces()) continue;
        os << "        " << V << " " << acc_decl("acc", o) << ";";
        clear << " acc" << o << at << " = " << emit.splat(emit.neutral(out)) << ";";
        if (compensated(out, job)) {
            os << " " << V << " " << acc_decl("low", o) << ";";
            clear << " low" << o << at << " = " << emit.splat("0") << ";";
        }
        if (out.kind == Output::Kind::custom) {
            os << " " << M << " " << acc_decl("has", o) << ";";
            clear << " has" << o << at << " = (" << M << ")(0);";
        }
        os << "\n";
    }
    if (k.reduces) {
        if (k.multi)
            os << "        for (int v = 0; v < vectors; ++v) {" << clear.str() << " }\n";
        else
            os << "       " << clear.str() << "\n";
    }
    os << "        for (; row < row_end; ++row) {\n"
       << "            const long begin = piece * segment, stop = min(begin + segment, length);\n";
    // Row-level values. A lane count for padding that does not change inside the row.
    const std::string nv_pad_row = cat("            const int nv = (int)clamp(channels - r",
                                       job.channel_class, ", 0L, (long)", W, ");\n");
    if (pad) k.add("channels", job.channels);
    const bool nv_row = pad && !pad_varies && !tail;
    if (nv_row) os << nv_pad_row;
    const auto row_offset = [&](int c) { return cat("r", c); };
    emit.instructions(os, "            ", levels, false, row_offset, lane, false);
    std::string indent = "            ";
    const bool sums = std::any_of(job.outputs.begin(), job.outputs.end(),
                                  [&](const JobOutput& out) { return compensated(out, job); });
    if (sums) {
        os << indent
           << "for (long from = begin; from < stop; from += " << plain_steps * stride_of_loop
           << ") {\n";
        indent += "    ";
        os << indent << "const long to = min(from + " << plain_steps * stride_of_loop
           << ", stop);\n";
    }
    for (std::size_t o = 0; o < job.outputs.size(); ++o)
        if (compensated(job.outputs[o], job)) {
            os << indent << V << " " << acc_decl("sum", o) << ";\n" << indent;
            if (k.multi) os << "for (int v = 0; v < vectors; ++v) ";
            os << "sum" << o << at << " = " << emit.splat("0") << ";\n";
        }
    const std::string outer = indent;
    os << indent << "for (long i = " << (sums ? "from; i < to" : "begin; i < stop")
       << "; i += " << stride_of_loop << ") {\n";
    indent += "    ";
    if (k.multi) {
        os << indent << "for (int v = 0; v < vectors; ++v) {\n";
        indent += "    ";
    }
    for (int c = 0; c < classes; ++c)
        os << indent << "const long o" << c << " = r" << c << k.step("i", c, k.loop)
           << (k.multi ? k.step(cat("(long)v * ", W), c, last) : "") << ";\n";
    if (tail) {
        os << indent << "const int nt = (int)min("
           << (k.multi ? cat("n", last, " - first - v * ", W) : std::string("stop - i"))
           << ", (long)" << W << ");\n";
        if (pad)
            os << indent << "const int nv = min(nt, (int)clamp(channels - o" << job.channel_class
               << ", 0L, (long)" << W << "));\n";
        else
            os << indent << "const int nv = nt;\n";
    } else if (pad && !nv_row) {
        os << indent << "const int nv = (int)clamp(channels - o" << job.channel_class
           << ", 0L, (long)" << W << ");\n";
    }
    const bool cut = tail || pad;  // nv is there
    const auto loop_offset = [&](int c) { return cat("o", c); };
    emit.instructions(os, indent, levels, true, loop_offset, lane, tail);
    if (cut && (k.reduces || pad))
        os << indent << "const " << M << " live = (" << M << ")(nv) > " << emit.iota() << ";\n";
    for (std::size_t o = 0; o < job.outputs.size(); ++o) {
        const JobOutput& out = job.outputs[o];
        const std::string v = emit.value(out.value);
        if (!out.reduces()) {
            std::string stored = v;
            if (pad) stored = cat("select(", emit.splat("0"), ", ", v, ", live)");
            os << indent
               << emit.store(static_cast<int>(o), cat("y", o), out.dtype, loop_offset(out.klass),
                             stored, lane(out.klass), "nt", tail)
               << "\n";
            continue;
        }
        std::string fresh = cat("e", o);
        os << indent << V << " " << fresh << " = " << v << ";\n";
        if (out.kind == Output::Kind::custom) {
            std::string mine = cut ? "live" : cat("(", M, ")(-1)");
            if (out.flag >= 0)
                mine = cut ? cat("(live & ", emit.truth(out.flag), ")") : emit.truth(out.flag);
            os << indent << "acc" << o << at << " = select(acc" << o << at << ", select(" << fresh
               << ", " << emit.combine(o, false) << "(acc" << o << at << ", " << fresh << "), has"
               << o << at << "), " << mine << ");\n"
               << indent << "has" << o << at << " |= " << mine << ";\n";
            continue;
        }
        if (cut)
            os << indent << "if (nv < " << W << ") " << fresh << " = select("
               << emit.splat(emit.neutral(out)) << ", " << fresh << ", live);\n";
        const char* into = compensated(out, job) ? "sum" : "acc";
        os << indent << into << o << at << " = " << emit.combine(o, false) << "(" << into << o << at
           << ", " << fresh << ");\n";
    }
    if (k.multi) os << outer << "    }\n";
    os << outer << "}\n";
    for (std::size_t o = 0; o < job.outputs.size(); ++o) {
        if (!compensated(job.outputs[o], job)) continue;
        os << outer;
        if (k.multi) os << "for (int v = 0; v < vectors; ++v) ";
        os << "{ const " << V << " add = sum" << o << at << " - low" << o << at << ", all = acc"
           << o << at << " + add; low" << o << at << " = select((all - acc" << o << at
           << ") - add, " << emit.splat("0") << ", isinf(all) | isnan(all)); acc" << o << at
           << " = all; }\n";
    }
    if (sums) os << "            }\n";
    // The odometer.
    std::string closing;
    os << "            if (++piece == segments) {\n                piece = 0;\n";
    std::string deep = "                ";
    for (auto dim = k.rows.rbegin(); dim != k.rows.rend(); ++dim) {
        os << deep << "++i" << *dim << ";\n";
        for (int c = 0; c < classes; ++c) {
            const std::string s = k.stride(c, *dim);
            if (s != "0") os << deep << "r" << c << " += " << s << ";\n";
        }
        if (dim + 1 == k.rows.rend()) break;
        os << deep << "if (i" << *dim << " == n" << *dim << ") {\n";
        closing = deep + "}\n" + closing;
        deep += "    ";
        os << deep << "i" << *dim << " = 0;\n";
        for (int c = 0; c < classes; ++c) {
            const std::string s = k.stride(c, *dim);
            if (s != "0") os << deep << "r" << c << " -= n" << *dim << " * " << s << ";\n";
        }
    }
    os << closing << "            }\n        }\n";
    // Results of the task.
    if (k.reduces) {
        // The kept position as a linear number, for the workspace.
        std::string linear = "0";
        std::int64_t below = 1;
        if (partial) {
            for (int dim = last; dim >= 0; --dim) {
                if (job.reduced[static_cast<std::size_t>(dim)]) continue;
                if (dim == last) {
                    if (k.multi) linear += " + first";
                } else {
                    const std::string name =
                        below == 1 ? std::string() : cat(" * ", k.add(cat("k", dim), below));
                    linear += cat(" + u", dim, name);
                }
                below *= k.size(dim);
            }
            k.add("kept", job.kept());
            os << "        const long place = part * kept + " << linear << ";\n";
        }
        std::string in = "        ";
        if (k.inner_kept) {
            if (k.multi) {
                os << in << "for (int v = 0; v < vectors; ++v) {\n";
                in += "    ";
                os << in << "const int nt = (int)min(n" << last << " - first - v * " << W
                   << ", (long)" << W << ");\n";
                k.size_name(last);
            }
            const std::string v_by = k.multi ? cat("(long)v * ", W) : "0L";
            for (std::size_t o = 0; o < job.outputs.size(); ++o) {
                const JobOutput& out = job.outputs[o];
                if (!out.reduces()) continue;
                const DType own = job.type == Compute::f32   ? DType::f32
                                  : job.type == Compute::f64 ? DType::f64
                                                             : DType::i64;
                if (partial) {
                    const std::string place = k.multi ? "place + " + v_by : std::string("place");
                    os << in
                       << emit.store(static_cast<int>(o), cat("w", o), own, place,
                                     cat("acc", o, at), "1", "nt", k.multi)
                       << "\n";
                    if (out.kind == Output::Kind::custom)
                        os << in
                           << emit.store(static_cast<int>(o), cat("f", o), own, place,
                                         cat("select(", emit.splat("0"), ", ", emit.splat("1"),
                                             ", has", o, at, ")"),
                                         "1", "nt", k.multi)
                           << "\n";
                    continue;
                }
                std::string lanes = "nt";
                if (pad) {
                    std::string place = in_units(job.channel_class);
                    if (k.multi) place += k.step(v_by, job.channel_class, last);
                    lanes = cat("(int)clamp(channels - (", place, "), 0L, (long)",
                                k.multi ? "nt" : cat(W), ")");
                }
                const std::string place =
                    in_units(out.klass) + (k.multi ? k.step(v_by, out.klass, last) : "");
                os << in
                   << emit.store(static_cast<int>(o), cat("y", o), out.dtype, place,
                                 emit.finish(o, cat("acc", o, at), cat("has", o, at), false),
                                 lane(out.klass), lanes, k.multi || pad)
                   << "\n";
            }
            if (k.multi) os << "        }\n";
        } else {
            for (std::size_t o = 0; o < job.outputs.size(); ++o) {
                const JobOutput& out = job.outputs[o];
                if (!out.reduces()) continue;
                const bool custom = out.kind == Output::Kind::custom;
                os << "        {\n            " << T << " h[" << W << "]; vstore" << W << "(acc"
                   << o << ", 0, h);\n";
                const std::string mask_type = job.type == Compute::f32 ? "int" : "long";
                if (custom)
                    os << "            " << mask_type << " g[" << W << "]; vstore" << W << "(has"
                       << o << ", 0, g);\n";
                os << "            for (int half_ = " << W / 2 << "; half_ > 0; half_ /= 2)\n"
                   << "                for (int l = 0; l < half_; ++l) {\n";
                if (custom)
                    os << "                    if (g[l + half_]) h[l] = g[l] ? "
                       << emit.combine(o, true) << "(h[l], h[l + half_]) : h[l + half_];\n"
                       << "                    g[l] |= g[l + half_];\n";
                else
                    os << "                    h[l] = " << emit.combine(o, true)
                       << "(h[l], h[l + half_]);\n";
                os << "                }\n";
                const DType own = job.type == Compute::f32   ? DType::f32
                                  : job.type == Compute::f64 ? DType::f64
                                                             : DType::i64;
                if (partial) {
                    os << "            " << emit.store_one(own, cat("w", o), "place", "h[0]")
                       << "\n";
                    if (custom)
                        os << "            "
                           << emit.store_one(own, cat("f", o), "place",
                                             cat("(", T, ")(g[0] != 0 ? 1 : 0)"))
                           << "\n";
                } else {
                    std::string guard;
                    if (pad && job.stride(job.channel_class, last) == 0)
                        guard = cat("if (", in_units(job.channel_class), " < channels) ");
                    os << "            " << guard
                       << emit.store_one(out.dtype, cat("y", o), in_units(out.klass),
                                         emit.finish(o, "h[0]", cat("(", mask_type, ")g[0]"), true))
                       << "\n";
                }
                os << "        }\n";
            }
        }
    }
    os << "    }\n}\n";

    // Signature.
    TextWriter head;
    head << "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void pointwise(";
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
    result.numbers = k.numbers;
    result.numbers.insert(result.numbers.end(), emit.numbers().begin(), emit.numbers().end());
    for (const KernelNumber& n : result.numbers)
        head << ", " << (n.real ? "float " : "long ") << n.name;
    result.source = cat(emit.preamble(), head.str(), ") {\n", shifts, os.str());
    return result;
}

}  // namespace dlprim::pointwise
