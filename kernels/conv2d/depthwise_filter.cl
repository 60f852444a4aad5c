// SPDX-License-Identifier: MIT
// conv2d_backward_filter.depthwise: the filter gradient of convolutions of few input channels a group, on plain
// images. A work-group sums, for one output channel and one of its input channels, all taps over `lines` rows of
// dy (counted over all images); work-items walk over pixels, then add up in a fixed order, in two steps. Part p goes to
// dweight + p * part_stride (split_sum.cl adds the parts).
//
// Defines: KERNEL_H, KERNEL_W; THREADS, a power of two. Local memory: 4 * TAPS * (THREADS + 9) bytes.

#define TAPS (KERNEL_H * KERNEL_W)
#define PIECES 8
#define ROW (THREADS + 1)

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void depthwise_filter(
    global const float* x, ulong x_offset, global const float* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int batch, int lines, int out, int group_in, int group_out, int in, int h, int w, int oh,
    int ow, int sh, int sw, int pt, int pl, int dh, int dw, long part_stride EPILOGUE_PARAMETERS) {
    local float sums[TAPS * ROW], pieces[TAPS * PIECES];
    const int id = get_local_id(0);
    const int filter = (int)(get_group_id(0) % (size_t)(out * group_in));
    const int part = (int)(get_group_id(0) / (size_t)(out * group_in));
    const int o = filter / group_in, c = filter - o * group_in;
    const int first = part * lines, last = min(batch * oh, first + lines);
    x += x_offset + ((ulong)(o / group_out) * group_in + c) * ((ulong)h * w);
    dy += dy_offset + (ulong)o * ((ulong)oh * ow);
    float sum[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) sum[t] = 0.0f;
    const int pixels = (last - first) * ow;
    for (int p = id; p < pixels; p += THREADS) {
        const int line = p / ow, ox = p - line * ow;
        const int image = (first + line) / oh, oy = first + line - image * oh;
        const float d = dy[(ulong)image * out * ((ulong)oh * ow) + oy * ow + ox];
        global const float* from = x + (ulong)image * in * ((ulong)h * w);
        const int top = oy * sh - pt, left = ox * sw - pl;
#pragma unroll
        for (int ky = 0; ky < KERNEL_H; ++ky)
#pragma unroll
            for (int kx = 0; kx < KERNEL_W; ++kx) {
                const int iy = top + ky * dh, ix = left + kx * dw;
                if ((uint)iy < (uint)h && (uint)ix < (uint)w) sum[ky * KERNEL_W + kx] += d * from[iy * w + ix];
            }
    }
    dweight += dweight_offset + (ulong)part * part_stride;
#pragma unroll
    for (int t = 0; t < TAPS; ++t) sums[t * ROW + id] = sum[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < TAPS * PIECES; i += THREADS) {
        const int t = i / PIECES, piece = i % PIECES;
        float v = 0.0f;
        for (int n = piece; n < THREADS; n += PIECES) v += sums[t * ROW + n];
        pieces[i] = v;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = id; t < TAPS; t += THREADS) {
        float v = 0.0f;
        for (int n = 0; n < PIECES; ++n) v += pieces[t * PIECES + n];
        const ulong at = (ulong)filter * TAPS + t;
        EPILOGUE(v, at);
        dweight[at] = v;
    }
}
