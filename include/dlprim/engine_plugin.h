/* SPDX-License-Identifier: MIT */
/* What an engine plugin gives to the library: a shared library dlprim_engines_NAME.so that exports
   the function dlprim_engine_plugin, and brings engines of another library, which compute some of
   the operators on the host or on OpenCL devices. docs/writing_a_plugin.md shows how to write one.

   The library looks for plugins in the folder that DLPRIM_PLUGINS names, else in the one that is
   installed beside it, when a program first asks for an operator. Its planner ranks a plugin's
   engines among its own by their estimates, by databases and by dlprim_tune, and compares their
   results with its own at first use (docs/engines/trust.md).

   Numbers: operators, options and types have the names of docs/json.md. Sizes are in elements, and
   estimates in seconds. Structures and texts that a function is given are valid during its call.

   Threads: any thread may call any function of an engine at any time; a launch is used by one
   thread at a time. Errors: no function throws, prints, or ends the process; one that fails writes
   a sentence into `message`. */
#ifndef DLPRIM_ENGINE_PLUGIN_H
#define DLPRIM_ENGINE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPRIM_ENGINE_ABI 1

struct dlprim_engine_message {
    char* text; /* ends with 0 */
    size_t room;
};

/* How an operand lies in memory. */
enum dlprim_engine_layout_kind {
    DLPRIM_LAYOUT_PLAIN = 0,         /* row-major: NCHW for images */
    DLPRIM_LAYOUT_CHANNELS_LAST = 1, /* NHWC; rank 4 only */
    DLPRIM_LAYOUT_BLOCKED = 2,       /* NCHW<block>c; rank 4 only; lanes beyond C are zero */
    DLPRIM_LAYOUT_PACKED = 3         /* bytes that only the engine understands, of an input */
};
struct dlprim_engine_layout {
    uint32_t kind;
    uint32_t block; /* DLPRIM_LAYOUT_BLOCKED: channels of a block */
    uint64_t bytes; /* DLPRIM_LAYOUT_PACKED: their number */
    char tag[64];   /* DLPRIM_LAYOUT_PACKED: tells it from other packed forms; ends with 0 */
};

struct dlprim_engine_operand {
    const char* type; /* "float", "half", "bfloat16", "int64" */
    uint32_t rank;
    const int64_t* sizes;
    struct dlprim_engine_layout layout; /* plain where layouts are not chosen yet */
    int constant;                       /* the same in all runs, as weights in inference */
};

enum dlprim_engine_option_kind {
    DLPRIM_OPTION_BOOLEAN = 0, /* integers[0], 0 or 1 */
    DLPRIM_OPTION_INTEGERS = 1,
    DLPRIM_OPTION_NUMBERS = 2,
    DLPRIM_OPTION_TEXTS = 3
};
/* One option of the operator. All that it has are given, with defaults filled in. An option that is
   no list has one value. */
struct dlprim_engine_option {
    const char* name;
    uint32_t kind;
    size_t count;
    const int64_t* integers;
    const double* numbers;
    const char* const* texts;
};

/* What fusion appended to an operator, applied in order to each element v of the result. */
enum dlprim_engine_stage_kind {
    DLPRIM_STAGE_ADD = 0,       /* v += inputs[operand], which has the result's shape and layout */
    DLPRIM_STAGE_ACTIVATION = 1 /* v = f(v), by the names of the operator Activation */
};
struct dlprim_engine_stage {
    uint32_t kind;
    uint32_t operand;
    const char* activation;
    double alpha, beta;
};

struct dlprim_engine_problem {
    const char* op;        /* "Convolution2D", "Convolution2DBackwardFilter", "MatMul" */
    const char* key;       /* canonical text without layouts; equal for equal problems */
    const char* precision; /* "fp32", "tf32", "fp16", "bf16": the least that products may have */
    int training;
    const struct dlprim_engine_operand* inputs; /* those of the operator, then of the stages */
    size_t input_count;
    const struct dlprim_engine_operand* outputs;
    size_t output_count;
    const struct dlprim_engine_option* options;
    size_t option_count;
    const struct dlprim_engine_stage* stages;
    size_t stage_count;
};

struct dlprim_engine_device {
    int host; /* the host itself, without OpenCL */
    const char *name, *vendor, *driver;
    uint32_t compute_units;
    uint32_t vector_width; /* floats of a vector: 1 on GPUs */
    double gflops;         /* estimate of the fp32 peak */
    double gbytes_per_s;   /* estimate of the memory's bandwidth */
    uint64_t local_bytes, max_work_group;
    int fp16, fp64;
    void *cl_context, *cl_device; /* only in build() on an OpenCL device; the library's own */
};

/* The place of an operand. On the host, `data` is its first element. On an OpenCL device, `data` is
   a cl_mem, and its first element lies `offset` bytes behind the start. Without elements `data` may
   be null. */
struct dlprim_engine_memory {
    void* data;
    uint64_t offset;
};
struct dlprim_engine_run {
    uint32_t threads; /* host: how many the engine may use */
    void* cl_queue;   /* OpenCL: the cl_command_queue, in order, on which to enqueue */
};

struct dlprim_engine {
    const char* name; /* "onednn.conv": the library and the method */
    const char* op;
    int host;                 /* for the host; otherwise for OpenCL devices */
    const char* precisions;   /* those with code of their own, as "fp32 bf16"; fp32 if null */
    const void* private_data; /* for the plugin */

    /* 1 if it supports the problem, judged by all but layouts. Otherwise 0 and a reason. Cheap. */
    int (*applies)(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem,
                   struct dlprim_engine_message reason);
    /* Sets `choice`, from 0 on, of the layouts of all operands that it supports together, the best
       first. Returns how many there are. Null: all operands are plain. */
    int (*layouts)(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem, int choice,
                   struct dlprim_engine_layout* inputs, struct dlprim_engine_layout* outputs);
    /* Estimated seconds of a run, for ranking, with the layouts set. */
    double (*estimate)(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                       const struct dlprim_engine_problem* problem);
    /* Bytes of scratch memory, which run() gets behind the outputs. Null: none. */
    uint64_t (*workspace)(const struct dlprim_engine* self,
                          const struct dlprim_engine_device* device,
                          const struct dlprim_engine_problem* problem);
    /* Makes a launch. Null after a failure. */
    void* (*build)(const struct dlprim_engine* self, const struct dlprim_engine_device* device,
                   const struct dlprim_engine_problem* problem,
                   struct dlprim_engine_message message);
    /* The same for packing input `input`: its operands are the plain input and the packed one. Null
       if layouts() packs nothing. */
    void* (*build_packing)(const struct dlprim_engine* self,
                           const struct dlprim_engine_device* device,
                           const struct dlprim_engine_problem* problem, size_t input,
                           struct dlprim_engine_message message);
    /* Computes on the host, or enqueues on the device, the problem of a launch: the operands are
       its inputs, its outputs, and the workspace if there is one. 0 after success. */
    int (*run)(void* launch, const struct dlprim_engine_run* run,
               const struct dlprim_engine_memory* operands, size_t count,
               struct dlprim_engine_message message);
    void (*release)(void* launch);
};

struct dlprim_engines {
    uint32_t abi;        /* DLPRIM_ENGINE_ABI of the header that it was compiled with */
    const char* library; /* with its version: "oneDNN 2.6.0"; results of checks are kept by it */
    const struct dlprim_engine* const* engines;
    size_t count;
};

/* The function dlprim_engine_plugin. What it returns stays valid. Null, after a sentence in
   `message`, where the plugin finds that it cannot work on this machine. */
typedef const struct dlprim_engines* (*dlprim_engine_plugin_function)(
    struct dlprim_engine_message message);

#ifdef __cplusplus
}
#endif
#endif
