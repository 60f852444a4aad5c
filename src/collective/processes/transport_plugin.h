/* SPDX-License-Identifier: MIT
   What a transport plugin gives to the library: a shared library that exports the function
   dlprim_transport_plugin, and is loaded while a program runs. It moves bytes between the processes
   of a run; all arithmetic is the library's. plugins/ has those for MPI and Gloo.

   Calls: one thread at a time; cancel() alone may be called by another thread at any time. No function throws,
   prints, or ends the process. A failing one writes a sentence into `message`. */
#ifndef DLPRIM_TRANSPORT_PLUGIN_H
#define DLPRIM_TRANSPORT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPRIM_TRANSPORT_ABI 3

enum dlprim_transport_result {
    DLPRIM_TRANSPORT_DONE = 0,
    DLPRIM_TRANSPORT_FAILED = 1,    /* the connection to another process is lost, for example */
    DLPRIM_TRANSPORT_LATE = 2,      /* not done within the seconds that were given */
    DLPRIM_TRANSPORT_CANCELLED = 3, /* cancel() was called */
};

struct dlprim_message {
    char* text; /* ends with 0 */
    size_t room;
};

/* Neighbouring bytes in memory, and a list of them. Lists that two processes give for each other
   have the same pieces, by number and size. */
struct dlprim_piece {
    void* data;
    uint64_t bytes;
};
struct dlprim_pieces {
    const struct dlprim_piece* pieces;
    size_t count;
};

struct dlprim_transport_start {
    int rank, size;
    double seconds;      /* for open() */
    const char* address; /* of this host, by which others reach it; empty if not known */
    /* A store that all processes share, where they put their addresses. get() waits until the key
       is set, a process is lost, or the time is over; it writes up to `room` bytes, and their
       number. Both return 0, or another value after a failure, and may be called by any thread. */
    void* store;
    int (*set)(void* store, const char* key, const void* data, size_t bytes);
    int (*get)(void* store, const char* key, void* data, size_t room, size_t* bytes);
};

struct dlprim_transport {
    uint32_t abi;     /* DLPRIM_TRANSPORT_ABI of the header that it was compiled with */
    const char* name; /* "Open MPI" */
    /* Connects all processes. Null after a failure. */
    void* (*open)(const struct dlprim_transport_start* start, struct dlprim_message message);
    /* Sends to[i] to process i, and receives from[i] from it. Only processes for which this one
       gives pieces take part, and these give pieces for it. Between two processes, exchanges have
       the same order on both sides. */
    int (*exchange)(void* self, const struct dlprim_pieces* to, const struct dlprim_pieces* from,
                    double seconds, struct dlprim_message message);
    /* Makes the present call and all later ones return soon. */
    void (*cancel)(void* self);
    /* `whole`: all processes do it, after their last call; otherwise only this process is at its
       end, and others must not be waited for. */
    void (*close)(void* self, int whole);
    /* Adds up the floats of all processes in whatever order. All make this call in the same order
       and get the same sums, in place of their own. May be null. */
    int (*allreduce)(void* self, float* values, uint64_t count, double seconds,
                     struct dlprim_message message);
    /* Sends on what earlier calls have left on its way, and returns at once. Called now and then
       while the process waits for something else. May be null where nothing is left. */
    void (*progress)(void* self);
};

typedef const struct dlprim_transport* (*dlprim_transport_plugin_function)(
    void); /* NOLINT(modernize-redundant-void-arg): it is C */

#ifdef __cplusplus
}
#endif
#endif
