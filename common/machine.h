/* Which machine this is, by what no two have at a time: names of hosts are given twice, and
 * changed. */
#ifndef CW_MACHINE_H
#define CW_MACHINE_H

#include <stdbool.h>

#define CW_MACHINE_MAX 160 /* bytes of its text, with the end */

/* The boot id of its kernel (random(4)), and the namespaces of files and of the network that this
 * process is in: printable, without an end of a line. "": the system does not say. */
void cw_machine_read(char text[CW_MACHINE_MAX]);

/* Whether processes at both reach each other's sockets, in files and over loopback addresses. Of
 * one that did not say, false. */
bool cw_machine_is_same(const char *a, const char *b);
/* Whether one kernel runs both, maybe in different namespaces. */
bool cw_machine_is_one_kernel(const char *a, const char *b);

/* Whether it is limited what a process may map, or how large its files may be (setrlimit(2)). */
bool cw_machine_limits_memory(void);

#endif
