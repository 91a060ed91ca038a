/* Threads in the middle of something. */
#ifndef RDEVICE_IMAGE_REVIVE_H
#define RDEVICE_IMAGE_REVIVE_H

/* As clone(2) with these arguments; the new thread calls revive_main(), which does not return. */
long revive_clone(unsigned long flags, void *stack, void *tls, void *argument);
void revive_main(void *argument) __attribute__((noreturn, visibility("hidden")));

/* Goes on where a signal has interrupted the thread. */
void revive_return(void *ucontext) __attribute__((noreturn));

/* Where handlers return to. Programs that unwind stacks know it by its instructions. */
void revive_restorer(void);

#endif
