// SPDX-License-Identifier: MIT
// cast.convert: OpenCL's own conversions, one element per work-item. half is read by vload_half and
// bfloat16 by its bits, so no half arithmetic is needed.
#include "base/text.hpp"
#include "ops/cast/engines.hpp"
#include "ops/cast/operator.hpp"

namespace dlprim::cast {

namespace {

/// The type in which an element is stored.
const char* stored(DType dtype) {
    switch (dtype) {
        case DType::f32:
            return "float";
        case DType::f16:
            return "half";
        case DType::bf16:
            return "ushort";
        case DType::f64:
            return "double";
        case DType::i8:
            return "char";
        case DType::u8:
        case DType::boolean:
            return "uchar";
        case DType::i16:
            return "short";
        case DType::u16:
            return "ushort";
        case DType::i32:
            return "int";
        case DType::u32:
            return "uint";
        case DType::i64:
            return "long";
        case DType::u64:
            return "ulong";
        default:
            return "uchar";
    }
}

/// A type of so many bytes that is copied bit by bit.
DType raw(std::size_t bytes) {
    return bytes == 8 ? DType::u64 : bytes == 4 ? DType::u32 : bytes == 2 ? DType::u16 : DType::u8;
}

/// The type that is converted from or to.
const char* value_type(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 ? "float" : stored(dtype);
}

std::string load(DType dtype) {
    if (dtype == DType::f16) return "vload_half(i,p)";
    if (dtype == DType::bf16) return "as_float((uint)((p)[i])<<16)";
    return "((p)[i])";
}

std::string store(DType from, DType to) {
    if (to == DType::f16)
        return cat("vstore_half_rte(", from == DType::f64 ? "(v)" : "(float)(v)", ",i,p)");
    if (to == DType::bf16) return "(p)[i]=to_bfloat16((float)(v))";
    if (to == DType::boolean) return "(p)[i]=((v)!=0)";
    if (is_float(from) && !is_float(to))
        return cat("(p)[i]=isnan(v)?(TO)0:convert_", stored(to), "_sat(v)");
    return "(p)[i]=(TO)(v)";
}

class Convert : public Engine {
  public:
    std::string_view name() const override { return "cast.convert"; }
    std::string_view op() const override { return "Cast"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        if (!problem.attrs.boolean("reinterpret") &&
            (is_narrow(problem.inputs[0].dtype) || is_narrow(problem.outputs[0].dtype)))
            return Verdict::no(
                "it does not support types of fewer than 16 bits other than 8-bit "
                "integers");
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
        DType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
        if (problem.attrs.boolean("reinterpret")) from = to = raw(size_of(to));
        const std::int64_t count = problem.outputs[0].shape.numel();
        if (count == 0) return launch;
        // Macros with arguments are put in front of the source, because the option parsers of some
        // drivers do not accept them.
        const std::string head = cat(
            "#define FROM ", stored(from), "\n#define FROM_VALUE ", value_type(from),
            "\n#define TO ", stored(to), "\n#define NEEDS_FP64 ", needs_fp64(problem) ? 1 : 0,
            "\n#define LOAD(p,i) ", load(from), "\n#define STORE(v,p,i) ", store(from, to), "\n");
        KernelCall call(
            context.build({"cast/convert.cl", head + kernel_source("cast/convert.cl"), ""}),
            "cast_convert", line_range(context.traits(), count));
        call.tensor("x", 0, size_of(from)).tensor("y", 1, size_of(to));
        call.scalar("count", count);
        call.check();
        launch->add(std::move(call));
        return launch;
    }
    std::vector<std::string> sources() const override { return {"cast/convert.cl"}; }

  private:
    static bool needs_fp64(const Problem& problem) {
        return !problem.attrs.boolean("reinterpret") &&
               (problem.inputs[0].dtype == DType::f64 || problem.outputs[0].dtype == DType::f64);
    }
};

}  // namespace

void add_convert_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Convert>());
}

}  // namespace dlprim::cast
