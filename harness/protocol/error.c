// The error text: one line, the first message wins. See error.h.
//
// Control characters are replaced, because messages quote what files and workers wrote and are
// printed on terminals, one line each.
#include "harness/protocol/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

bool error_set(struct error *error, const char *format, ...)
{
    if (!error || error->text[0])
        return false;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof error->text)
        memcpy(error->text + sizeof error->text - 4, "...", 4);
    one_line(error->text);
    return false;
}
