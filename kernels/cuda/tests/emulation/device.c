// EMULATION, no GPU: how many devices there are, what they are like, and how calls fail.
//
// What: FSDPMARK_EMULATION_DEVICES devices, 1 where nothing is said, 0: no driver is here. They share one memory and one order of work.
//       An error that emulated work makes is the device's: every later call gives it, and its text tells what happened.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/tests/emulation/block.h"
#include "kernels/cuda/tests/emulation/memory.h"
#include "kernels/cuda/tests/emulation/queue.h"

enum { PROCESSORS = 4, SHARED_BYTES = 48 << 10, SHARED_OPT_IN_BYTES = 227 << 10, FUNCTIONS_MAX = 64, DEVICES_MAX = 64 };

static struct {
    cudaError_t sticky, last;
    char text[1024];
    int device;
    struct { const void *function; size_t bytes; } shared[FUNCTIONS_MAX];
    int shared_count;
} d;

static const struct { cudaError_t code; const char *name, *text; } errors[] = {
#define ERROR(code, text) {code, #code, text}
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorUnknown, "unknown error"),
};

// ---- errors ----

void emulation_fail(cudaError_t code, const char *format, ...)
{
    if (d.sticky != cudaSuccess)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(d.text, sizeof d.text, format, list);
    va_end(list);
    d.sticky = code;
}
cudaError_t emulation_error(void) { return d.sticky; }
cudaError_t emulation_result(cudaError_t code)
{
    if (code != cudaSuccess && code != cudaErrorNotReady)
        d.last = code;
    return code;
}

cudaError_t cudaPeekAtLastError(void) { return d.sticky != cudaSuccess ? d.sticky : d.last; }
cudaError_t cudaGetLastError(void)
{
    cudaError_t code = cudaPeekAtLastError();
    d.last = cudaSuccess;
    return code;
}
const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error)
            return errors[i].name;
    return "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t error)
{
    if (error == d.sticky && error != cudaSuccess)
        return d.text;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error)
            return errors[i].text;
    return "unrecognized error code";
}

// ---- devices ----

uint64_t emulation_number(const char *variable, uint64_t unless)
{
    const char *text = getenv(variable);
    char *end = NULL;
    uint64_t number = text ? strtoull(text, &end, 10) : unless;
    if (text == NULL || (text[0] >= '0' && text[0] <= '9' && *end == 0))
        return number;
    emulation_fail(cudaErrorInvalidValue, "%s: found '%s', expected a number", variable, text);
    return unless;
}

static int count(void)
{
    uint64_t devices = emulation_number("FSDPMARK_EMULATION_DEVICES", 1);
    return devices < DEVICES_MAX ? (int)devices : DEVICES_MAX;
}

cudaError_t cudaDriverGetVersion(int *version) { return *version = count() > 0 ? CUDART_VERSION : 0, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *devices)
{
    *devices = count();
    return emulation_result(*devices > 0 ? d.sticky : cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= count())
        return emulation_result(count() > 0 ? cudaErrorInvalidDevice : cudaErrorNoDevice);
    d.device = device;
    return emulation_result(d.sticky);
}
cudaError_t cudaGetDevice(int *device) { return *device = d.device, emulation_result(count() > 0 ? d.sticky : cudaErrorNoDevice); }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    size_t available;
    if (device < 0 || device >= count())
        return emulation_result(cudaErrorInvalidDevice);
    *properties = (struct cudaDeviceProp){.name = "EMULATION", .sharedMemPerBlock = SHARED_BYTES, .sharedMemPerBlockOptin = SHARED_OPT_IN_BYTES, .warpSize = 32,
                                          .maxThreadsPerBlock = 1024, .maxThreadsPerMultiProcessor = 2048, .multiProcessorCount = PROCESSORS, .major = 8, .l2CacheSize = 4 << 20};
    cudaMemGetInfo(&available, &properties->totalGlobalMem);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    struct cudaDeviceProp p;
    cudaError_t code = cudaGetDeviceProperties(&p, device);
    if (code != cudaSuccess)
        return code;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    default: return emulation_result(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, cudaSuccess; }

cudaError_t cudaDeviceReset(void)
{
    queue_reset();
    memory_reset();
    memset(&d, 0, sizeof d);
    return cudaSuccess;
}

// ---- functions ----

size_t device_shared_limit(const void *function)
{
    for (int i = 0; i < d.shared_count; i++)
        if (d.shared[i].function == function)
            return d.shared[i].bytes;
    return SHARED_BYTES;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    int i = 0;
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return emulation_result(d.sticky);
    while (i < d.shared_count && d.shared[i].function != function)
        i++;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > SHARED_OPT_IN_BYTES || i == FUNCTIONS_MAX)
        return emulation_result(cudaErrorInvalidValue);
    d.shared[i].function = function;
    d.shared[i].bytes = value > SHARED_BYTES ? (size_t)value : SHARED_BYTES;
    d.shared_count = i == d.shared_count ? i + 1 : d.shared_count;
    return emulation_result(d.sticky);
}
