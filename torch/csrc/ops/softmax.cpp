// SPDX-License-Identifier: MIT
// Softmax and its logarithm. Backward reads the result of forward, so nothing runs twice. The meta
// functions check the arguments, and give out= its size.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

namespace dlprim_torch {
namespace {

template <bool log, auto check>
at::Tensor& softmax_out(const at::Tensor& self, std::int64_t dim, bool to_float, at::Tensor& out) {
    check(out, self, dim, to_float);
    if (out.numel() == 0) return out;
    if (self.dim() == 0) return out.fill_(log ? 0 : 1);
    const at::Tensor input =
        self.scalar_type() == out.scalar_type() ? self : self.to(out.scalar_type());
    call_into({out}, dp::ops::Softmax{.log = log, .axis = dim}, {view_of(input)});
    return out;
}

template <bool log, auto check>
at::Tensor& softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                             at::ScalarType type, at::Tensor& grad_input) {
    check(grad_input, grad, output, dim, type);
    if (grad_input.numel() == 0) return grad_input;
    if (output.dim() == 0) return grad_input.zero_();
    give(grad_input, results_of(dp::ops::SoftmaxBackward{.log = log, .axis = dim},
                                {view_of(grad), view_of(output)})[0]);
    return grad_input;
}

namespace meta = at::meta;

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_softmax.out", softmax_out<false, meta::_softmax_out>, Overlap::any);
    m.impl("_log_softmax.out", softmax_out<true, meta::_log_softmax_out>, Overlap::any);
    m.impl("_softmax_backward_data.out", softmax_backward<false, meta::_softmax_backward_data_out>,
           Overlap::any);
    m.impl("_log_softmax_backward_data.out",
           softmax_backward<true, meta::_log_softmax_backward_data_out>, Overlap::any);
}

}  // namespace
}  // namespace dlprim_torch
