/* Threads in the middle of something. */
#ifndef RDEVICE_IMAGE_REVIVE_H
#define RDEVICE_IMAGE_REVIVE_H

/* As clone(2) with these arguments; the new thread calls main(argument), which does not return.
 * `stack`: its end, a multiple of 16. */
long revive_clone(unsigned long flags, void *stack, void *tls, void (*main)(void *),
                  void *argument);

/* Goes on where a signal has interrupted the thread. */
void revive_return(void *ucontext) __attribute__((noreturn));

/* Where handlers return to. Programs that unwind stacks know it by its instructions. */
void revive_restorer(void);

#endif
