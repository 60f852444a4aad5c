// SPDX-License-Identifier: MIT
// Windows of images as columns and back, the gradient of unfold(), and maxima put back to their
// places.
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/im2col_shape_check.h>

#include <array>

namespace dlprim_torch {
namespace {

/// One dimension of a window that moves over an image.
struct Axis {
    std::int64_t kernel = 0, dilation = 0, padding = 0, stride = 0;
    std::int64_t size = 0;   ///< of the image, without padding
    std::int64_t steps = 0;  ///< how often the window fits

    Axis(Ints kernels, Ints dilations, Ints paddings, Ints strides, std::int64_t image,
         std::size_t d)
        : kernel(kernels[d]),
          dilation(dilations[d]),
          padding(paddings[d]),
          stride(strides[d]),
          size(image),
          steps((image + 2 * padding - reach()) / stride + 1) {}
    /// How many elements of the image a window spans.
    std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
    std::int64_t padded() const { return size + 2 * padding; }
};

/// All windows of a padded image [N, C, H, W], as a view [N, C, kernel, kernel, steps, steps].
at::Tensor windows_of(const at::Tensor& image, const Axis& y, const Axis& x) {
    const Ints s = image.strides();
    return image.as_strided(
        {image.size(0), image.size(1), y.kernel, x.kernel, y.steps, x.steps},
        {s[0], s[1], s[2] * y.dilation, s[3] * x.dilation, s[2] * y.stride, s[3] * x.stride},
        image.storage_offset());
}

at::Tensor columns_of(const at::Tensor& self, Ints kernel, Ints dilation, Ints padding,
                      Ints stride) {
    at::native::im2col_shape_check(self, at::Tensor(), kernel[0], kernel[1], dilation[0],
                                   dilation[1], padding[0], padding[1], stride[0], stride[1]);
    const c10::DeviceGuard guard(self.device());
    const at::Tensor image = self.dim() == 3 ? self.unsqueeze(0) : self;
    const Axis y(kernel, dilation, padding, stride, image.size(2), 0);
    const Axis x(kernel, dilation, padding, stride, image.size(3), 1);
    const at::Tensor padded =
        y.padding == 0 && x.padding == 0
            ? image
            : at::constant_pad_nd(image, {x.padding, x.padding, y.padding, y.padding});
    const at::Tensor columns = at::empty(
        {image.size(0), image.size(1) * y.kernel * x.kernel, y.steps * x.steps}, self.options());
    if (columns.numel() > 0) {
        const at::Tensor windows = windows_of(padded, y, x);
        columns.view(windows.sizes()).copy_(windows);
    }
    return self.dim() == 3 ? columns.squeeze(0) : columns;
}

/// Adds windows to the places that they were taken from: in one copy where no two of them share an
/// element, else the elements of one position in all windows after the other.
void put_windows(const at::Tensor& image, const at::Tensor& windows, const Axis& y, const Axis& x) {
    if (y.reach() <= y.stride && x.reach() <= x.stride) {
        windows_of(image, y, x).copy_(windows);
        return;
    }
    const at::Tensor places = windows_of(image, y, x);
    for (std::int64_t i = 0; i < y.kernel; ++i)
        for (std::int64_t j = 0; j < x.kernel; ++j)
            places.select(2, i).select(2, j).add_(windows.select(2, i).select(2, j));
}

at::Tensor image_of(const at::Tensor& self, Ints size, Ints kernel, Ints dilation, Ints padding,
                    Ints stride) {
    at::native::col2im_shape_check(self, at::Tensor(), size[0], size[1], kernel[0], kernel[1],
                                   dilation[0], dilation[1], padding[0], padding[1], stride[0],
                                   stride[1]);
    const c10::DeviceGuard guard(self.device());
    const at::Tensor columns = self.dim() == 2 ? self.unsqueeze(0) : self;
    const Axis y(kernel, dilation, padding, stride, size[0], 0);
    const Axis x(kernel, dilation, padding, stride, size[1], 1);
    const std::int64_t batch = columns.size(0);
    const std::int64_t channels = columns.size(1) / (y.kernel * x.kernel);
    const at::Tensor padded = at::zeros({batch, channels, y.padded(), x.padded()}, self.options());
    if (padded.numel() > 0)
        put_windows(padded,
                    columns.reshape({batch, channels, y.kernel, x.kernel, y.steps, x.steps}), y, x);
    const at::Tensor image =
        padded.narrow(2, y.padding, size[0]).narrow(3, x.padding, size[1]).contiguous();
    return self.dim() == 2 ? image.squeeze(0) : image;
}

/// Images of zeros in which the elements of `self` lie where `indices` say, counted in each image.
/// An index out of range is raised when the program next waits.
at::Tensor& unpool_into(const at::Tensor& self, const at::Tensor& indices, Ints size,
                        at::Tensor& out) {
    const auto rank = static_cast<std::int64_t>(size.size());
    TORCH_CHECK(indices.scalar_type() == at::kLong,
                "elements in indices should be type int64 but got: ", indices.scalar_type());
    TORCH_CHECK(self.dim() == rank + 1 || self.dim() == rank + 2, "max_unpool of ", rank,
                " dimensions needs [C, ...] or [N, C, ...], but got ", self.sizes());
    TORCH_CHECK(self.sizes() == indices.sizes(),
                "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
                ") but got indices tensor with shape: ", indices.sizes());
    std::vector<std::int64_t> sizes = self.sizes().vec();
    std::copy(size.begin(), size.end(), sizes.end() - rank);
    at::native::resize_output(out, sizes);
    if (out.numel() == 0) return out;
    if (self.numel() == 0) return out.zero_();
    const std::int64_t images =
        self.numel() /
        c10::multiply_integers(self.sizes().slice(static_cast<std::size_t>(self.dim() - rank)));
    const dp::ops::Scatter options{
        .mode = "elements", .dim = 1, .from_end = false, .shape = {images, out.numel() / images}};
    give(out, results_of(options, {view_of(indices.reshape({images, -1})),
                                   view_of(self.reshape({images, -1}))})[0]);
    return out;
}

at::Tensor& max_unpool2d_out(const at::Tensor& self, const at::Tensor& indices, Ints size,
                             at::Tensor& out) {
    TORCH_CHECK(size.size() == 2,
                "There should be exactly two elements (height, width) in "
                "output_size, but got ",
                size.size(), " elements.");
    return unpool_into(self, indices, size, out);
}

at::Tensor& max_unpool3d_out(const at::Tensor& self, const at::Tensor& indices, Ints size, Ints,
                             Ints, at::Tensor& out) {
    TORCH_CHECK(size.size() == 3,
                "There should be exactly three elements (depth, height, width) "
                "in output_size, but got ",
                size.size(), " elements.");
    return unpool_into(self, indices, size, out);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("im2col", columns_of);
    m.impl("im2col.out", into_outs<columns_of>);
    m.impl("col2im", image_of);
    m.impl("col2im.out", into_outs<image_of>);
    m.impl("max_unpool2d", into_new<max_unpool2d_out>);
    m.impl("max_unpool2d.out", max_unpool2d_out);
    m.impl("max_unpool3d", into_new<max_unpool3d_out>);
    m.impl("max_unpool3d.out", max_unpool3d_out);
}

}  // namespace
}  // namespace dlprim_torch
