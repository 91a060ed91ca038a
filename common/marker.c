#include "common/marker.h"

#include <string.h>

void marker_init(struct marker *m, const char *text)
{
    *m = (struct marker){.text = text};
}

static void add_noise(struct marker *m, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++, m->noise++)
        if (m->noise < sizeof(m->noise_kept))
            m->noise_kept[m->noise] = bytes[i];
}

/* The text begins with a line's end, which is nowhere else in it but at its own end: so where it
 * does not go on, it can begin again only here. */
bool marker_take(struct marker *m, uint8_t byte)
{
    if (byte != (uint8_t)m->text[m->found]) {
        add_noise(m, m->text, m->found);
        m->found = 0;
    }
    if (byte == (uint8_t)m->text[m->found])
        m->found++;
    else
        add_noise(m, (const char *)&byte, 1);
    return m->found == strlen(m->text);
}

const char *marker_noise(const struct marker *m, char *text, size_t size)
{
    size_t kept = m->noise < sizeof(m->noise_kept) ? m->noise : sizeof(m->noise_kept);
    size_t used = 0;

    for (size_t i = 0; i < kept && used + 1 < size; i++)
        text[used++] = m->noise_kept[i] >= ' ' && m->noise_kept[i] <= '~' ? m->noise_kept[i] : ' ';
    text[used] = '\0';
    return text;
}
