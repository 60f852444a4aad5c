// SPDX-License-Identifier: MIT
// conv2d_backward_filter.depthwise: the filter gradient of convolutions of few input channels a group, on plain
// images. A work-group sums, for one output channel and one of its input channels, all taps over `lines` rows of
// dy (counted over all images); work-items walk over pixels, then add up in a fixed order, in two steps. Part p goes to
// dweight + p * part_stride (split_sum.cl adds the parts).
//
// Defines: KERNEL_H, KERNEL_W, STRIDE_W, DILATE_W; OUTPUTS: neighbours of a row of dy that a work-item takes at a
// time, with the SPAN pixels of a row of x that they meet in registers; THREADS, a power of two. Local memory: 4 * TAPS * (THREADS + 9) bytes.

#define TAPS (KERNEL_H * KERNEL_W)
#define PIECES 8
#define ROW (THREADS + 1)

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void depthwise_filter(
    global const float* x, ulong x_offset, global const float* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int batch, int lines, int out, int group_in, int group_out, int in, int h, int w, int oh,
    int ow, int sh, int pt, int pl, int dh, long part_stride EPILOGUE_PARAMETERS) {
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
    const int strips = (ow + OUTPUTS - 1) / OUTPUTS, items = (last - first) * strips;
    for (int p = id; p < items; p += THREADS) {
        const int line = p / strips, ox = (p - line * strips) * OUTPUTS;
        const int image = (first + line) / oh, oy = first + line - image * oh;
        global const float* of = dy + (ulong)image * out * ((ulong)oh * ow) + oy * ow + ox;
        float d[OUTPUTS];
#pragma unroll
        for (int e = 0; e < OUTPUTS; ++e) d[e] = ox + e < ow ? of[e] : 0.0f;
        const int top = oy * sh - pt, left = ox * STRIDE_W - pl;
#pragma unroll
        for (int ky = 0; ky < KERNEL_H; ++ky) {
            const int iy = top + ky * dh;
            if ((uint)iy >= (uint)h) continue;
            global const float* from = x + (ulong)image * in * ((ulong)h * w) + iy * w;
            float v[SPAN];
#pragma unroll
            for (int i = 0; i < SPAN; ++i) v[i] = (uint)(left + i) < (uint)w ? from[left + i] : 0.0f;
#pragma unroll
            for (int kx = 0; kx < KERNEL_W; ++kx)
#pragma unroll
                for (int e = 0; e < OUTPUTS; ++e)
                    sum[ky * KERNEL_W + kx] += d[e] * v[e * STRIDE_W + kx * DILATE_W];
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
