// SPDX-License-Identifier: MIT
// Runs many kernel calls in one launch, for CPUs (src/exec/chain.hpp). There is one work-item per core. The work-items take
// work from all calls, in the order of the calls, until none is left.
//
//     call 0              call 1        call 2                 DRAWN: the next ticket
//     | 0 | 1 | 2 | 3 |   | 4 | 5 |     | 6 | 7 | 8 | ...      DONE:  tickets that are finished
//
// Each call is divided into tickets, which are numbered through all calls. A work-item waits until all tickets of earlier
// calls are done. Then it draws the next ticket and runs the kernel, which is a function here, for the ticket's share of the
// call's work-items. A waiting work-item holds no ticket. So it may leave at any time, and all work is done however few
// work-items run at once. One that has waited long leaves its core to those that have none.
//
// The atomics and fences make the results of one call visible to the next. OpenCL 1.2 guarantees that only within a
// work-group, but processors guarantee it for all threads.
//
// state   tickets drawn, tickets done, and work-items that have left, each in a cache line of its own; zero before and after
// table   rows (src/engine/call_table.hpp): the head below, then the arguments
//
// In front of this text is chain_call(), which calls one of the kernels, behind it a kernel that calls run_chain().
//
// Define       meaning                                          example
// MOST_WAITS   polls before a work-item leaves                  4000000
//
// Work-group: one work-item. Local memory: none.
#define DRAWN 0
#define DONE 32
#define LEFT 64
#define NOW(counter) (*(volatile global int*)(state + (counter)))

struct chain_head {
    int first, last;           // ticket; the last one + 1
    int width, height, depth;  // work-items along each dimension
    int function;
};

global const struct chain_head* chain_row(global const uchar* table, int row_bytes, int call)
{
    return (global const struct chain_head*)(table + (size_t)call * row_bytes);
}

// Runs the calls from `call` to `end`.
void run_chain(global const uchar* table, int row_bytes, global uchar* const* memories, global int* state, int call, int end,
               int workers)
{
    int seen = -1;
    for (;;) {
        const int ticket = NOW(DRAWN);
        while (call < end && ticket >= chain_row(table, row_bytes, call)->last) call++;
        if (call == end) break;
        global const struct chain_head* row = chain_row(table, row_bytes, call);
        int waits = 0;
        while (NOW(DONE) < row->first && waits < MOST_WAITS) waits++;
        if (waits == MOST_WAITS) break;
        if (seen != call) {  // makes the results of finished calls visible here
            atomic_add(state + DONE, 0);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            seen = call;
        }
        if (atomic_cmpxchg(state + DRAWN, ticket, ticket + 1) != ticket) continue;
        const int width = row->width, height = row->height, depth = row->depth;
        const long items = width * height * depth, part = ticket - row->first, parts = row->last - row->first;
        const int last = (int)(items * (part + 1) / parts);
        for (int item = (int)(items * part / parts); item < last; item++)
            chain_call(row->function, item % width, item / width % height, item / width / height, width, height, depth, row + 1,
                       memories);
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        atomic_inc(state + DONE);
    }
    if (atomic_inc(state + LEFT) == workers - 1) {
        state[DRAWN] = 0;
        state[DONE] = 0;
        state[LEFT] = 0;
    }
}
