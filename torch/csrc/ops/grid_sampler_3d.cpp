// SPDX-License-Identifier: MIT
// Volumes sampled at given places: the eight elements around a place are gathered, and their
// weighted sum is the sample. Backward adds to the elements in the order of the places.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <array>
#include <tuple>

namespace dlprim_torch {
namespace {

constexpr std::int64_t nearest = 1;

/// Along one dimension: where places lie between elements.
struct Axis {
    std::int64_t size;    ///< of the volume
    at::Tensor position;  ///< [N, places], in elements
    at::Tensor slope;     ///< the position's gradient by the given coordinate
};

/// The position u and its slope d that a coordinate x0 means, for p0 elements.
std::string position_code(std::int64_t padding, bool align_corners) {
    std::string code = align_corners
                           ? "d = (p0 - 1) / 2; u = (x0 + 1) * d; h = 0; s = p0 - 1; "
                           : "d = p0 / 2; u = ((x0 + 1) * p0 - 1) / 2; h = -0.5; s = p0; ";
    if (padding == 0) return code.append("y0 = u; y1 = d + x0 * 0");
    if (padding == 1)
        code.append("v = u; e = d; ");
    else
        code.append(
            "i = abs(u - h); f = s == 0 ? 0 : floor(i / s); r = i - f * s; o = f - 2 * floor(f / "
            "2); "
            "v = s == 0 ? 0 : o == 0 ? r + h : s - r + h; "
            "e = s == 0 ? 0 : (u < h ? -d : d) * (o == 0 ? 1 : -1); ");
    return code.append("y0 = min(max(v, 0), p0 - 1); y1 = v <= 0 || v >= p0 - 1 ? 0 : e");
}

/// One of the elements around places.
struct Corner {
    at::Tensor index;                  ///< [N, places], of the flattened volume
    at::Tensor weight;                 ///< likewise, 0 outside of the volume
    std::array<at::Tensor, 3> slopes;  ///< of the weight by each position
};

class Sampling {
  public:
    Sampling(const at::Tensor& input, const at::Tensor& grid, std::int64_t mode,
             std::int64_t padding, bool align_corners)
        : input_(input.reshape({input.size(0), input.size(1), -1})), mode_(mode) {
        const at::Tensor places = grid.reshape({grid.size(0), -1, 3});
        for (std::size_t d = 0; d < 3; ++d) {
            Axis& axis = axes_[d];
            axis.size = input.size(static_cast<std::int64_t>(d) + 2);
            // The last coordinate is that of the first dimension.
            const at::Tensor given = places.select(2, 2 - static_cast<std::int64_t>(d));
            axis.position = at::empty(given.sizes(), given.options());
            axis.slope = at::empty_like(axis.position);
            pointwise_into({axis.position, axis.slope}, position_code(padding, align_corners),
                           {given}, {static_cast<double>(axis.size)});
        }
    }

    std::vector<Corner> corners(bool with_slopes) const {
        std::vector<Corner> all;
        for (int number = 0; number < (mode_ == nearest ? 1 : 8); ++number)
            all.push_back(corner({(number & 4) != 0, (number & 2) != 0, (number & 1) != 0},
                                 with_slopes && mode_ != nearest));
        return all;
    }
    /// An index [N, places] for every channel.
    at::Tensor of_channels(const at::Tensor& index) const {
        return index.unsqueeze(1).expand({-1, input_.size(1), -1}).contiguous();
    }
    at::Tensor values(const Corner& corner) const {
        return new_tensor(
            results_of(dp::ops::Gather{.mode = "elements", .dim = 2},
                       {view_of(input_.contiguous()), view_of(of_channels(corner.index))})[0],
            input_.device());
    }
    const Axis& axis(std::size_t d) const { return axes_[d]; }

  private:
    Corner corner(std::array<bool, 3> behind, bool with_slopes) const {
        std::string code, weights[3], index = "0", inside = "1";
        std::vector<at::Tensor> operands;
        std::vector<double> sizes;
        for (std::size_t d = 0; d < 3; ++d) {
            const std::string n = std::to_string(d);
            code.append("l").append(n).append(mode_ == nearest ? " = round(x" : " = floor(x");
            code.append(n).append("); w").append(n).append(" = ");
            const std::string flag = std::to_string(d + 3);
            if (mode_ == nearest)
                code.append("1; i");
            else
                code.append("p")
                    .append(flag)
                    .append(" != 0 ? x")
                    .append(n)
                    .append(" - l")
                    .append(n)
                    .append(" : 1 - x")
                    .append(n)
                    .append(" + l")
                    .append(n)
                    .append("; i");
            code.append(n).append(" = l").append(n).append(" + p").append(flag).append("; ");
            inside.append(" && i").append(n).append(" >= 0 && i").append(n).append(" < p");
            inside.append(n);
            index = std::string("(").append(index).append(") * p").append(n).append(" + i");
            index.append(n);
            operands.push_back(axes_[d].position);
            sizes.push_back(static_cast<double>(axes_[d].size));
        }
        code.append("o = ").append(inside).append("; y0 = o ? ").append(index);
        code.append(" : 0; y1 = o ? w0 * w1 * w2 : 0; ");
        Corner made{at::empty(operands[0].sizes(), operands[0].options().dtype(at::kLong)),
                    at::empty_like(operands[0]),
                    {}};
        std::vector<at::Tensor> outs{made.index, made.weight};
        constexpr std::array others{"w1 * w2", "w0 * w2", "w0 * w1"};
        for (std::size_t d = 0; with_slopes && d < 3; ++d) {
            made.slopes[d] = at::empty_like(operands[0]);
            outs.push_back(made.slopes[d]);
            code.append("y").append(std::to_string(d + 2)).append(" = o ? (p");
            code.append(std::to_string(d + 3)).append(" != 0 ? 1 : -1) * ");
            code.append(others[d]).append(" : 0; ");
        }
        // As numbers of the call, so that one program serves all corners.
        for (const bool each : behind) sizes.push_back(each ? 1 : 0);
        pointwise_into(outs, code, operands, sizes);
        return made;
    }

    at::Tensor input_;
    std::int64_t mode_;
    std::array<Axis, 3> axes_;
};

at::Tensor sample(const at::Tensor& input, const at::Tensor& grid, std::int64_t mode,
                  std::int64_t padding, bool align_corners) {
    const c10::DeviceGuard guard(input.device());
    at::Tensor out = at::zeros(
        {input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)}, input.options());
    if (out.numel() == 0) return out;
    const Sampling sampling(input, grid, mode, padding, align_corners);
    const at::Tensor lines = out.view({input.size(0), input.size(1), -1});
    for (const Corner& corner : sampling.corners(false))
        pointwise_into({lines}, "y0 = x0 + x1 * x2",
                       {lines, sampling.values(corner), corner.weight.unsqueeze(1)});
    return out;
}

std::tuple<at::Tensor, at::Tensor> sample_backward(const at::Tensor& grad_output,
                                                   const at::Tensor& input, const at::Tensor& grid,
                                                   std::int64_t mode, std::int64_t padding,
                                                   bool align_corners, std::array<bool, 2> mask) {
    const c10::DeviceGuard guard(input.device());
    at::Tensor grad_input = mask[0] ? at::zeros_like(input) : at::Tensor();
    const at::Tensor grad_grid = mask[1] ? at::zeros(grid.sizes(), grid.options()) : at::Tensor();
    if (grad_output.numel() == 0) return {grad_input, grad_grid};
    const Sampling sampling(input, grid, mode, padding, align_corners);
    const std::int64_t batch = input.size(0), channels = input.size(1);
    const at::Tensor dy = grad_output.reshape({batch, channels, -1});
    std::vector<at::Tensor> indices, updates;
    for (const Corner& corner : sampling.corners(mask[1])) {
        if (mask[0]) {
            indices.push_back(sampling.of_channels(corner.index));
            updates.push_back(dy * corner.weight.unsqueeze(1));
        }
        if (!mask[1] || mode == nearest) continue;
        at::Tensor product = at::empty({batch, dy.size(2)}, dy.options());
        pointwise_into({product}, "y0 = sum[1](x0 * x1)", {dy, sampling.values(corner)}, {}, false);
        for (std::size_t d = 0; d < 3; ++d)
            grad_grid.view({batch, -1, 3})
                .select(2, 2 - static_cast<std::int64_t>(d))
                .add_(product * corner.slopes[d] * sampling.axis(d).slope);
    }
    if (mask[0]) {
        const dp::ops::Scatter options{
            .mode = "elements",
            .dim = 2,
            .reduction = "add",
            .shape = {batch, channels, input.numel() / (batch * channels)}};
        give(grad_input,
             results_of(options, {view_of(at::cat(indices, 2)), view_of(at::cat(updates, 2))})[0]);
    }
    return {grad_input, grad_grid};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("grid_sampler_3d", sample);
    m.impl("grid_sampler_3d_backward", sample_backward);
}

}  // namespace
}  // namespace dlprim_torch
