/* The channel memory of the ranks of this host, as who started the relay gave it: descriptors that
 * are read, and never mapped, for a rank can make the file behind the memory shorter. */
#ifndef RELAY_CHANNEL_FILE_H
#define RELAY_CHANNEL_FILE_H

#include "relay/core/requests.h"

struct channel_file {
    int memory; /* -1: there is none */
    int file;   /* behind it; -1: none */
};

/* Reads what these have, which outlives the core; all zero where there is no memory. */
struct relay_channel channel_file_source(struct channel_file *files);

#endif
