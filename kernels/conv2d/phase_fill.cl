// SPDX-License-Identifier: MIT
// Fills y with the result of phases of a strided data gradient that no tap reaches: zeros, passed through the epilogue.
// It fills all of y. The phases that taps reach are written afterwards.
//
// Define     meaning                              example
// C_STORED   type of y (common/storage.clh)       0
// and the epilogue (src/engine/epilogue.hpp).
//
// Work-item: one element. Local memory: none.
#include "common/storage.clh"

kernel void phase_fill(global C_T* y, ulong y_offset, long count EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
    float v = 0;
    EPILOGUE(v, at);
    C_PUT(y, y_offset + at, v);
}
