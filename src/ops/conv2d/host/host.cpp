// SPDX-License-Identifier: MIT
// conv2d.host, conv2d_backward_data.host, conv2d_backward_filter.host: convolutions on the host as
// matrix products whose panels are packed directly from the images (host_patches.hpp), or as direct
// loops if a group has one input channel. Forward with one input channel and several outputs is a
// product, too, where fused multiply-adds make that as accurate as the direct loops (spectra).
// conv2d.host_integers multiplies small integers in pairs.
#include "base/text.hpp"
#include "engine/host_gemm.hpp"
#include "engine/reached_by.hpp"
#include "engine/small_integers.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/host/host_depthwise.hpp"
#include "ops/conv2d/host/host_patches.hpp"
#include "ops/conv2d/options.hpp"
#include "runtime/host_vector_width.hpp"

#include <utility>

namespace dlprim::conv2d {

namespace {

using Operands = std::span<const BufferRef>;

float* floats(const BufferRef& operand) {
    return reinterpret_cast<float*>(operand.host());
}

Geometry geometry_of(const Problem& problem) {
    return Geometry::of(problem).lying();
}

// A gather with the layout of its patches.
struct LaidOut {
    Gather gather;
    PatchLayout layout;
    explicit LaidOut(Gather given) : gather(std::move(given)), layout(gather) {}
};

/// The image as the second operand of the product. That of a 1x1 convolution is a matrix as it is
/// stored.
class ImageSource {
  public:
    ImageSource(const Geometry& g, const LaidOut& laid, const float* x)
        : is_matrix_(g.pointwise() && g.n == 1),
          matrix_(x, 1, laid.gather.columns(), laid.gather.depth() * laid.gather.columns()),
          patches_(laid.gather, laid.layout, x) {}
    const GemmSource& source() const {
        return is_matrix_ ? static_cast<const GemmSource&>(matrix_) : patches_;
    }

  private:
    bool is_matrix_;
    GemmMatrix matrix_;
    PatchSource patches_;
};

GemmMatrix weight_rows(const Geometry& g, const float* weight) {
    const std::int64_t k = g.group_in() * g.kh * g.kw;
    return {weight, k, 1, g.group_out() * k};
}

HostLaunch::Work forward_work(const Problem& problem) {
    const bool bias = has_bias(problem);
    const Geometry geometry = geometry_of(problem);
    return [g = geometry, laid = LaidOut(forward_gather(geometry)), stages = problem.epilogue, bias,
            result = problem.inputs.size()](HostPool& pool, Operands operands) {
        const HostEpilogue epilogue(stages, operands);
        const float *x = floats(operands[0]), *weight = floats(operands[1]);
        const float* b = bias ? floats(operands[2]) : nullptr;
        float* y = floats(operands[result]);
        if (g.group_in() == 1 && (g.group_out() < 4 || host_vector_width() < 8))
            return depthwise_forward(pool, g, x, weight, b, epilogue, y);
        const Gather& gather = laid.gather;
        const std::int64_t k = gather.depth(), columns = gather.columns();
        const GemmMatrix rows = weight_rows(g, weight);
        const PlaneSink sink(gather, y, b, epilogue);
        const ImageSource image(g, laid, x);
        host_gemm(pool, g.groups, gather.results, columns, k, rows, image.source(), sink);
    };
}

/// The panels that the weights of small integers are packed to.
PairPanels weight_panels(const Geometry& g) {
    return {GemmSide::a, g.groups, g.group_out(), 0, g.group_in() * g.kh * g.kw};
}

HostLaunch::Work integers_work(const Problem& problem) {
    const bool bias = has_bias(problem);
    const bool packed = problem.inputs[1].layout.kind == Layout::Kind::packed;
    const Geometry geometry = geometry_of(problem);
    return [g = geometry, laid = LaidOut(forward_gather(geometry)), stages = problem.epilogue, bias,
            packed, result = problem.inputs.size()](HostPool& pool, Operands operands) {
        const HostEpilogue epilogue(stages, operands);
        const float* weight = floats(operands[1]);
        const Gather& gather = laid.gather;
        const std::int64_t k = gather.depth();
        const GemmMatrix rows = weight_rows(g, weight);
        const GemmPairs pairs(rows, k);
        const GemmPackedPairs stored(weight_panels(g), weight);
        const ImageSource image(g, laid, floats(operands[0]));
        host_gemm_pairs(pool, g.groups, gather.results, gather.columns(), k,
                        packed ? static_cast<const GemmSource&>(stored) : pairs,
                        GemmPairs(image.source(), k),
                        PlaneSink(gather, floats(operands[result]),
                                  bias ? floats(operands[2]) : nullptr, epilogue));
    };
}

HostLaunch::Work backward_data_work(const Problem& problem) {
    const Geometry geometry = geometry_of(problem);
    std::vector<LaidOut> gathers;
    for (Gather& gather : backward_data_gathers(geometry)) gathers.emplace_back(std::move(gather));
    return [g = geometry, gathers = std::move(gathers), stages = problem.epilogue,
            result = problem.inputs.size()](HostPool& pool, Operands operands) {
        const HostEpilogue epilogue(stages, operands);
        const float *dy = floats(operands[0]), *weight = floats(operands[1]);
        float* dx = floats(operands[result]);
        if (g.group_in() == 1) return depthwise_backward_data(pool, g, dy, weight, epilogue, dx);
        for (const auto& [gather, layout] : gathers)
            host_gemm(pool, g.groups, gather.results, gather.columns(), gather.depth(),
                      TransposedWeightSource(gather, g.kh * g.kw, weight),
                      PatchSource(gather, layout, dy), PlaneSink(gather, dx, nullptr, epilogue));
    };
}

HostLaunch::Work backward_filter_work(const Problem& problem) {
    return [g = geometry_of(problem), gather = forward_gather(geometry_of(problem)),
            result = problem.inputs.size()](HostPool& pool, Operands operands) {
        const float *x = floats(operands[0]), *dy = floats(operands[1]);
        float* dweight = floats(operands[result]);
        if (g.group_in() == 1) return depthwise_backward_filter(pool, g, x, dy, dweight);
        const std::int64_t columns = gather.depth();
        host_gemm(pool, g.groups, g.group_out(), columns, gather.columns(),
                  OutputGradientSource(g, dy), TransposedPatchSource(gather, x),
                  GemmMatrixSink(dweight, columns, g.group_out() * columns, 1, 0));
    };
}

class Host : public ConvolutionEngine {
  public:
    using Make = HostLaunch::Work (*)(const Problem&);
    Host(const char* op, std::string_view way, Make make)
        : ConvolutionEngine(op, way, true), make_(make) {}

    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        for (const auto* operands : {&problem.inputs, &problem.outputs})
            for (const Operand& operand : *operands)
                if (operand.dtype != DType::f32)
                    return Verdict::no(
                        cat("it supports float tensors only, not ", name_of(operand.dtype)));
        if (op() == backward_filter_type && !problem.epilogue.empty())
            return Verdict::no("it does not support an epilogue");
        return Verdict::yes();
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, Geometry::of(problem).flops(), 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(make_(problem));
    }

  private:
    Make make_;
};

/// conv2d.host_integers: the same for small integers, which are multiplied in pairs. Constant
/// weights are packed once.
class HostIntegers : public Host, public ReachedBy {
  public:
    HostIntegers() : Host(forward_type, "host_integers", integers_work) {}

    std::string_view reached_by() const override { return reached_by_marks; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!problem.attrs.has(small_integers_attr))
            return Verdict::no("it multiplies small integers, which nothing says the factors are");
        if (Geometry::of(problem).group_in() == 1 && Geometry::of(problem).group_out() < 4)
            return Verdict::no("its sums are long, and groups have one input channel");
        return Host::is_applicable(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, Geometry::of(problem).flops(), 1.0);
    }
    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        if (problem.inputs[1].constant) {
            const PairPanels panels = weight_panels(geometry_of(problem));
            choice.inputs[1] = Layout::packed(cat("host_pairs:a", panels.batch, 'x', panels.count,
                                                  'x', panels.k, 'w', panels.width),
                                              static_cast<std::uint64_t>(panels.floats()) * 4);
        }
        return {choice};
    }
    std::unique_ptr<Launch> build_packing(ContextImpl&, const Problem& problem, const Tuning&,
                                          int) const override {
        return std::make_unique<HostLaunch>(
            [g = geometry_of(problem)](HostPool& pool, Operands operands) {
                pack_pairs(pool, weight_panels(g), weight_rows(g, floats(operands[0])),
                           floats(operands[1]));
            });
    }
};

}  // namespace

void add_host_engines(EngineRegistry& registry) {
    registry.add(std::make_unique<HostIntegers>());
    registry.add(std::make_unique<Host>(forward_type, "host", forward_work));
    registry.add(std::make_unique<Host>(backward_data_type, "host", backward_data_work));
    registry.add(std::make_unique<Host>(backward_filter_type, "host", backward_filter_work));
}

}  // namespace dlprim::conv2d
