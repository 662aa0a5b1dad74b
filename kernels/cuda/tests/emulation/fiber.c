// EMULATION, no GPU: fibers. See fiber.h. Compiled without the address sanitizer, which would have to be told of each switch.
#include "kernels/cuda/tests/emulation/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined __x86_64__ && !defined EMULATION_UCONTEXT
typedef void *place; // a stack pointer, above it the saved registers and where to go on
#else
#include <ucontext.h>
typedef ucontext_t place;
#endif

struct fiber {
    place at;
    unsigned char *stack; // its guard page
    struct fiber *next;   // of those that are free
    bool taken, fresh;
};

static struct {
    struct fiber fibers[FIBER_MAX];
    struct fiber *free;
    int made;
    struct fiber *current;
    place outside;
    void (*body)(void);
    size_t page;
    unsigned char *stacks;
} all;

static size_t stride(void) { return FIBER_STACK_BYTES + all.page; }
// Stacks begin at different places of a page, or they would all fight for the same few lines of the cache.
static size_t spread(const struct fiber *f) { return (size_t)((f - all.fibers) % 16) * 256; }

// ---- the switch ----

static void forever(void)
{
    for (;;) {
        all.body();
        all.current->taken = false;
        all.current->next = all.free;
        all.free = all.current;
        fiber_wait();
    }
}

#if defined __x86_64__ && !defined EMULATION_UCONTEXT
void emulation_switch(void **save, void *load);
__asm__(".text\n"
        ".type emulation_switch, @function\n"
        ".hidden emulation_switch\n"
        "emulation_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size emulation_switch, . - emulation_switch\n");

static void start(struct fiber *f)
{
    void **top = (void **)(void *)(f->stack + stride() - spread(f));
    *--top = NULL; // where forever() would return to; and so its stack is aligned as after a call
    *--top = (void *)(uintptr_t)forever;
    for (int saved = 0; saved < 6; saved++)
        *--top = NULL;
    f->at = top;
}
static void enter(struct fiber *f) { emulation_switch(&all.outside, f->at); }
static void leave(struct fiber *f) { emulation_switch(&f->at, all.outside); }
static void pass(struct fiber *from, struct fiber *to) { emulation_switch(&from->at, to->at); }
#else
static void start(struct fiber *f)
{
    getcontext(&f->at);
    f->at.uc_stack.ss_sp = f->stack + all.page;
    f->at.uc_stack.ss_size = FIBER_STACK_BYTES - spread(f);
    f->at.uc_link = NULL;
    makecontext(&f->at, forever, 0);
}
static void enter(struct fiber *f) { swapcontext(&all.outside, &f->at); }
static void leave(struct fiber *f) { swapcontext(&f->at, &all.outside); }
static void pass(struct fiber *from, struct fiber *to) { swapcontext(&from->at, &to->at); }
#endif

// ---- taking and running ----

static bool reserve(void)
{
    all.page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, FIBER_MAX * stride(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    all.stacks = memory == MAP_FAILED ? NULL : memory;
    return all.stacks != NULL;
}

static struct fiber *make(void)
{
    if (all.made == FIBER_MAX || (all.stacks == NULL && !reserve()))
        return NULL;
    struct fiber *f = &all.fibers[all.made];
    f->stack = all.stacks + (size_t)all.made * stride();
    if (mprotect(f->stack + all.page, FIBER_STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    all.made++;
    f->fresh = true;
    return f;
}

struct fiber *fiber_take(void (*body)(void))
{
    all.body = body;
    struct fiber *f = all.free ? all.free : make();
    if (f == NULL)
        return NULL;
    all.free = f == all.free ? f->next : all.free;
    if (f->fresh)
        start(f);
    f->fresh = false;
    f->taken = true;
    return f;
}

void fiber_run(struct fiber *f)
{
    all.current = f;
    enter(f);
    all.current = NULL;
}

void fiber_pass(struct fiber *to)
{
    struct fiber *from = all.current;
    all.current = to;
    pass(from, to);
}

void fiber_wait(void) { leave(all.current); }
struct fiber *fiber_current(void) { return all.current; }

void fiber_reset(void)
{
    for (int i = 0; i < all.made; i++) {
        struct fiber *f = &all.fibers[i];
        if (!f->taken)
            continue;
        *f = (struct fiber){.stack = f->stack, .next = all.free, .fresh = true};
        all.free = f;
    }
}

bool fiber_overflow(const void *address)
{
    uintptr_t at = (uintptr_t)address, begin = (uintptr_t)all.stacks;
    return all.stacks != NULL && at >= begin && at < begin + FIBER_MAX * stride() && (at - begin) % stride() < all.page;
}
