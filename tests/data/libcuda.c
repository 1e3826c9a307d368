/* A stand-in for libcuda.so.1 that answers what the environment says: FAKE_CUDA_INIT, FAKE_CUDA_COUNT and so on. */
#include <stdio.h>
#include <stdlib.h>

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

int cuInit(unsigned flags) { return flags ? 1 : number("FAKE_CUDA_INIT", 0); }

int cuDriverGetVersion(int *version) {
    *version = number("FAKE_CUDA_VERSION", 12040);
    return 0;
}

int cuDeviceGetCount(int *count) {
    *count = number("FAKE_CUDA_COUNT", 2);
    return number("FAKE_CUDA_COUNT_ANSWER", 0);
}

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Stand-in GPU %c", 'A' + device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 7 : attribute == 76 ? device : -1;
    return 0;
}

int cuDeviceTotalMem_v2(size_t *octets, int device) {
    *octets = (size_t)16 << 30;
    return device < 0;
}
