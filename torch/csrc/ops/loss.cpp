// SPDX-License-Identifier: MIT
// The boxed kernel of rows that are losses: one value for each element, or their mean or sum.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/elementwise.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <limits>

namespace dlprim_torch {
namespace {

bool has_elements(const Arguments& arguments) {
    for (const at::Tensor& input : arguments.inputs())
        if (input.numel() == 0) return false;
    return true;
}

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
        const at::Tensor& self = arguments.inputs().front();
        std::vector<at::Tensor> outs = arguments.outs();
        for (const at::Tensor& out : outs) at::native::resize_output(out, {});
        if (outs.empty()) outs.push_back(at::empty({}, self.options().dtype(common)));
        if (has_elements(arguments)) {
            Program program = program_of(row_, arguments, {.common = common, .axes = "[]"});
            pointwise_into(outs, std::move(program.code), program.inputs, program.scalars, false);
        } else {
            constexpr double nan = std::numeric_limits<double>::quiet_NaN();
            outs.front().fill_(reduction == at::Reduction::Mean ? nan : 0.0);
        }
        arguments.give_back(std::move(outs));
    }

  private:
    const Row& row_;
};

}  // namespace

torch::CppFunction loss_kernel(const Row& row) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Loss>(row));
}

}  // namespace dlprim_torch
