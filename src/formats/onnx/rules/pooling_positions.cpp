// SPDX-License-Identifier: MIT
// Pooling by any windows; see pooling_positions.hpp.
#include "formats/onnx/rules/pooling_positions.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

constexpr std::int64_t most_pooled_positions = 1 << 24;

/// At most a number that is too large anyway, since a file may hold any sizes.
std::int64_t product(const Ints& sizes) {
    std::int64_t all = 1;
    for (const std::int64_t size : sizes)
        all = size > 0 && all > most_pooled_positions * 2 / size ? most_pooled_positions * 2
                                                                 : all * size;
    return all;
}

/// Steps to the next position in row-major order; false behind the last.
bool next(Ints& at, const Ints& sizes) {
    for (std::size_t i = sizes.size(); i-- > 0;) {
        if (++at[i] < sizes[i]) return true;
        at[i] = 0;
    }
    return false;
}

std::int64_t output_size(Call& call, const Windows& windows, std::size_t i, std::int64_t in,
                         bool ceil_mode) {
    const std::size_t dims = windows.kernel.size();
    const std::int64_t stride = windows.stride[i], begin = windows.pad[i];
    const std::int64_t left =
        in + begin + windows.pad[i + dims] - ((windows.kernel[i] - 1) * windows.dilation[i] + 1);
    call.check(left >= 0, "a window is larger than the padded image");
    std::int64_t out = (left + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    // The last window begins in the image or in the padding in front of it.
    if (ceil_mode && (out - 1) * stride >= in + begin) --out;
    call.check(out >= 1, "no window begins in the padded image");
    return out;
}

}  // namespace

WindowPositions window_positions(Call& call, const Windows& windows, const Shape& image,
                                 bool ceil_mode, bool count_padding) {
    call.check(!image.empty(), "an image of shape ", image.str(), " has no elements to pool");
    const std::size_t dims = windows.kernel.size();
    WindowPositions made;
    Ints sizes;
    for (std::size_t i = 0; i < dims; ++i) {
        sizes.push_back(image[static_cast<int>(i) + 2]);
        made.out.push_back(output_size(call, windows, i, sizes[i], ceil_mode));
    }
    made.elements = product(windows.kernel);
    const std::int64_t outputs = product(made.out);
    const std::int64_t all = image.product(2, image.rank());  // the row of the padding
    call.supports(made.elements <= most_pooled_positions / std::max<std::int64_t>(outputs, 1),
                  "windows with ", made.elements, " elements for ", outputs,
                  " outputs are too many to be read one by one");
    call.build.claim({made.elements, outputs}, DType::i64);
    made.counts.assign(static_cast<std::size_t>(outputs), 0);
    Ints element(dims, 0);
    do {
        Ints place(dims, 0);
        std::size_t output = 0;
        do {
            std::int64_t flat = 0;
            bool inside = true, in_padding = true;
            for (std::size_t i = 0; i < dims; ++i) {
                const std::int64_t x = place[i] * windows.stride[i] +
                                       element[i] * windows.dilation[i] - windows.pad[i];
                inside = inside && x >= 0 && x < sizes[i];
                in_padding = in_padding && x < sizes[i] + windows.pad[i + dims];
                flat = flat * sizes[i] + x;
            }
            made.at.push_back(inside ? flat : all);
            made.counts[output++] += inside || (count_padding && in_padding);
        } while (next(place, made.out));
    } while (next(element, windows.kernel));
    return made;
}

Ref window_elements(Call& call, Ref image, const WindowPositions& positions, double padding) {
    Builder& build = call.build;
    const Shape& shape = image->spec.shape;
    const std::int64_t rows = shape[0] * shape[1], size = shape.product(2, shape.rank());
    const Ref table = build.transpose(build.reshape(image, {rows, size}), {1, 0});
    const Ref padded = build.add1(
        "Pad", {table}, {{"pads", Ints{0, 0, 0, 1}}, {"mode", "constant"}, {"value", padding}});
    const Ref at = build.constant(
        "", host_integers({positions.elements, static_cast<std::int64_t>(positions.counts.size())},
                          positions.at));
    return build.add1("Embedding", {at}, {{"num_embeddings", size + 1}, {"embedding_dim", rows}},
                      {padded});
}

Ref as_pooled(Call& call, Ref value, const Shape& image, const WindowPositions& positions) {
    Builder& build = call.build;
    const auto outputs = static_cast<std::int64_t>(positions.counts.size());
    value = build.transpose(build.reshape(value, {outputs, image[0] * image[1]}), {1, 0});
    Ints sizes{image[0], image[1]};
    sizes.insert(sizes.end(), positions.out.begin(), positions.out.end());
    return build.reshape(value, Shape(sizes));
}

}  // namespace dlprim::onnx
