#include "relay/place.h"
#include "common/keyfile.h"
#include "common/parse.h"
#include "common/secret.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int relay_place_add(struct relay_place *place, const char *address, struct cw_err *err)
{
    if (place->count == RELAY_PLACE_LISTENERS_MAX)
        return cw_err_set(err, CW_EINVAL, "--listen %s: at most %d addresses", address,
                          RELAY_PLACE_LISTENERS_MAX);
    if (cw_address_parse(&place->listeners[place->count].address, address, err) < 0)
        return cw_err_wrap(err, "--listen");
    place->count++;
    return CW_OK;
}

int relay_place_keep(struct relay_place *place, const char *descriptor, struct cw_err *err)
{
    if (place->kept == place->count)
        return cw_err_set(err, CW_EINVAL, "--listen-fd %s: it comes after its --listen",
                          descriptor);
    return cw_parse_descriptor(descriptor, &place->listeners[place->kept++].fd, err);
}

static void unlisten(const struct relay_place *place, int count)
{
    for (int i = 0; i < count; i++)
        cw_unlisten(place->listeners[i].fd, &place->listeners[i].address);
}

static int listen_all(struct relay_place *place, struct cw_err *err)
{
    for (int i = 0; i < place->count; i++) {
        struct relay_listener *listener = &place->listeners[i];

        listener->fd = cw_listen(&listener->address, err);
        if (listener->fd < 0) {
            unlisten(place, i);
            return err->code;
        }
    }
    return CW_OK;
}

static int find_key(struct relay_place *place, struct cw_err *err)
{
    bool made;

    if (place->key_fd >= 0)
        return cw_key_read_fd(place->key_fd, place->key, err);
    if (place->key_file)
        return cw_key_load_or_make(place->key_file, place->key, &made, err);
    for (int i = 0; i < place->count; i++) {
        const char *address = place->listeners[i].address.text;

        if (strncmp(address, "unix:", 5) == 0) {
            snprintf(place->beside, sizeof(place->beside), "%s.key", address + 5);
            if (cw_key_load_or_make(place->beside, place->key, &made, err) < 0)
                place->beside[0] = '\0';
            return err->code;
        }
    }
    return cw_err_set(err, CW_EINVAL, "a relay that listens on tcp alone needs --key-file FILE");
}

int relay_place_open(struct relay_place *place, struct cw_err *err)
{
    place->key = cw_secret_alloc(CW_KEY_SIZE);
    if (!place->key)
        return cw_err_set(err, CW_ENOMEM, "no memory for a relay");
    if (place->kept || listen_all(place, err) == CW_OK) {
        if (find_key(place, err) == CW_OK)
            return CW_OK;
        if (!place->kept)
            unlisten(place, place->count);
    }
    cw_secret_free(place->key, CW_KEY_SIZE);
    return err->code;
}

void relay_place_close(struct relay_place *place)
{
    cw_secret_free(place->key, CW_KEY_SIZE);
    if (place->kept)
        return;
    if (place->beside[0])
        unlink(place->beside);
    unlisten(place, place->count);
}
