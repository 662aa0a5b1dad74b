// EMULATION, no GPU: streams, events, and the order in which queued work runs. Tests only.
//
// What: whatever a stream is given is queued, and nothing runs before the host asks (a synchronising call, a query, a free). Then work is taken from
//       the streams in an order that respects each stream, events and the default stream, and is as unlike the order of queueing as chosen.
// How:  FSDPMARK_EMULATION_ORDER names a policy, among the streams whose next work may run:
//         random              any, by FSDPMARK_EMULATION_SEED (a number, 1 where nothing is said): the default
//         latest-first        the one whose next work was queued last
//         first-stream-last   the stream that was made first runs only where no other can
//         queued              as queued: hides a missing event, to compare with
// Why:  on a GPU a missing event shows rarely; here it shows as a wrong number, the same one at each run.
#ifndef EMULATION_QUEUE_H
#define EMULATION_QUEUE_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

enum emulation_step { EMULATION_AGAIN, EMULATION_DONE, EMULATION_FAILED };

// Work of another library (a stand-in for NCCL) in a stream: when all earlier work of the stream has ended, step(context) is called
// until it says other than AGAIN; between calls other streams run, so it must not block. Device memory can be touched within step() only, by this
// process only: a library that reads it from another process or thread must be given a copy. FAILED comes after emulation_fail().
// what: for messages; lives as long as the program. context: the caller's.
cudaError_t emulation_enqueue(cudaStream_t stream, const char *what, enum emulation_step (*step)(void *context), void *context);

// Keeps an error as the device's own: every later call gives it, until cudaDeviceReset(). The first one stays.
void emulation_fail(cudaError_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
// That error, or cudaSuccess.
cudaError_t emulation_error(void);
// What cudaGetLastError() gives next; returns it, so that a call can end in it.
cudaError_t emulation_result(cudaError_t code);

// The number that an environment variable has; what else it has is an error of the device.
uint64_t emulation_number(const char *variable, uint64_t unless);

// As emulation_enqueue; the context is freed once the work has ended.
cudaError_t queue_give(cudaStream_t stream, const char *what, enum emulation_step (*step)(void *context), void *context);
// Runs queued work until the stream is empty; all streams for `queue_all`.
void queue_finish(cudaStream_t stream);
void queue_finish_all(void);
// Forgets all streams and what is queued in them.
void queue_reset(void);
// A number in [0, below) of the seed's sequence.
uint32_t queue_random(uint32_t below);

#ifdef __cplusplus
}
#endif
#endif
