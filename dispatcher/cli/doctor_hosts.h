/* `causeway doctor --hostfile`: looks at all hosts of a job. */
#ifndef DISPATCHER_DOCTOR_HOSTS_H
#define DISPATCHER_DOCTOR_HOSTS_H

#include "dispatcher/options/host_options.h"

#define DOCTOR_HOSTS_MAX 32u /* hosts that are looked at at a time */

/* Prints what it finds. `program`: that is to run on all of them; NULL: none. Returns the exit
 * code. */
int doctor_hosts(const struct host_options *options, const char *program);

#endif
