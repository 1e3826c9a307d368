/* A stand-in for libnvidia-ml.so.1: FAKE_NVML_INIT is what nvmlInit_v2 answers. */
#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void) {
    const char *text = getenv("FAKE_NVML_INIT");
    return text ? atoi(text) : 0;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "550.54.15");
    return 0;
}
