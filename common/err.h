/* Errors: a code and a text. Each level that passes an error on adds its context. */
#ifndef CW_ERR_H
#define CW_ERR_H

#define CW_ERR_TEXT_MAX 512

enum cw_code {
    CW_OK = 0,
    CW_ENOMEM = -1,    /* memory, or a bound on memory, is spent */
    CW_ESYS = -2,      /* a system call failed */
    CW_EPROTO = -3,    /* the peer broke the protocol */
    CW_EAUTH = -4,     /* a credential was refused */
    CW_EINVAL = -5,    /* bad input from the user */
    CW_ECLOSED = -6,   /* the peer closed the connection */
    CW_ELIMIT = -7,    /* a named bound was reached */
    CW_ENOTFOUND = -8, /* a file, program or job that is not there */
    CW_ETIME = -9,     /* no answer in time */
    CW_EBUSY = -10,    /* not now: it is to be tried again */
};

/* Owned by the function that declares it; needs no release. `code` is CW_OK until an error. */
struct cw_err {
    int code;
    char text[CW_ERR_TEXT_MAX];
};

/* Sets code and text. Returns `code`, so that callers can `return cw_err_set(...)`. */
int cw_err_set(struct cw_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts the formatted text before the text of `err`, as in "what was being done: cause". Returns
 * err->code. */
int cw_err_wrap(struct cw_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
