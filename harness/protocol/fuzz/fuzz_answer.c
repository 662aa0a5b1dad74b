// libFuzzer target: any bytes as a rank's answer.
#include <stdint.h>
#include <stdlib.h>

#include "harness/protocol/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error error = {""};
    struct answer a;
    double value;
    if (!answer_parse((const char *)bytes, size, "fuzz", "c", 1, 2, &a, &error)) {
        if (!error.text[0] || a.count)
            abort(); // every refusal says why and leaves nothing
        return 0;
    }
    if (a.count && a.events[0].kind != EVENT_HELLO)
        abort();
    for (int i = 0; i < a.count; i++)
        event_number(&a.events[i], "loss", &value);
    answer_free(&a);
    return 0;
}
