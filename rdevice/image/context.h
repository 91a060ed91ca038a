/* The registers of a thread. */
#ifndef RDEVICE_IMAGE_CONTEXT_H
#define RDEVICE_IMAGE_CONTEXT_H

#include "common/image.h"

/* Saves those that a function call keeps, as setjmp() does. Returns 0; and 1 once more, in the
 * restored process. */
int context_save(struct cw_image_context *context) __attribute__((returns_twice));

/* As clone(2) with these arguments; the new thread calls main(argument), which does not return.
 * `stack`: its end, a multiple of 16. */
long context_clone(unsigned long flags, void *stack, void *tls, void (*main)(void *),
                   void *argument);

/* Goes on where a signal has interrupted the thread. */
void context_return(void *ucontext) __attribute__((noreturn));

/* Where handlers return to. Programs that unwind stacks know it by its instructions. */
void context_restorer(void);

#endif
