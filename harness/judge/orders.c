// Enumerates sums over all binary trees of rounded additions, by subsets of the terms. See orders.h.
//
// Source: Higham, section 4.1: every order of summation is a binary tree.
#include "harness/judge/orders.h"

#include <stdlib.h>

enum { MAX_VALUES = 256 };
struct values { int count; double items[MAX_VALUES]; };

static double rounded(double x, enum dtype type)
{
    uint64_t cell = 0;
    dtype_set(type, &cell, 0, x);
    return dtype_get(type, &cell, 0);
}

static void insert(struct values *v, double x)
{
    for (int i = 0; i < v->count; i++)
        if (v->items[i] == x)
            return;
    if (v->count < MAX_VALUES)
        v->items[v->count++] = x;
}

// Sums that some binary tree of rounded additions over the n terms reaches.
static void reachable(const double *terms, int n, enum dtype type, struct values *out)
{
    struct values *of = calloc(1u << n, sizeof *of);
    for (unsigned mask = 1; mask < 1u << n; mask++) {
        for (int r = 0; r < n; r++)
            if (mask == 1u << r)
                insert(&of[mask], rounded(terms[r], type));
        for (unsigned left = (mask - 1) & mask; left > 0; left = (left - 1) & mask)
            for (int a = 0; a < of[left].count; a++)
                for (int b = 0; b < of[mask ^ left].count; b++)
                    insert(&of[mask], rounded(of[left].items[a] + of[mask ^ left].items[b], type));
    }
    *out = of[(1u << n) - 1];
    free(of);
}

bool orders_reach(double x, const double *terms, int n, enum dtype type, enum dtype stored)
{
    struct values after, before;
    double scaled[ORDERS_MAX_RANKS], sum = 0;
    for (int r = 0; r < n; r++) {
        scaled[r] = rounded(terms[r] / n, type);
        sum += terms[r];
    }
    reachable(terms, n, type, &after);
    reachable(scaled, n, type, &before);
    for (int i = 0; i < after.count; i++)
        if (x == rounded(rounded(after.items[i] / n, type), stored) || x == rounded(after.items[i] / n, stored))
            return true;
    for (int i = 0; i < before.count; i++)
        if (x == rounded(before.items[i], stored))
            return true;
    return x == rounded(rounded(sum / n, type), stored);
}
