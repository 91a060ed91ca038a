#include "dispatcher/doctor/host_report.h"
#include "dispatcher/status/json_value.h"

#include <string.h>

static const struct json_field fields[] = {JSON_FIELD(TEXT, host_report, path),
                                           JSON_FIELD(TEXT, host_report, machine),
                                           JSON_FIELD(TEXT, host_report, mpich),
                                           JSON_FIELD(NUMBER, host_report, memory_mb),
                                           {0}};

json_t *host_report_put(const struct host_report *r, const struct findings *f)
{
    json_t *object = json_fields_put(fields, r), *features = json_array(), *findings = json_array();

    for (int i = 0; i < HOST_REPORT_FEATURE_WORDS; i++)
        json_array_append_new(features, json_integer(r->features[i]));
    json_array_append_new(features, json_integer((json_int_t)r->xcr0));
    for (size_t i = 0; i < f->count; i++)
        if (f->item[i].level != DOCTOR_OK)
            json_array_append_new(findings, json_pack("{s:s, s:o}", "level",
                                                      doctor_level_word(f->item[i].level), "text",
                                                      json_value_text(f->item[i].text)));
    json_object_set_new(object, "features", features);
    json_object_set_new(object, "findings", findings);
    return object;
}

static void get_features(struct host_report *r, const json_t *array)
{
    r->features_known = json_array_size(array) == HOST_REPORT_FEATURE_WORDS + 1;
    for (int i = 0; i < HOST_REPORT_FEATURE_WORDS && r->features_known; i++) {
        const json_t *word = json_array_get(array, (size_t)i);

        r->features_known = json_is_integer(word) && json_integer_value(word) >= 0 &&
                            json_integer_value(word) <= UINT32_MAX;
        r->features[i] = (uint32_t)json_integer_value(word);
    }
    r->xcr0 = (uint64_t)json_integer_value(json_array_get(array, HOST_REPORT_FEATURE_WORDS));
}

void host_report_get(struct host_report *r, const json_t *object)
{
    *r = (struct host_report){0};
    json_fields_get(fields, object, r);
    get_features(r, json_object_get(object, "features"));
}

void host_report_get_findings(const json_t *object, struct findings *f)
{
    char text[FINDING_TEXT_MAX + 1];
    enum doctor_level level;
    size_t i;
    json_t *finding;

    json_array_foreach(json_object_get(object, "findings"), i, finding)
    {
        json_text_copy(text, sizeof(text), json_string_value(json_object_get(finding, "text")));
        if (doctor_level_of(json_string_value(json_object_get(finding, "level")), &level))
            findings_add(f, level, "%s", text);
    }
}
