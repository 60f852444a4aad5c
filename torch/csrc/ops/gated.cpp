// SPDX-License-Identifier: MIT
// Programs over parts of tensors: gated linear units, and the cells of LSTM and GRU.
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"
#include "ops/rounds.hpp"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {
namespace {

std::string operand_name(std::size_t number) {
    return joined({"x", std::to_string(number)});
}

/// The halves of `self` along a dimension.
std::vector<at::Tensor> halves(const at::Tensor& self, std::int64_t dim) {
    TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
    const std::int64_t d = at::maybe_wrap_dim(dim, self.dim()), size = self.size(d);
    TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ",
                size);
    return {self.narrow(d, 0, size / 2), self.narrow(d, size / 2, size / 2)};
}

at::Tensor& glu_out(const at::Tensor& self, std::int64_t dim, at::Tensor& out) {
    const std::vector<at::Tensor> parts = halves(self, dim);
    at::native::resize_output(out, parts[0].sizes());
    if (out.numel() > 0) pointwise_into({out}, "y0 = x0 * sigmoid(x1)", parts);
    return out;
}

at::Tensor& glu_backward_out(const at::Tensor& grad, const at::Tensor& self, std::int64_t dim,
                             at::Tensor& out) {
    at::native::resize_output(out, self.sizes());
    if (out.numel() == 0) return out;
    const std::vector<at::Tensor> parts = halves(self, dim);
    pointwise_into(halves(out, dim), "s = sigmoid(x2); y0 = x0 * s; y1 = x0 * x1 * s * (1 - s)",
                   {grad, parts[0], parts[1]});
    return out;
}

/// Parts of a cell's gates, which a program reads as sums of what comes from the input and from the
/// state, with their biases.
class Gates {
  public:
    Gates(const at::Tensor& input, const at::Tensor& hidden, const Maybe& input_bias,
          const Maybe& hidden_bias, std::int64_t count)
        : count_(count), biased_(defined(input_bias)) {
        add(input);
        add(hidden);
        if (!biased_) return;
        add(*input_bias);
        add(*hidden_bias);
    }

    const std::vector<at::Tensor>& inputs() const noexcept { return inputs_; }
    /// What comes from the input, with its bias.
    std::string from_input(std::int64_t gate) const { return biased(gate, 0); }
    std::string from_hidden(std::int64_t gate) const { return biased(gate, 1); }
    std::string both(std::int64_t gate) const {
        return joined({from_input(gate), " + ", from_hidden(gate)});
    }
    /// The name of one more operand.
    std::string operand(const at::Tensor& tensor) {
        inputs_.push_back(tensor);
        return operand_name(inputs_.size() - 1);
    }

  private:
    void add(const at::Tensor& whole) {
        for (const at::Tensor& part : whole.chunk(count_, -1)) inputs_.push_back(part);
    }
    std::string biased(std::int64_t gate, std::int64_t source) const {
        const auto name = [&](std::int64_t part) {
            return operand_name(static_cast<std::size_t>(part * count_ + gate));
        };
        return biased_ ? joined({name(source), " + ", name(2 + source)}) : name(source);
    }

    std::int64_t count_;
    bool biased_;
    std::vector<at::Tensor> inputs_;
};

std::vector<at::Tensor> with_parts(std::vector<at::Tensor> first, const at::Tensor& whole,
                                   std::int64_t count) {
    for (const at::Tensor& part : whole.chunk(count, -1)) first.push_back(part);
    return first;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input,
                                                         const at::Tensor& hidden,
                                                         const at::Tensor& cx,
                                                         const Maybe& input_bias,
                                                         const Maybe& hidden_bias) {
    const c10::DeviceGuard guard(cx.device());
    Gates gates(input, hidden, input_bias, hidden_bias, 4);
    const std::string before = gates.operand(cx);
    const std::string code =
        joined({"i = sigmoid(", gates.both(0), "); f = sigmoid(", gates.both(1), "); g = tanh(",
                gates.both(2), "); o = sigmoid(", gates.both(3), "); c = f * ", before,
                " + i * g; y0 = o * tanh(c); y1 = c; y2 = i; y3 = f; y4 = g; y5 = o"});
    at::Tensor hy = at::empty_like(cx), cy = at::empty_like(cx);
    at::Tensor kept = at::empty(input.sizes(), input.options());
    if (cx.numel() > 0) pointwise_into(with_parts({hy, cy}, kept, 4), code, gates.inputs());
    return {hy, cy, kept};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const Maybe& grad_hy, const Maybe& grad_cy, const at::Tensor& cx, const at::Tensor& cy,
    const at::Tensor& kept, bool has_bias) {
    if (!defined(grad_hy) && !defined(grad_cy)) return {};
    const c10::DeviceGuard guard(cx.device());
    std::vector<at::Tensor> inputs = with_parts({cx, cy}, kept, 4);
    std::string dh = "0", dc = "0";
    if (defined(grad_hy)) {
        dh = operand_name(inputs.size());
        inputs.push_back(*grad_hy);
    }
    if (defined(grad_cy)) {
        dc = operand_name(inputs.size());
        inputs.push_back(*grad_cy);
    }
    const std::string code =
        joined({"h = ", dh, "; t = tanh(x1); d = h * x5 * (1 - t * t) + ", dc,
                "; y0 = d * x3; y1 = d * x4 * (1 - x2) * x2; y2 = d * x0 * (1 - x3) * x3; "
                "y3 = d * x2 * (1 - x4 * x4); y4 = h * t * (1 - x5) * x5"});
    at::Tensor grad_cx = at::empty_like(cx), grad_gates = at::empty(kept.sizes(), kept.options());
    if (cx.numel() > 0) pointwise_into(with_parts({grad_cx}, grad_gates, 4), code, inputs);
    return {grad_gates, grad_cx, has_bias ? grad_gates.sum(0, false) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input, const at::Tensor& hidden,
                                            const at::Tensor& hx, const Maybe& input_bias,
                                            const Maybe& hidden_bias) {
    const c10::DeviceGuard guard(hx.device());
    Gates gates(input, hidden, input_bias, hidden_bias, 3);
    const std::string before = gates.operand(hx);
    const std::string code =
        joined({"r = sigmoid(", gates.both(0), "); z = sigmoid(", gates.both(1), "); m = ",
                gates.from_hidden(2), "; n = tanh(", gates.from_input(2), " + r * m); h = ", before,
                "; y0 = n + z * (h - n); y1 = r; y2 = z; y3 = n; y4 = h; y5 = m"});
    at::Tensor hy = at::empty_like(hx);
    at::Tensor kept = at::empty({hx.size(0), hx.size(1) * 5}, hx.options());
    if (hx.numel() > 0) pointwise_into(with_parts({hy}, kept, 5), code, gates.inputs());
    return {hy, kept};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(
    const at::Tensor& grad_hy, const at::Tensor& kept, bool has_bias) {
    const c10::DeviceGuard guard(grad_hy.device());
    const std::int64_t hidden = kept.size(1) / 5;
    at::Tensor from_input = at::empty({kept.size(0), hidden * 3}, kept.options());
    at::Tensor from_hidden = at::empty_like(from_input);
    at::Tensor grad_hx = at::empty_like(grad_hy);
    std::vector<at::Tensor> outs = with_parts(with_parts({grad_hx}, from_input, 3), from_hidden, 3);
    // x1 to x5: the reset gate, the update gate, the new state, the old one, its part of the new.
    const char* const code =
        "z = x0 * (x4 - x3) * (1 - x2) * x2; n = x0 * (1 - x2) * (1 - x3 * x3); "
        "r = n * x5 * (1 - x1) * x1; y0 = x0 * x2; y1 = r; y2 = z; y3 = n; y4 = r; y5 = z; "
        "y6 = n * x1";
    if (grad_hy.numel() > 0) pointwise_into(outs, code, with_parts({grad_hy}, kept, 5));
    if (!has_bias) return {from_input, from_hidden, grad_hx, {}, {}};
    return {from_input, from_hidden, grad_hx, from_input.sum(0, false), from_hidden.sum(0, false)};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("glu.out", glu_out);
    m.impl("glu_backward.grad_input", glu_backward_out);
    m.impl("glu_backward", into_new<glu_backward_out>);
    m.impl("_thnn_fused_lstm_cell", lstm_cell);
    m.impl("_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
    m.impl("_thnn_fused_gru_cell", gru_cell);
    m.impl("_thnn_fused_gru_cell_backward", gru_cell_backward);
}

}  // namespace
}  // namespace dlprim_torch
