/* What a relay would make of an image: a core takes it up, in memory, and says what it loses. */
#ifndef RELAY_INSPECT_TRIAL_H
#define RELAY_INSPECT_TRIAL_H

#include "common/cred.h"
#include "relay/core/core.h"
#include "relay/inspect/image.h"

/* `key`: the relay's; it is needed where jobs are of several relays. The image cannot be looked at
 * any more. Returns 0 or CW_ENOMEM. */
int inspect_trial(struct inspect_image *image, const uint8_t key[CW_KEY_SIZE],
                  struct relay_returned *returned, struct cw_err *err);

#endif
