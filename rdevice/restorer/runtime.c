/* What the compiler, LZ4 and common/image.c expect of a C library. */
#include "rdevice/image/system.h"

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size)
{
    void *at = to;

    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    char *t = to;
    const char *f = from;

    if (t <= f || t >= f + size)
        return memcpy(to, from, size);
    while (size-- > 0)
        t[size] = f[size];
    return to;
}

void *memset(void *to, int value, size_t size)
{
    void *at = to;

    __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
    return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *x = a, *y = b;

    for (size_t i = 0; i < size; i++)
        if (x[i] != y[i])
            return x[i] - y[i];
    return 0;
}

size_t strlen(const char *text)
{
    size_t n = 0;

    while (text[n])
        n++;
    return n;
}

int strncmp(const char *a, const char *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i] || a[i] == '\0')
            return (unsigned char)a[i] - (unsigned char)b[i];
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, ~(size_t)0);
}

char *strcpy(char *to, const char *from)
{
    return memcpy(to, from, strlen(from) + 1);
}

/* Functions of LZ4 that nobody calls here. */
void *malloc(size_t size)
{
    (void)size;
    return NULL;
}

void *calloc(size_t count, size_t size)
{
    (void)count;
    (void)size;
    return NULL;
}

void free(void *at)
{
    (void)at;
}

void __stack_chk_fail(void)
{
    for (;;)
        system_call(SYS_exit_group, 98);
}
