// SPDX-License-Identifier: MIT
// GridSample: images x [n, channels, h, w] and places grid [n, oh, ow, 2] -> y [n, channels, oh, ow], and the gradients
// of both. A place mixes 1, 2 x 2 or 4 x 4 pixels:
//
//     +---+---+
//     | p | q |      (x, y) between four pixels: y = (1 - ty) ((1 - tx) p + tx q) + ty ((1 - tx) r + tx s)
//     +--*+---+
//     | r | s |
//     +---+---+
//
// Define     meaning                                                              example
// MODE       0: bilinear, 1: nearest, 2: bicubic                                  0
// PADDING    what is outside of images; 0: zeros, 1: their border, 2: reflected   0
// ALIGN      1: -1 and 1 are the centers of corner pixels, 0: their edges         0
// and those of common/element.clh; all tensors are of float or of double.
//
// Local memory: none.
#include "common/element.clh"
#include "common/inline.clh"

#define TAPS (MODE == 0 ? 2 : MODE == 1 ? 1 : 4)

// The pixels that a place mixes along one dimension: positions (-1: a zero), weights, and their derivatives by the
// place's coordinate.
typedef struct {
    int at[TAPS];
    REAL weight[TAPS], slope[TAPS];
} Taps;

// A coordinate in pixels and its derivative by the place's coordinate.
typedef struct {
    REAL value, slope;
} Position;

// Moves a place that is outside of the image. (Results by pointers: Oclgrind does not know what inlined functions that
// return structures become.)
INLINE void move_inside(Position* p, int size) {
#if PADDING == 2
    const REAL low = ALIGN ? (REAL)0 : (REAL)-0.5f, span = ALIGN ? size - 1 : size;
    if (span == 0) {
        p->value = p->slope = 0;
        return;
    }
    REAL away = p->value - low;
    if (away < 0) {
        away = -away;
        p->slope = -p->slope;
    }
    const REAL rest = fmod(away, span), flips = floor(away / span);
    if (fmod(flips, (REAL)2) == 0) {
        p->value = rest + low;
    } else {
        p->value = span - rest + low;
        p->slope = -p->slope;
    }
#endif
#if PADDING != 0
    if (!(p->value > 0)) {
        p->value = p->slope = 0;
    } else if (p->value >= size - 1) {
        p->value = size - 1;
        p->slope = 0;
    }
#endif
}

INLINE void find_taps(REAL coordinate, int size, Taps* taps) {
    const REAL half_of = (REAL)0.5f;
    Position p;
#if ALIGN
    p.value = (coordinate + 1) * half_of * (size - 1);
    p.slope = half_of * (size - 1);
#else
    p.value = ((coordinate + 1) * size - 1) * half_of;
    p.slope = half_of * size;
#endif
#if MODE != 2
    move_inside(&p, size);
#endif
    // What is not a number, or too far away for an integer, is outside.
    if (!(fabs(p.value) < (REAL)(1 << 30))) {
        p.value = -100;
        p.slope = 0;
    }
#if MODE == 1
    const int first = (int)rint(p.value);
    taps->weight[0] = 1;
    taps->slope[0] = 0;
#else
    const REAL low = floor(p.value), part = p.value - low;
#if MODE == 0
    const int first = (int)low;
    taps->weight[0] = 1 - part;
    taps->weight[1] = part;
    taps->slope[0] = -p.slope;
    taps->slope[1] = p.slope;
#else
    const int first = (int)low - 1;
    const REAL a = (REAL)-0.75f;
    for (int i = 0; i < TAPS; ++i) {
        const REAL offset = part + 1 - i, d = fabs(offset), sign = offset < 0 ? -p.slope : p.slope;
        taps->weight[i] =
            d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        taps->slope[i] =
            sign * (d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a);
    }
#endif
#endif
    for (int i = 0; i < TAPS; ++i) {
        int at = first + i;
#if MODE == 2
        Position pixel = {at, 1};
        move_inside(&pixel, size);
        at = (int)pixel.value;
#endif
        taps->at[i] = at >= 0 && at < size ? at : -1;
    }
}

// Work-item: one element of y.
kernel void grid_sample(global const A_T* x, ulong x_offset, global const A_T* grid, ulong grid_offset, global C_T* y,
                        ulong y_offset, long count, int channels, int h, int w, int oh, int ow) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long places = (long)oh * ow, plane = at / places, place = plane / channels * places + at % places;
    grid += grid_offset + 2 * place;
    x += x_offset + plane * h * w;
    Taps across, down;
    find_taps(grid[0], w, &across);
    find_taps(grid[1], h, &down);
    REAL sum = 0;
    for (int i = 0; i < TAPS; ++i)
        for (int j = 0; j < TAPS; ++j)
            if (down.at[i] >= 0 && across.at[j] >= 0)
                sum += down.weight[i] * across.weight[j] * x[(long)down.at[i] * w + across.at[j]];
    y[y_offset + at] = sum;
}

// Work-item: a plane of dx, to which it adds all places in their order.
kernel void grid_sample_backward_data(global const A_T* dy, ulong dy_offset, global const A_T* grid, ulong grid_offset,
                                      global C_T* dx, ulong dx_offset, long count, int channels, int h, int w, int oh,
                                      int ow) {
    const long plane = get_global_id(0);
    if (plane >= count) return;
    const long places = (long)oh * ow;
    grid += grid_offset + plane / channels * places * 2;
    dy += dy_offset + plane * places;
    dx += dx_offset + plane * h * w;
    for (long i = 0; i < (long)h * w; ++i) dx[i] = 0;
    for (long place = 0; place < places; ++place) {
        Taps across, down;
        find_taps(grid[2 * place], w, &across);
        find_taps(grid[2 * place + 1], h, &down);
        for (int i = 0; i < TAPS; ++i)
            for (int j = 0; j < TAPS; ++j)
                if (down.at[i] >= 0 && across.at[j] >= 0)
                    dx[(long)down.at[i] * w + across.at[j]] += down.weight[i] * across.weight[j] * dy[place];
    }
}

// Work-item: one place.
kernel void grid_sample_backward_grid(global const A_T* dy, ulong dy_offset, global const A_T* x, ulong x_offset,
                                      global const A_T* grid, ulong grid_offset, global C_T* dgrid, ulong dgrid_offset,
                                      long count, int channels, int h, int w, int oh, int ow) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long places = (long)oh * ow, n = at / places;
    grid += grid_offset + 2 * at;
    dy += dy_offset + n * channels * places + at % places;
    x += x_offset + n * channels * h * w;
    Taps across, down;
    find_taps(grid[0], w, &across);
    find_taps(grid[1], h, &down);
    REAL by_x = 0, by_y = 0;
    for (int i = 0; i < TAPS; ++i)
        for (int j = 0; j < TAPS; ++j) {
            if (down.at[i] < 0 || across.at[j] < 0) continue;
            const long pixel = (long)down.at[i] * w + across.at[j];
            REAL sum = 0;
            for (int c = 0; c < channels; ++c) sum += x[(long)c * h * w + pixel] * dy[c * places];
            by_x += down.weight[i] * across.slope[j] * sum;
            by_y += down.slope[i] * across.weight[j] * sum;
        }
    dgrid[dgrid_offset + 2 * at] = by_x;
    dgrid[dgrid_offset + 2 * at + 1] = by_y;
}
