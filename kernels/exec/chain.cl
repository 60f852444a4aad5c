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
// table   ROW ints per call: first ticket, last ticket + 1, work-items, work-items along each of three dimensions, function,
//         arguments (the number of a buffer, or two ints for 64 bits)
//
// The functions and these words are inserted into the text:
// Word            meaning                                          example
// ROW             ints per row of the table                        24
// MOST_WAITS      polls before a work-item leaves                  4000000
// CHAIN_CASES     one `case` per function                          case 0: conv_0(i, j, k, width, height, depth, ...); break;
// CHAIN_BUFFERS   parameters for the buffers                       , global uchar* b0, global uchar* b1
// CHAIN_LIST      their names                                      b0, b1
//
// Work-group: one work-item. Local memory: none.
#define DRAWN 0
#define DONE 32
#define LEFT 64
#define NOW(counter) (*(volatile global int*)(state + (counter)))

long chain_long(global const int* words) {
    return as_long((int2)(words[0], words[1]));
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void chain(global int* state, global const int* table, int call, int end, int workers CHAIN_BUFFERS)
{
    global uchar* const buffers[] = {CHAIN_LIST};
    int seen = -1;
    for (;;) {
        const int ticket = NOW(DRAWN);
        while (call < end && ticket >= table[call * ROW + 1]) call++;
        if (call == end) break;
        global const int* row = table + call * ROW;
        int waits = 0;
        while (NOW(DONE) < row[0] && waits < MOST_WAITS) waits++;
        if (waits == MOST_WAITS) break;
        if (seen != call) {  // makes the results of finished calls visible here
            atomic_add(state + DONE, 0);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            seen = call;
        }
        if (atomic_cmpxchg(state + DRAWN, ticket, ticket + 1) != ticket) continue;
        const long items = row[2], part = ticket - row[0], parts = row[1] - row[0];
        const int last = (int)(items * (part + 1) / parts);
        const int width = row[3], height = row[4], depth = row[5];
        for (int item = (int)(items * part / parts); item < last; item++) {
            const int i = item % width, j = item / width % height, k = item / width / height;
            global const int* a = row + 7;
            switch (row[6]) {
                CHAIN_CASES
            }
        }
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        atomic_inc(state + DONE);
    }
    if (atomic_inc(state + LEFT) == workers - 1) {
        state[DRAWN] = 0;
        state[DONE] = 0;
        state[LEFT] = 0;
    }
}
