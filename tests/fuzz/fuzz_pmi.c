/* Any bytes, from any rank, cut anywhere, must be answered or refused, never more. The input is a
 * list of pieces: one byte for the rank, one for the size, then the bytes of the piece. In place of
 * the rank, two values are for images: of the next byte's rank one is taken, or it goes on from it.
 */
#include "dispatcher/ranks/pmi_line.h"
#include "tests/fuzz/fuzz.h"

#define RANKS 3
#define IMAGE 0xff
#define RESTART 0xfe
#define NUMBERS 7 /* of images, and none */

/* What the client relies on: one line that its buffer holds. */
static void on_answer(void *ctx, struct cw_process process, const struct pmi_answer *answer)
{
    char line[PMI_LINE_MAX];
    size_t size = pmi_line_put(line, answer);

    (void)ctx;
    if (process.rank >= RANKS || size < 2 || size >= PMI_LINE_MAX ||
        memchr(line, '\n', size) != line + size - 1 || strncmp(line, "cmd=", 4) != 0)
        abort();
}

static void on_asked(void *ctx, struct cw_process process, const struct pmi_request *request)
{
    (void)ctx;
    if (process.rank >= RANKS || request->what >= PMI_WHATS)
        abort();
}

static void take_image(struct pmi *pmi, struct places *places, uint32_t rank, uint32_t number)
{
    pmi_mark(pmi, (struct cw_process){.rank = rank}, number);
    if (places_at(&places[rank], number, PLACE_PMI) && number % 3 == 2)
        places_forget_before(&places[rank], number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pmi_ops ops = {on_asked, on_answer, NULL};
    struct places places[RANKS] = {0};
    struct pmi_config config = {.ranks = RANKS, .kvsname = "k", .places = places};
    struct pmi *pmi = pmi_new(&config, &ops, NULL);
    struct pmi_lines lines[RANKS] = {0};
    struct cw_err err = {0};

    if (!pmi)
        return 0;
    while (size >= 2) {
        uint32_t rank = data[0] % RANKS;
        size_t piece = data[1];
        bool is_image = data[0] == IMAGE || data[0] == RESTART;

        if (data[0] == IMAGE)
            take_image(pmi, places, piece % RANKS, piece / RANKS % NUMBERS);
        else if (data[0] == RESTART)
            pmi_restarted(pmi, (struct cw_process){.rank = piece % RANKS}, piece / RANKS % NUMBERS);
        data += 2;
        size -= 2;
        if (is_image)
            piece = 0;
        if (piece > size)
            piece = size;
        if (pmi_lines_take(&lines[rank], pmi, (struct cw_process){.rank = rank}, (const char *)data,
                           piece, &err) < 0 &&
            (err.code >= 0 || strncmp(err.text, "rank ", 5) != 0))
            abort();
        data += piece;
        size -= piece;
    }
    pmi_free(pmi);
    return 0;
}
