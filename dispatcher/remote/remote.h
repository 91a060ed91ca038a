/* The launcher of ranks on the hosts of a job, by their agents (agents.h): whoever has a process
 * from it has the same descriptors as of one that is local. */
#ifndef DISPATCHER_REMOTE_H
#define DISPATCHER_REMOTE_H

#include "dispatcher/launch/launcher.h"

extern const struct launcher_ops remote_launcher;

#endif
