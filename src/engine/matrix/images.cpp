// SPDX-License-Identifier: MIT
// Images: special cases of the addressing, and the kernel arguments that describe it.
#include "engine/matrix/images.hpp"

#include <utility>

namespace dlprim {

bool Images::fill_y() const {
    return row_step == 1 && column_step == 1 && out_h == y_h && out_w == y_w;
}

bool Images::direct() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_h == 0 &&
           pad_w == 0 && out_h == x_h && out_w == x_w && fill_y();
}

void bind_images(KernelCall& call, const Images& images) {
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"x_h", images.x_h},           {"x_w", images.x_w},
        {"y_h", images.y_h},           {"y_w", images.y_w},
        {"out_h", images.out_h},       {"out_w", images.out_w},
        {"row0", images.row0},         {"column0", images.column0},
        {"row_step", images.row_step}, {"column_step", images.column_step},
        {"stride_h", images.stride_h}, {"stride_w", images.stride_w},
        {"pad_h", images.pad_h},       {"pad_w", images.pad_w},
        {"dilate_h", images.dilate_h}, {"dilate_w", images.dilate_w}};
    for (const auto& [parameter, value] : sizes)
        call.scalar(parameter, static_cast<std::int32_t>(value));
}

}  // namespace dlprim
