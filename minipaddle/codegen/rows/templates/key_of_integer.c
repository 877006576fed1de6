static inline U key_T(T x) { return (U)x ^ LOWEST; }
static inline T value_T(U key) { return (T)(key ^ LOWEST); }
