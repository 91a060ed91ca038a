#include "dispatcher/run/image_places.h"

const char *image_places_missing(const struct image_places *p, uint32_t rank, uint32_t number)
{
    const struct images_rank *r = &p->core->rank[rank];

    if (!rank_io_has_place(p->rank_io, rank, number))
        return r->number == number && !r->taken_ns
                   ? "the rank did not tell when it was taken: the program has closed a descriptor "
                     "which it had not opened"
                   : "it was taken in the middle of a request to its launcher";
    if (rank == 0 && !rank_input_has_place(p->input, number))
        return "it is not known how much of its standard input it had read";
    return NULL;
}

bool image_places_known(const struct image_places *p, uint32_t rank, uint32_t number)
{
    return !image_places_missing(p, rank, number) &&
           outputs_has_place(p->telling->outputs, rank, number);
}

bool image_places_keep(const struct image_places *p, uint32_t rank, uint32_t number)
{
    struct job_state_record place = {
        .type = JOB_STATE_PLACE, .rank = rank, .number = number, .place.input = JOB_STATE_NO_INPUT};

    if (!p->state)
        return true;
    if (!outputs_are_out(p->telling->outputs, rank, number))
        return false;
    outputs_place(p->telling->outputs, rank, number, place.place.printed);
    if (rank == 0)
        place.place.input = rank_input_place(p->input, number);
    state_file_put(p->state, &place);
    state_file_sync(p->state);
    return true;
}

void image_places_forget_before(const struct image_places *p, uint32_t rank, uint32_t number)
{
    outputs_forget_before(p->telling->outputs, rank, number);
    rank_io_forget_before(p->rank_io, rank, number);
    if (rank == 0)
        rank_input_forget_before(p->input, number);
}
