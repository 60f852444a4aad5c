// SPDX-License-Identifier: MIT
// OpenCL C text of the functions that a generated kernel calls: loads and stores of each type,
// random numbers, erf.
#include "engine/pointwise/emit.hpp"

#include "base/text.hpp"
#include "engine/pointwise/emit_names.hpp"

#include <tuple>

namespace dlprim::pointwise {

namespace {

DType tagged(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(DType::boolean); ++i)
        if (text == tag(static_cast<DType>(i))) return static_cast<DType>(i);
    return DType::f32;
}

}  // namespace

std::string Emitter::helper_text(const std::string& name) const {
    if (name == "philox") return {};
    const auto cut = name.find('_');
    const std::string kind = name.substr(0, cut);
    const DType dtype = tagged(name.substr(cut + 1));
    const std::string S = storage_type(dtype), T = scalar_, V = vector_;
    const int W = width_;
    const std::string id = cat("long");
    TextWriter os;
    if (kind == "ld") {
        os << T << " " << name << "(global const " << S << "* p, " << id << " o) { return (" << T
           << ")";
        if (dtype == DType::f16)
            os << "vload_half(0, p + o)";
        else if (dtype == DType::bf16)
            os << "as_float((uint)p[o] << 16)";
        else
            os << "p[o]";
        os << "; }\n";
    } else if (kind == "ldv" || kind == "lda") {
        os << V << " " << name << "(global const " << S << "* p, " << id << " o) {\n";
        const std::string raw = wide(S, W);
        if (dtype == DType::f16) {
            const std::string loose = cat("vload_half", W, "(0, p + o)");
            os << "    return convert_" << V << "("
               << (aligned_ ? cat("(o & ", W - 1, ") == 0 ? vloada_half", W, "(0, p + o) : ", loose)
                            : loose)
               << ");\n}\n";
            return os.str();
        }
        if (kind == "lda")
            os << "    const " << raw << " v = *(global const " << raw << "*)(p + o);\n";
        else if (aligned_)
            os << "    const " << raw << " v = (o & " << W - 1 << ") == 0 ? *(global const " << raw
               << "*)(p + o) : vload" << W << "(0, p + o);\n";
        else
            os << "    const " << raw << " v = vload" << W << "(0, p + o);\n";
        if (dtype == DType::bf16)
            os << "    return convert_" << V << "(as_" << wide("float", W) << "(convert_"
               << wide("uint", W) << "(v) << 16));\n}\n";
        else
            os << "    return convert_" << V << "(v);\n}\n";
    } else if (kind == "lds") {
        os << V << " " << name << "(global const " << S << "* p, " << id << " o, " << id
           << " s, int n) {\n";
        if (W == 1)
            os << "    return n > 0 ? "
               << "ld_" << tag(dtype) << "(p, o) : (" << T << ")0;\n}\n";
        else
            os << "    " << T << " t[" << W << "];\n    for (int l = 0; l < " << W
               << "; ++l) t[l] = l < n ? ld_" << tag(dtype) << "(p, o + l * s) : (" << T
               << ")0;\n    return vload" << W << "(0, t);\n}\n";
    } else if (kind == "st" || kind == "stv" || kind == "sta") {
        const int w = kind == "st" ? 1 : W;
        const std::string type = wide(T, w), f = wide("float", w), u = wide("uint", w);
        os << "void " << name << "(global " << S << "* p, " << id << " o, " << type << " v) {\n";
        const auto put = [&](const std::string& text) {
            if (w == 1)
                os << "    p[o] = " << text << ";\n";
            else if (kind == "sta")
                os << "    *(global " << wide(S, w) << "*)(p + o) = " << text << ";\n";
            else if (aligned_)
                os << "    const " << wide(S, w) << " r = " << text << ";\n    if ((o & " << w - 1
                   << ") == 0) *(global " << wide(S, w) << "*)(p + o) = r; else vstore" << w
                   << "(r, 0, p + o);\n";
            else
                os << "    vstore" << w << "(" << text << ", 0, p + o);\n";
        };
        switch (dtype) {
            case DType::f16: {
                const std::string lanes = w == 1 ? std::string() : cat(w);
                const std::string stored =
                    cat("_half", lanes, "_rte(convert_", f, "(v), 0, p + o);\n");
                os << "    ";
                if (aligned_ && w > 1)
                    os << "if ((o & " << w - 1 << ") == 0) vstorea" << stored << "    else ";
                os << "vstore" << stored;
                break;
            }
            case DType::bf16:
                os << "    const " << f << " x = convert_" << f << "(v);\n    " << u << " b = as_"
                   << u << "(x);\n    b = select((b + 0x7fff + ((b >> 16) & 1)) >> 16, (" << u
                   << ")(0x7fc0), " << (w == 1 ? "(int)" : "") << "(x != x));\n";
                put("convert_" + wide("ushort", w) + "(b)");
                break;
            case DType::boolean:
                put(cat("convert_", wide("uchar", w), "(select((", type, ")(0), (", type, ")(1), ",
                        w == 1 ? "(" + mask_scalar_ + ")" : "", "(v != (", type, ")(0))))"));
                break;
            case DType::f32:
            case DType::f64:
                put("convert_" + wide(S, w) + "(v)");
                break;
            default:
                if (job_.type == Compute::i64)
                    put("convert_" + wide(S, w) + "(v)");
                else
                    put(cat("convert_", wide(S, w), "_sat(select(v, (", type, ")(0), ",
                            w == 1 ? "(" + mask_scalar_ + ")" : "", "(v != v)))"));
        }
        os << "}\n";
    } else if (kind == "sts") {
        os << "void " << name << "(global " << S << "* p, " << id << " o, " << id << " s, " << V
           << " v, int n) {\n";
        if (W == 1)
            os << "    if (n > 0) st_" << tag(dtype) << "(p, o, v);\n}\n";
        else
            os << "    " << T << " t[" << W << "];\n    vstore" << W
               << "(v, 0, t);\n    for (int l = 0; l < " << W << " && l < n; ++l) st_" << tag(dtype)
               << "(p, o + l * s, t[l]);\n}\n";
    }
    return os.str();
}

std::string Emitter::preamble() const {
    TextWriter os;
    bool doubles = job_.type == Compute::f64;
    for (const JobInput& in : job_.inputs) doubles = doubles || in.dtype == DType::f64;
    for (const JobOutput& out : job_.outputs) doubles = doubles || out.dtype == DType::f64;
    if (doubles) os << "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    // The same expression gives the same bits in every kernel: gradients of max compare with ==.
    os << "#pragma OPENCL FP_CONTRACT OFF\n";
    std::set<std::string> all = helpers_;
    for (const std::string& name : helpers_) {
        if (name.rfind("lds_", 0) == 0) all.insert("ld_" + name.substr(4));
        if (name.rfind("sts_", 0) == 0) all.insert("st_" + name.substr(4));
    }
    for (const std::string& name : all) os << helper_text(name);
    bool erf = false;
    for (const Instruction& in : job_.tape.code) erf = erf || in.op == Op::erf;
    if (erf && own_erf()) {
        // Power series below 1; beyond it Abramowitz and Stegun 7.1.26. Drivers' own erf goes lane
        // by lane.
        static const double series[] = {1.0 / 6894720, -1.0 / 685440, 1.0 / 75600,
                                        -1.0 / 9360,   1.0 / 1320,    -1.0 / 216,
                                        1.0 / 42,      -0.1,          1.0 / 3};
        os << vector_ << " vector_erf(" << vector_ << " x) {\n    const " << vector_
           << " a = fabs(x), s = x * x, t = 1.0f / (1.0f + 0.3275911f * a);\n    " << vector_
           << " p = " << splat(literal(-1.0 / 76204800)) << ";\n";
        for (const double c : series) os << "    p = p * s + " << literal(c) << ";\n";
        os << "    const " << vector_
           << " near_ = 1.12837916709551257f * a * (1.0f - s * p);\n    const " << vector_
           << " far_ = 1.0f - t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * "
              "(-1.453152027f + t * "
              "1.061405429f)))) * exp(-s);\n    return copysign(select(far_, near_, a < 1.0f), "
              "x);\n}\n";
    }
    if (helpers_.count("philox")) {
        const std::string U = wide("uint", width_), L = wide("ulong", width_),
                          F = wide("float", width_);
        std::string lanes = "(" + L + ")(0";
        for (int i = 1; i < width_; ++i) lanes += cat(",", i);
        lanes += ")";
        // CPUs multiply 32 bits to 64 in vectors; GPUs have the high half as an instruction.
        std::string round;
        for (const auto& [n, factor, word] :
             {std::tuple("0", "0xD2511F53", "c0"), std::tuple("1", "0xCD9E8D57", "c2")})
            round += aligned_
                         ? cat("        const ", U, " h", n, " = mul_hi((", U, ")(", factor, "u), ",
                               word, "), l", n, " = ", word, " * ", factor, "u;\n")
                         : cat("        const ", L, " q", n, " = convert_", L, "(", word, ") * ",
                               factor, "UL; const ", U, " h", n, " = convert_", U, "(q", n,
                               " >> 32), l", n, " = convert_", U, "(q", n, " & 0xffffffffUL);\n");
        os << F << " philox_uniform(ulong seed, ulong step, ulong id, ulong first, ulong lane) {\n"
           << "    const " << L << " element = (" << L << ")(first) + " << lanes << " * (" << L
           << ")(lane);\n"
           << "    " << U << " c0 = convert_" << U << "(element & 0xffffffffUL), c1 = convert_" << U
           << "(element >> 32);\n"
           << "    " << U << " c2 = (" << U << ")((uint)step), c3 = (" << U << ")((uint)id);\n"
           << "    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);\n"
           << "    for (int r = 0; r < 10; ++r) {\n"
           << round << "        c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;\n"
           << "        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;\n    }\n"
           << "    return convert_" << F << "(c0 >> 8) * (1.0f / 16777216.0f);\n}\n";
    }
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (!job_.outputs[k].reduces()) continue;
        os << combine_function(k, true);
        if (width_ > 1) os << combine_function(k, false);
    }
    return os.str();
}

}  // namespace dlprim::pointwise
