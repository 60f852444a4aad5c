// SPDX-License-Identifier: MIT
// The boxed kernel of rows without reductions. TensorIterator does what PyTorch's own kernels let
// it do: promotion, broadcasting, sizes of results, checks of out= and of overlap.
#include "fallback/fallback.hpp"
#include "memory/view.hpp"
#include "ops/arguments.hpp"
#include "ops/call.hpp"

#include <ATen/TensorIterator.h>
#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {
namespace {

at::TensorIterator iterator_of(const Row& row, const Arguments& arguments,
                               const std::vector<at::Tensor>& outs) {
    at::TensorIteratorConfig config;
    config.set_check_mem_overlap(true).allow_cpu_scalars(true);
    const bool promotes = row.types != Types::same;
    config.promote_inputs_to_common_dtype(promotes).check_all_same_dtype(false);
    if (row.types == Types::boolean) {
        if (!outs.front().defined()) config.declare_static_dtype(at::kBool);
    } else if (promotes) {
        config.promote_integer_inputs_to_float(row.types == Types::floating)
            .cast_common_dtype_to_outputs(true)
            .enforce_safe_casting_to_output(true);
    }
    for (const at::Tensor& out : outs) config.add_owned_output(out);
    for (const at::Tensor& input : arguments.inputs()) config.add_owned_const_input(input);
    return config.build();
}

class Elementwise final : public c10::OperatorKernel {
  public:
    explicit Elementwise(const Row& row) : row_(row) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                    torch::jit::Stack* stack) const {
        Arguments arguments(op, *stack);
        if (!serves(arguments)) return run_on_cpu(op, stack);
        const c10::OptionalDeviceGuard guard(device_of(arguments));
        std::vector<at::Tensor> outs = arguments.outs();
        if (outs.empty()) outs.resize(arguments.returns());
        at::TensorIterator iterator = iterator_of(row_, arguments, outs);
        for (std::size_t i = 0; i < outs.size(); ++i)
            outs[i] = iterator.output(static_cast<std::int64_t>(i));
        const at::ScalarType common = row_.types == Types::same
                                          ? arguments.inputs().front().scalar_type()
                                          : iterator.common_dtype();
        TORCH_CHECK_NOT_IMPLEMENTED(has_dtype(common), "The device \"ocl\" does not compute with ",
                                    common, ", which ", op.operator_name(), " would give.");
        if (outs.front().numel() > 0) {
            Program program = program_of(row_, arguments, common);
            pointwise_into(outs, std::move(program.code), program.inputs, program.scalars);
        }
        arguments.give_back(arguments.outs().empty() ? outs : arguments.outs());
    }

  private:
    static std::optional<c10::Device> device_of(const Arguments& arguments) {
        for (const at::Tensor& input : arguments.inputs())
            if (!input.is_cpu()) return input.device();
        return std::nullopt;
    }

    const Row& row_;
};

}  // namespace

torch::CppFunction elementwise_kernel(const Row& row) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Elementwise>(row));
}

}  // namespace dlprim_torch
