// SPDX-License-Identifier: MIT
// cast.narrow: from and to narrow types (is_narrow()) on OpenCL devices, one element per work-item,
// by kernels/cast/narrow.cl.
#include "base/narrow.hpp"
#include "base/text.hpp"
#include "engine/kernel_type.hpp"
#include "ops/cast/kernel_engine.hpp"
#include "ops/cast/operator.hpp"

namespace dlprim::cast {

namespace {

/// What the kernel does with an element.
enum class Kind { plain, half, bfloat, truth, narrow_float, power, narrow_integer };

Kind kind_of(DType dtype) {
    if (dtype == DType::f16) return Kind::half;
    if (dtype == DType::bf16) return Kind::bfloat;
    if (dtype == DType::boolean) return Kind::truth;
    if (!is_narrow(dtype)) return Kind::plain;
    if (dtype == DType::f8e8m0) return Kind::power;
    return is_narrow_integer(dtype) ? Kind::narrow_integer : Kind::narrow_float;
}

/// The defines of one side: its type in memory, what it is, and how a narrow type is made.
std::string defines(const char* side, DType dtype) {
    std::string text = cat("#define ", side, " ", kernel_type(dtype), "\n#define ", side, "_KIND ",
                           static_cast<int>(kind_of(dtype)), "\n");
    const auto add = [&](const char* name, int value) {
        text += cat("#define ", side, "_", name, " ", value, "\n");
    };
    if (kind_of(dtype) == Kind::narrow_float) {
        const NarrowFloat type = narrow_float(dtype);
        add("EXPONENT", type.exponent_bits);
        add("MANTISSA", type.mantissa_bits);
        add("BIAS", type.bias);
        add("LARGEST", type.largest);
        add("INFINITE", type.infinite);
        add("NAN", type.nan);
        add("ONE_ZERO", type.one_zero ? 1 : 0);
    }
    if (kind_of(dtype) == Kind::narrow_integer) {
        add("BITS", dtype == DType::i4 || dtype == DType::u4 ? 4 : 2);
        add("SIGNED", dtype == DType::i4 || dtype == DType::i2 ? 1 : 0);
    }
    if (kind_of(dtype) == Kind::plain) add("FLOAT", is_float(dtype) ? 1 : 0);
    return text;
}

class Narrow : public KernelEngine {
  public:
    Narrow() : KernelEngine("cast.narrow", "cast/narrow.cl", "cast_narrow") {}

  protected:
    Verdict accepts(const Problem& problem) const override {
        if (problem.attrs.boolean("reinterpret"))
            return Verdict::no("it does not support the option reinterpret");
        if (!is_narrow(problem.inputs[0].dtype) && !is_narrow(problem.outputs[0].dtype))
            return Verdict::no(
                "it is made for narrow types, and neither the input nor the output has one");
        return Verdict::yes();
    }
    std::string head(const Problem& problem) const override {
        const DType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
        return cat(defines("FROM", from), defines("TO", to), "#define CONVERT_SAT convert_",
                   kernel_type(to), "_sat\n");
    }
};

}  // namespace

void add_narrow_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Narrow>());
}

}  // namespace dlprim::cast
