// SPDX-License-Identifier: MIT
// OpenCL C text of a job's arithmetic.
#include "engine/pointwise/emit.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <tuple>

namespace dlprim::pointwise {
namespace {

std::string wide(const std::string& type, int width) {
    return width == 1 ? type : cat(type, width);
}

const char* tag(DType dtype) {
    static const char* const tags[] = {"f32", "f16", "bf16", "f64", "i8",  "u8",
                                       "i16", "u16", "i32",  "u32", "i64", "bool"};
    return tags[static_cast<int>(dtype)];
}

DType tagged(const std::string& text) {
    for (int i = 0; i <= static_cast<int>(DType::boolean); ++i)
        if (text == tag(static_cast<DType>(i))) return static_cast<DType>(i);
    return DType::f32;
}

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
    const bool single = job_.type == Compute::f32;
    if (std::isnan(value)) return "NAN";
    if (std::isinf(value) || (single && std::fabs(value) > 3.4028235677973366e38))
        return value > 0 ? "INFINITY" : "-INFINITY";
    char buffer[40];
    char* end = single ? std::to_chars(buffer, buffer + 40, static_cast<float>(value)).ptr
                       : std::to_chars(buffer, buffer + 40, value).ptr;
    std::string text(buffer, end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + (single ? "f" : "");
}

std::string Emitter::helper(const char* kind, DType dtype) {
    const std::string name = cat(kind, "_", tag(dtype));
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

void Emitter::instructions(std::ostream& os, const std::string& indent,
                           const std::vector<bool>& levels, bool level,
                           const std::function<std::string(int)>& offset,
                           const std::function<std::string(int)>& lane, bool partial) {
    for (std::size_t i = 0; i < job_.tape.code.size(); ++i) {
        const Instruction& in = job_.tape.code[i];
        if (levels[i] != level || in.op == Op::constant) continue;
        const bool mask = is_mask_[i];
        os << indent << "const " << (mask ? mask_ : vector_) << (mask ? " m" : " t") << i << " = ";
        switch (in.op) {
            case Op::input: {
                const JobInput* input = nullptr;
                for (const JobInput& known : job_.inputs)
                    if (known.number == in.number) input = &known;
                const std::string x = cat("x", in.number), o = offset(input->klass),
                                  s = lane(input->klass);
                const bool guard = job_.channel_class >= 0;
                if (width_ == 1 && !guard && !partial)
                    os << helper("ld", input->dtype) << "(" << x << ", " << o << ")";
                else if (s == "0" && !(width_ == 1 && guard))
                    os << "(" << vector_ << ")(" << helper("ld", input->dtype) << "(" << x << ", "
                       << o << "))";
                else if (s == "1" && !partial && !guard)
                    os << helper(is_aligned(input->klass) ? "lda" : "ldv", input->dtype) << "(" << x
                       << ", " << o << ")";
                else if (s == "1" && width_ > 1)
                    os << "(nv >= " << width_ << ") ? "
                       << helper(is_aligned(input->klass) ? "lda" : "ldv", input->dtype) << "(" << x
                       << ", " << o << ") : " << helper("lds", input->dtype) << "(" << x << ", "
                       << o << ", 1, nv)";
                else
                    os << helper("lds", input->dtype) << "(" << x << ", " << o << ", " << s
                       << ", nv)";
                break;
            }
            case Op::scalar:
                os << splat(
                    number(cat("p", in.number), job_.scalars[static_cast<std::size_t>(in.number)]));
                break;
            case Op::size: {
                const int d = in.number < 0 ? in.number + job_.shape.rank() : in.number;
                os << splat(number(cat("size", d), static_cast<double>(job_.shape[d])));
                break;
            }
            case Op::index: {
                const int klass = job_.class_of_index(in.number);
                if (width_ == 1)
                    os << "(" << scalar_ << ")(" << offset(klass) << ")";
                else
                    os << "convert_" << vector_ << "((" << mask_ << ")((" << mask_scalar_ << ")("
                       << offset(klass) << ")) + " << iota() << " * (" << mask_scalar_ << ")("
                       << lane(klass) << "))";
                break;
            }
            case Op::uniform:
                helpers_.insert("philox");
                os << "convert_" << vector_ << "(philox_uniform(" << whole_number(in.a, offset)
                   << ", " << whole_number(in.b, offset) << ", " << whole_number(in.c, offset)
                   << ", (ulong)(" << offset(job_.linear_class) << "), (ulong)("
                   << lane(job_.linear_class) << ")))";
                break;
            default:
                os << expression(
                    job_.tape, in, [&](int a) { return value(a); }, [&](int a) { return truth(a); },
                    false);
        }
        os << ";\n";
    }
}

std::string Emitter::store(int output, const std::string& pointer, DType dtype,
                           const std::string& offset, const std::string& text,
                           const std::string& lane, const std::string& lanes, bool partial) {
    if (width_ == 1 && !partial) return store_one(dtype, pointer, offset, text);
    if (lane == "1" && width_ > 1) {
        const std::string all = cat(
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

std::string Emitter::neutral(const JobOutput& out) const {
    const double infinity = INFINITY;
    switch (out.kind) {
        case Output::Kind::prod:
            return literal(1);
        case Output::Kind::max:
            return job_.type == Compute::i64 ? "LONG_MIN" : literal(-infinity);
        case Output::Kind::min:
            return job_.type == Compute::i64 ? "LONG_MAX" : literal(infinity);
        default:
            return literal(0);
    }
}

std::string Emitter::combine(std::size_t k, bool scalar) const {
    return cat(scalar || width_ == 1 ? "combine" : "combines", k);
}

std::string Emitter::combine_function(std::size_t k, bool scalar) const {
    const JobOutput& out = job_.outputs[k];
    const std::string type = scalar ? scalar_ : vector_;
    std::ostringstream os;
    os << type << " " << combine(k, scalar) << "(" << type << " a, " << type << " b) {\n";
    const auto cmp = [&](const std::string& text) {
        return scalar || width_ == 1 ? cat("(", mask_scalar_, ")(", text, ")")
                                     : cat("(", text, ")");
    };
    const bool whole = job_.type == Compute::i64;
    if (out.kind == Output::Kind::custom) {
        const Tape& tape = *out.combine;
        const auto value = [&](int i) {
            const Instruction& in = tape.code[static_cast<std::size_t>(i)];
            const std::string prefix = "(" + type + ")(";
            if (in.op == Op::constant) return prefix + literal(in.value) + ")";
            if (is_truth(in.op)) return cat("select(", prefix, "0), ", prefix, "1), m", i, ")");
            return cat("t", i);
        };
        const auto truth = [&](int i) {
            if (is_truth(tape.code[static_cast<std::size_t>(i)].op)) return cat("m", i);
            return cmp(value(i) + " != (" + type + ")(0)");
        };
        for (std::size_t i = 0; i < tape.code.size(); ++i) {
            const Instruction& in = tape.code[i];
            if (in.op == Op::constant) continue;
            const std::string mask = scalar || width_ == 1 ? mask_scalar_ : mask_;
            os << "    const " << (is_truth(in.op) ? mask + " m" : type + " t") << i << " = ";
            if (in.op == Op::input)
                os << (in.number ? "b" : "a");
            else
                os << expression(tape, in, value, truth, scalar);
            os << ";\n";
        }
        os << "    return " << value(tape.results[0]) << ";\n}\n";
        return os.str();
    }
    switch (out.kind) {
        case Output::Kind::prod:
            os << "    return a * b;\n";
            break;
        case Output::Kind::max:
        case Output::Kind::min: {
            const bool max = out.kind == Output::Kind::max;
            if (whole)
                os << "    return " << (max ? "max" : "min") << "(a, b);\n";
            else
                os << "    return select(b, a, " << cmp(max ? "a > b" : "a < b") << " | "
                   << cmp("a != a") << ");\n";
            break;
        }
        default:
            os << "    return a + b;\n";
    }
    os << "}\n";
    return os.str();
}

std::string Emitter::finish(std::size_t k, const std::string& text, const std::string& has,
                            bool scalar) {
    const JobOutput& out = job_.outputs[k];
    const auto one = [&](const std::string& t) {
        return scalar ? cat("(", scalar_, ")(", t, ")") : splat(t);
    };
    std::string result = text;
    if (out.has_init) {
        const std::string init = one(number(cat("init", k), out.init));
        result = cat(combine(k, scalar), "(", init, ", ", result, ")");
        if (out.kind == Output::Kind::custom)
            result = cat("select(", init, ", ", result, ", ", has, ")");
    }
    if (out.scale != 1)
        result = cat("(", result, " * ", one(number(cat("scale", k), out.scale)), ")");
    return result;
}

std::string Emitter::helper_text(const std::string& name) const {
    if (name == "philox") return {};
    const auto cut = name.find('_');
    const std::string kind = name.substr(0, cut);
    const DType dtype = tagged(name.substr(cut + 1));
    const std::string S = storage_type(dtype), T = scalar_, V = vector_;
    const int W = width_;
    const std::string id = cat("long");
    std::ostringstream os;
    if (kind == "ld") {
        os << "" << T << " " << name << "(global const " << S << "* p, " << id << " o) { return ("
           << T << ")";
        if (dtype == DType::f16)
            os << "vload_half(0, p + o)";
        else if (dtype == DType::bf16)
            os << "as_float((uint)p[o] << 16)";
        else
            os << "p[o]";
        os << "; }\n";
    } else if (kind == "ldv" || kind == "lda") {
        os << "" << V << " " << name << "(global const " << S << "* p, " << id << " o) {\n";
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
        os << "" << V << " " << name << "(global const " << S << "* p, " << id << " o, " << id
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
    std::ostringstream os;
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
