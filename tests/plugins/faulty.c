/* SPDX-License-Identifier: MIT */
/* Plugins of engines with one fault each, which FAULT names: for tests of what the library does
   with them. */
#include <dlprim/engine_plugin.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 1, CRASH, WRONG, LAYOUT, NAMELESS, UNWILLING, FAILING };

static int applies(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem,
                   struct dlprim_engine_message reason) {
    (void)self;
    (void)device;
    (void)reason;
    return strcmp(problem->inputs[0].type, "float") == 0 && problem->stage_count == 0;
}

static int layouts(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem, int choice,
                   struct dlprim_engine_layout* inputs, struct dlprim_engine_layout* outputs) {
    (void)self;
    (void)device;
    (void)problem;
    (void)choice;
    memset(inputs, 0, problem->input_count * sizeof *inputs);
    memset(outputs, 0, problem->output_count * sizeof *outputs);
    if (FAULT == LAYOUT) {
        inputs[0].kind = DLPRIM_LAYOUT_BLOCKED;
        inputs[0].block = 1000000;
    }
    return 1;
}

/* The fastest there is. */
static double estimate(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                       const struct dlprim_engine_problem* problem) {
    (void)self;
    (void)device;
    (void)problem;
    return 0;
}

static void* build(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem,
                   struct dlprim_engine_message message) {
    static int launch;
    (void)self;
    (void)device;
    (void)problem;
    if (FAULT == FAILING) {
        snprintf(message.text, message.room, "the moon is full");
        return NULL;
    }
    return &launch;
}

/* Leaves what it should compute as it is. */
static int run(void* launch, const struct dlprim_engine_run* how,
               const struct dlprim_engine_memory* operands, size_t count,
               struct dlprim_engine_message message) {
    (void)launch;
    (void)how;
    (void)operands;
    (void)count;
    (void)message;
    return 0;
}

static void release(void* launch) {
    (void)launch;
}

static const struct dlprim_engine faulty = {
    .name = FAULT == NAMELESS ? NULL : "faulty.product",
    .op = "InnerProduct",
    .host = 1,
    .applies = applies,
    .layouts = layouts,
    .estimate = estimate,
    .build = build,
    .run = run,
    .release = release,
};

static const struct dlprim_engine* const engines[] = {&faulty};

static const struct dlprim_engines all = {
    .abi = FAULT == VERSION ? 99 : DLPRIM_ENGINE_ABI,
    .library = "faulty 1.0",
    .engines = engines,
    .count = 1,
};

__attribute__((visibility("default"))) const struct dlprim_engines* dlprim_engine_plugin(
    struct dlprim_engine_message message) {
    if (FAULT == CRASH) raise(SIGSEGV);
    if (FAULT == UNWILLING) {
        snprintf(message.text, message.room, "this processor has no abacus");
        return NULL;
    }
    return &all;
}
