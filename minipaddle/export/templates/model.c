/* $title: the program.
 *
 * $built
 */
#include "$name.h"

$body

/* ---- the interface ----------------------------------------------------------------------------- */

enum { READY = $ready };

typedef struct {
    uint32_t ready;
    void *all[$pointers];  /* inputs, states, outputs */
} instance;

typedef struct {
    char magic[8];
    uint32_t version, count;
    uint64_t size, library;
    uint32_t checksum;
} file_head;

_Static_assert(sizeof(instance) <= 64 + 8 * $pointers, "the arena begins with the pointers");

size_t ${name}_arena_size(void) { return ${NAME}_ARENA_SIZE; }

static uint32_t checksum(const unsigned char *p, size_t n)  /* Adler-32 */
{
    uint32_t a = 1, b = 0;
    while (n > 0) {
        size_t some = n < 5552 ? n : 5552;  /* so many sums fit 32 bits */
        n -= some;
        while (some--) b += a += *p++;
        a %= 65521;
        b %= 65521;
    }
    return b << 16 | a;
}

static int check_weights(const void *weights, size_t size)
{
    const char magic[8] = {'M', 'P', 'W', 'E', 'I', 'G', 'H', 'T'};
    file_head head;
    if (!weights || (uintptr_t)weights % ${NAME}_ALIGNMENT) return ${NAME}_BAD_WEIGHTS;
    if (size < 64) return ${NAME}_WRONG_SIZE;
    memcpy(&head, weights, sizeof head);
    for (int k = 0; k < 8; k++) if (head.magic[k] != magic[k]) return ${NAME}_BAD_WEIGHTS;
    if (head.version != 1) return ${NAME}_OTHER_VERSION;
    if (head.library != ${number}u) return ${NAME}_OTHER_MODEL;
    if (size != ${NAME}_WEIGHTS_SIZE || head.size != size) return ${NAME}_WRONG_SIZE;
    const uint32_t sum = checksum((const unsigned char *)weights + 64, size - 64);
    return sum == head.checksum ? ${NAME}_OK : ${NAME}_DAMAGED;
}

int ${name}_init(void *arena, size_t arena_size, const void *weights, size_t weights_size)
{
    if (!arena || (uintptr_t)arena % ${NAME}_ALIGNMENT) return ${NAME}_BAD_ARENA;
    if (arena_size < ${NAME}_ARENA_SIZE) return ${NAME}_SMALL_ARENA;
    instance *const own = arena;
    own->ready = 0;
    const int error = check_weights(weights, weights_size);
    if (error) return error;
    char *const here = arena;
    memset(arena, 0, $work);
$pointers_set
    own->ready = READY;
    return ${NAME}_OK;
}

int ${name}_run(void *arena)
{
    instance *const own = arena;
    if (!arena || (uintptr_t)arena % ${NAME}_ALIGNMENT) return ${NAME}_BAD_ARENA;
    if (own->ready != READY) return ${NAME}_NOT_READY;
    return step((char *)arena + $work, own->all, own->all + $first_state, own->all + $first_output);
}

const char *${name}_error(int code)
{
    switch (code) {
    case ${NAME}_OK: return "no error";
    case ${NAME}_BAD_INDEX: return "an index is out of range in a branch or a loop: look at the inputs";
    case ${NAME}_BAD_ARENA: return "the arena is null, or its address is no multiple of 64";
    case ${NAME}_SMALL_ARENA: return "the arena is too small: it needs $arena_size bytes";
    case ${NAME}_NOT_READY: return "the arena holds no instance: call ${name}_init first";
    case ${NAME}_BAD_WEIGHTS: return "these are no weights, or their address is no multiple of 64";
    case ${NAME}_OTHER_VERSION: return "the weights have another version of the format: export again";
    case ${NAME}_WRONG_SIZE: return "the weights do not have $weights_size bytes: read all of $weights_name";
    case ${NAME}_OTHER_MODEL: return "the weights are of another export: take those beside $name.c";
    case ${NAME}_DAMAGED: return "the weights are damaged: their checksum is another one";
$index_cases    default: return "no code of this library";
    }
}

$accessors
