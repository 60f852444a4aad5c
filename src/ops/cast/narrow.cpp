// SPDX-License-Identifier: MIT
// cast.narrow: from and to narrow types (is_narrow()) on OpenCL devices, one element per work-item,
// by kernels/cast/narrow.cl.
#include "base/narrow.hpp"
#include "base/text.hpp"
#include "ops/cast/engines.hpp"

namespace dlprim::cast {

namespace {

constexpr const char* source = "cast/narrow.cl";

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

const char* stored(DType dtype) {
    if (is_narrow(dtype)) return "uchar";
    static const char* const names[] = {"float", "half",  "ushort", "double", "char",
                                        "uchar", "short", "ushort", "int",    "uint",
                                        "long",  "uchar", "ulong"};
    return names[static_cast<std::size_t>(dtype)];
}

/// The defines of one side: its type in memory, what it is, and how a narrow type is made.
std::string defines(const char* side, DType dtype) {
    std::string text = cat("#define ", side, " ", stored(dtype), "\n#define ", side, "_KIND ",
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

class Narrow : public Engine {
  public:
    std::string_view name() const override { return "cast.narrow"; }
    std::string_view op() const override { return "Cast"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        if (problem.attrs.boolean("reinterpret"))
            return Verdict::no("it does not support reinterpret");
        if (!is_narrow(problem.inputs[0].dtype) && !is_narrow(problem.outputs[0].dtype))
            return Verdict::no("it is made for narrow types, of which there is none here");
        if (needs_fp64(problem) && !device.fp64)
            return Verdict::no("it needs double precision (cl_khr_fp64), which the device lacks");
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.5);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const DType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return launch;
        const std::string head = cat(defines("FROM", from), defines("TO", to),
                                     "#define NEEDS_FP64 ", needs_fp64(problem) ? 1 : 0,
                                     "\n#define CONVERT_SAT convert_", stored(to), "_sat\n");
        KernelCall call(context.build({source, head + kernel_source(source), ""}), "cast_narrow",
                        line_range(context.traits(), count));
        call.tensor("x", 0, size_of(from)).tensor("y", 1, size_of(to));
        call.scalar("count", count);
        call.check();
        launch->add(std::move(call));
        return launch;
    }
    std::vector<std::string> sources() const override { return {source}; }

  private:
    static bool needs_fp64(const Problem& problem) {
        return problem.inputs[0].dtype == DType::f64 || problem.outputs[0].dtype == DType::f64;
    }
};

}  // namespace

void add_narrow_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Narrow>());
}

}  // namespace dlprim::cast
