/* A library that a program loads while it runs: oddities.c. It keeps a number of each thread, and
 * one of the process, both from its constructor on. */
#include <stdlib.h>

int plugin_count(void);

static _Thread_local int in_thread = 1000;
static int *in_process;

static void __attribute__((constructor)) begin(void)
{
    in_process = malloc(sizeof(*in_process));
    if (in_process)
        *in_process = 0;
    in_thread = 0;
}

static void __attribute__((destructor)) end(void)
{
    free(in_process);
}

/* How often it was called; -1: something was lost. */
int plugin_count(void)
{
    in_thread++;
    return in_process && ++*in_process == in_thread ? in_thread : -1;
}
