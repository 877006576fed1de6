/* $title: what it says of itself to programs in C++ that include paddle_inference_api.h.
 * `make paddle` builds $name.so of this file and the program.
 */
#include "$name.h"
#include "paddle/include/exported_model.h"

static const exported_array inputs[] = {
$input_rows};

static const exported_array outputs[] = {
$output_rows};

static const exported_model description = {
    ${NAME}_ALIGNMENT, ${NAME}_ARENA_SIZE, ${name}_init, ${name}_run, ${name}_error,
    "$weights_name", $weights_linked, ${NAME}_WEIGHTS_SIZE, $changes, {$counts}, {inputs, outputs}
};

__attribute__((visibility("default"))) const exported_model *exported_model_1(void)
{
    return &description;
}
