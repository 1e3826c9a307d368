/* A stand-in for libamdhip64.so of ROCm 6: FAKE_HIP_INIT and FAKE_HIP_COUNT are what it answers. */
#include "stand_in.h"
#include <stdint.h>

int hipInit(unsigned flags) { return flags ? 1 : number("FAKE_HIP_INIT", 0); }

int hipRuntimeGetVersion(int *version) {
    *version = 60240091;
    return 0;
}

int hipGetDeviceCount(int *count) {
    *count = number("FAKE_HIP_COUNT", 1);
    return *count ? 0 : 100;
}

int hipDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}

int hipDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Stand-in Instinct %d", device);
    return 0;
}

int hipDeviceTotalMem(size_t *bytes, int device) {
    *bytes = (size_t)64 << 30;
    return device < 0;
}

int hipPointerGetAttribute(int *value, int attribute, uint64_t address) {
    *value = attribute == 2 ? 2 : 0;
    return !address;
}
