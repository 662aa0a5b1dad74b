// The choice of a program without CUDA. See choose.h.
#include "reference/backends/choose.h"

#include <stdio.h>

static const char why_not[] = "this program was built without CUDA: fsdp-reference-cuda is the one that has it (make CUDA=1)";

enum chosen choose_backend(int ranks, const struct backend **out, struct error *error)
{
    int device, collectives;
    if (!choose_asked(&device, &collectives, error))
        return CHOSEN_BAD;
    if (device == DEVICE_CUDA) {
        error_set(error, "FSDPMARK_DEVICE=cuda: %s", why_not);
        return CHOSEN_NOT_HERE;
    }
    *out = choose_host(ranks);
    return CHOSEN;
}

bool choose_devices(char *text, size_t size)
{
    snprintf(text, size, "%s", why_not);
    return false;
}
