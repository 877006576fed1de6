/* what is made of weights before the first run, and again when they have changed */
__attribute__((visibility("default")))
void PREFIX_prepack(void *const *all_given, void *const *all_made)
{
LINES
}
