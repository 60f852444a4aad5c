// SPDX-License-Identifier: MIT
// OpenCL C text of a job's arithmetic.
#include "engine/pointwise/emit.hpp"

#include "base/text.hpp"
#include "engine/float_literal.hpp"
#include "engine/pointwise/emit_names.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace dlprim::pointwise {
namespace {

std::string compute_name(Compute type) {
    return type == Compute::f32 ? "float" : type == Compute::f64 ? "double" : "long";
}

}  // namespace

Emitter::Emitter(const Job& job, int width, bool aligned_loads)
    : job_(job), width_(width), aligned_(aligned_loads) {
    scalar_ = compute_name(job.type);
    vector_ = wide(scalar_, width);
    mask_scalar_ = job.type == Compute::f32 ? "int" : "long";
    mask_ = wide(mask_scalar_, width);
    for (const Instruction& in : job.tape.code) is_mask_.push_back(is_truth(in.op));
}

bool Emitter::is_aligned(int klass) const {
    const std::vector<std::int64_t>& strides = job_.classes[static_cast<std::size_t>(klass)];
    return aligned_ && std::all_of(strides.begin(), strides.end() - 1,
                                   [&](std::int64_t s) { return s % width_ == 0; });
}

std::string Emitter::storage_type(DType dtype) {
    static const char* const names[] = {"float", "half",   "ushort", "double", "char", "uchar",
                                        "short", "ushort", "int",    "uint",   "long", "uchar"};
    return names[static_cast<int>(dtype)];
}

std::string Emitter::iota() const {
    if (width_ == 1) return "0";
    std::string text = "(" + mask_ + ")(0";
    for (int i = 1; i < width_; ++i) text += cat(",", i);
    return text + ")";
}

std::string Emitter::literal(double value) const {
    if (job_.type == Compute::i64) {
        if (value <= -9.2e18) return "LONG_MIN";
        if (value >= 9.2e18) return "LONG_MAX";
        return cat(static_cast<std::int64_t>(value), "L");
    }
    if (job_.type == Compute::f32) return float_literal(value);
    if (std::isnan(value)) return "NAN";
    if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
    char buffer[40];
    std::string text(buffer, std::to_chars(buffer, buffer + 40, value).ptr);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string Emitter::helper(const char* kind, DType dtype) {
    std::string name = cat(kind, "_", tag(dtype));
    helpers_.insert(name);
    return name;
}

/// A run-time number of the compute type.
std::string Emitter::number(const std::string& name, double value) {
    bool known = false;
    for (const KernelNumber& n : numbers_) known = known || n.name == name;
    if (!known) {
        KernelNumber n;
        n.name = name;
        n.real = job_.type == Compute::f32;
        n.value = static_cast<float>(value);
        if (job_.type == Compute::f64) std::memcpy(&n.whole, &value, 8);
        if (job_.type == Compute::i64) n.whole = static_cast<std::int64_t>(value);
        numbers_.push_back(n);
    }
    return job_.type == Compute::f64 ? "as_double(" + name + ")" : name;
}

std::vector<bool> Emitter::levels(const std::function<bool(int)>& varies) const {
    std::vector<bool> levels;
    std::vector<int> klass(job_.tape.code.size(), -1);
    for (const Instruction& in : job_.tape.code) {
        bool level = false;
        for (int arg : {in.a, in.b, in.c})
            if (arg >= 0) level = level || levels[static_cast<std::size_t>(arg)];
        if (in.op == Op::input) {
            for (const JobInput& input : job_.inputs)
                if (input.number == in.number) level = varies(input.klass);
        } else if (in.op == Op::index) {
            level = varies(job_.class_of_index(in.number));
        } else if (in.op == Op::uniform) {
            level = level || varies(job_.linear_class);
        }
        levels.push_back(level);
    }
    return levels;
}

std::string Emitter::value(int i) const {
    const Instruction& in = job_.tape.code[static_cast<std::size_t>(i)];
    if (in.op == Op::constant) return splat(literal(in.value));
    if (is_mask_[static_cast<std::size_t>(i)])
        return cat("select(", splat("0"), ", ", splat("1"), ", m", i, ")");
    return cat("t", i);
}

std::string Emitter::truth(int i) const {
    if (is_mask_[static_cast<std::size_t>(i)]) return cat("m", i);
    return compare(cat(value(i), " != ", splat("0")));
}

std::string Emitter::compare(const std::string& text) const {
    return width_ == 1 ? cat("(", mask_, ")(", text, ")") : cat("(", text, ")");
}

std::string Emitter::whole_number(int i, const std::function<std::string(int)>& offset) {
    const Instruction& in = job_.tape.code[static_cast<std::size_t>(i)];
    if (in.op == Op::constant) return cat("(ulong)", static_cast<std::int64_t>(in.value), "L");
    if (in.op == Op::scalar) {
        const std::string name = cat("p", in.number, "_whole");
        bool known = false;
        for (const KernelNumber& n : numbers_) known = known || n.name == name;
        if (!known)
            numbers_.push_back(
                {name, false,
                 static_cast<std::int64_t>(job_.scalars[static_cast<std::size_t>(in.number)]), 0});
        return "(ulong)" + name;
    }
    if (in.op == Op::input)
        for (const JobInput& input : job_.inputs)
            if (input.number == in.number && !is_float(input.dtype))
                return cat("(ulong)x", in.number, "[", offset(input.klass), "]");
    return cat("(ulong)(long)", value(i), width_ == 1 ? "" : ".s0");
}

std::string Emitter::expression(const Tape&, const Instruction& in,
                                const std::function<std::string(int)>& v,
                                const std::function<std::string(int)>& truth, bool scalar) const {
    const bool whole = job_.type == Compute::i64;
    const auto one = [&](const char* text) {
        return scalar ? cat("(", scalar_, ")(", text, ")") : splat(text);
    };
    const auto cmp = [&](const std::string& text) {
        return scalar || width_ == 1 ? cat("(", mask_scalar_, ")(", text, ")")
                                     : cat("(", text, ")");
    };
    const auto infix = [&](const char* sign) { return cat(v(in.a), " ", sign, " ", v(in.b)); };
    const auto unary = [&](const char* name) { return cat(name, "(", v(in.a), ")"); };
    switch (in.op) {
        case Op::add:
            return infix("+");
        case Op::sub:
            return infix("-");
        case Op::mul:
            return infix("*");
        case Op::div:
            return infix("/");
        case Op::neg:
            return cat("-", v(in.a));
        case Op::less:
            return cmp(infix("<"));
        case Op::less_equal:
            return cmp(infix("<="));
        case Op::greater:
            return cmp(infix(">"));
        case Op::greater_equal:
            return cmp(infix(">="));
        case Op::equal:
            return cmp(infix("=="));
        case Op::not_equal:
            return cmp(infix("!="));
        case Op::logical_and:
            return cat(truth(in.a), " & ", truth(in.b));
        case Op::logical_or:
            return cat(truth(in.a), " | ", truth(in.b));
        case Op::logical_not:
            return cmp(cat("!", truth(in.a)));
        case Op::select:
            return cat("select(", v(in.c), ", ", v(in.b), ", ", truth(in.a), ")");
        case Op::max:
        case Op::min: {
            const char* sign = in.op == Op::max ? " > " : " < ";
            if (whole) return cat(in.op == Op::max ? "max(" : "min(", v(in.a), ", ", v(in.b), ")");
            return cat("select(", v(in.b), ", ", v(in.a), ", ", cmp(v(in.a) + sign + v(in.b)),
                       " | ", cmp(v(in.a) + " != " + v(in.a)), ")");
        }
        case Op::fma:
            return whole ? cat(v(in.a), " * ", v(in.b), " + ", v(in.c))
                         : cat("fma(", v(in.a), ", ", v(in.b), ", ", v(in.c), ")");
        case Op::pow:
            return cat("pow(", v(in.a), ", ", v(in.b), ")");
        case Op::abs:
            return whole ? cat("select(", v(in.a), ", -", v(in.a), ", ",
                               cmp(v(in.a) + " < " + one("0")), ")")
                         : unary("fabs");
        case Op::sign:
            return cat("select(", one("0"), ", ", one("1"), ", ", cmp(v(in.a) + " > " + one("0")),
                       ") - select(", one("0"), ", ", one("1"), ", ",
                       cmp(v(in.a) + " < " + one("0")), ")");
        case Op::floor:
        case Op::ceil:
        case Op::round:
        case Op::trunc:
            if (whole) return v(in.a);
            return unary(in.op == Op::floor   ? "floor"
                         : in.op == Op::ceil  ? "ceil"
                         : in.op == Op::round ? "rint"
                                              : "trunc");
        case Op::erf:
            return unary(own_erf() ? (scalar || width_ == 1 ? "erf" : "vector_erf") : "erf");
        case Op::sigmoid:
            return cat(one("1"), " / (", one("1"), " + exp(-", v(in.a), "))");
        case Op::isnan:
            return whole ? cmp(v(in.a) + " != " + v(in.a)) : cmp(unary("isnan"));
        case Op::isinf:
            return whole ? cmp(v(in.a) + " != " + v(in.a)) : cmp(unary("isinf"));
        default:
            return unary(std::string(function_of(in.op).name).c_str());
    }
}

const JobInput& Emitter::input(int number) const {
    return *std::find_if(job_.inputs.begin(), job_.inputs.end(),
                         [&](const JobInput& input) { return input.number == number; });
}

/// A vector of an input. Lanes that are not there, behind the end or in padding, are zeros.
std::string Emitter::load(const JobInput& input, const std::string& offset, const std::string& lane,
                          bool partial) {
    const std::string at = cat("(x", input.number, ", ", offset);
    const bool guard = job_.channel_class >= 0;
    const char* const vector = is_aligned(input.klass) ? "lda" : "ldv";
    if (width_ == 1 && !guard && !partial) return cat(helper("ld", input.dtype), at, ")");
    if (lane == "0" && !(width_ == 1 && guard))
        return cat("(", vector_, ")(", helper("ld", input.dtype), at, "))");
    if (lane == "1" && !partial && !guard) return cat(helper(vector, input.dtype), at, ")");
    if (lane == "1" && width_ > 1)
        return cat("(nv >= ", width_, ") ? ", helper(vector, input.dtype), at,
                   ") : ", helper("lds", input.dtype), at, ", 1, nv)");
    return cat(helper("lds", input.dtype), at, ", ", lane, ", nv)");
}

/// Positions along a dimension, of the compute type.
std::string Emitter::position(const std::string& offset, const std::string& lane) const {
    if (width_ == 1) return cat("(", scalar_, ")(", offset, ")");
    return cat("convert_", vector_, "((", mask_, ")((", mask_scalar_, ")(", offset, ")) + ", iota(),
               " * (", mask_scalar_, ")(", lane, "))");
}

std::string Emitter::uniform(const Instruction& in, const std::function<std::string(int)>& offset,
                             const std::function<std::string(int)>& lane) {
    helpers_.insert("philox");
    std::string text = cat("convert_", vector_, "(philox_uniform(");
    for (const int key : {in.a, in.b, in.c}) text += whole_number(key, offset) + ", ";
    return cat(text, "(ulong)(", offset(job_.linear_class), "), (ulong)(", lane(job_.linear_class),
               ")))");
}

/// The value of an instruction that depends on the element's place or on numbers.
std::string Emitter::leaf(const Instruction& in, const std::function<std::string(int)>& offset,
                          const std::function<std::string(int)>& lane, bool partial) {
    const auto at = static_cast<std::size_t>(in.number);
    switch (in.op) {
        case Op::input: {
            const JobInput& from = input(in.number);
            return load(from, offset(from.klass), lane(from.klass), partial);
        }
        case Op::scalar:
            return splat(number(cat("p", in.number), job_.scalars[at]));
        case Op::size: {
            const int d = in.number < 0 ? in.number + job_.shape.rank() : in.number;
            return splat(number(cat("size", d), static_cast<double>(job_.shape[d])));
        }
        case Op::index: {
            const int klass = job_.class_of_index(in.number);
            return position(offset(klass), width_ == 1 ? std::string() : lane(klass));
        }
        default:
            return uniform(in, offset, lane);
    }
}

void Emitter::instructions(SourceWriter& out, const std::vector<bool>& levels, bool level,
                           const std::function<std::string(int)>& offset,
                           const std::function<std::string(int)>& lane, bool partial) {
    const auto value_of = [&](int i) { return value(i); };
    const auto truth_of = [&](int i) { return truth(i); };
    for (std::size_t i = 0; i < job_.tape.code.size(); ++i) {
        const Instruction& in = job_.tape.code[i];
        if (levels[i] != level || in.op == Op::constant) continue;
        const bool is_leaf = in.op == Op::input || in.op == Op::scalar || in.op == Op::size ||
                             in.op == Op::index || in.op == Op::uniform;
        const std::string text = is_leaf ? leaf(in, offset, lane, partial)
                                         : expression(job_.tape, in, value_of, truth_of, false);
        const bool mask = is_mask_[i];
        out.line("const ", mask ? mask_ : vector_, mask ? " m" : " t", i, " = ", text, ";");
    }
}

std::string Emitter::store(int output, const std::string& pointer, DType dtype,
                           const std::string& offset, const std::string& text,
                           const std::string& lane, const std::string& lanes, bool partial) {
    if (width_ == 1 && !partial) return store_one(dtype, pointer, offset, text);
    if (lane == "1" && width_ > 1) {
        std::string all = cat(
            helper(is_aligned(job_.outputs[static_cast<std::size_t>(output)].klass) ? "sta" : "stv",
                   dtype),
            "(", pointer, ", ", offset, ", ", text, ");");
        if (!partial) return all;
        return cat("if (", lanes, " >= ", width_, ") ", all, " else ", helper("sts", dtype), "(",
                   pointer, ", ", offset, ", 1, ", text, ", ", lanes, ");");
    }
    return cat(helper("sts", dtype), "(", pointer, ", ", offset, ", ", lane, ", ", text, ", ",
               partial ? lanes : cat(width_), ");");
}

std::string Emitter::store_one(DType dtype, const std::string& pointer, const std::string& offset,
                               const std::string& text) {
    return cat(helper("st", dtype), "(", pointer, ", ", offset, ", ", text, ");");
}

}  // namespace dlprim::pointwise
