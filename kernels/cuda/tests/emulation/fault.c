// EMULATION, no GPU: what a thread of a kernel touches and must not becomes an error of the device; what the host must not touch ends it with a message.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/tests/emulation/block.h"
#include "kernels/cuda/tests/emulation/fiber.h"
#include "kernels/cuda/tests/emulation/memory.h"

enum { HANDLER_STACK_BYTES = 64 << 10 };
static struct sigaction earlier;

static void describe(const void *address, char *text, size_t size)
{
    if (fiber_overflow(address))
        snprintf(text, size, "more than %d bytes of stack", FIBER_STACK_BYTES);
    else if (!shared_describe(address, text, size) && !memory_describe(address, text, size))
        snprintf(text, size, "address %p: no memory of the device", address);
}

// Leaves the handler by switching stacks, and never returns to it: SA_NODEFER keeps the signal open.
static void fault(int signal, siginfo_t *info, void *context)
{
    char text[512];
    (void)context;
    if (block_running()) {
        describe(info->si_addr, text, sizeof text);
        block_fail(cudaErrorIllegalAddress, "%s", text);
    }
    if (memory_describe(info->si_addr, text, sizeof text)) {
        dprintf(STDERR_FILENO, "EMULATION of a CUDA device: the host touched device memory (%s); it must copy\n", text);
    }
    sigaction(signal, &earlier, NULL); // the instruction faults again, for whoever watched before
}

// At each launch: whoever runs tests takes the signals for itself before each of them.
void fault_watch(void)
{
    static unsigned char memory[HANDLER_STACK_BYTES];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, there;
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, before;
    if (sigaction(SIGSEGV, NULL, &before) != 0 || ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction == fault))
        return;
    earlier = before;
    if (sigaltstack(NULL, &there) == 0 && there.ss_flags & SS_DISABLE)
        sigaltstack(&stack, NULL);
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
}
