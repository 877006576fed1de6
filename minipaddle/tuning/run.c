__attribute__((visibility("default"))) void PREFIX_run_$k(
    void *const *in, void *const *out, char *work, long times)
{
    for (; times > 0; times--) $call;
}
