#include "dispatcher/doctor/relay_check.h"
#include "common/hello.h"
#include "common/transport.h"
#include "dispatcher/doctor/causes.h"
#include "tunnels/ssh_address.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

#define RELAY_ANSWER_MS 5000 /* between two answers of a relay */

static int end_job(struct cw_wire *wire, struct cw_session *session, struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER];

    cw_frame_begin(session, frame, CW_FRAME_JOB_END, 0);
    return cw_write_all(wire, frame, sizeof(frame), RELAY_ANSWER_MS, err);
}

static int open_job(int fd, const uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = 1};
    struct cw_wire wire = {.fd = fd};
    struct cw_session session = {0};
    struct cw_welcome welcome;
    uint8_t job_key[CW_KEY_SIZE];

    randombytes_buf(hello.job, sizeof(hello.job));
    cw_cred_job_key(job_key, key, hello.job);
    if (cw_hello_open(&wire, &session, &hello, job_key, RELAY_ANSWER_MS, &welcome, err) < 0)
        return err->code;
    return end_job(&wire, &session, err);
}

static bool is_off(const char *address, const char *said)
{
    struct ssh_address ssh;
    struct cw_err err;

    if (!ssh_address_inner(address))
        return strstr(said, "Connection refused");
    return ssh_address_parse(&ssh, address, &err) == CW_OK &&
           causes_nobody_listens(said, ssh.host, ssh.port);
}

enum relay_found relay_check(const char *address, uint32_t time_ms, const uint8_t *key,
                             struct cw_err *err)
{
    struct cw_address at;
    enum relay_found found = RELAY_LISTENS;
    int fd;

    if (cw_address_parse(&at, address, err) < 0)
        return RELAY_NO_WAY;
    fd = cw_connect_within(&at, time_ms, err);
    if (fd < 0)
        return is_off(address, err->text) ? RELAY_OFF : RELAY_NO_WAY;
    if (key)
        found = open_job(fd, key, err) == CW_OK ? RELAY_TAKES : RELAY_OTHER;
    close(fd);
    return found;
}
