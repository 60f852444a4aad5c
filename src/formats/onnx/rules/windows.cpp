// SPDX-License-Identifier: MIT
// Windows; see windows.hpp.
#include "formats/onnx/rules/windows.hpp"

#include <algorithm>
#include <numeric>

namespace dlprim::onnx {

Windows::Windows(Call& call, const Shape& input, const Ints& given, bool transposed)
    : dims(input.rank() - 2), kernel(call.integers("kernel_shape", given)) {
    call.check(dims >= 1, "an input of shape ", input.str(), " holds no images");
    const auto count = static_cast<std::size_t>(dims);
    stride = call.integers("strides", Ints(count, 1));
    dilation = call.integers("dilations", Ints(count, 1));
    Ints pads = call.integers("pads", Ints(2 * count, 0));
    const std::string mode = call.text("auto_pad", "NOTSET");
    for (const Ints* list : {&kernel, &stride, &dilation})
        call.check(list->size() == count, "kernel_shape, strides and dilations want ", dims,
                   " entries each, got ", list->size());
    call.check(pads.size() == 2 * count, "pads wants ", 2 * dims, " entries, got ", pads.size());
    for (const std::int64_t size : pads)
        call.check(size > -(1 << 24) && size < (1 << 24), "a padding of ", size);
    for (const Ints* list : {&kernel, &stride, &dilation})
        for (const std::int64_t size : *list)
            call.check(size >= 1 && size < (1 << 24), "a size of ", size,
                       " in kernel_shape, strides or dilations");
    for (const std::int64_t size : input.dims().subspan(2))
        call.supports(size < (std::int64_t{1} << 31), "images of shape ", input.str(),
                      " are too large");
    same_upper = mode == "SAME_UPPER";
    same_lower = mode == "SAME_LOWER";
    call.check(same_upper || same_lower || mode == "NOTSET" || mode == "VALID", "auto_pad '", mode,
               "' is unknown");
    if (mode == "VALID") pads.assign(2 * count, 0);
    for (std::size_t i = 0; (same_upper || same_lower) && !transposed && i < count; ++i) {
        const std::int64_t size = input[static_cast<int>(i) + 2];
        const std::int64_t outputs = (size + stride[i] - 1) / stride[i];
        const std::int64_t all = std::max<std::int64_t>(
            (outputs - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size, 0);
        pads[i] = same_upper ? all / 2 : all - all / 2;
        pads[i + count] = all - pads[i];
    }
    if (dims == 1) {
        for (Ints* list : {&kernel, &stride, &dilation}) list->insert(list->begin(), 1);
        pad = {0, pads[0], 0, pads[1]};
    } else {
        pad = std::move(pads);
    }
}

void check_dims(const Call& call, const Windows& windows, const Shape& input, int most) {
    call.supports(windows.dims <= most, "images of ", windows.dims,
                  " dimensions are not supported, the input has shape ", input.str());
}

Ref as_image(Call& call, Ref value) {
    const Shape& shape = value->spec.shape;
    if (shape.rank() != 3) return value;
    return call.build.reshape(value, {shape[0], shape[1], 1, shape[2]});
}

Ref from_image(Call& call, Ref value, int dims) {
    const Shape& shape = value->spec.shape;
    if (dims != 1) return value;
    return call.build.reshape(value, {shape[0], shape[1], shape[3]});
}

Ref channels_first(Builder& build, Ref value) {
    Ints order(static_cast<std::size_t>(value->spec.shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
    return build.transpose(value, order);
}

Ref channels_last(Builder& build, Ref value) {
    Ints order(static_cast<std::size_t>(value->spec.shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    return build.transpose(value, order);
}

}  // namespace dlprim::onnx
