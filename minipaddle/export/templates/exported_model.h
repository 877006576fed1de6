/* What a library that MiniPaddle exported says of itself. NAME_paddle.c writes it down, and
 * paddle_inference_api.h reads it from NAME.so.
 */
#ifndef MINIPADDLE_EXPORTED_MODEL_H
#define MINIPADDLE_EXPORTED_MODEL_H

#include <stddef.h>

#ifdef __cplusplus
namespace paddle_infer {
extern "C" {
#endif

enum DataType { FLOAT32, INT64, INT32, UINT8, INT8, FLOAT16, BOOL, FLOAT64, BFLOAT16, INT16 };

typedef struct {
    const char *name;
    enum DataType type;
    int rank;
    const int *shape;
    size_t at;  /* the byte of the arena where it begins */
} exported_array;

typedef struct {
    size_t alignment, arena_size;
    int (*init)(void *arena, size_t arena_size, const void *weights, size_t weights_size);
    int (*run)(void *arena);
    const char *(*error)(int code);
    const char *weights_file;
    const void *weights;  /* those that are linked in; null: they are in the file */
    size_t weights_size;
    int changes;                /* whether states change with each run */
    size_t counts[2];                 /* of the inputs, of the outputs */
    const exported_array *arrays[2];
} exported_model;

/* The one function that NAME.so shows; its number changes with the structures above. */
const exported_model *exported_model_1(void);
#define EXPORTED_MODEL_ENTRY "exported_model_1"

#ifdef __cplusplus
}
}
#endif
#endif
