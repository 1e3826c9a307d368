/* What the stand-ins answer: a setting of the environment, else one that was compiled in (SETTINGS "A=1;B=2"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SETTINGS
#define SETTINGS ""
#endif

static const char *setting(const char *name) {
    static char value[256];
    const char *found = getenv(name);
    if (found) return found;
    char key[64];
    snprintf(key, sizeof key, ";%s=", name);
    found = strstr(";" SETTINGS, key);
    if (!found) return NULL;
    found += strlen(key);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(found, ";"), found);
    return value;
}

__attribute__((unused)) static int number(const char *name, int otherwise) {
    const char *text = setting(name);
    return text ? atoi(text) : otherwise;
}

/* FAKE_CONTEXT=0,46 is 0 for device 0 and 46 for device 1. */
__attribute__((unused)) static int listed(const char *name, int place, int otherwise) {
    const char *text = setting(name);
    if (!text) return otherwise;
    for (; place && (text = strchr(text, ',')); place--) text++;
    return text ? atoi(text) : otherwise;
}
