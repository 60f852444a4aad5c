// SPDX-License-Identifier: MIT
// Variances and standard deviations: the mean, then the squares of what differs from it.
#include "memory/view.hpp"
#include "ops/call.hpp"
#include "ops/dims.hpp"
#include "ops/kernels.hpp"

#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <limits>

namespace dlprim_torch {
namespace {

using Dim = at::OptionalIntArrayRef;
using Correction = std::optional<at::Scalar>;

/// Variance, or its root, and the mean of some dimensions.
class Moments {
  public:
    Moments(const at::Tensor& self, Dim dim, const Correction& correction, bool keep_dim)
        : self_(self), keep_dim_(keep_dim) {
        TORCH_CHECK(self.is_floating_point(),
                    "std and var only support floating point and complex dtypes");
        const Dims dims = dims_of(dim.value_or(c10::IntArrayRef()), self.dim());
        axes_ = axes_of(dims, self.dim());
        sizes_ = result_sizes(self.sizes(), dims, keep_dim);
        const std::vector<std::int64_t> kept = result_sizes(self.sizes(), dims, true);
        double count = 1;
        for (std::size_t d = 0; d < kept.size(); ++d)
            if (dims[d]) count *= static_cast<double>(self.sizes()[d]);
        scale_ = 1 / std::max(count - (correction ? correction->to<double>() : 1.0), 0.0);
        // Halves would lose what squares of small differences need.
        const at::ScalarType wide = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
        mean_ = at::empty(kept, self.options().dtype(wide));
        if (self.numel() > 0)
            pointwise_into({mean_}, "y0 = mean" + axes_ + "(x0)", {self});
        else
            mean_.fill_(std::numeric_limits<double>::quiet_NaN());
    }

    const std::vector<std::int64_t>& sizes() const noexcept { return sizes_; }
    at::Tensor make() const { return at::empty(sizes_, self_.options()); }

    void variance(const at::Tensor& out, bool root) const {
        if (out.numel() == 0) return;
        if (self_.numel() == 0) {
            out.fill_(std::numeric_limits<double>::quiet_NaN());
            return;
        }
        const at::Tensor squares = root ? at::empty(sizes_, mean_.options()) : out;
        pointwise_into({squares}, "d = x0 - x1; y0 = sum" + axes_ + "(d * d * p0)", {self_, mean_},
                       {scale_}, keep_dim_);
        if (root) pointwise_into({out}, "y0 = sqrt(x0)", {squares});
    }

    at::Tensor mean() const { return mean_.to(self_.scalar_type()).view(sizes_); }

  private:
    at::Tensor self_, mean_;
    std::string axes_;
    std::vector<std::int64_t> sizes_;
    double scale_;
    bool keep_dim_;
};

template <bool root>
at::Tensor spread(const at::Tensor& self, Dim dim, const Correction& correction, bool keep_dim) {
    const c10::DeviceGuard guard(self.device());
    const Moments moments(self, dim, correction, keep_dim);
    const at::Tensor out = moments.make();
    moments.variance(out, root);
    return out;
}

template <bool root>
at::Tensor& spread_out(const at::Tensor& self, Dim dim, const Correction& correction, bool keep_dim,
                       at::Tensor& out) {
    const c10::DeviceGuard guard(self.device());
    const Moments moments(self, dim, correction, keep_dim);
    at::native::resize_output(out, moments.sizes());
    moments.variance(out, root);
    return out;
}

template <bool root>
std::tuple<at::Tensor, at::Tensor> both(const at::Tensor& self, Dim dim,
                                        const Correction& correction, bool keep_dim) {
    const c10::DeviceGuard guard(self.device());
    const Moments moments(self, dim, correction, keep_dim);
    const at::Tensor out = moments.make();
    moments.variance(out, root);
    return {out, moments.mean()};
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("var.correction", spread<false>);
    served.impl("std.correction", spread<true>);
    served.impl("var.correction_out", spread_out<false>, Overlap::any);
    served.impl("std.correction_out", spread_out<true>, Overlap::any);
    served.impl("var_mean.correction", both<false>);
    served.impl("std_mean.correction", both<true>);
}

}  // namespace
}  // namespace dlprim_torch
