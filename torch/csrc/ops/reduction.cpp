// SPDX-License-Identifier: MIT
// The boxed kernel of rows that reduce over dimensions.
#include "fallback/fallback.hpp"
#include "memory/convert.hpp"
#include "memory/view.hpp"
#include "ops/arguments.hpp"
#include "ops/call.hpp"

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <bitset>

namespace dlprim_torch {
namespace {

using Dims = std::bitset<64>;

/// The dimensions that the argument "dim" names; without it, or with an empty list, all of them.
Dims reduced_dims(const Arguments& arguments, std::int64_t rank) {
    std::vector<std::int64_t> dims;
    if (const c10::IValue* const given = arguments.find("dim"); given != nullptr) {
        if (given->isInt()) dims = {given->toInt()};
        if (given->isIntList()) dims = given->toIntVector();
    }
    if (dims.empty()) return rank == 0 ? Dims() : Dims(~std::uint64_t{0} >> (64 - rank));
    return at::dim_list_to_bitset(dims, static_cast<std::size_t>(rank));
}

std::string axes_of(const Dims& dims, std::int64_t rank) {
    std::string text = "[";
    for (std::int64_t d = 0; d < rank; ++d)
        if (dims[static_cast<std::size_t>(d)])
            text.append(text.size() > 1 ? "," : "").append(std::to_string(d));
    return text + "]";
}

std::vector<std::int64_t> result_sizes(c10::IntArrayRef sizes, const Dims& dims, bool keep_dim) {
    std::vector<std::int64_t> kept;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (!dims[d])
            kept.push_back(sizes[d]);
        else if (keep_dim)
            kept.push_back(1);
    }
    return kept;
}

at::ScalarType result_type(Types types, const Arguments& arguments, at::ScalarType input) {
    const c10::IValue* const given = arguments.find("dtype");
    if (given != nullptr && !given->isNone()) return given->toScalarType();
    if (types == Types::boolean) return input == at::kByte ? at::kByte : at::kBool;
    if (!arguments.outs().empty()) return arguments.outs().front().scalar_type();
    const bool integral = at::isIntegralType(input, true);
    if (types == Types::sum && integral) return at::kLong;
    if (types == Types::floating && integral)
        return at::typeMetaToScalarType(at::get_default_dtype());
    return input;
}

class Reduction final : public c10::OperatorKernel {
  public:
    explicit Reduction(const Row& row) : row_(row) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                    torch::jit::Stack* stack) const {
        Arguments arguments(op, *stack);
        const at::Tensor self = arguments.inputs().front();
        const at::ScalarType type = result_type(row_.types, arguments, self.scalar_type());
        if (!serves(arguments) || !has_dtype(type)) return run_on_cpu(op, stack);
        const c10::DeviceGuard guard(self.device());
        const Dims dims = reduced_dims(arguments, self.dim());
        const c10::IValue* const keeps = arguments.find("keepdim");
        const bool keep_dim = keeps != nullptr && keeps->toBool();
        const std::vector<std::int64_t> sizes = result_sizes(self.sizes(), dims, keep_dim);
        std::vector<at::Tensor> outs = arguments.outs();
        for (const at::Tensor& out : outs) at::native::resize_output(out, sizes);
        if (outs.empty())
            for (std::size_t i = 0; i < arguments.returns(); ++i)
                outs.push_back(at::empty(sizes, self.options().dtype(type)));
        if (self.numel() == 0) {
            for (const at::Tensor& out : outs) out.fill_(row_.empty);
        } else {
            Program program =
                program_of(row_, arguments, self.scalar_type(), axes_of(dims, self.dim()));
            pointwise_into(outs, std::move(program.code), program.inputs, program.scalars,
                           keep_dim);
        }
        arguments.give_back(std::move(outs));
    }

  private:
    const Row& row_;
};

}  // namespace

torch::CppFunction reduction_kernel(const Row& row) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Reduction>(row));
}

}  // namespace dlprim_torch
