#include "ckptsrv/handshake.h"
#include "common/cred.h"

#include <string.h>

static int refuse(struct cw_err *err, int code, const char *text)
{
    cw_err_set(err, CW_EAUTH, "%s", text);
    return code;
}

static int check_dispatcher(const struct cw_hello *hello, struct cw_err *err)
{
    if (hello->rank > 0 && hello->rank <= CW_RANKS_MAX)
        return 0;
    cw_err_set(err, CW_ELIMIT, "a job of %u ranks: 1 to %u are possible", hello->rank,
               CW_RANKS_MAX);
    return CW_REFUSED_LIMIT;
}

static int check_image(const struct cw_hello *hello, struct cw_err *err)
{
    if (hello->rank < CW_RANKS_MAX && hello->incarnation > 0)
        return 0;
    cw_err_set(err, CW_ELIMIT, "an image of rank %u, incarnation %u: there is none", hello->rank,
               hello->incarnation);
    return CW_REFUSED_LIMIT;
}

int handshake_judge(const struct cw_stranger *stranger, const uint8_t key[CW_KEY_SIZE],
                    const uint8_t *body, struct cw_hello *hello, struct cw_welcome *welcome,
                    struct cw_err *err)
{
    uint8_t own[CW_KEY_SIZE];
    uint8_t job[CW_KEY_SIZE];
    int refused = cw_stranger_hello(body, "checkpoint server", hello, err);

    if (refused)
        return refused;
    if (hello->role != CW_ROLE_DISPATCHER && hello->role != CW_ROLE_IMAGE)
        return refuse(err, CW_REFUSED_PROTOCOL,
                      "this is a checkpoint server, not a relay: look at the addresses");
    cw_cred_job_key(own, key, hello->job);
    if (hello->role == CW_ROLE_IMAGE) {
        memcpy(job, own, sizeof(job));
        cw_cred_rank_key(own, job, hello->rank, hello->incarnation);
    }
    if (!cw_stranger_proves(stranger, hello, own))
        return refuse(err, CW_REFUSED_CREDENTIAL,
                      "wrong credential: use the key file of this checkpoint server");
    if (hello->flags & CW_HELLO_RESUME)
        return refuse(err, CW_REFUSED_PROTOCOL, "a checkpoint server resumes no sessions");
    *welcome = (struct cw_welcome){0};
    cw_cred_mac_welcome(welcome->mac, own, welcome, hello, stranger->nonce);
    return hello->role == CW_ROLE_IMAGE ? check_image(hello, err) : check_dispatcher(hello, err);
}
