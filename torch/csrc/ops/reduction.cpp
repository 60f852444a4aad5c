// SPDX-License-Identifier: MIT
// The boxed kernels of rows that reduce over dimensions, and of losses: one value for each element,
// or their mean or sum.
#include "fallback/fallback.hpp"
#include "memory/convert.hpp"
#include "memory/view.hpp"
#include "ops/call.hpp"
#include "ops/checks.hpp"
#include "ops/elementwise.hpp"

#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <limits>

namespace dlprim_torch {
namespace {

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

/// Casts happen before sums of integers, not behind: 0.5 + 0.5 is 0 with dtype=int64.
at::Tensor cast_before(const at::Tensor& self, const Arguments& arguments) {
    const c10::IValue* const given = arguments.find("dtype");
    if (given == nullptr || given->isNone()) return self;
    const at::ScalarType type = given->toScalarType();
    const bool rounds = at::isIntegralType(type, true) && self.is_floating_point();
    return rounds ? self.to(type) : self;
}

/// What a reduction needs to know.
struct Plan {
    at::Tensor self;
    at::ScalarType common;        ///< the type in which operands meet
    at::ScalarType type;          ///< of the result
    std::optional<double> empty;  ///< the result where there are no elements; nothing: an error
    std::string axes;
    bool keep_dim = false;
    std::vector<std::int64_t> sizes = {};
};

void reduce_into(const std::vector<at::Tensor>& outs, const Row& row, const Arguments& arguments,
                 const Plan& plan) {
    Circumstances of{.common = plan.common, .axes = plan.axes};
    Program program = program_of(row, arguments, of);
    if (!program.inputs.empty() && !plan.self.is_same(arguments.inputs().front()))
        program.inputs.front() = plan.self;
    if (!program.goes_on)
        return pointwise_into(outs, std::move(program.code), program.inputs, program.scalars,
                              plan.keep_dim);
    // What comes between is float, which holds more than the half that may be wanted.
    const at::ScalarType wide = plan.type == at::kDouble ? at::kDouble : at::kFloat;
    of.second = true;
    of.result = at::empty(plan.sizes, plan.self.options().dtype(wide));
    pointwise_into({of.result}, std::move(program.code), program.inputs, program.scalars,
                   plan.keep_dim);
    Program after = program_of(row, arguments, of);
    pointwise_into(outs, std::move(after.code), after.inputs, after.scalars);
}

void fill(const std::vector<at::Tensor>& outs, const Arguments& arguments, const Plan& plan) {
    if (outs.front().numel() == 0) return;
    TORCH_CHECK(plan.empty, arguments.name(),
                "(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument.");
    for (const at::Tensor& out : outs) out.fill_(*plan.empty);
}

void reduce(const Row& row, Arguments& arguments, const Plan& plan) {
    const at::Tensor& given = arguments.inputs().front();
    std::vector<at::Tensor> outs = arguments.outs();
    for (const at::Tensor& out : outs) {
        check_written(out);
        check_overlap(out, given, Overlap::same);
    }
    for (const at::Tensor& out : outs) at::native::resize_output(out, plan.sizes);
    if (outs.empty())
        for (std::size_t i = 0; i < arguments.returns(); ++i)
            outs.push_back(at::empty(plan.sizes, given.options().dtype(plan.type)));
    if (std::all_of(arguments.inputs().begin(), arguments.inputs().end(),
                    [](const at::Tensor& input) { return input.numel() > 0; }))
        reduce_into(outs, row, arguments, plan);
    else
        fill(outs, arguments, plan);
    arguments.give_back(std::move(outs));
}

class Reduction final : public c10::OperatorKernel {
  public:
    explicit Reduction(const Row& row) : row_(row) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                    torch::jit::Stack* stack) const {
        const OperatorScope scope(op.operator_name().name);
        Arguments arguments(op, *stack);
        const at::Tensor& given = arguments.inputs().front();
        const at::ScalarType type = result_type(row_.types, arguments, given.scalar_type());
        if (!serves(arguments) || !has_dtype(type)) return run_on_cpu(op, stack);
        const c10::DeviceGuard guard(given.device());
        const Dims dims = reduced_dims(arguments, given.dim());
        const c10::IValue* const keeps = arguments.find("keepdim");
        const bool keep_dim = keeps != nullptr && keeps->toBool();
        const at::Tensor self = cast_before(given, arguments);
        reduce(row_, arguments,
               {self, self.scalar_type(), type, row_.empty, axes_of(dims, given.dim()), keep_dim,
                result_sizes(given.sizes(), dims, keep_dim)});
    }

  private:
    const Row& row_;
};

class Loss final : public c10::OperatorKernel {
  public:
    explicit Loss(const Row& row) : row_(row) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                    torch::jit::Stack* stack) const {
        const OperatorScope scope(op.operator_name().name);
        Arguments arguments(op, *stack);
        if (!serves(arguments)) return run_on_cpu(op, stack);
        const std::int64_t reduction = arguments.find("reduction")->toInt();
        if (reduction == at::Reduction::None) return run_elementwise(row_, arguments);
        const c10::OptionalDeviceGuard guard(device_of(arguments));
        const at::ScalarType common = common_type(row_, arguments);
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        const double empty = reduction == at::Reduction::Mean ? nan : 0.0;
        reduce(row_, arguments, {arguments.inputs().front(), common, common, empty, "[]"});
    }

  private:
    const Row& row_;
};

}  // namespace

torch::CppFunction reduction_kernel(const Row& row) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Reduction>(row));
}

torch::CppFunction loss_kernel(const Row& row) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Loss>(row));
}

}  // namespace dlprim_torch
