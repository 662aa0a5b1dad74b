// Writing a struct as JSON by its table of fields. See fields.h.
#include <math.h>

#include "harness/protocol/fields.h"

#define AT(type, base, offset) ((const type *)((const char *)(base) + (offset)))

json_t *json_number_or_name(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static json_t *write_flags(const struct field *f, unsigned flags)
{
    json_t *list = json_array();
    for (int i = 0; f->names[i]; i++)
        if (flags >> i & 1)
            json_array_append_new(list, json_string(f->names[i]));
    return list;
}

static json_t *write_shape(const struct field *f, const void *base)
{
    json_t *list = json_array();
    for (int i = 0; i < *AT(int, base, f->count_offset); i++)
        json_array_append_new(list, json_integer(AT(int64_t, base, f->offset)[i]));
    return list;
}

static json_t *write_tagged(const struct field *f, const void *base, const void *root)
{
    int kind = *AT(int, base, f->offset);
    json_t *object = json_pack("{s:s}", f->tag, f->names[kind]);
    if (f->object[kind]) {
        json_t *rest = fields_write(f->object[kind], AT(char, base, f->offset), root);
        json_object_update(object, rest);
        json_decref(rest);
    }
    return object;
}

static json_t *write_list(const struct field *f, const void *base, const void *root)
{
    json_t *list = json_array();
    int64_t count = f->wide_count ? *AT(int64_t, base, f->count_offset) : *AT(int, base, f->count_offset);
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, field_write(f->element, *AT(char *, base, f->offset) + (size_t)i * f->span, root));
    return list;
}

json_t *field_write(const struct field *f, const void *base, const void *root)
{
    switch (f->kind) {
    case FIELD_FIXED: return json_integer((json_int_t)f->least);
    case FIELD_BOOL: return json_boolean(*AT(bool, base, f->offset));
    case FIELD_INT: return json_integer(*AT(int, base, f->offset));
    case FIELD_INT64: return json_integer(*AT(int64_t, base, f->offset));
    case FIELD_DOUBLE: return json_number_or_name(*AT(double, base, f->offset));
    case FIELD_STRING: return json_string(*AT(char *, base, f->offset) ? *AT(char *, base, f->offset) : "");
    case FIELD_ENUM: return json_string(f->names[*AT(int, base, f->offset)]);
    case FIELD_FLAGS: return write_flags(f, *AT(unsigned, base, f->offset));
    case FIELD_PAIR: return json_pack("[i,i]", AT(int, base, f->offset)[0], AT(int, base, f->offset)[1]);
    case FIELD_SHAPE: return write_shape(f, base);
    case FIELD_OBJECT: return fields_write(f->object[0], AT(char, base, f->offset), root);
    case FIELD_TAGGED: return write_tagged(f, base, root);
    case FIELD_LIST: return write_list(f, base, root);
    case FIELD_CUSTOM: return f->write(f, base, root);
    }
    return NULL;
}

json_t *fields_write(const struct field *table, const void *base, const void *root)
{
    json_t *object = json_object();
    for (; table->name; table++)
        json_object_set_new(object, table->name, field_write(table, base, root));
    return object;
}
