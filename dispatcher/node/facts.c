#include "dispatcher/node/facts.h"
#include "common/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

/* sshd(8): "client ip-address, client port number, server ip-address, and server port number" */
static void get_addresses(struct greeting_hello *hello)
{
    const char *text = getenv("SSH_CONNECTION");
    unsigned ignored;

    if (text && sscanf(text, "%255s %u %255s", hello->peer, &ignored, hello->own) == 3)
        return;
    hello->peer[0] = hello->own[0] = '\0';
}

void facts_get(struct greeting_hello *hello, const char *dir)
{
    struct sysinfo info;
    struct utsname name;

    *hello = (struct greeting_hello){.protocol = GREETING_PROTOCOL, .pid = (uint32_t)getpid()};
    snprintf(hello->version, sizeof(hello->version), "%s", CAUSEWAY_VERSION);
    snprintf(hello->dir, sizeof(hello->dir), "%s", dir);
    if (uname(&name) == 0)
        snprintf(hello->host, sizeof(hello->host), "%s", name.nodename);
    hello->cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    hello->limited = cw_machine_limits_memory();
    if (sysinfo(&info) == 0)
        hello->memory_bytes = (uint64_t)info.totalram * info.mem_unit;
    get_addresses(hello);
    cw_machine_read(hello->system);
}
