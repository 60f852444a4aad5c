// SPDX-License-Identifier: MIT
// The boxed kernel of rows without reductions. TensorIterator does what PyTorch's own kernels let
// it do: broadcasting, sizes of results, checks of out= and of overlap.
#include "ops/elementwise.hpp"

#include "fallback/fallback.hpp"
#include "memory/view.hpp"
#include "ops/call.hpp"
#include "ops/checks.hpp"

#include <ATen/TensorIterator.h>
#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {
namespace {

at::TensorIterator iterator_of(at::ScalarType type, const Arguments& arguments,
                               const std::vector<at::Tensor>& outs) {
    at::TensorIteratorConfig config;
    config.set_check_mem_overlap(true).allow_cpu_scalars(true).check_all_same_dtype(false);
    if (!outs.front().defined()) config.declare_static_dtype(type);
    for (const at::Tensor& out : outs) {
        TORCH_CHECK(!out.defined() || c10::canCast(type, out.scalar_type()), "result type ", type,
                    " can't be cast to the desired output type ", out.scalar_type());
        config.add_owned_output(out);
    }
    for (const at::Tensor& input : arguments.inputs()) config.add_owned_const_input(input);
    return config.build();
}

void compute(const Row& row, const Arguments& arguments, const std::vector<at::Tensor>& outs,
             Circumstances of) {
    Program program = program_of(row, arguments, of);
    if (!program.goes_on)
        return pointwise_into(outs, std::move(program.code), program.inputs, program.scalars);
    of.second = true;
    of.result = at::empty(outs.front().sizes(), outs.front().options().dtype(of.common));
    pointwise_into({of.result}, std::move(program.code), program.inputs, program.scalars);
    Program after = program_of(row, arguments, of);
    pointwise_into(outs, std::move(after.code), after.inputs, after.scalars);
}

class Elementwise final : public c10::OperatorKernel {
  public:
    explicit Elementwise(const Row& row) : row_(row) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                    torch::jit::Stack* stack) const {
        const OperatorScope scope(op.operator_name().name);
        Arguments arguments(op, *stack);
        if (op.schema().name() == "aten::masked_fill_" && is_expanded(arguments.outs().front()))
            return run_on_expanded(op, stack);
        if (!serves(arguments)) return run_on_cpu(op, stack);
        run_elementwise(row_, arguments);
    }

  private:
    const Row& row_;
};

}  // namespace

void run_elementwise(const Row& row, Arguments& arguments) {
    const c10::OptionalDeviceGuard guard(device_of(arguments));
    const at::ScalarType common = common_type(row, arguments);
    std::vector<at::Tensor> outs = arguments.outs();
    for (const at::Tensor& out : outs) check_written(out);
    if (outs.empty()) outs.resize(arguments.returns());
    at::TensorIterator iterator =
        iterator_of(row.types == Types::boolean ? at::kBool : common, arguments, outs);
    for (std::size_t i = 0; i < outs.size(); ++i)
        outs[i] = iterator.output(static_cast<std::int64_t>(i));
    if (outs.front().numel() > 0) compute(row, arguments, outs, {common, iterator.numel()});
    arguments.give_back(arguments.outs().empty() ? outs : arguments.outs());
}

torch::CppFunction elementwise_kernel(const Row& row) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Elementwise>(row));
}

}  // namespace dlprim_torch
