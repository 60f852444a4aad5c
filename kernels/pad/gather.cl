// SPDX-License-Identifier: MIT
// pad.gather: the gradient of padding. Each element of dx [outer, x0, x1, x2] is the sum of the elements of
// dy [outer, y0, y1, y2] that read it.
//
// Define   meaning                                        example
// MODE     1 reflect, 2 replicate, 3 circular             1
//
// Work-item: one element of dx. Local memory: none.

// Range k (0..2) of the coordinates of dy along one dimension that read coordinate c of dx.
static inline long2 readers(int k, long c, long before, long nx, long ny) {
    long2 r;
#if MODE == 1
    if (k == 0) r = (long2)(c + before, c + before + 1);
    else if (k == 1) r = (long2)(before - c, before - c + (c > 0 ? 1 : 0));
    else {
        const long mirror = before + 2 * (nx - 1) - c;
        r = (long2)(mirror, mirror + (c < nx - 1 ? 1 : 0));
    }
#elif MODE == 3
    const long own = c + before + (k == 0 ? 0 : k == 1 ? -nx : nx);
    r = (long2)(own, own + 1);
#else
    r = (long2)(c == 0 ? 0 : c + before, c == nx - 1 ? ny : c + before + 1);
    if (k > 0) r.y = r.x;
#endif
    r.x = max(r.x, 0L);
    r.y = min(r.y, ny);
    return r;
}

kernel void pad_gather(global const float* dy, ulong dy_offset, global float* dx, ulong dx_offset, long count, long x0,
                       long x1, long x2, long y0, long y1, long y2, long before0, long before1,
                       long before2) {
    const long index = (long)get_global_id(0);
    if (index >= count) return;
    const long c = index % x2, b = index / x2 % x1, a = index / x2 / x1 % x0;
    dy += dy_offset + (ulong)(index / x2 / x1 / x0 * y0 * y1 * y2);
    float sum = 0;
    for (int p = 0; p < 3; ++p) {
        const long2 ra = readers(p, a, before0, x0, y0);
        for (long i = ra.x; i < ra.y; ++i)
            for (int q = 0; q < 3; ++q) {
                const long2 rb = readers(q, b, before1, x1, y1);
                for (long j = rb.x; j < rb.y; ++j)
                    for (int r = 0; r < 3; ++r) {
                        const long2 rc = readers(r, c, before2, x2, y2);
                        for (long k = rc.x; k < rc.y; ++k) sum += dy[(i * y1 + j) * y2 + k];
                    }
            }
    }
    dx[dx_offset + (ulong)index] = sum;
}
