/* The launcher of this machine: a watcher for each process of a rank. */
#ifndef DISPATCHER_LOCAL_H
#define DISPATCHER_LOCAL_H

#include "dispatcher/launch/launcher.h"

extern const struct launcher_ops local_launcher;

#endif
