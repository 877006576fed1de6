/* The larger value in each lane; NaN if either is NaN. */
INLINE vector_$T larger_$T(vector_$T a, vector_$T b)
{
    typedef __typeof__(a < b) mask;
    const mask take = (b > a) | (b != b);
    return (vector_$T)(((mask)b & take) | ((mask)a & ~take));
}
INLINE vector_$T where_$T(__typeof__((vector_$T){0} < (vector_$T){0}) here, vector_$T x)
{
    return (vector_$T)(here & (__typeof__(here))x);
}
