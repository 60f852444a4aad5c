// SPDX-License-Identifier: MIT
// OpenCL C text of a job's arithmetic: types, literals, numbers, and places of stored values.
#include "engine/pointwise/emit.hpp"

#include "base/scalar_value.hpp"
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
    return type == Compute::f32   ? "float"
           : type == Compute::f64 ? "double"
           : type == Compute::u64 ? "ulong"
                                  : "long";
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

std::string Emitter::iota() const {
    if (width_ == 1) return "0";
    std::string text = "(" + mask_ + ")(0";
    for (int i = 1; i < width_; ++i) text += cat(",", i);
    return text + ")";
}

std::string Emitter::literal(double value) const {
    if (job_.type == Compute::u64) {
        if (value < 0)
            return cat("(ulong)", static_cast<std::int64_t>(std::max(value, -0x1p63)), "L");
        if (value >= 0x1p64) return "ULONG_MAX";
        return cat(static_cast<std::uint64_t>(value), "UL");
    }
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

int Emitter::argument(int number) const {
    return job_.arguments ? job_.scalar_numbers[static_cast<std::size_t>(number)] : -1;
}

/// A number of the compute type that is set at run time.
std::string Emitter::number(const std::string& name, const Scalar& value, int argument) {
    bool known = false;
    for (const KernelNumber& n : numbers_) known = known || n.name == name;
    if (!known) {
        KernelNumber n;
        n.name = name;
        n.argument = argument;
        n.as = job_.is_whole() ? DType::i64 : dtype_of(job_.type);
        n.real = job_.type == Compute::f32;
        n.value = value_of<float>(value);
        const auto real = value_of<double>(value);
        if (job_.type == Compute::f64) std::memcpy(&n.whole, &real, 8);
        if (job_.is_whole()) n.whole = value_of<std::int64_t>(value);
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
        } else if (is_random(in.op)) {
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
    return compare(cat(value(i), " != ", splat("0")), false);
}

std::string Emitter::compare(const std::string& text, bool scalar) const {
    return scalar || width_ == 1 ? cat("(", mask_scalar_, ")(", text, ")") : cat("(", text, ")");
}

std::string Emitter::store(int output, const std::string& pointer, DType dtype,
                           const std::string& offset, const std::string& text,
                           const std::string& lane, const std::string& lanes, bool partial) {
    if (width_ == 1 && !partial) return store_one(dtype, pointer, offset, text);
    if (lane == "1" && width_ > 1) {
        const JobOutput& out = job_.outputs[static_cast<std::size_t>(output)];
        const char* const vector = aligned_ && out.loose   ? "stu"
                                   : is_aligned(out.klass) ? "sta"
                                                           : "stv";
        std::string all = cat(helper(vector, dtype), "(", pointer, ", ", offset, ", ", text, ");");
        if (!partial) return all;
        if (aligned_)
            return cat("if (", lanes, " >= ", width_, ") ", all, " else ", helper("sts", dtype),
                       "(", pointer, ", ", offset, ", 1, ", text, ", ", lanes, ");");
        return cat("if (USUALLY(", lanes, " >= ", width_, ")) ", all, " else ",
                   helper("stp", dtype), "(", pointer, ", ", offset, ", ", text, ", ", lanes, ");");
    }
    return cat(helper("sts", dtype), "(", pointer, ", ", offset, ", ", lane, ", ", text, ", ",
               partial ? lanes : cat(width_), ");");
}

std::string Emitter::store_one(DType dtype, const std::string& pointer, const std::string& offset,
                               const std::string& text) {
    return cat(helper("st", dtype), "(", pointer, ", ", offset, ", ", text, ");");
}

}  // namespace dlprim::pointwise
