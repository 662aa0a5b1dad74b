// libFuzzer target: any bytes as a safetensors file. Every byte of every tensor that was accepted is read.
#include <stdint.h>
#include <stdlib.h>

#include "harness/protocol/tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error error = {""};
    struct tensors set;
    volatile double sum = 0;
    if (!tensors_parse(bytes, size, "fuzz", &set, &error)) {
        if (!error.text[0] || set.count)
            abort(); // every refusal says why and leaves nothing
        return 0;
    }
    for (int i = 0; i < set.count; i++)
        for (int64_t k = 0; k < set.items[i].count; k++)
            sum += dtype_get(set.items[i].dtype, set.items[i].data, k);
    tensors_free(&set);
    return 0;
}
