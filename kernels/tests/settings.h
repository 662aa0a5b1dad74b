/* Settings that every kernel is tried under: sizes 0 and 1, odd ones, and some beyond one tile or vector. */
#ifndef KERNELS_TESTS_SETTINGS_H
#define KERNELS_TESTS_SETTINGS_H

#include "kernels/rows.h"

#define SCALARS                                                                                          \
    .alpha = 0.75, .beta = 0.5, .eps = 1e-5, .theta = 10000, .scale = 0.35, .lr = 0.01, .momentum = 0.9, \
    .dampening = 0.1, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95

static const struct kernel_setting settings[] = {
    {.M = 0, .N = 0, .K = 0, .rows = 0, .C = 0, .V = 0, .B = 0, .T = 0, .H = 1, .Hq = 1, .Hkv = 1, .D = 0, .n = 0,
     .step = 1, SCALARS},
    {.M = 3, .N = 2, .K = 0, .rows = 0, .C = 5, .V = 4, .B = 2, .T = 0, .H = 2, .Hq = 2, .Hkv = 1, .D = 4, .n = 0,
     .step = 1, SCALARS},
    {.M = 0, .N = 2, .K = 3, .rows = 3, .C = 0, .V = 4, .B = 0, .T = 3, .H = 2, .Hq = 2, .Hkv = 2, .D = 2, .n = 1,
     .step = 1, SCALARS},
    {.M = 1, .N = 1, .K = 1, .rows = 1, .C = 1, .V = 1, .B = 1, .T = 1, .H = 1, .Hq = 1, .Hkv = 1, .D = 2, .n = 1,
     .step = 1, SCALARS},
    {.M = 3, .N = 5, .K = 7, .rows = 5, .C = 7, .V = 9, .B = 2, .T = 5, .H = 3, .Hq = 6, .Hkv = 3, .D = 6, .n = 7,
     .step = 2, .trans_a = true, .nesterov = true, SCALARS},
    {.M = 17, .N = 9, .K = 13, .rows = 13, .C = 19, .V = 11, .B = 1, .T = 67, .H = 1, .Hq = 4, .Hkv = 1, .D = 10,
     .n = 1003, .step = 3, .trans_b = true, SCALARS},
    {.M = 33, .N = 31, .K = 65, .rows = 40, .C = 64, .V = 601, .B = 2, .T = 130, .H = 2, .Hq = 2, .Hkv = 2, .D = 16,
     .n = 4099, .step = 1, .trans_a = true, .trans_b = true, .nesterov = true, SCALARS},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

#endif
