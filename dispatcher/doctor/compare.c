#include "dispatcher/doctor/compare.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 8        /* of hosts in a finding */
#define NAMES_TEXT_MAX 320 /* bytes of these */
#define MPICH_TEXT_MAX 768 /* bytes of versions and the names of their hosts */

typedef bool are_alike(const struct host_report *one, const struct host_report *other);

/* The hosts that are like this one, as text. */
static void list_names(const struct host_check *hosts, uint32_t count, uint32_t first,
                       are_alike *alike, char text[NAMES_TEXT_MAX])
{
    uint32_t named = 0;
    uint32_t further = 0;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = first; i < count; i++) {
        if (!hosts[i].there || !alike(&hosts[i].report, &hosts[first].report))
            continue;
        if (named == NAMES_MAX || used + strlen(hosts[i].name) + 32 > NAMES_TEXT_MAX)
            further++;
        else
            used += (size_t)snprintf(text + used, NAMES_TEXT_MAX - used, "%s%s",
                                     named++ ? ", " : "", hosts[i].name);
    }
    if (further)
        snprintf(text + used, NAMES_TEXT_MAX - used, " and %u more", further);
}

/* Whether no host before it is like it. */
static bool is_first(const struct host_check *hosts, uint32_t at, are_alike *alike)
{
    if (!hosts[at].there)
        return false;
    for (uint32_t i = 0; i < at; i++)
        if (hosts[i].there && alike(&hosts[i].report, &hosts[at].report))
            return false;
    return true;
}

/* --- processors --- */

static bool have_same_features(const struct host_report *one, const struct host_report *other)
{
    return one->features_known && other->features_known &&
           memcmp(one->features, other->features, sizeof(one->features)) == 0 &&
           one->xcr0 == other->xcr0;
}

/* As causeway-restore asks it. `text`: what is lacking. */
static bool can_go_on(const struct host_report *image, const struct host_report *host, char *text,
                      size_t size)
{
    for (int i = 0; i < HOST_REPORT_FEATURE_WORDS; i++)
        if (image->features[i] & ~host->features[i]) {
            snprintf(text, size, "word %d of CPUID: %#x", i,
                     image->features[i] & ~host->features[i]);
            return false;
        }
    snprintf(text, size, "XCR0: %#llx", (unsigned long long)(image->xcr0 & ~host->xcr0));
    return !(image->xcr0 & ~host->xcr0);
}

static void compare_features(const struct host_check *hosts, uint32_t count,
                             struct findings *findings)
{
    char from[NAMES_TEXT_MAX], to[NAMES_TEXT_MAX], lacking[64];

    for (uint32_t i = 0; i < count && !findings->more; i++) {
        if (!is_first(hosts, i, have_same_features) || !hosts[i].report.features_known)
            continue;
        for (uint32_t j = 0; j < count; j++) {
            if (j == i || !hosts[j].there || !hosts[j].report.features_known ||
                !is_first(hosts, j, have_same_features) ||
                can_go_on(&hosts[i].report, &hosts[j].report, lacking, sizeof(lacking)))
                continue;
            list_names(hosts, count, i, have_same_features, from);
            list_names(hosts, count, j, have_same_features, to);
            findings_add(findings, DOCTOR_WARNING,
                         "processors: a rank cannot go on on %s from an image of %s, for it lacks "
                         "features (%s); keep spare hosts of the same processors, or it can only "
                         "start from its beginning there",
                         to, from, lacking);
        }
    }
}

/* --- MPICH --- */

static bool have_same_mpich(const struct host_report *one, const struct host_report *other)
{
    return strcmp(one->mpich, other->mpich) == 0;
}

/* A host without it has a finding of its own. */
static void compare_mpich(const struct host_check *hosts, uint32_t count, struct findings *findings)
{
    char text[MPICH_TEXT_MAX], names[NAMES_TEXT_MAX];
    uint32_t versions = 0;
    size_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!is_first(hosts, i, have_same_mpich) || !hosts[i].report.mpich[0])
            continue;
        list_names(hosts, count, i, have_same_mpich, names);
        if (used < sizeof(text))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.40s on %s",
                                     versions ? "; " : "", hosts[i].report.mpich, names);
        versions++;
    }
    if (versions > 1)
        findings_add(findings, DOCTOR_WARNING,
                     "MPICH: %s; install the same version on all hosts, or a rank may not go on on "
                     "another host from its image",
                     text);
}

void compare_hosts(const struct host_check *hosts, uint32_t count, struct findings *findings)
{
    compare_features(hosts, count, findings);
    compare_mpich(hosts, count, findings);
}
