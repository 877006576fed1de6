/* Reads lines of text, each cut out of a picture: PGM or PPM (P5, P6), of one byte a colour.
 *
 *     ./read_line line.ppm ...     the text of each file
 *
 * A line is made 48 pixels high, as wide as its shape says ($width at most), with zeros to its right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "$name.h"

enum { HIGH = 48, WIDE = $width, COLUMNS = $columns, CLASSES = $classes };
static const char *const letters[CLASSES] = {"", $letters};
static _Alignas(${NAME}_ALIGNMENT) char arena[${NAME}_ARENA_SIZE];
$weights_declared
static int stop_at(const char *file, const char *why)
{
    fprintf(stderr, "%s: %s\n", file, why);
    return 1;
}

static int stop(const char *why)
{
    return stop_at("the reader", why);
}

static int number(FILE *file)  /* the next number of a head, after spaces and comments; -1: none */
{
    int c, n;
    while ((c = getc(file)) == '#' || c == ' ' || c == '\t' || c == '\r' || c == '\n')
        if (c == '#')
            while ((c = getc(file)) != '\n' && c != EOF) {}
    ungetc(c, file);
    return fscanf(file, "%5d", &n) == 1 && n > 0 ? n : -1;
}

/* The colour of a place between pixels, blue first: red is the first byte of a PPM. */
static float value(const unsigned char *picture, int high, int wide, int channels, float y, float x, int k)
{
    const int i = (int)y, j = (int)x, c = channels == 3 ? 2 - k : 0;
    const int down = i + 1 < high ? i + 1 : i, right = j + 1 < wide ? j + 1 : j;
    const float u = y - i, v = x - j;
#define AT(a, b) picture[((size_t)(a) * wide + (b)) * channels + c]
    return (1 - u) * ((1 - v) * AT(i, j) + v * AT(i, right)) + u * ((1 - v) * AT(down, j) + v * AT(down, right));
#undef AT
}

static float place(int k, int before, int after)  /* the centre of a pixel, in the picture before */
{
    const float at = (k + .5f) * before / after - .5f;
    return at < 0 ? 0 : at > before - 1 ? before - 1 : at;
}

static const char *load(const char *name)  /* a picture as the input; what is wrong, or null */
{
    FILE *file = fopen(name, "rb");
    if (!file) return "cannot be opened";
    const int magic = getc(file) == 'P' ? getc(file) : 0, channels = magic == '6' ? 3 : 1;
    const int wide = number(file), high = number(file), most = number(file);
    unsigned char *picture = NULL;
    size_t size = 0;
    if ((magic == '5' || magic == '6') && wide > 0 && high > 0 && most == 255) {
        getc(file);
        size = (size_t)wide * high * channels;
        picture = malloc(size);
    }
    const int complete = picture && fread(picture, 1, size, file) == size;
    fclose(file);
    if (complete) {
        const long shape = ((long)HIGH * wide + high - 1) / high;
        const int across = shape > WIDE ? WIDE : (int)shape;
        float *line = ${name}_$input(arena);
        memset(line, 0, sizeof(float) * 3 * HIGH * WIDE);
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < HIGH; i++)
                for (int j = 0; j < across; j++)
                    line[(k * HIGH + i) * WIDE + j] = value(picture, high, wide, channels,
                        place(i, high, HIGH), place(j, wide, across), k) / 127.5f - 1;
    }
    free(picture);
    return complete ? NULL : "is no PGM or PPM of one byte a colour";
}

int main(int count, char **words)
{
$weights_read    int error = ${name}_init(arena, sizeof arena, weights, ${NAME}_WEIGHTS_SIZE);
    if (error) return stop(${name}_error(error));
    for (int n = 1; n < count; n++) {
        const char *why = load(words[n]);
        if (why) return stop_at(words[n], why);
        if ((error = ${name}_run(arena))) return stop_at(words[n], ${name}_error(error));
        const float *columns = ${name}_$output(arena);
        for (int t = 0, last = 0; t < COLUMNS; t++, columns += CLASSES) {
            int best = 0;  /* of equal neighbours one counts, and class 0 is no letter */
            for (int k = 1; k < CLASSES; k++)
                if (columns[k] > columns[best]) best = k;
            if (best != last) fputs(letters[best], stdout);
            last = best;
        }
        putchar('\n');
    }
    return 0;
}
