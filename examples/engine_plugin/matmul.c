/* SPDX-License-Identifier: MIT */
/* A plugin of engines in its smallest form: example.matmul multiplies two float matrices on the
   host. docs/writing_a_plugin.md goes through it. */
#include <dlprim/engine_plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A launch: what run() needs to know of its problem. a is rows x inner, b inner x columns. */
struct product {
    int64_t rows, inner, columns;
};

static int no(struct dlprim_engine_message message, const char* why) {
    snprintf(message.text, message.room, "%s", why);
    return 0;
}

static int applies(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem,
                   struct dlprim_engine_message reason) {
    (void)self;
    (void)device;
    for (size_t i = 0; i < problem->input_count; ++i)
        if (strcmp(problem->inputs[i].type, "float") != 0 || problem->inputs[i].rank != 2)
            return no(reason, "it supports two matrices of float only");
    if (problem->stage_count > 0) return no(reason, "it does not support stages");
    for (size_t i = 0; i < problem->option_count; ++i) {
        const struct dlprim_engine_option* option = &problem->options[i];
        if (option->kind == DLPRIM_OPTION_BOOLEAN && option->integers[0] != 0)
            return no(reason, "it supports neither transposed matrices nor a bias");
        if (strcmp(option->name, "alpha") == 0 && option->numbers[0] != 1)
            return no(reason, "it supports no factor");
    }
    return 1;
}

static struct product product_of(const struct dlprim_engine_problem* problem) {
    const struct product product = {problem->inputs[0].sizes[0], problem->inputs[0].sizes[1],
                                    problem->inputs[1].sizes[1]};
    return product;
}

/* One multiply-add after the other, at about 1 GFLOP/s: the library's own engines are faster. */
static double estimate(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                       const struct dlprim_engine_problem* problem) {
    (void)self;
    (void)device;
    const struct product product = product_of(problem);
    return 2e-9 * (double)product.rows * (double)product.inner * (double)product.columns;
}

static void* build(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem,
                   struct dlprim_engine_message message) {
    (void)self;
    (void)device;
    struct product* launch = malloc(sizeof *launch);
    if (launch == NULL)
        no(message, "there is no memory for it");
    else
        *launch = product_of(problem);
    return launch;
}

static int run(void* launch, const struct dlprim_engine_run* how,
               const struct dlprim_engine_memory* operands, size_t count,
               struct dlprim_engine_message message) {
    (void)how;
    (void)count;
    (void)message;
    const struct product* product = launch;
    const float *a = operands[0].data, *b = operands[1].data;
    float* y = operands[2].data;
    for (int64_t i = 0; i < product->rows; ++i)
        for (int64_t j = 0; j < product->columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < product->inner; ++k)
                sum += (double)a[i * product->inner + k] * b[k * product->columns + j];
            y[i * product->columns + j] = (float)sum;
        }
    return 0;
}

static void release(void* launch) {
    free(launch);
}

static const struct dlprim_engine matmul = {
    .name = "example.matmul",
    .op = "MatMul",
    .host = 1,
    .applies = applies,
    .estimate = estimate,
    .build = build,
    .run = run,
    .release = release,
};

static const struct dlprim_engine* const engines[] = {&matmul};

static const struct dlprim_engines all = {
    .abi = DLPRIM_ENGINE_ABI,
    .library = "example 1.0",
    .engines = engines,
    .count = 1,
};

__attribute__((visibility("default"))) const struct dlprim_engines* dlprim_engine_plugin(
    struct dlprim_engine_message message) {
    (void)message;
    return &all;
}
