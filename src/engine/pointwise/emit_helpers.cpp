// SPDX-License-Identifier: MIT
// OpenCL C text of the functions that load and store each storage type, and of what precedes a
// generated kernel. The name of a function is a kind and the tag of a type, such as "ldv_f16":
//
//   ld   an element                             st   an element
//   ldv  a vector                               stv  a vector
//   lda  an aligned vector                      sta  an aligned vector
//   ldu  a vector at any element, on GPUs       stu  a vector at any element, on GPUs
//   ldp  the first n lanes, on CPUs             stp  the first n lanes, on CPUs
//   lds  n lanes of a vector, s elements apart  sts  n lanes of a vector, s elements apart
//
// The last vector of a row takes ldp and stp, which have a branch for each bit of n. They are no
// part of the loop that calls them: inlined, they would take half of the compile time. USUALLY
// tells compilers that the loop seldom calls them, so that its values stay in registers.
//
// CPUs load and store vectors of any alignment by types loose_<vector>, which does what vload and
// vstore do. PoCL would link these functions into each program, and convert_<vector>() where it
// changes nothing, which takes a fifth of the time to compile one.
#include "base/text.hpp"
#include "engine/kernel_type.hpp"
#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/emit_names.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace dlprim::pointwise {
namespace {

DType tagged(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(DType::u64); ++i)
        if (text == tag(static_cast<DType>(i))) return static_cast<DType>(i);
    return DType::f32;
}

/// The text after a vector's name that picks `count` of its lanes: ".s4567".
std::string lanes_of(int first, int count) {
    std::string text = ".s";
    for (int lane = first; lane < first + count; ++lane) text += "0123456789abcdef"[lane];
    return text;
}

/// The vector of `width` elements at `place`, which need not be aligned.
std::string loose_load(DType dtype, int width, const char* place) {
    return cat("*(global const loose_", wide(kernel_type(dtype), width), "*)(", place, ")");
}

std::string loose_store(DType dtype, int width, const char* place, const std::string& value) {
    return cat("*(global loose_", wide(kernel_type(dtype), width), "*)(", place, ") = ", value);
}

}  // namespace

void Emitter::helper_text(SourceWriter& out, const std::string& name) const {
    if (name.rfind("philox", 0) == 0) return;  // random_functions()
    const auto cut = name.find('_');
    const std::string kind = name.substr(0, cut);
    const DType dtype = tagged(name.substr(cut + 1));
    if (kind == "ld") load_one(out, name, dtype);
    if (kind == "ldv" || kind == "lda" || kind == "ldu")
        load_vector(out, name, dtype, alignment(kind.back()));
    if (kind == "ldp") load_part(out, name, dtype);
    if (kind == "lds") load_lanes(out, name, dtype);
    if (kind == "st") store_vector(out, name, dtype, 1, alignment('v'));
    if (kind == "stv" || kind == "sta" || kind == "stu")
        store_vector(out, name, dtype, width_, alignment(kind.back()));
    if (kind == "stp") store_part(out, name, dtype);
    if (kind == "sts") store_lanes(out, name, dtype);
}

Emitter::Aligned Emitter::alignment(char kind) const {
    if (kind == 'a') return Aligned::known;
    return kind == 'v' && aligned_ ? Aligned::asked : Aligned::never;
}

void Emitter::load_one(SourceWriter& out, const std::string& name, DType dtype) const {
    const char* const element = dtype == DType::f16    ? "vload_half(0, p + o)"
                                : dtype == DType::bf16 ? "as_float((uint)p[o] << 16)"
                                                       : "p[o]";
    out.line(scalar_, " ", name, "(global const ", kernel_type(dtype), "* p, long o) { return (",
             scalar_, ")", element, "; }");
}

/// Converts the stored vector v to the type that the kernel computes in.
std::string Emitter::loaded(DType dtype) const {
    if (!aligned_ && kernel_type(dtype) == scalar_) return "v";
    if (dtype != DType::bf16) return cat("convert_", vector_, "(v)");
    return cat("convert_", vector_, "(as_", wide("float", width_), "(convert_",
               wide("uint", width_), "(v) << 16))");
}

/// GPUs load an aligned vector at once. If the alignment is not known, it is checked at run time.
void Emitter::load_vector(SourceWriter& out, const std::string& name, DType dtype,
                          Aligned how) const {
    const std::string raw = wide(kernel_type(dtype), width_);
    const std::string whole = cat("(o & ", width_ - 1, ") == 0 ? ");
    out.open(vector_, " ", name, "(global const ", kernel_type(dtype), "* p, long o)");
    if (dtype == DType::f16) {
        const std::string from = cat("_half", width_, "(0, p + o)");
        out.line("return convert_", vector_, "(",
                 how == Aligned::never ? std::string() : cat(whole, "vloada", from, " : "), "vload",
                 from, ");");
        out.close();
        return;
    }
    const std::string at_once = cat("*(global const ", raw, "*)(p + o)");
    const std::string loose =
        aligned_ ? cat("vload", width_, "(0, p + o)") : loose_load(dtype, width_, "p + o");
    out.line("const ", raw, " v = ",
             how == Aligned::known   ? at_once
             : how == Aligned::asked ? cat(whole, at_once, " : ", loose)
                                     : loose,
             ";");
    out.line("return ", loaded(dtype), ";");
    out.close();
}

/// Loads the first n lanes, where n is less than the width; the others are zero. The parts of n by
/// powers of two are loaded from the end, and each moves those behind it up.
void Emitter::load_part(SourceWriter& out, const std::string& name, DType dtype) const {
    const bool half = dtype == DType::f16;
    const std::string raw = wide(half ? "float" : kernel_type(dtype), width_);
    out.open("__attribute__((noinline)) ", vector_, " ", name, "(global const ", kernel_type(dtype),
             "* p, long o, int n)");
    out.line(raw, " v = (", raw, ")(0);");
    out.line("p += o + n;");
    for (int part = 1; part < width_; part *= 2) {
        const std::string size = part == 1 ? std::string() : cat(part);
        const std::string from = half        ? cat("vload_half", size, "(0, p)")
                                 : part == 1 ? std::string("p[0]")
                                             : loose_load(dtype, part, "p");
        const std::string low = lanes_of(0, part);
        out.line("if (n & ", part, ") { p -= ", part, "; v", lanes_of(part, part), " = v", low,
                 "; v", low, " = ", from, "; }");
    }
    out.line("return ", loaded(dtype), ";");
    out.close();
}

void Emitter::load_lanes(SourceWriter& out, const std::string& name, DType dtype) const {
    out.open(vector_, " ", name, "(global const ", kernel_type(dtype),
             "* p, long o, long s, int n)");
    const std::string one = cat("ld_", tag(dtype)), zero = cat("(", scalar_, ")0");
    if (width_ == 1) {
        out.line("return n > 0 ? ", one, "(p, o) : ", zero, ";");
    } else {
        out.line(scalar_, " t[", width_, "];");
        out.line("for (int l = 0; l < ", width_, "; ++l) t[l] = l < n ? ", one,
                 "(p, o + l * s) : ", zero, ";");
        out.line("return vload", width_, "(0, t);");
    }
    out.close();
}

/// Converts the vector v, or for bfloat16 its bits b, to the stored type. Integers are rounded
/// towards zero and clamped, NaN becomes 0, and truth values are 1 or 0.
std::string Emitter::stored(DType dtype, int width) const {
    const std::string type = wide(scalar_, width);
    const std::string to = cat("convert_", wide(kernel_type(dtype), width));
    const std::string zero = cat("(", type, ")(0)");
    if (!aligned_ && kernel_type(dtype) == scalar_) return "v";
    const std::string mask = width == 1 ? cat("(", mask_scalar_, ")") : "";
    if (dtype == DType::bf16) return cat(to, "(b)");
    if (dtype == DType::boolean)
        return cat(to, "(select(", zero, ", (", type, ")(1), ", mask, "(v != ", zero, ")))");
    if (dtype == DType::f32 || dtype == DType::f64 || job_.is_whole()) return cat(to, "(v)");
    return cat(to, "_sat(select(v, ", zero, ", ", mask, "(v != v)))");
}

/// Declares the bits b of bfloat16 that stored() takes: those of v, rounded to the nearest.
void Emitter::stored_bits(SourceWriter& out, DType dtype, int width) const {
    if (dtype != DType::bf16) return;
    const std::string bits = wide("uint", width), floats = wide("float", width);
    out.line("const ", floats, " x = convert_", floats, "(v);");
    out.line(bits, " b = as_", bits, "(x);");
    out.line("b = select((b + 0x7fff + ((b >> 16) & 1)) >> 16, (", bits, ")(0x7fc0), ",
             width == 1 ? "(int)" : "", "(x != x));");
}

void Emitter::store_vector(SourceWriter& out, const std::string& name, DType dtype, int width,
                           Aligned how) const {
    const std::string raw = wide(kernel_type(dtype), width);
    out.open("void ", name, "(global ", kernel_type(dtype), "* p, long o, ", wide(scalar_, width),
             " v)");
    stored_bits(out, dtype, width);
    const std::string text = stored(dtype, width);
    if (dtype == DType::f16) {
        store_halves(out, width, how);
    } else if (width == 1) {
        out.line("p[o] = ", text, ";");
    } else if (how == Aligned::known) {
        out.line("*(global ", raw, "*)(p + o) = ", text, ";");
    } else if (how == Aligned::asked) {
        out.line("const ", raw, " r = ", text, ";");
        out.line("if ((o & ", width - 1, ") == 0) *(global ", raw, "*)(p + o) = r; else vstore",
                 width, "(r, 0, p + o);");
    } else if (aligned_) {
        out.line("vstore", width, "(", text, ", 0, p + o);");
    } else {
        out.line(loose_store(dtype, width, "p + o", text), ";");
    }
    out.close();
}

void Emitter::store_halves(SourceWriter& out, int width, Aligned how) const {
    const std::string stored = cat("_half", width == 1 ? std::string() : cat(width),
                                   "_rte(convert_", wide("float", width), "(v), 0, p + o);");
    const bool asks = how != Aligned::never && width > 1;
    if (asks) out.line("if ((o & ", width - 1, ") == 0) vstorea", stored);
    out.line(asks ? "else " : "", "vstore", stored);
}

/// Stores the first n lanes, where n is less than the width, in parts by powers of two.
void Emitter::store_part(SourceWriter& out, const std::string& name, DType dtype) const {
    const bool half = dtype == DType::f16;
    const std::string raw = wide(half ? "float" : kernel_type(dtype), width_);
    out.open("__attribute__((noinline)) void ", name, "(global ", kernel_type(dtype),
             "* p, long o, ", vector_, " v, int n)");
    stored_bits(out, dtype, width_);
    out.line(raw, " r = ", half ? cat("convert_", raw, "(v)") : stored(dtype, width_), ";");
    out.line("p += o;");
    for (int part = width_ / 2; part > 0; part /= 2) {
        const std::string size = part == 1 ? std::string() : cat(part);
        const std::string low = cat("r", lanes_of(0, part));
        const std::string to = half        ? cat("vstore_half", size, "_rte(", low, ", 0, p)")
                               : part == 1 ? cat("p[0] = ", low)
                                           : loose_store(dtype, part, "p", low);
        out.line("if (n & ", part, ") { ", to, "; p += ", part, "; ", low, " = r",
                 lanes_of(part, part), "; }");
    }
    out.close();
}

void Emitter::store_lanes(SourceWriter& out, const std::string& name, DType dtype) const {
    out.open("void ", name, "(global ", kernel_type(dtype), "* p, long o, long s, ", vector_,
             " v, int n)");
    if (width_ == 1) {
        out.line("if (n > 0) st_", tag(dtype), "(p, o, v);");
    } else {
        out.line(scalar_, " t[", width_, "];");
        out.line("vstore", width_, "(v, 0, t);");
        out.line("for (int l = 0; l < ", width_, " && l < n; ++l) st_", tag(dtype),
                 "(p, o + l * s, t[l]);");
    }
    out.close();
}

bool Emitter::uses_doubles() const {
    const auto is_double = [](const auto& operand) { return operand.dtype == DType::f64; };
    return job_.type == Compute::f64 ||
           std::any_of(job_.inputs.begin(), job_.inputs.end(), is_double) ||
           std::any_of(job_.outputs.begin(), job_.outputs.end(), is_double);
}

/// Declares the loose types of the helpers.
void Emitter::loose_types(SourceWriter& out, const std::set<std::string>& helpers) const {
    std::map<std::string, std::size_t> types;  // bytes; several types of tensors are one of kernels
    for (const std::string& name : helpers)
        for (const char* kind : {"ldv_", "ldp_", "stv_", "stp_"}) {
            if (name.rfind(kind, 0) != 0) continue;
            const DType dtype = tagged(name.substr(4));
            if (dtype != DType::f16) types[kernel_type(dtype)] = size_of(dtype);
        }
    for (const auto& [type, bytes] : types)
        for (int width = 2; width <= width_; width *= 2) {
            const std::string vector = wide(type, width);
            out.line("typedef ", vector, " loose_", vector, " __attribute__((aligned(", bytes,
                     ")));");
        }
}

std::string Emitter::preamble() const {
    SourceWriter out(0);
    if (uses_doubles()) out.directive("#pragma OPENCL EXTENSION cl_khr_fp64 : enable");
    // The same expression must give the same bits in every kernel: gradients of max compare with
    // ==.
    out.directive("#pragma OPENCL FP_CONTRACT OFF");
    std::set<std::string> all = helpers_;
    for (const std::string& name : helpers_) {
        if (name.rfind("lds_", 0) == 0) all.insert(cat("ld_", name.substr(4)));
        if (name.rfind("sts_", 0) == 0) all.insert(cat("st_", name.substr(4)));
    }
    const auto is_part = [](const std::string& name) {
        return name.rfind("ldp_", 0) == 0 || name.rfind("stp_", 0) == 0;
    };
    if (std::any_of(all.begin(), all.end(), is_part)) {
        out.directive("#ifdef __clang__");
        out.directive("#define USUALLY(x) __builtin_expect(x, 1)");
        out.directive("#else");
        out.directive("#define USUALLY(x) (x)");
        out.directive("#endif");
    }
    if (!aligned_) loose_types(out, all);
    for (const std::string& name : all) helper_text(out, name);
    const auto is_erf = [](const Instruction& in) { return in.op == Op::erf; };
    if (own_erf() && std::any_of(job_.tape.code.begin(), job_.tape.code.end(), is_erf))
        vector_erf(out);
    own_functions(out);
    random_functions(out);
    for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
        if (!job_.outputs[k].reduces()) continue;
        combine_function(out, k, true);
        if (width_ > 1) combine_function(out, k, false);
    }
    return out.str();
}

}  // namespace dlprim::pointwise
