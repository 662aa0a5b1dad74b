// See interrupt.h.
#include "harness/launch/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t arrived;

static void note(int number)
{
    arrived = number;
    signal(number, SIG_DFL);
}

void interrupt_install(void)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        sigaction(numbers[i], &action, 0);
    }
    signal(SIGPIPE, SIG_IGN);
}

int interrupt_signal(void)
{
    return arrived;
}
