// SPDX-License-Identifier: MIT
// OpenCL C text of a job's instructions: values that depend on an element's position, and
// declarations.
#include "base/scalar_value.hpp"
#include "base/text.hpp"
#include "engine/pointwise/emit.hpp"

#include <algorithm>

namespace dlprim::pointwise {

/// The text of a key of a random number, which is the same number for all elements.
std::string Emitter::whole_number(int i, const std::function<std::string(int)>& offset) {
    const Instruction& in = job_.tape.code[static_cast<std::size_t>(i)];
    if (in.op == Op::constant) return cat("(ulong)", static_cast<std::int64_t>(in.value), "L");
    if (in.op == Op::scalar) {
        const std::string name = cat("p", in.number, "_whole");
        bool known = false;
        for (const KernelNumber& n : numbers_) known = known || n.name == name;
        if (!known) {
            KernelNumber number;
            number.name = name;
            number.whole =
                value_of<std::int64_t>(job_.scalars[static_cast<std::size_t>(in.number)]);
            number.argument = argument(in.number);
            numbers_.push_back(std::move(number));
        }
        return "(ulong)" + name;
    }
    if (in.op == Op::input)
        for (const JobInput& input : job_.inputs)
            if (input.number == in.number && !is_float(input.dtype))
                return cat("(ulong)x", in.number, "[", offset(input.klass), "]");
    return cat("(ulong)(long)", value(i), width_ == 1 ? "" : ".s0");
}

const JobInput& Emitter::input(int number) const {
    return *std::find_if(job_.inputs.begin(), job_.inputs.end(),
                         [&](const JobInput& input) { return input.number == number; });
}

/// The text that loads a vector of an input. Lanes past the end or in padding are zero.
std::string Emitter::load(const JobInput& input, const std::string& offset, const std::string& lane,
                          bool partial) {
    const std::string at = cat("(x", input.number, ", ", offset);
    const bool guard = job_.channel_class >= 0;
    const char* const vector = aligned_ && input.loose   ? "ldu"
                               : is_aligned(input.klass) ? "lda"
                                                         : "ldv";
    if (width_ == 1 && !guard && !partial) return cat(helper("ld", input.dtype), at, ")");
    if (lane == "0" && !(width_ == 1 && guard))
        return cat("(", vector_, ")(", helper("ld", input.dtype), at, "))");
    if (lane == "1" && !partial && !guard) return cat(helper(vector, input.dtype), at, ")");
    if (lane == "1" && width_ > 1 && aligned_)
        return cat("(nv >= ", width_, ") ? ", helper(vector, input.dtype), at,
                   ") : ", helper("lds", input.dtype), at, ", 1, nv)");
    if (lane == "1" && width_ > 1)
        return load_lanes_of(cat("x", input.number), input.dtype, offset, "nv", true);
    return cat(helper("lds", input.dtype), at, ", ", lane, ", ",
               partial || guard ? std::string("nv") : cat(width_), ")");
}

std::string Emitter::load_lanes_of(const std::string& pointer, DType dtype,
                                   const std::string& offset, const std::string& lanes,
                                   bool partial) {
    const std::string at = cat("(", pointer, ", ", offset);
    std::string all = cat(helper("ldv", dtype), at, ")");
    if (!partial) return all;
    return cat("USUALLY(", lanes, " >= ", width_, ") ? ", all, " : ", helper("ldp", dtype), at,
               ", ", lanes, ")");
}

/// Positions along a dimension, in the compute type.
std::string Emitter::position(const std::string& offset, const std::string& lane) const {
    if (width_ == 1) return cat("(", scalar_, ")(", offset, ")");
    return cat("convert_", vector_, "((", mask_, ")((", mask_scalar_, ")(", offset, ")) + ", iota(),
               " * (", mask_scalar_, ")(", lane, "))");
}

/// The value of an instruction that depends on the element's position or on numbers.
std::string Emitter::leaf(const Instruction& in, const std::function<std::string(int)>& offset,
                          const std::function<std::string(int)>& lane, bool partial) {
    const auto at = static_cast<std::size_t>(in.number);
    switch (in.op) {
        case Op::input: {
            const JobInput& from = input(in.number);
            return load(from, offset(from.klass), lane(from.klass), partial);
        }
        case Op::scalar:
            return splat(number(cat("p", in.number), job_.scalars[at], argument(in.number)));
        case Op::size: {
            const int d = in.number < 0 ? in.number + job_.shape.rank() : in.number;
            return splat(number(cat("size", d), job_.shape[d]));
        }
        case Op::index: {
            const int klass = job_.class_of_index(in.number);
            return position(offset(klass), width_ == 1 ? std::string() : lane(klass));
        }
        default:
            return random_number(in, offset, lane);
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
                             in.op == Op::index || is_random(in.op);
        const std::string text =
            is_leaf ? leaf(in, offset, lane, partial) : expression(in, value_of, truth_of, false);
        const bool mask = is_mask_[i];
        out.line("const ", mask ? mask_ : vector_, mask ? " m" : " t", i, " = ", text, ";");
    }
}

}  // namespace dlprim::pointwise
