// SPDX-License-Identifier: MIT
// cast.convert: OpenCL's own conversions, one element per work-item. half is read by vload_half and
// bfloat16 by its bits, so no half arithmetic is needed.
#include "base/text.hpp"
#include "engine/kernel_type.hpp"
#include "ops/cast/kernel_engine.hpp"
#include "ops/cast/operator.hpp"

namespace dlprim::cast {

namespace {

/// A type of so many bytes that is copied bit by bit.
DType raw(std::size_t bytes) {
    return bytes == 8 ? DType::u64 : bytes == 4 ? DType::u32 : bytes == 2 ? DType::u16 : DType::u8;
}

/// The type that is converted from or to.
const char* value_type(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 ? "float" : kernel_type(dtype);
}

std::string load(DType dtype) {
    if (dtype == DType::f16) return "vload_half(i,p)";
    if (dtype == DType::bf16) return "as_float((uint)((p)[i])<<16)";
    return "((p)[i])";
}

std::string store(DType from, DType to) {
    if (to == DType::f16) return "vstore_half_rte((v),i,p)";  // of double alone: see is_program()
    if (to == DType::bf16) return "(p)[i]=to_bfloat16((float)(v))";
    if (to == DType::boolean) return "(p)[i]=((v)!=0)";
    if (is_float(from) && !is_float(to))
        return cat("(p)[i]=convert_", kernel_type(to), "_sat(isnan(v)?(FROM_VALUE)0:(v))");
    return "(p)[i]=(TO)(v)";
}

class Convert : public KernelEngine {
  public:
    Convert() : KernelEngine("cast.convert", "cast/convert.cl", "cast_convert") {}

  protected:
    Verdict accepts(const Problem& problem) const override {
        if (is_program(problem)) return Verdict::no("cast.generated is made for these types");
        if (!problem.attrs.boolean("reinterpret") &&
            (is_narrow(problem.inputs[0].dtype) || is_narrow(problem.outputs[0].dtype)))
            return Verdict::no(
                "it does not support types of fewer than 16 bits other than 8-bit "
                "integers");
        return Verdict::yes();
    }
    std::string head(const Problem& problem) const override {
        DType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
        if (problem.attrs.boolean("reinterpret")) from = to = raw(size_of(to));
        return cat("#define FROM ", kernel_type(from), "\n#define FROM_VALUE ", value_type(from),
                   "\n#define TO ", kernel_type(to), "\n#define LOAD(p,i) ", load(from),
                   "\n#define STORE(v,p,i) ", store(from, to), "\n");
    }
};

}  // namespace

void add_convert_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Convert>());
}

}  // namespace dlprim::cast
