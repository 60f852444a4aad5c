// SPDX-License-Identifier: MIT
// conv2d.reference and the references of both gradients. All arrays are plain: x [n, in, h, w], weight [out, in/groups,
// kh, kw], y [n, out, oh, ow].
//
// Define               meaning                                                     example
// A_STORED, B_STORED   types of the operands (common/storage.clh)                  0, 0
// C_STORED             type of the result                                          0
// ELEMENT, REAL        types of all tensors and of sums, if they are doubles       double, double
//                      (common/element.clh)
// and the epilogue (src/engine/epilogue.hpp).
//
// Long sums are computed in blocks, so that the error does not grow with their length.
// Work-item: one element of the result. Local memory: none.
#include "common/element.clh"

// The row or column of the image that an output position and a tap read, without a bounds check.
INLINE long image_position(long o, int stride, int pad, long k, int dilate) {
    return o * stride - pad + k * dilate;
}

kernel void conv2d_forward(global const A_T* x, ulong x_offset, global const B_T* weight,
                           ulong weight_offset, global const B_T* bias, ulong bias_offset,
                           global C_T* y, ulong y_offset, long count, int has_bias, int in,
                           int h, int w, int out, int oh, int ow, int kh, int kw, int groups,
                           int sh, int sw, int pt, int pl, int dh, int dw EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const int ox = (int)(at % ow), oy = (int)(at / ow % oh);
    const int o = (int)(at / ((long)ow * oh) % out);
    const long n = at / ((long)ow * oh * out);
    const int in_g = in / groups, out_g = out / groups;
    x += x_offset + (n * in + (long)(o / out_g) * in_g) * h * w;
    weight += weight_offset + (long)o * in_g * kh * kw;
    REAL sum = 0;
    for (int c = 0; c < in_g; ++c) {
        REAL part = 0;
        for (int ky = 0; ky < kh; ++ky) {
            const long iy = image_position(oy, sh, pt, ky, dh);
            if (iy < 0 || iy >= h) continue;
            for (int kx = 0; kx < kw; ++kx) {
                const long ix = image_position(ox, sw, pl, kx, dw);
                if (ix < 0 || ix >= w) continue;
                part += A_AT(x, iy * w + ix) * B_AT(weight, ky * kw + kx);
            }
        }
        sum += part;
        x += (long)h * w;
        weight += kh * kw;
    }
    if (has_bias) sum += B_AT(bias, bias_offset + o);
    EPILOGUE(sum, at);
    C_PUT(y, y_offset + at, sum);
}

kernel void conv2d_backward_data(global const A_T* dy, ulong dy_offset,
                                 global const B_T* weight, ulong weight_offset, global C_T* dx,
                                 ulong dx_offset, long count, int in, int h, int w, int out, int oh,
                                 int ow, int kh, int kw, int groups, int sh, int sw, int pt, int pl,
                                 int dh, int dw EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const int ix = (int)(at % w), iy = (int)(at / w % h);
    const int c = (int)(at / ((long)w * h) % in);
    const long n = at / ((long)w * h * in);
    const int in_g = in / groups, out_g = out / groups;
    const int o0 = c / in_g * out_g;
    dy += dy_offset + (n * out + o0) * oh * ow;
    weight += weight_offset + ((long)o0 * in_g + c % in_g) * kh * kw;
    REAL sum = 0;
    for (int o = 0; o < out_g; ++o) {
        REAL part = 0;
        for (int ky = 0; ky < kh; ++ky) {
            const long sy = (long)iy + pt - (long)ky * dh;
            if (sy < 0 || sy % sh != 0 || sy / sh >= oh) continue;
            for (int kx = 0; kx < kw; ++kx) {
                const long sx = (long)ix + pl - (long)kx * dw;
                if (sx < 0 || sx % sw != 0 || sx / sw >= ow) continue;
                part += A_AT(dy, sy / sh * ow + sx / sw) * B_AT(weight, ky * kw + kx);
            }
        }
        sum += part;
        dy += (long)oh * ow;
        weight += (long)in_g * kh * kw;
    }
    EPILOGUE(sum, at);
    C_PUT(dx, dx_offset + at, sum);
}

kernel void conv2d_backward_filter(global const A_T* x, ulong x_offset, global const B_T* dy,
                                   ulong dy_offset, global C_T* dweight, ulong dweight_offset,
                                   long count, int batch, int in, int h, int w, int out, int oh,
                                   int ow, int kh, int kw, int groups, int sh, int sw, int pt,
                                   int pl, int dh, int dw EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const int in_g = in / groups, out_g = out / groups;
    const int kx = (int)(at % kw), ky = (int)(at / kw % kh);
    const int c = (int)(at / ((long)kw * kh) % in_g);
    const int o = (int)(at / ((long)kw * kh * in_g));
    x += x_offset + ((long)(o / out_g) * in_g + c) * h * w;
    dy += dy_offset + (long)o * oh * ow;
    REAL total = 0;
    for (int n = 0; n < batch; ++n) {
        REAL image = 0, block = 0;
        int in_block = 0;
        for (int oy = 0; oy < oh; ++oy) {
            const long iy = image_position(oy, sh, pt, ky, dh);
            if (iy < 0 || iy >= h) continue;
            for (int ox = 0; ox < ow; ++ox) {
                const long ix = image_position(ox, sw, pl, kx, dw);
                if (ix < 0 || ix >= w) continue;
                block += A_AT(x, iy * w + ix) * B_AT(dy, (long)oy * ow + ox);
                if (++in_block == 256) {
                    image += block;
                    block = 0;
                    in_block = 0;
                }
            }
        }
        total += image + block;
        x += (long)in * h * w;
        dy += (long)out * oh * ow;
    }
    EPILOGUE(total, at);
    C_PUT(dweight, dweight_offset + at, total);
}
