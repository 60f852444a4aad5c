// SPDX-License-Identifier: MIT
// What a data gradient with a stride has where no tap reaches: zeros, through the epilogue. Fills all of y; the
// phases that taps reach are written afterwards. A work-item an element; no local memory.
#include "common/storage.clh"

kernel void phase_fill(global C_T* y, ulong y_offset, long count EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
    float v = 0;
    EPILOGUE(v, at);
    C_PUT(y, y_offset + at, v);
}
