// SPDX-License-Identifier: MIT
// Pad: adds elements before and after dimensions. The gradient of constant padding, and of circular
// padding that crops as much as it adds (a rotation, torch.roll), is a Pad with the pads negated.
// The gradient of the other modes is PadBackward.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/pad/gather_geometry.hpp"

namespace dlprim::pad {

namespace {

struct BackwardOptions : WithSizes<ops::Pad> {
    static constexpr std::string_view type = "PadBackward";
};

/// dy -> dx. The size of x is an option, so that x need not be kept.
class PadBackward : public InternalOperator<BackwardOptions> {
  public:
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

/// Visits output elements: f(index in the input or -1, index in the output).
template <typename F>
void visit(const Shape& x, const Shape& y, const Options& options, F&& f) {
    const Ints strides = x.strides();
    for (std::int64_t to = 0; to < y.numel(); ++to) {
        std::int64_t rest = to, from = 0;
        bool inside = true;
        for (int d = y.rank(); d-- > 0;) {
            const auto at = static_cast<std::size_t>(d);
            std::int64_t c = rest % y[d] - options.before[at];
            rest /= y[d];
            if (c < 0 || c >= x[d]) {
                switch (options.mode) {
                    case PaddedCopy::Mode::constant:
                        inside = false;
                        break;
                    case PaddedCopy::Mode::reflect:
                        c = c < 0 ? -c : 2 * (x[d] - 1) - c;
                        break;
                    case PaddedCopy::Mode::replicate:
                        c = c < 0 ? 0 : x[d] - 1;
                        break;
                    case PaddedCopy::Mode::circular:
                        c = (c + x[d]) % x[d];
                        break;
                }
            }
            from += c * strides[at];
        }
        f(inside ? from : -1, static_cast<std::size_t>(to));
    }
}

class Pad : public DeclaredOperator<ops::Pad> {
  public:
    FloatTypes float_types(const Attrs& attrs) const override {
        return attrs.text("mode") == "constant" ? FloatTypes::all : FloatTypes::single;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& x = inputs[0].shape;
        return {{Options(attrs, x).output_shape(x), inputs[0].dtype}};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        const std::string name = node.name + "/backward";
        const Shape& x = context.graph.shape(node.inputs[0]);
        const Options options(node.attrs, x);
        if (options.mode == PaddedCopy::Mode::constant || options.is_rotation()) {
            Ints pads = node.attrs.ints("pads");
            for (std::int64_t& p : pads) p = -p;
            context.input_gradients[0] = context.graph.add1(
                "Pad", name, {dy}, {{"pads", pads}, {"mode", node.attrs.text("mode")}});
        } else {
            Attrs attrs = node.attrs;
            attrs.set("sizes", x.to_vector());
            context.input_gradients[0] = context.graph.add1("PadBackward", name, {dy}, attrs);
        }
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        HostArray& y = call.outputs[0];
        const Options options(call.attrs, x.shape);
        y.shape = options.output_shape(x.shape);
        y.dtype = x.dtype;
        y.data.resize(static_cast<std::size_t>(y.shape.numel()));
        visit(x.shape, y.shape, options, [&](std::int64_t from, std::size_t to) {
            y.data[to] = from < 0 ? options.value : x.data[static_cast<std::size_t>(from)];
        });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& dy = call.output_gradients[0];
        HostArray& dx = call.input_gradients[0];
        dx = call.inputs[0];
        dx.data.assign(dx.data.size(), 0.0);
        visit(dx.shape, dy.shape, Options(call.attrs, dx.shape),
              [&](std::int64_t from, std::size_t to) {
                  if (from >= 0) dx.data[static_cast<std::size_t>(from)] += dy.data[to];
              });
    }
};

}  // namespace

void register_pad(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Pad>());
    operators.add(std::make_unique<PadBackward>());
    add_copy_engines(engines, movement);
    add_gather_engine(engines);
    add_gather_host_engine(engines);
}

}  // namespace dlprim::pad
