/* The C interface of Ropewalk: plans, rotation and tables. Plain C11.
 *
 * Every function that can fail returns a ropewalk_status: 0 is success, and on failure nothing
 * has been written through any pointer. ropewalk_last_error() then has one sentence about it. No
 * exception leaves the library.
 *
 * Plans and tables are immutable: any number of threads may use one at the same time, as long as
 * nobody destroys it.
 *
 * Structs with a `struct_size` grow at their end in later versions. Set it to sizeof the struct
 * (the ROPEWALK_..._INIT macros do) and zero what you do not use; zero is the default everywhere.
 */
#ifndef ROPEWALK_CAPI_H
#define ROPEWALK_CAPI_H

#include <stddef.h>
#include <stdint.h>

#include "ropewalk/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ropewalk_status;
enum {
  ROPEWALK_OK = 0,
  ROPEWALK_INVALID_ARGUMENT = 1, /* an argument, a shape, a dtype, a stride or an option */
  ROPEWALK_INVALID_CONFIG = 2,   /* a model configuration; the message names the key */
  ROPEWALK_BAD_POSITION = 3,     /* a position outside the valid range or outside a table */
  ROPEWALK_IO = 4,               /* a file that cannot be read, written or trusted */
  ROPEWALK_UNSUPPORTED = 5,      /* not available in this build or on this machine */
  ROPEWALK_CUDA = 6,             /* a CUDA call or a launch failed */
  ROPEWALK_OUT_OF_MEMORY = 100,
  ROPEWALK_INTERNAL = 101 /* anything else; please report it */
};

enum { ROPEWALK_FLOAT64 = 1, ROPEWALK_FLOAT32 = 2, ROPEWALK_FLOAT16 = 3, ROPEWALK_BFLOAT16 = 4 };

enum {
  ROPEWALK_PAIRING_HALF = 0,               /* channels (i, i + rotary_dim/2) */
  ROPEWALK_PAIRING_INTERLEAVED = 1,        /* channels (2i, 2i + 1) */
  ROPEWALK_PAIRING_INTERLEAVED_TO_HALF = 2 /* read interleaved, write half */
};

enum {
  ROPEWALK_ARITHMETIC_EXACT = 0,
  ROPEWALK_ARITHMETIC_PARITY_P0 = 1,
  ROPEWALK_ARITHMETIC_PARITY_P1 = 2,
  ROPEWALK_ARITHMETIC_PARITY_P2 = 3,
  ROPEWALK_ARITHMETIC_PARITY_P3 = 4,
  ROPEWALK_ARITHMETIC_PARITY_P4 = 5
};

enum {
  ROPEWALK_FREQUENCY_DEFAULT = 0, /* model for plans from a configuration */
  ROPEWALK_FREQUENCY_FORMULA = 1, /* the formula's value, rounded once to double */
  ROPEWALK_FREQUENCY_MODEL = 2    /* the fp32 values the model's own code holds */
};

enum { ROPEWALK_FORWARD = 0, ROPEWALK_INVERSE = 1 };

/* The sentence about the last failure on this thread; empty before the first. Valid until the next
 * failure on this thread. */
ROPEWALK_API const char* ropewalk_last_error(void);

/* "major.minor.patch" of the library that is loaded. */
ROPEWALK_API const char* ropewalk_version(void);

/* ---- plans --------------------------------------------------------------------------------- */

/* Everything about a rotation except the data. */
typedef struct ropewalk_plan ropewalk_plan;

typedef struct ropewalk_plan_options {
  size_t struct_size;
  const char* layer_type;      /* NULL: the only one the configuration has */
  int64_t length;              /* sequence length, for dynamic and longrope scaling; 0: none */
  int32_t arithmetic;          /* ROPEWALK_ARITHMETIC_... */
  int32_t frequency_precision; /* ROPEWALK_FREQUENCY_... */
} ropewalk_plan_options;
#define ROPEWALK_PLAN_OPTIONS_INIT \
  { sizeof(ropewalk_plan_options), NULL, 0, 0, 0 }

/* A plan from the text of a Hugging Face config.json: `json` has `json_bytes` bytes and needs no
 * terminating zero. `options` may be NULL. On success *plan is for ropewalk_plan_destroy. */
ROPEWALK_API ropewalk_status ropewalk_plan_from_config(const char* json, size_t json_bytes,
                                                       const ropewalk_plan_options* options,
                                                       ropewalk_plan** plan);

/* The plain plan: frequency i is base^(-2i/rotary_dim). rotary_dim 0 means head_dim. */
ROPEWALK_API ropewalk_status ropewalk_plan_create(int64_t head_dim, double base, int64_t rotary_dim,
                                                  int32_t pairing, ropewalk_plan** plan);

/* NULL is fine. */
ROPEWALK_API void ropewalk_plan_destroy(ropewalk_plan* plan);

/* Properties of a plan, which must not be NULL. Texts and arrays live as long as the plan. */
ROPEWALK_API int64_t ropewalk_plan_head_dim(const ropewalk_plan* plan);
ROPEWALK_API int64_t ropewalk_plan_rotary_dim(const ropewalk_plan* plan);
ROPEWALK_API int64_t ropewalk_plan_window_offset(const ropewalk_plan* plan);
ROPEWALK_API int32_t ropewalk_plan_axes(const ropewalk_plan* plan);
ROPEWALK_API double ropewalk_plan_amplitude(const ropewalk_plan* plan);
/* Factor the model puts on its softmax scale; reported, never applied. */
ROPEWALK_API double ropewalk_plan_softmax_multiplier(const ropewalk_plan* plan);
/* 0 where the layer has no rotary embedding: rotating then copies. */
ROPEWALK_API int32_t ropewalk_plan_rotates(const ropewalk_plan* plan);
/* 32 hexadecimal digits; equal plans have equal fingerprints on every machine. */
ROPEWALK_API const char* ropewalk_plan_fingerprint(const ropewalk_plan* plan);
/* One line for people. */
ROPEWALK_API const char* ropewalk_plan_description(const ropewalk_plan* plan);
/* Radians per position, one per pair; *count (where not NULL) is set to rotary_dim / 2. */
ROPEWALK_API const double* ropewalk_plan_frequencies(const ropewalk_plan* plan, size_t* count);

/* ---- rotation ------------------------------------------------------------------------------ */

/* A strided view of q or k: batch, token, head, channel, in this order whatever the layout.
 * `data` points at element (0, 0, 0, 0); strides are in elements. */
typedef struct ropewalk_view {
  void* data;
  int32_t dtype; /* ROPEWALK_FLOAT32 ... */
  int64_t size[4];
  int64_t stride[4];
} ropewalk_view;

/* Reads `in`, writes `out`; equal for a rotation in place. `in` is not written otherwise. */
typedef struct ropewalk_rotation {
  ropewalk_view in;
  ropewalk_view out;
} ropewalk_rotation;

/* Contiguous views: batch, token, head, channel in memory, or heads before tokens. */
ROPEWALK_API ropewalk_view ropewalk_bthd(void* data, int32_t dtype, int64_t batch, int64_t tokens,
                                         int64_t heads, int64_t head_dim);
ROPEWALK_API ropewalk_view ropewalk_bhtd(void* data, int32_t dtype, int64_t batch, int64_t tokens,
                                         int64_t heads, int64_t head_dim);
ROPEWALK_API ropewalk_rotation ropewalk_in_place(ropewalk_view view);

enum {
  ROPEWALK_POSITIONS_OFFSET = 0,    /* token t of every batch row stands at start + t */
  ROPEWALK_POSITIONS_PER_BATCH = 1, /* token t of row b stands at data[b] + t */
  ROPEWALK_POSITIONS_PER_TOKEN = 2, /* data[axis, b, t] */
  ROPEWALK_POSITIONS_PACKED = 3     /* by cu_seqlens: t - cu_seqlens[s] (+ data[s]); batch 1 */
};

enum {
  ROPEWALK_INT64 = 0,
  ROPEWALK_INT32 = 1,
  ROPEWALK_POSITION_FLOAT32 = 2,
  ROPEWALK_POSITION_FLOAT64 = 3
};

/* Where each token stands. Strides are in elements of `data`; zero broadcasts. Valid integer
 * positions: |p| < 2^36, and |p| < 2^53 for float64 data; with a table, its rows. Floats are for
 * vision models with fractional positions. */
typedef struct ropewalk_positions {
  size_t struct_size;
  int32_t kind;     /* ROPEWALK_POSITIONS_... */
  int32_t type;     /* of data: ROPEWALK_INT64 ... */
  int64_t start;    /* kind offset */
  const void* data; /* kinds per_batch and per_token; optional for packed */
  int64_t axes;     /* components given; 0 or 1: one for all axes */
  int64_t count;    /* tokens (per_token) or rows (per_batch) or sequences data describes */
  int64_t axis_stride;
  int64_t batch_stride;
  int64_t token_stride;   /* per_token: usually 1 */
  const void* cu_seqlens; /* kind packed: sequences + 1 entries, from 0 up */
  int32_t cu_type;        /* ROPEWALK_INT64 or ROPEWALK_INT32 */
  int32_t has_padding;    /* not 0: rows at position `padding` are passed through */
  int64_t padding;
  int64_t sequences; /* kind packed */
  int64_t batches;   /* per_token: batch rows data describes (1 broadcasts); 0: not stated */
} ropewalk_positions;

/* Every batch row starts at `start`. */
ROPEWALK_API ropewalk_positions ropewalk_positions_from_offset(int64_t start);
/* One position per token, the same for every batch row. The array must outlive the call. */
ROPEWALK_API ropewalk_positions ropewalk_positions_from_tokens(const int64_t* positions,
                                                               int64_t count);

typedef struct ropewalk_rotate_options {
  size_t struct_size;
  int32_t direction;  /* ROPEWALK_FORWARD, ROPEWALK_INVERSE */
  int32_t threads;    /* 0: one per processor; the result does not depend on it */
  const char* kernel; /* a name from ropewalk_cpu_kernel_at; NULL: the best */
} ropewalk_rotate_options;
#define ROPEWALK_ROTATE_OPTIONS_INIT \
  { sizeof(ropewalk_rotate_options), 0, 0, NULL }

/* Rotates `count` views (any subset of q and k; batch and token counts must agree, head counts and
 * strides may differ). Channels outside the window are copied or left alone. `options` may be NULL.
 * Synchronous. Plans with a parity arithmetic need the table variant. */
ROPEWALK_API ropewalk_status ropewalk_rotate(const ropewalk_plan* plan,
                                             const ropewalk_rotation* rotations, size_t count,
                                             const ropewalk_positions* positions,
                                             const ropewalk_rotate_options* options);

/* ---- tables -------------------------------------------------------------------------------- */

/* Cosines and sines of positions 0 ... rows - 1, for parity with other libraries. */
typedef struct ropewalk_table ropewalk_table;

/* A table of the plan for data of `dtype`. The table keeps a copy of the plan. */
ROPEWALK_API ropewalk_status ropewalk_table_create(const ropewalk_plan* plan, int64_t rows,
                                                   int32_t dtype, ropewalk_table** table);
/* A table you bring: rows x (rotary_dim / 2) values each, row-major, amplitude included. */
ROPEWALK_API ropewalk_status ropewalk_table_from_values(const ropewalk_plan* plan,
                                                        const float* cosines, const float* sines,
                                                        int64_t rows, int32_t dtype,
                                                        ropewalk_table** table);
/* `path` is written whole or not at all. */
ROPEWALK_API ropewalk_status ropewalk_table_save(const ropewalk_table* table, const char* path);
/* Refuses a truncated, altered or foreign file, and one made for another plan or dtype. */
ROPEWALK_API ropewalk_status ropewalk_table_load(const char* path, const ropewalk_plan* plan,
                                                 int32_t dtype, ropewalk_table** table);
/* NULL is fine. */
ROPEWALK_API void ropewalk_table_destroy(ropewalk_table* table);
/* `table` must not be NULL. */
ROPEWALK_API int64_t ropewalk_table_rows(const ropewalk_table* table);
/* ropewalk_rotate with angles from the table, in the arithmetic of its plan. */
ROPEWALK_API ropewalk_status ropewalk_table_rotate(const ropewalk_table* table,
                                                   const ropewalk_rotation* rotations, size_t count,
                                                   const ropewalk_positions* positions,
                                                   const ropewalk_rotate_options* options);

/* ---- kernels ------------------------------------------------------------------------------- */

typedef struct ropewalk_cpu_kernel {
  const char* name;
  const char* description;
  int32_t supported; /* by the processor this runs on */
} ropewalk_cpu_kernel;

/* The kernels compiled in, best last. The texts live as long as the library. */
ROPEWALK_API size_t ropewalk_cpu_kernel_count(void);
ROPEWALK_API ropewalk_status ropewalk_cpu_kernel_at(size_t index, ropewalk_cpu_kernel* kernel);

#ifdef __cplusplus
}
#endif

#endif /* ROPEWALK_CAPI_H */
