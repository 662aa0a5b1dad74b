// A matrix product beside the communication: small integers, so that its result is exact too, and checked.
//
// Slices of 128 x 128 x 128 in float32 by the BLAS, each one call; what runs is a number of slices that takes about as long as the collective.
#include <cblas.h>
#include <string.h>

#include "harness/net/worker/worker.h"

enum { SIDE = 128, SLOTS = 8 }; // slots: so that operands do not stay in the first cache

static struct { float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE]; bool made; } slots[SLOTS];
static float expected[SLOTS][SIDE * SIDE];

static void slice(int i)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, slots[i].a, SIDE, slots[i].b, SIDE, 0, slots[i].c, SIDE);
    slots[i].made = true;
}

void product_open(void)
{
    for (int s = 0; s < SLOTS; s++) {
        for (int i = 0; i < SIDE * SIDE; i++) {
            slots[s].a[i] = (float)((i * 7 + s) % 11 - 5);
            slots[s].b[i] = (float)((i * 5 + 3 * s) % 13 - 6);
        }
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++) {
                float sum = 0;
                for (int k = 0; k < SIDE; k++)
                    sum += slots[s].a[i * SIDE + k] * slots[s].b[k * SIDE + j];
                expected[s][i * SIDE + j] = sum;
            }
    }
}

void product_run(int slices)
{
    for (int i = 0; i < slices; i++)
        slice(i % SLOTS);
}

void product_run_tested(int slices, int requests, MPI_Request *request, double *ended)
{
    int done = 0;
    for (int i = 0; i < slices; i++) {
        slice(i % SLOTS);
        if (!done)
            MPI_Testall(requests, request, &done, MPI_STATUSES_IGNORE);
        if (done && *ended == 0)
            *ended = MPI_Wtime();
    }
}

int64_t product_errors(void)
{
    int64_t wrong = 0;
    for (int s = 0; s < SLOTS; s++) {
        for (int i = 0; slots[s].made && i < SIDE * SIDE; i++)
            wrong += slots[s].c[i] != expected[s][i];
        slots[s].made = false;
        memset(slots[s].c, 0, sizeof slots[s].c);
    }
    return wrong;
}
