/* The smallest program: read the inputs, run, print the outputs.
 *
 *     ./example numbers.bin     the bytes of all inputs, in order; "-": from the standard input
 *     ./example                 inputs of 0
 *     ./example --time          also say how long it takes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "$name.h"

static _Alignas(${NAME}_ALIGNMENT) char arena[${NAME}_ARENA_SIZE];
$weights_declared
static double now(void)  /* microseconds */
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static int stop(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 1;
}

int main(int count, char **words)
{
    const int timed = count > 1 && !strcmp(words[1], "--time");
    const double start = now();
$weights_read    int error = ${name}_init(arena, sizeof arena, weights, ${NAME}_WEIGHTS_SIZE);
    if (error) return stop(${name}_error(error));
    const double ready = now();

    if (count > 1 && !timed) {
        FILE *numbers = strcmp(words[1], "-") ? fopen(words[1], "rb") : stdin;
        if (!numbers) return stop("the file of inputs cannot be read");
$inputs_read    }
    const double before = now();
    error = ${name}_run(arena);
    const double after = now();
    if (error) return stop(${name}_error(error));

$outputs_printed    if (timed) {
        double least = after - before;
        for (int k = 0; k < 100 && now() - after < 1e6; k++) {
            const double began = now();
            ${name}_run(arena);
            const double took = now() - began;
            if (took < least) least = took;
        }
        fprintf(stderr, "load and init %.0f us, first run %.1f us, best run %.1f us\n",
                ready - start, after - before, least);
    }
    return 0;
}
