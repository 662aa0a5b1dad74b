// EMULATION of NCCL: the streams go on while the host waits for MPI, as a GPU's do.
//
// How:  MPI's profiling interface lets this file take the place of MPI_Test: while an operation of NCCL is in a stream, each call first lets the streams run.
// Why:  a rank may wait in MPI for another one that waits for a collective of its GPU, and the first one's part of that collective is still in its
//       stream. A GPU would go on by itself; emulated work runs only when the host asks for something.
#include "kernels/cuda/tests/nccl/work.h"

static int64_t pending;
static cudaStream_t latest;

void nccl_progress_begin(cudaStream_t stream)
{
    pending++;
    latest = stream;
}

void nccl_progress_end(void) { pending--; }

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    if (pending > 0)
        (void)cudaStreamQuery(latest);
    return PMPI_Test(request, done, status);
}
