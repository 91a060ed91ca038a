/* Read before anything else: blocks of channel memory so small that a few pieces fill them. */
#ifndef INTERLEAVE_SIZES_H
#define INTERLEAVE_SIZES_H

#include "common/channel.h"

#undef CW_CHANNEL_BLOCK_MAX
#undef CW_CHANNEL_BLOCK_MIN
#undef CW_CHANNEL_AHEAD
#define CW_CHANNEL_BLOCK_MAX 512u
#define CW_CHANNEL_BLOCK_MIN 512u
#define CW_CHANNEL_AHEAD 2u

#endif
