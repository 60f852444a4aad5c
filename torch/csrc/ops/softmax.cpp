// SPDX-License-Identifier: MIT
// Softmax and its logarithm. Backward reads the result of forward, so nothing runs twice. The meta
// functions check the arguments, and give out= its size.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

namespace dlprim_torch {
namespace {

void softmax_into(const at::Tensor& out, const at::Tensor& self, std::int64_t dim, bool log) {
    if (out.numel() == 0) return;
    if (self.dim() == 0) {
        out.fill_(log ? 0 : 1);
        return;
    }
    const at::Tensor input =
        self.scalar_type() == out.scalar_type() ? self : self.to(out.scalar_type());
    call_into({out}, dp::ops::Softmax{.log = log, .axis = dim}, {view_of(input)});
}

void gradient_into(const at::Tensor& grad_input, const at::Tensor& grad, const at::Tensor& output,
                   std::int64_t dim, bool log) {
    if (grad_input.numel() == 0) return;
    if (output.dim() == 0) {
        grad_input.zero_();
        return;
    }
    give(grad_input, results_of(dp::ops::SoftmaxBackward{.log = log, .axis = dim},
                                {view_of(grad), view_of(output)})[0]);
}

at::Tensor& softmax_out(const at::Tensor& self, std::int64_t dim, bool to_float, at::Tensor& out) {
    at::meta::_softmax_out(out, self, dim, to_float);
    softmax_into(out, self, dim, false);
    return out;
}

at::Tensor& log_softmax_out(const at::Tensor& self, std::int64_t dim, bool to_float,
                            at::Tensor& out) {
    at::meta::_log_softmax_out(out, self, dim, to_float);
    softmax_into(out, self, dim, true);
    return out;
}

at::Tensor& softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                             at::ScalarType type, at::Tensor& grad_input) {
    at::meta::_softmax_backward_data_out(grad_input, grad, output, dim, type);
    gradient_into(grad_input, grad, output, dim, false);
    return grad_input;
}

at::Tensor& log_softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                                 at::ScalarType type, at::Tensor& grad_input) {
    at::meta::_log_softmax_backward_data_out(grad_input, grad, output, dim, type);
    gradient_into(grad_input, grad, output, dim, true);
    return grad_input;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_softmax.out", softmax_out, Overlap::any);
    m.impl("_log_softmax.out", log_softmax_out, Overlap::any);
    m.impl("_softmax_backward_data.out", softmax_backward, Overlap::any);
    m.impl("_log_softmax_backward_data.out", log_softmax_backward, Overlap::any);
}

}  // namespace
}  // namespace dlprim_torch
