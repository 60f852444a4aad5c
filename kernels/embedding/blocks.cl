// SPDX-License-Identifier: MIT
// embedding.blocks: looks up rows of a table that is stored in GGUF's blocks, and unpacks them (matrix/blocks.clh).
//
// Define           meaning               example
// INDEX            type of an index      int
// and those of matrix/blocks.clh.
//
// Local memory: none.
#include "engine/refuse.clh"
#include "matrix/blocks.clh"

// Work-item: unpacks one block of a row. An index that names no row reads the nearest one, and is refused.
kernel void embedding_blocks(global const INDEX* indices, ulong indices_offset, global const uchar* weight,
                             ulong weight_offset, global float* y, ulong y_offset, long count, long rows, long blocks,
                             global long* refused, int refused_by) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long place = at / blocks, given = (long)indices[indices_offset + place];
    if (given < 0 || given >= rows) refuse_index(refused, refused_by, given, place, rows, 0);
    const long row = clamp(given, 0L, rows - 1);
    global const uchar* block = weight + weight_offset + (row * blocks + at % blocks) * BLOCK_BYTES;
    for (int part = 0; part < BLOCK_PARTS; ++part)
        vstore16(block_weights(block, part), 0, y + y_offset + at * BLOCK_WEIGHTS + 16 * part);
}
