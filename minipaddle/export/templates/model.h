/* $title
 *
 * One instance is an arena: memory of the caller's, aligned to ALIGNMENT bytes, that holds inputs,
 * outputs and all values between them. Nothing is allocated, and there are no variables outside of
 * the arena: instances run in as many threads as you like, one thread for each at a time.
 *
 *     static _Alignas(${NAME}_ALIGNMENT) char arena[${NAME}_ARENA_SIZE];
 *     int error = ${name}_init(arena, sizeof arena, weights, weights_size);
 *     ${name}_$first(arena)[0] = ...;
 *     if (!error) error = ${name}_run(arena);
 *     if (error) puts(${name}_error(error));
 *     ... = ${name}_output_0(arena)[0];
 */
#ifndef ${NAME}_H
#define ${NAME}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${NAME}_ALIGNMENT 64
#define ${NAME}_ARENA_SIZE $arena_size    /* bytes of an instance */
#define ${NAME}_WEIGHTS_SIZE $weights_size  /* bytes of the file of weights */
$embedded
enum {
    ${NAME}_OK = 0,
    ${NAME}_BAD_INDEX = 1,       /* an index in the inputs is out of range, in a branch or loop */
    ${NAME}_BAD_ARENA = 2,       /* the arena is null or not aligned */
    ${NAME}_SMALL_ARENA = 3,     /* the arena has less than ${NAME}_ARENA_SIZE bytes */
    ${NAME}_NOT_READY = 4,       /* ${name}_init has not run on this arena, or failed */
    ${NAME}_BAD_WEIGHTS = 5,     /* the weights are null, not aligned, or no such file */
    ${NAME}_OTHER_VERSION = 6,   /* the weights have another version of the format */
    ${NAME}_WRONG_SIZE = 7,      /* the weights are cut off, or longer than they should be */
    ${NAME}_OTHER_MODEL = 8,     /* the weights belong to another model.c */
    ${NAME}_DAMAGED = 9          /* the weights have another checksum */
};  /* further codes, from $index_errors on: an index is out of range; ${name}_error says which */

/* ${NAME}_ARENA_SIZE, for programs that load this as a library. */
size_t ${name}_arena_size(void);

/* Make an instance in `arena`. `weights` are the bytes of the file $weights_name, aligned as the arena
 * is; they are read as long as the instance runs. Inputs become 0. */
int ${name}_init(void *arena, size_t arena_size, const void *weights, size_t weights_size);

/* Compute the outputs from the inputs.$states */
int ${name}_run(void *arena);

/* What an error code means, and what to do. */
const char *${name}_error(int code);

$accessors
#ifdef __cplusplus
}
#endif
#endif
