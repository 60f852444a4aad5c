// SPDX-License-Identifier: MIT
// Many kernel calls as one, for CPUs (src/exec/chain.hpp): a work-item a core, which takes work from all calls in their
// order until none is left.
//
// Call after call is cut into tickets, numbered through. A work-item waits until all tickets of earlier calls are done,
// draws the next number, and runs the kernel, now a function, for the part of the call's work-items that the ticket
// stands for. Who waits holds no ticket, so that any work-item may leave at any time, and however few of them run at once,
// all work gets done: one that has waited for long leaves its core to whoever has not got one. What one call writes reaches
// the next by the atomics and fences around it; OpenCL 1.2 promises that within a work-group only, processors keep it
// for all.
//
// state: tickets drawn, tickets done and work-items that have left, each on a line of its own, zero before and after.
// table: ROW ints a call: first ticket, last ticket + 1, work-items, those along the first two dimensions, function,
// arguments (the number of a buffer; two ints for 64 bits).
// Inputs, written before and into this text: the functions, ROW, MOST_WAITS, CHAIN_CASES, and the words CHAIN_BUFFERS, CHAIN_LIST.
// Local memory: none.
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
        if (seen != call) {  // takes over what those who counted up have written
            atomic_add(state + DONE, 0);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            seen = call;
        }
        if (atomic_cmpxchg(state + DRAWN, ticket, ticket + 1) != ticket) continue;
        const long items = row[2], part = ticket - row[0], parts = row[1] - row[0];
        const int last = (int)(items * (part + 1) / parts);
        for (int item = (int)(items * part / parts); item < last; item++) {
            const int i = item % row[3], j = item / row[3] % row[4], k = item / row[3] / row[4];
            global const int* a = row + 6;
            switch (row[5]) {
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
