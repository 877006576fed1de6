/* What the module exports, beside the functions for inputs and outputs. */
#include "$name.h"

#define EXPORT(name) __attribute__((export_name(name)))

_Alignas(${NAME}_ALIGNMENT) static char arena[${NAME}_ARENA_SIZE];
_Alignas(${NAME}_ALIGNMENT) static const unsigned char weights[] = {
#embed "$weights_name"
};

EXPORT("init") int init(void) { return ${name}_init(arena, sizeof arena, weights, sizeof weights); }

EXPORT("run") int run(void) { return ${name}_run(arena); }

EXPORT("error") const char *error(int code) { return ${name}_error(code); }

$exports
