/* A training step of the MLP 64-32-32-10 on 32 rows, by hand: a vector is 16 floats, weights stay in
   registers while rows pass, gradients are used as they are made. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ROWS = 32, IN = 64, MID = 32, OUT = 10, LANES = 16 };
#define RATE 0.01f
#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
typedef float vector __attribute__((vector_size(64)));
typedef int32_t lanes __attribute__((vector_size(64)));
typedef float loose __attribute__((vector_size(64), aligned(4), may_alias));

static float first[ROWS][MID], second[ROWS][MID], logits[ROWS][LANES], back[ROWS][MID];
static float last[MID][LANES], turned[MID][MID], bias[LANES]; /* the last weights, padded */
const long workspace = sizeof first + sizeof second + sizeof logits + sizeof back + sizeof last
                       + sizeof turned + sizeof bias;

INLINE vector load(const float *p) { return *(const loose *)p; }
INLINE void store(float *p, vector v) { *(loose *)p = v; }
INLINE vector where(lanes mask, vector v) { return (vector)(mask & (lanes)v); }

/* y[32, 16 n] = x[32, depth] @ w[depth, 16 n] + b; then ReLU, or zero where `kept` is */
INLINE void product(const float *x, int depth, const float *w, const float *b, int n, float *y,
                    int relu, const float *kept)
{
    for (int r = 0; r < ROWS; r += 8) {
        vector sum[8][2];
        UNROLL for (int i = 0; i < 8; i++)
            UNROLL for (int j = 0; j < n; j++) sum[i][j] = b ? load(b + 16 * j) : (vector){0};
        for (int k = 0; k < depth; k++)
            UNROLL for (int i = 0; i < 8; i++)
                UNROLL for (int j = 0; j < n; j++)
                    sum[i][j] += x[(r + i) * depth + k] * load(w + 16 * (n * k + j));
        UNROLL for (int i = 0; i < 8; i++)
            UNROLL for (int j = 0; j < n; j++) {
                const int at = 16 * (n * (r + i) + j);
                const vector v = relu ? where(sum[i][j] > 0, sum[i][j]) : sum[i][j];
                store(y + at, kept ? where(load(kept + at) > 0, v) : v);
            }
    }
}

/* w[depth, 16 n] -= RATE x.T @ g; b -= RATE times the sum of the rows of g */
INLINE void descend(const float *x, int depth, const float *g, int n, float *w, float *b)
{
    for (int k = 0; k < depth; k += 8) {
        vector sum[8][2] = {0};
        for (int r = 0; r < ROWS; r++)
            UNROLL for (int i = 0; i < 8; i++)
                UNROLL for (int j = 0; j < n; j++)
                    sum[i][j] += x[r * depth + k + i] * load(g + 16 * (n * r + j));
        UNROLL for (int i = 0; i < 8; i++)
            UNROLL for (int j = 0; j < n; j++) {
                float *at = w + 16 * (n * (k + i) + j);
                store(at, load(at) - RATE * sum[i][j]);
            }
    }
    for (int j = 0; j < n; j++) {
        vector sum = {0};
        for (int r = 0; r < ROWS; r++) sum += load(g + 16 * (n * r + j));
        store(b + 16 * j, load(b + 16 * j) - RATE * sum);
    }
}

INLINE float entropy(const int64_t *labels) /* the mean; logits become its gradient */
{
    float loss = 0;
    for (int r = 0; r < ROWS; r++) {
        float *z = logits[r], top = z[0], sum = 0;
        for (int j = 1; j < OUT; j++) top = z[j] > top ? z[j] : top;
        loss += top - z[labels[r]];
        for (int j = 0; j < OUT; j++) sum += z[j] = expf(z[j] - top);
        loss += logf(sum);
        for (int j = 0; j < OUT; j++) z[j] *= 1.0f / (sum * ROWS);
        z[labels[r]] -= 1.0f / ROWS;
    }
    return loss / ROWS;
}

/* `all`: biases and weights of the three layers, x, labels, and where the loss goes */
void step(void *const *all)
{
    float *b0 = all[0], *w0 = all[1], *b1 = all[2], *w1 = all[3], *b2 = all[4], *w2 = all[5];
    memcpy(bias, b2, sizeof(float[OUT]));
    for (int k = 0; k < MID; k++) memcpy(last[k], w2 + OUT * k, sizeof(float[OUT]));
    product(all[6], IN, w0, b0, 2, first[0], 1, 0);
    product(first[0], MID, w1, b1, 2, second[0], 1, 0);
    product(second[0], MID, last[0], bias, 1, logits[0], 0, 0);
    *(float *)all[8] = entropy(all[7]);
    for (int j = 0; j < LANES; j++)
        for (int k = 0; k < MID; k++) turned[j][k] = last[k][j];
    product(logits[0], LANES, turned[0], 0, 2, back[0], 0, second[0]);
    descend(second[0], MID, logits[0], 1, last[0], bias);
    memcpy(b2, bias, sizeof(float[OUT]));
    for (int k = 0; k < MID; k++) memcpy(w2 + OUT * k, last[k], sizeof(float[OUT]));
    for (int j = 0; j < MID; j++)
        for (int k = 0; k < MID; k++) turned[j][k] = w1[MID * k + j];
    descend(first[0], MID, back[0], 2, w1, b1);
    product(back[0], MID, turned[0], 0, 2, second[0], 0, first[0]);
    descend(all[6], IN, second[0], 2, w0, b0);
}
