#include "dispatcher/cli/doctor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_TIME_MAX_S 20

bool doctor_print(const char *about, const struct findings *findings)
{
    const char *colon = *about ? ": " : "";
    bool missing = false;

    for (size_t i = 0; i < findings->count; i++) {
        printf("%-7s %s%s%s\n", doctor_level_word(findings->item[i].level), about, colon,
               findings->item[i].text);
        missing |= findings->item[i].level == DOCTOR_MISSING;
    }
    if (findings->more)
        printf("%-7s %s%sthere is more than is told here; see to this first\n",
               doctor_level_word(DOCTOR_WARNING), about, colon);
    return missing;
}

size_t doctor_ask_child(void (*ask)(const void *about, int to), const void *about, char *answer,
                        size_t size)
{
    size_t used = 0;
    ssize_t n;
    int ends[2];
    pid_t pid;

    answer[0] = '\0';
    fflush(stdout);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_TIME_MAX_S);
        ask(about, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    while (pid > 0 && used < size - 1 && (n = read(ends[0], answer + used, size - 1 - used)) > 0)
        used += (size_t)n;
    answer[used] = '\0';
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return used;
}

void doctor_answer_text(int to, const char *text)
{
    if (write(to, text, strlen(text)) < 0)
        _exit(1);
}
