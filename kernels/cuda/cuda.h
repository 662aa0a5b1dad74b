// The CUDA device of this process, for C: its kernels, its streams, and how its calls fail.
//
// What: device_cuda is a struct device (kernels/device.h) over one GPU. Everything that it is asked for runs on one stream, CUDA_COMPUTE, in order; the
//       backends (reference/backends/cuda_*.c) move data on the streams CUDA_GATHER and CUDA_REDUCE and order them by events.
// How:  errors are sticky: the first one, with call or kernel, shape and stream, is kept until device_cuda.failed() hands it over. A wait of the host
//       (download, finish, cuda_wait) polls, asks `watch` whether it should go on, and gives up at the deadline; so a collective that never ends
//       is an error and no hang.
// Why:  one place knows the runtime. The same files are compiled by nvcc for a GPU, and by the host's compiler over a stand-in
//       for the runtime (kernels/cuda/tests/) where there is none.
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/device.h"

enum cuda_lane { CUDA_COMPUTE, CUDA_GATHER, CUDA_REDUCE, CUDA_LANES };

// True where there is a driver and a device; else why not, in one line.
bool cuda_available(struct error *why);
// Asked while the host waits: false ends the wait with its error. late: the deadline has passed and the wait ends in any case; what would keep the device busy
// for ever is to be stopped. May be NULL.
typedef bool cuda_watch(bool late, struct error *error);
// Takes device `local_rank` modulo the number of devices, makes the streams.
bool cuda_open(int local_rank, double deadline_s, cuda_watch *watch, struct error *error);
void cuda_close(void);
// "NVIDIA H200, 8.9, 139 GiB, driver 13.0", and "EMULATION of a CUDA device, no GPU" over the stand-in.
const char *cuda_device_text(void);
// True over the stand-in: nothing measured there is a GPU's.
bool cuda_is_emulated(void);

extern const struct device device_cuda;
const struct kernel_set *kernels_cuda(enum dtype storage); // F32, F64, BF16, F16

cudaStream_t cuda_stream(enum cuda_lane lane);
// From now on `later` runs after all that `earlier` has been given so far.
void cuda_order(enum cuda_lane earlier, enum cuda_lane later);
// Keeps a failed call with its text; returns whether it succeeded. CUDA_OK(call) names the call and its place.
bool cuda_check(cudaError_t code, const char *call, const char *file, int line);
#define CUDA_OK(call) cuda_check((call), #call, __FILE__, __LINE__)
// The host waits until the event has happened, at most for the deadline. False: kept as a failure.
bool cuda_wait(cudaEvent_t event, const char *what);
// The same, for all that the lane has been given so far.
bool cuda_wait_lane(enum cuda_lane lane, const char *what);
// Keeps a failure of another library, with the same rules.
void cuda_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// struct device's finish(), of every lane, and failed(): what is kept is handed over once.
bool cuda_finish(struct error *error);
bool cuda_failed(struct error *error);
// Host memory that copies to and from the device can run behind.
void *cuda_host_allocate(size_t bytes);
void cuda_host_release(void *memory);

#ifdef __cplusplus
}
#endif
#endif
