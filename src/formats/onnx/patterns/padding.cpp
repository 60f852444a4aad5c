// SPDX-License-Identifier: MIT
// Zeros around images, which exporters of TensorFlow write in front of convolutions and pooling
// whose own padding would be another one; see patterns.hpp.
#include "formats/onnx/patterns/finder.hpp"

#include <array>

namespace dlprim::onnx {

namespace {

/// Rows and columns around an image: top, left, bottom, right.
using Padding = std::array<std::int64_t, 4>;

/// The padding that the operator adds; nothing where it adds another one, or no zeros.
std::optional<Padding> zeros_of(const BuiltOperator& op) {
    if (op.type != "Pad" || op.inputs[0]->spec.shape.rank() != 4) return std::nullopt;
    if (!has_text(op, "mode", "constant")) return std::nullopt;
    if (op.options.has("value") && op.options.number("value") != 0) return std::nullopt;
    Ints pads = op.options.ints("pads");  // in front and behind, from the last dimension backward
    if (pads.size() > 4) return std::nullopt;
    pads.resize(4, 0);
    for (const std::int64_t pad : pads)
        if (pad < 0) return std::nullopt;
    return Padding{pads[2], pads[0], pads[3], pads[1]};
}

/// The window's own padding and that of the operator in front. Nothing where a window could lie in
/// the padding as a whole.
std::optional<Ints> padding_of_both(const BuiltOperator& window, const Padding& zeros) {
    const Ints own = window.options.ints("pad"), kernel = window.options.ints("kernel");
    if (own.size() != 4 || kernel.size() != 2) return std::nullopt;
    const Ints dilation = window.options.has("dilate") ? window.options.ints("dilate") : Ints{1, 1};
    Ints both;
    for (std::size_t i = 0; i < 4; ++i) {
        both.push_back(own[i] + zeros[i]);
        if (own[i] < 0 || both[i] > (kernel[i % 2] - 1) * dilation[i % 2]) return std::nullopt;
    }
    return both;
}

/// Whether no element is below zero. Of such elements a maximum does not change where a window has
/// zeros in place of padding that does not count.
bool is_positive(Finder& finder, Ref value) {
    const BuiltOperator* const op = finder.maker(value);
    if (!op || op->type != "Activation") return false;
    return has_text(*op, "activation", "relu") || has_text(*op, "activation", "relu6") ||
           has_text(*op, "activation", "sigmoid");
}

/// Whether pooling of the padded image is pooling with more padding of its own.
bool pools_padding(Finder& finder, const BuiltOperator& op, Ref image, Attrs& options) {
    if (boolean_of(op, "ceil_mode")) return false;
    if (has_text(op, "mode", "max")) return is_positive(finder, image);
    if (!has_text(op, "mode", "avg")) return false;
    // Zeros count in the mean. Padding that does not count cannot be told from them afterwards.
    if (!boolean_of(op, "count_include_pad") && op.options.ints("pad") != Ints{0, 0, 0, 0})
        return false;
    options.set("count_include_pad", true);
    return true;
}

void merge(Finder& finder, BuiltOperator& op) {
    const bool is_pooling = op.type == "Pooling";
    if (!is_pooling && op.type != "Convolution") return;
    const BuiltOperator* const pad = finder.maker(op.inputs[0]);
    const std::optional<Padding> zeros = pad ? zeros_of(*pad) : std::nullopt;
    if (!zeros || !op.options.has("pad") || !op.options.has("kernel")) return;
    const std::optional<Ints> both = padding_of_both(op, *zeros);
    if (!both) return;
    Attrs options = op.options;
    const Ref image = pad->inputs[0];
    if (is_pooling && !pools_padding(finder, op, image, options)) return;
    options.set("pad", *both);
    const std::vector<Ref> params = op.params;
    finder.rewrite(op, op.type, options, {image}, params);
}

}  // namespace

void merge_padding(Finder& finder) {
    for (BuiltOperator& op : finder.operators())
        if (!finder.is_dead(op)) merge(finder, op);
}

}  // namespace dlprim::onnx
