static $T ahead_$k[$elements] __attribute__((aligned(64)));

__attribute__((visibility("default"))) void PREFIX_ahead_$k(void *const *in)
{
    const $T *given = $given;
    $T *made = ahead_$k;
    $call
}

