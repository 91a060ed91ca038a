/* Any text is a grid that can have jobs, or is refused with a text that names the file. The first
 * byte says whether the rest is the text or changes of a whole grid file. */
#include "dispatcher/hosts/grid_file.h"
#include "dispatcher/hosts/routes.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 8192
#define FILE_NAME "grid.conf"

const char *__lsan_default_suppressions(void);

/* libconfig 1.5 forgets a text that does not end. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig.so";
}

static const char whole[] =
    "name = \"demo\";\n"
    "sites = (\n"
    "  { name = \"a\"; user = \"alice\"; key = \"~/.ssh/id\"; gateway = \"gate.a:22\";\n"
    "    hosts = ( { name = \"a1\"; slots = 8; }, { name = \"a2\"; slots = 0; } );\n"
    "    relay = { host = \"a1\"; port = 7000; };\n"
    "    ckptsrv = { host = \"a2\"; port = 7100; dir = \"/scratch/images\"; };\n"
    "    causeway = \"/opt/causeway/bin/causeway\"; reaches = [ \"b\" ]; },\n"
    "  { name = \"b\"; gateway = \"bob@[fe80::1]:2222\"; hosts = ( { name = \"b1\"; } );\n"
    "    relay = { host = \"b1\"; port = 7000; }; reaches = [ \"a\", \"d\" ]; },\n"
    "  { name = \"c\"; published = { at = \"b\"; port = 22001; }; hosts = ( { name = \"c1\"; } );\n"
    "    relay = { host = \"c1\"; port = 7000; }; },\n"
    "  { name = \"d\"; gateway = \"d\"; hosts = ( { name = \"d1\"; } );\n"
    "    relay = { host = \"d1\"; port = 7000; }; reaches = ( \"a\" ); }\n"
    ");\n"
    "reaches = [ \"b\" ];\n";

static void check_service(const struct grid_service *service, const struct grid_site *site)
{
    must(service->host < site->hosts && service->port > 0);
    must(!service->dir[0] || service->dir[0] == '/');
}

static void check_site(const struct grid *grid, uint32_t number)
{
    const struct grid_site *site = &grid->site[number];
    bool is_open = site->gateway.host[0];

    must(grid_find(grid, site->name) == number && site->hosts > 0);
    must(is_open == (site->published_at == GRID_OUTSIDE));
    must(is_open ? site->gateway.port > 0
                 : site->published_at < grid->sites && site->published_port > 0);
    check_service(&site->relay, site);
    must(grid_door_of_ckptsrv(grid, number, GRID_SITES_MAX - 1) <= UINT16_MAX);
    if (site->ckptsrv.host != HOSTS_NONE)
        check_service(&site->ckptsrv, site);
    for (uint32_t i = 0; i < grid->sites; i++)
        must(!site->reaches[i] || grid->site[i].gateway.host[0]);
}

/* Those that can reach each other have an address, which can be read. */
static void check_way(const struct grid *grid, uint32_t from, uint32_t to)
{
    const struct grid_service *relay = &grid->site[to].relay;
    const char *host = grid->site[to].host[relay->host].name;
    char text[CW_ADDRESS_MAX];
    struct ssh_address address;
    struct cw_err err;
    uint32_t ways;

    if (!routes_exist(grid, from, to)) {
        must(from == GRID_OUTSIDE || routes_exist(grid, to, from));
        return;
    }
    ways = routes_address(grid, from, to, host, relay->port, text);
    if (ways > 0 && from != to)
        must(ssh_address_parse(&address, text, &err) == CW_OK && address.ways == ways);
}

static void check_text(const char *text)
{
    struct grid grid;
    struct cw_err err = {0};

    if (grid_file_parse(&grid, FILE_NAME, text, "/home/alice", &err) < 0) {
        must(err.code == CW_EINVAL && strncmp(err.text, FILE_NAME, strlen(FILE_NAME)) == 0);
        must(!grid.site);
        return;
    }
    for (uint32_t i = 0; i < grid.sites; i++) {
        check_site(&grid, i);
        check_way(&grid, GRID_OUTSIDE, i);
        for (uint32_t j = 0; j < grid.sites; j++)
            check_way(&grid, i, j);
    }
    grid_free(&grid);
}

/* A change: where (2 bytes), how many bytes are taken out, how many follow that are put in. */
static void change(char *text, const uint8_t *data, size_t size)
{
    while (size >= 4) {
        size_t length = strlen(text), at = (data[0] | (size_t)data[1] << 8) % (length + 1);
        size_t out = data[2] < length - at ? data[2] : length - at;
        size_t in = data[3] < size - 4 ? data[3] : size - 4;

        if (length + in > INPUT_MAX)
            return;
        memmove(text + at + in, text + at + out, length - at - out + 1);
        memcpy(text + at, data + 4, in);
        data += 4 + in;
        size -= 4 + in;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[INPUT_MAX + 1];

    if (size < 1 || size > INPUT_MAX)
        return 0;
    memset(text, 0, sizeof(text));
    if (data[0] & 1) {
        strcpy(text, whole);
        change(text, data + 1, size - 1);
    } else {
        memcpy(text, data + 1, size - 1);
    }
    check_text(text);
    return 0;
}
