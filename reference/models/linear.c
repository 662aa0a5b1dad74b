// A linear layer. See linear.h.
#include "reference/models/linear.h"

void linear_forward(const struct linear *l, const void *x, void *y)
{
    l->kernels->matmul(false, true, l->rows, l->outputs, l->inputs, 1, x, l->w, 0, y);
    if (l->bias != NULL)
        l->kernels->bias_add_forward(l->rows, l->outputs, l->bias, y);
}

void linear_backward(const struct linear *l, const void *x, const void *dy, void *dx, bool add)
{
    if (l->dw != NULL)
        l->kernels->matmul(true, false, l->outputs, l->inputs, l->rows, 1, dy, x, 1, l->dw);
    if (l->dbias != NULL)
        l->kernels->bias_backward(l->rows, l->outputs, dy, l->dbias);
    if (dx != NULL)
        l->kernels->matmul(false, false, l->rows, l->inputs, l->outputs, 1, dy, l->w, add ? 1 : 0, dx);
}
