/* A grid: sites, which see each other only through SSH, and who can connect to whom. As a grid file
 * says it (grid_file.h, docs/grid.md). Plain data; no I/O.
 *
 * A site is a cluster: hosts that reach each other by TCP, among them those of its services, and a
 * gateway that others can log in to. A site that lets nothing in has its SSH server published at
 * another site's gateway: a port on the loopback device there, kept open from inside the site (as
 * with ssh -R). */
#ifndef DISPATCHER_GRID_H
#define DISPATCHER_GRID_H

#include "common/frame.h"
#include "common/transport.h"
#include "dispatcher/hosts/host_list.h"
#include "tunnels/ssh_address.h"

#define GRID_SITES_MAX CW_RELAYS_MAX /* each has a relay */
#define GRID_NAME_MAX 63u            /* bytes of the name of a grid or site */
#define GRID_PATH_MAX 1023u          /* bytes of a file's name */
#define GRID_OPTIONS_MAX 255u        /* bytes of further options of a service */
#define GRID_OUTSIDE UINT32_MAX      /* of no site */

struct grid_host {
    char name[HOST_NAME_MAX_BYTES + 1]; /* as the machines of its site call it */
    uint32_t slots;                     /* for ranks; 0: it has services alone */
    uint32_t line;                      /* of the grid file, as all that are named so */
};

struct grid_service {
    uint32_t host; /* of the site; HOSTS_NONE: the site has no such service */
    uint16_t port;
    char options[GRID_OPTIONS_MAX + 1]; /* further words of its command, with blanks between */
    char dir[GRID_PATH_MAX + 1]; /* of a checkpoint server: where its images are; "": by default */
};

struct grid_site {
    char name[GRID_NAME_MAX + 1];
    uint32_t line;
    char user[SSH_USER_MAX + 1];  /* of its gateway and hosts; "": who runs causeway */
    char key[GRID_PATH_MAX + 1];  /* private key for logins there; "": as ssh does */
    struct ssh_hop gateway;       /* as those who reach it call it; host "": nothing is open */
    uint32_t published_at;        /* then: the site at whose gateway; GRID_OUTSIDE: nowhere */
    uint16_t published_port;      /* ... and there the port on the loopback device */
    bool reaches[GRID_SITES_MAX]; /* from here the gateways of these can be connected to */
    struct grid_host *host;       /* `hosts` of them, at least 1; owned */
    uint32_t hosts;
    struct grid_service relay; /* there is one */
    struct grid_service ckptsrv;
    char causeway[GRID_PATH_MAX + 1]; /* the program on all machines of the site; "": as here */
};

struct grid {
    char name[GRID_NAME_MAX + 1];
    struct grid_site *site; /* `sites` of them, at least 1; owned */
    uint32_t sites;
    bool reaches[GRID_SITES_MAX]; /* from a machine of no site */
    uint32_t connections;         /* of a tunnel; 0: as it chooses */
};

/* The keys for logins at all sites, each once, as SSH_KEYS_VARIABLE has them; "": none is named. */
#define GRID_KEYS_BYTES (GRID_SITES_MAX * (GRID_PATH_MAX + 1)) /* of the text, with its end */
void grid_keys(const struct grid *grid, char text[GRID_KEYS_BYTES]);

/* Zeroed is allowed. */
void grid_free(struct grid *grid);

/* The site of that name, or GRID_OUTSIDE. */
uint32_t grid_find(const struct grid *grid, const char *name);

/* The site at which a machine is: `said` (--here), if that is not NULL, "-" being none; else the
 * one that has a host or gateway of this name. GRID_OUTSIDE: none has, or several have. Errors:
 * CW_EINVAL: there is no such site. */
int grid_here(const struct grid *grid, const char *said, const char *machine, uint32_t *site,
              struct cw_err *err);

/* "tcp:HOST:PORT" of a host of that site, for machines there. */
void grid_tcp_address(const struct grid *grid, uint32_t site, uint32_t host, uint32_t port,
                      char text[CW_ADDRESS_MAX]);

/* Doors: ports on the relay's host of site `at`, which lead to the relay and to the checkpoint
 * server of site `to`, for ranks that are not at the site of their relay any more. They follow that
 * of the relay of `at`; a port beyond 65535 is for the reader of the grid file to refuse. */
#define GRID_DOORS_MAX (2 * GRID_SITES_MAX)
uint32_t grid_door_of_relay(const struct grid *grid, uint32_t at, uint32_t to);
uint32_t grid_door_of_ckptsrv(const struct grid *grid, uint32_t at, uint32_t to);

#endif
