// Types: which is wider.
#include "reference/engine/engine.h"

static int width(enum dtype type) { return type == DTYPE_F64 ? 2 : type == DTYPE_F32 ? 1 : 0; }

enum dtype precision_wider(enum dtype a, enum dtype b)
{
    if (a == b || width(a) > width(b))
        return a;
    return width(b) > width(a) ? b : DTYPE_F32; // bf16 and f16: neither holds the other
}
