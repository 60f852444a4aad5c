// SPDX-License-Identifier: MIT
// Unfold: images [planes, size_h, size_w] -> columns [planes, kernel_h, kernel_w, windows_h, windows_w], and Fold,
// which adds columns to images:
//
//     +---+---+---+        element [ky, kx] of window [i, j] is the pixel
//     | p | q |   |            y = i * stride_h - pad_h + ky * dilate_h
//     +---+---+---+            x = j * stride_w - pad_w + kx * dilate_w
//     | r | s |   |        of which those outside of images are zeros
//     +---+---+---+
//
// Define   meaning                                                              example
// INDEX    the integer of indices: int, or long where that is too small         int
// and those of common/element.clh; both tensors are of float or of double.
//
// Local memory: none.
#include "common/element.clh"

// Work-item: an element of columns, of which there are `count`.
kernel void unfold(global const A_T* images, ulong images_offset, global C_T* columns, ulong columns_offset,
                   INDEX count, INDEX size_h, INDEX size_w, INDEX kernel_h, INDEX kernel_w, INDEX stride_h,
                   INDEX stride_w, INDEX pad_h, INDEX pad_w, INDEX dilate_h, INDEX dilate_w, INDEX windows_h,
                   INDEX windows_w) {
    const INDEX at = (INDEX)get_global_id(0);
    if (at >= count) return;
    const INDEX row = at / (windows_h * windows_w), window = at % (windows_h * windows_w);
    const INDEX plane = row / (kernel_h * kernel_w), tap = row % (kernel_h * kernel_w);
    const INDEX y = window / windows_w * stride_h - pad_h + tap / kernel_w * dilate_h;
    const INDEX x = window % windows_w * stride_w - pad_w + tap % kernel_w * dilate_w;
    const int inside = y >= 0 && y < size_h && x >= 0 && x < size_w;
    columns[columns_offset + at] = inside ? images[images_offset + (plane * size_h + y) * size_w + x] : 0;
}

// Work-item: a pixel of images, of which there are `count`. It adds the elements of windows in the order of the kernel.
kernel void fold(global const A_T* columns, ulong columns_offset, global C_T* images, ulong images_offset, INDEX count,
                 INDEX size_h, INDEX size_w, INDEX kernel_h, INDEX kernel_w, INDEX stride_h, INDEX stride_w,
                 INDEX pad_h, INDEX pad_w, INDEX dilate_h, INDEX dilate_w, INDEX windows_h, INDEX windows_w) {
    const INDEX at = (INDEX)get_global_id(0);
    if (at >= count) return;
    const INDEX x = at % size_w, y = at / size_w % size_h, plane = at / size_w / size_h;
    columns += columns_offset + (long)plane * kernel_h * kernel_w * windows_h * windows_w;
    REAL sum = 0;
    for (INDEX ky = 0; ky < kernel_h; ++ky) {
        const INDEX below = y + pad_h - ky * dilate_h, i = below / stride_h;
        if (below < 0 || below % stride_h != 0 || i >= windows_h) continue;
        for (INDEX kx = 0; kx < kernel_w; ++kx) {
            const INDEX right = x + pad_w - kx * dilate_w, j = right / stride_w;
            if (right < 0 || right % stride_w != 0 || j >= windows_w) continue;
            sum += columns[((ky * kernel_w + kx) * windows_h + i) * windows_w + j];
        }
    }
    images[images_offset + at] = sum;
}
