#include "rdevice/collectives/sites.h"
#include "common/setup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TAG 0x5173 /* nobody else sends on our communicators */

/* The attribute of a communicator of the program. */
struct kept {
    struct sites sites;
    bool flat;      /* it stays with MPICH's own */
    bool ready;     /* `all` and `site` are there */
    uint32_t calls; /* of collectives before */
};

static const char *homes;
static int keyval = MPI_KEYVAL_INVALID;
static int comms; /* that have two of ours */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool sites_known(void)
{
    homes = getenv(CW_SITES_ENV);
    return homes;
}

/* --- how the ranks of a communicator are spread --- */

static bool read_homes(uint8_t *home, const int *world, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        int relay = world[i] < 0 ? -1 : plan_home(homes, (uint32_t)world[i]);

        if (relay < 0)
            return false;
        home[i] = (uint8_t)relay;
    }
    return true;
}

/* The numbers in MPI_COMM_WORLD of all ranks of `comm`. */
static bool translate(MPI_Comm comm, int *ranks, int *world, int count)
{
    MPI_Group group;
    MPI_Group of_world;
    bool well;

    for (int i = 0; i < count; i++)
        ranks[i] = i;
    if (mpich.Comm_group(comm, &group) != MPI_SUCCESS)
        return false;
    if (mpich.Comm_group(MPI_COMM_WORLD, &of_world) != MPI_SUCCESS) {
        mpich.Group_free(&group);
        return false;
    }
    well = mpich.Group_translate_ranks(group, count, ranks, of_world, world) == MPI_SUCCESS;
    mpich.Group_free(&group);
    mpich.Group_free(&of_world);
    return well;
}

static bool make_plan(struct plan *plan, MPI_Comm comm)
{
    int inter, count, rank;
    uint8_t *home;
    int *ranks;
    bool well;

    if (mpich.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
        mpich.Comm_size(comm, &count) != MPI_SUCCESS || mpich.Comm_rank(comm, &rank) != MPI_SUCCESS)
        return false;
    ranks = calloc(2 * (size_t)count, sizeof(*ranks));
    home = calloc((size_t)count, sizeof(*home));
    well = ranks && home && translate(comm, ranks, ranks + count, count) &&
           read_homes(home, ranks + count, count) && plan_make(plan, home, count, rank);
    free(ranks);
    free(home);
    return well && plan_pays(plan);
}

/* --- the attribute --- */

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        mpich.Comm_free(comm);
}

static void forget(struct kept *kept)
{
    free_comm(&kept->sites.all);
    free_comm(&kept->sites.site);
    if (kept->ready) {
        pthread_mutex_lock(&lock);
        comms--;
        pthread_mutex_unlock(&lock);
    }
    plan_clear(&kept->sites.plan);
    free(kept);
}

/* MPI_Comm_free of the program's, which all its ranks call. */
static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    forget(value);
    return MPI_SUCCESS;
}

static int the_keyval(void)
{
    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID &&
        mpich.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
    pthread_mutex_unlock(&lock);
    return keyval;
}

static struct kept *begin(MPI_Comm comm)
{
    struct kept *kept = calloc(1, sizeof(*kept));

    if (!kept)
        return NULL;
    kept->sites.all = MPI_COMM_NULL;
    kept->sites.site = MPI_COMM_NULL;
    kept->flat = !make_plan(&kept->sites.plan, comm);
    if (mpich.Comm_set_attr(comm, keyval, kept) == MPI_SUCCESS)
        return kept;
    forget(kept);
    return NULL;
}

/* --- our communicators --- */

static int create(MPI_Comm comm, const struct plan *plan, bool all, MPI_Comm *made)
{
    int *ranks = calloc((size_t)plan->ranks, sizeof(*ranks));
    MPI_Group group;
    MPI_Group part;
    int count = 0;
    int error;

    if (!ranks)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < plan->ranks; i++)
        if (all || plan->site[i] == plan->mine)
            ranks[count++] = i;
    error = mpich.Comm_group(comm, &group);
    if (error == MPI_SUCCESS) {
        error = mpich.Group_incl(group, count, ranks, &part);
        mpich.Group_free(&group);
    }
    free(ranks);
    if (error != MPI_SUCCESS)
        return error;
    error = mpich.Comm_create(comm, part, made);
    mpich.Group_free(&part);
    return error == MPI_SUCCESS ? mpich.Comm_set_errhandler(*made, MPI_ERRORS_RETURN) : error;
}

/* Whether all ranks can have one more. */
static bool all_have_room(MPI_Comm comm, bool *room)
{
    int mine, least;

    pthread_mutex_lock(&lock);
    mine = comms < SITES_COMMS_MAX;
    comms += mine;
    pthread_mutex_unlock(&lock);
    *room = mine;
    return mpich.Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && least;
}

/* Collective. What fails for want of context ids fails on all ranks; the program is not told. */
static void make_ready(struct kept *kept, MPI_Comm comm)
{
    MPI_Errhandler handler;

    if (mpich.Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)
        return;
    mpich.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    kept->flat = !all_have_room(comm, &kept->ready) ||
                 create(comm, &kept->sites.plan, true, &kept->sites.all) != MPI_SUCCESS ||
                 create(comm, &kept->sites.plan, false, &kept->sites.site) != MPI_SUCCESS;
    mpich.Comm_set_errhandler(comm, handler);
    mpich.Errhandler_free(&handler);
}

const struct sites *sites_of(MPI_Comm comm, bool meets)
{
    struct kept *kept = NULL;
    int there = 0;

    if (comm == MPI_COMM_NULL || the_keyval() == MPI_KEYVAL_INVALID ||
        mpich.Comm_get_attr(comm, keyval, &kept, &there) != MPI_SUCCESS)
        return NULL;
    if (!there)
        kept = begin(comm);
    if (!kept || kept->flat)
        return NULL;
    if (!kept->ready && (!meets || (comm != MPI_COMM_WORLD && kept->calls++ < SITES_FLAT_FIRST)))
        return NULL;
    if (!kept->ready)
        make_ready(kept, comm);
    return kept->flat ? NULL : &kept->sites;
}

void sites_begin(void)
{
    mpich_self();
    sites_of(MPI_COMM_WORLD, true);
}

/* --- errors --- */

int sites_result(MPI_Comm comm, int error)
{
    return error == MPI_SUCCESS ? error : (mpich.Comm_call_errhandler(comm, error), error);
}

int sites_agree(const struct sites *sites, int from, int error)
{
    bool speaks = sites->plan.place[sites->plan.rank] == from;
    char failed = error != MPI_SUCCESS;
    int came = mpich.Bcast(&failed, 1, MPI_BYTE, from, sites->site);

    if (speaks)
        return sites_first(error, came);
    return sites_first(came, failed ? SITES_FAILED : MPI_SUCCESS);
}

/* --- messages between sites --- */

void sites_batch_begin(struct sites_batch *batch, const struct sites *sites, int error)
{
    batch->sites = sites;
    batch->count = 0;
    batch->error = error;
}

/* MPI_Send of the device waits for no receiver. MPI_Wait would call the error handler of
 * MPI_COMM_SELF. */
void sites_batch_send(struct sites_batch *batch, const void *data, int count, MPI_Datatype type,
                      int to)
{
    bool failed = batch->error != MPI_SUCCESS;
    int error = failed ? mpich.Send(NULL, 0, MPI_BYTE, to, TAG, batch->sites->all)
                       : mpich.Send(data, count, type, to, TAG, batch->sites->all);

    batch->error = sites_first(batch->error, error);
}

void sites_batch_recv(struct sites_batch *batch, void *data, int count, MPI_Datatype type, int from)
{
    bool failed = batch->error != MPI_SUCCESS;
    MPI_Request *request = &batch->expected[batch->count].request;
    int error = failed ? mpich.Irecv(NULL, 0, MPI_BYTE, from, TAG, batch->sites->all, request)
                       : mpich.Irecv(data, count, type, from, TAG, batch->sites->all, request);

    batch->expected[batch->count].count = count;
    batch->expected[batch->count].type = type;
    batch->count += error == MPI_SUCCESS;
    batch->error = sites_first(batch->error, error);
}

/* What is too long has no count. */
static int await(const struct sites_batch *batch, int i)
{
    MPI_Request request = batch->expected[i].request;
    MPI_Status status;
    int there = 0;
    int count = 0;
    int error = MPI_SUCCESS;

    while (error == MPI_SUCCESS && !there)
        error = mpich.Request_get_status(request, &there, &status);
    if (error == MPI_SUCCESS)
        error = mpich.Get_count(&status, batch->expected[i].type, &count);
    mpich.Request_free(&request);
    return sites_first(error, count == batch->expected[i].count ? MPI_SUCCESS : SITES_FAILED);
}

int sites_batch_end(struct sites_batch *batch)
{
    for (int i = 0; i < batch->count; i++)
        batch->error = sites_first(batch->error, await(batch, i));
    batch->count = 0;
    return batch->error;
}
