// SPDX-License-Identifier: MIT
// conv2d.host_double and those of both gradients: convolutions of doubles on the host's threads, in
// plain loops. A task is a plane of the result.
#include "ops/conv2d/host/host_double.hpp"
#include "ops/conv2d/engines.hpp"

#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "ops/conv2d/options.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

using Operands = std::span<const BufferRef>;

/// The outputs [first, last) of one dimension whose windows have tap `k` inside the image.
struct Reach {
    std::int64_t first, last, image;  ///< image: the position that the first of them reads

    Reach(std::int64_t size, std::int64_t out, std::int64_t stride, std::int64_t pad,
          std::int64_t tap) {
        const std::int64_t shift = tap - pad;  // output o reads o * stride + shift
        first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
        last = size > shift ? std::min(out, (size - shift + stride - 1) / stride) : 0;
        image = first * stride + shift;
    }
};

/// Calls visit(pixel of x, pixel of y, count) for each row of y that a tap reads: `count` pixels of
/// y, side by side, and pixels of x that are g.sw apart.
template <typename Visit>
void each_row(const Geometry& g, std::int64_t ky, std::int64_t kx, Visit&& visit) {
    const Reach rows(g.h, g.oh, g.sh, g.pt, ky * g.dh), columns(g.w, g.ow, g.sw, g.pl, kx * g.dw);
    if (columns.first >= columns.last) return;
    for (std::int64_t oy = rows.first; oy < rows.last; ++oy)
        visit((rows.image + (oy - rows.first) * g.sh) * g.w + columns.image,
              oy * g.ow + columns.first, columns.last - columns.first);
}

/// y of output channel o of image n, which is zero or has the bias already.
void forward(const Geometry& g, std::int64_t n, std::int64_t o, const double* x,
             const double* weight, double* y) {
    for (std::int64_t c = 0; c < g.group_in(); ++c) {
        const double* image = x + (n * g.in + o / g.group_out() * g.group_in() + c) * g.h * g.w;
        for (std::int64_t k = 0; k < g.kh * g.kw; ++k) {
            const double w = weight[(o * g.group_in() + c) * g.kh * g.kw + k];
            each_row(g, k / g.kw, k % g.kw,
                     [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                         for (std::int64_t i = 0; i < count; ++i)
                             y[to + i] += w * image[from + i * g.sw];
                     });
        }
    }
}

/// dx of input channel c of image n, which is zero.
void backward_data(const Geometry& g, std::int64_t n, std::int64_t c, const double* dy,
                   const double* weight, double* dx) {
    const std::int64_t group = c / g.group_in();
    for (std::int64_t o = group * g.group_out(); o < (group + 1) * g.group_out(); ++o) {
        const double* image = dy + (n * g.out + o) * g.oh * g.ow;
        for (std::int64_t k = 0; k < g.kh * g.kw; ++k) {
            const double w = weight[(o * g.group_in() + c % g.group_in()) * g.kh * g.kw + k];
            each_row(g, k / g.kw, k % g.kw,
                     [&](std::int64_t to, std::int64_t from, std::int64_t count) {
                         for (std::int64_t i = 0; i < count; ++i)
                             dx[to + i * g.sw] += w * image[from + i];
                     });
        }
    }
}

/// The gradients of the weights between output channel o and input channel c of its group.
void backward_filter(const Geometry& g, std::int64_t o, std::int64_t c, const double* x,
                     const double* dy, double* dweight) {
    for (std::int64_t k = 0; k < g.kh * g.kw; ++k) {
        double total = 0;
        for (std::int64_t n = 0; n < g.n; ++n) {
            const double* image = x + (n * g.in + o / g.group_out() * g.group_in() + c) * g.h * g.w;
            const double* gradient = dy + (n * g.out + o) * g.oh * g.ow;
            double sum = 0;
            each_row(g, k / g.kw, k % g.kw,
                     [&](std::int64_t from, std::int64_t at, std::int64_t count) {
                         for (std::int64_t i = 0; i < count; ++i)
                             sum += image[from + i * g.sw] * gradient[at + i];
                     });
            total += sum;
        }
        dweight[k] = total;
    }
}

class HostDouble : public ConvolutionEngine {
  public:
    explicit HostDouble(const char* op) : ConvolutionEngine(op, "host_double", true) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (problem.inputs[0].dtype != DType::f64)
            return Verdict::no(
                cat("it supports double tensors only, not ", name_of(problem.inputs[0].dtype)));
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        return one_float_type(device, problem, problem.inputs.size(), problem.outputs.size());
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, Geometry::of(problem).flops(), 0.05);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = Geometry::of(problem);
        if (op() == forward_type) return forward_launch(g, has_bias(problem));
        if (backward_)
            return launch(
                g.n * g.in, g.h * g.w,
                [g](std::int64_t plane, const double* dy, const double* weight, double* dx) {
                    backward_data(g, plane / g.in, plane % g.in, dy, weight, dx);
                });
        const std::int64_t in = g.group_in();
        return launch(
            g.out * in, g.kh * g.kw,
            [g, in](std::int64_t plane, const double* x, const double* dy, double* dweight) {
                backward_filter(g, plane / in, plane % in, x, dy, dweight);
            });
    }

  private:
    static double* at(Operands operands, std::size_t i) {
        return reinterpret_cast<double*>(operands[i].host());
    }
    /// Calls work(plane, first operand, second operand, plane of the result, filled with zeros).
    template <typename Work>
    static std::unique_ptr<Launch> launch(std::int64_t planes, std::int64_t size, Work work) {
        return std::make_unique<HostLaunch>([=](HostPool& pool, Operands operands) {
            pool.parallel_for(planes, 1, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t plane = begin; plane < end; ++plane) {
                    double* result = at(operands, 2) + plane * size;
                    std::fill_n(result, size, 0.0);
                    work(plane, at(operands, 0), at(operands, 1), result);
                }
            });
        });
    }
    static std::unique_ptr<Launch> forward_launch(const Geometry& g, bool bias) {
        return std::make_unique<HostLaunch>([g, bias](HostPool& pool, Operands operands) {
            pool.parallel_for(g.n * g.out, 1, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t plane = begin; plane < end; ++plane) {
                    const std::int64_t o = plane % g.out, size = g.oh * g.ow;
                    double* y = at(operands, bias ? 3 : 2) + plane * size;
                    std::fill_n(y, size, bias ? at(operands, 2)[o] : 0.0);
                    forward(g, plane / g.out, o, at(operands, 0), at(operands, 1), y);
                }
            });
        });
    }
};

}  // namespace

void add_host_double_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type, backward_filter_type})
        registry.add(std::make_unique<HostDouble>(op));
}

}  // namespace dlprim::conv2d
