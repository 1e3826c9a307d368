/* A stand-in for libcuda.so.1. FAKE_CUDA_INIT, FAKE_CUDA_VERSION, FAKE_CUDA_COUNT, FAKE_CUDA_COUNT_ANSWER,
   FAKE_CAPABILITY (90 is 9.0) and FAKE_CONTEXT (one answer a device) are what it answers; FAKE_CUDA_SIGNAL ends the
   process in cuInit; FAKE_CUDA_HANG does not return from it, after it has started a process in a session of its own, of
   that name. FAKE_INIT_MS and FAKE_CONTEXT_MS (one a device) are how long a call takes. FAKE_TRACE is a file that gets
   the number of each device that a program begins to use. Like the real one it obeys CUDA_VISIBLE_DEVICES, of which
   FAKE_MIG_SEEN are shown. The memory of its devices is the host's. */
#include "stand_in.h"
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MAX_BLOCKS 64
static struct { uint64_t start, size; } blocks[MAX_BLOCKS];
static int used_blocks;
static const char LETTERS[] = "ABCDEFGHIJKLMNOP";

static void identity(unsigned char *uuid, int device) {
    memset(uuid, 0, 16);
    uuid[0] = (number("FAKE_MIG", 0) ? 0xf0 : 0xa0) + device;
}

/* Which device an entry of CUDA_VISIBLE_DEVICES names, -1 for none. */
static int named(const char *entry, size_t length, int count) {
    char expected[64];
    for (int device = 0; device < count; device++) {
        unsigned char uuid[16];
        identity(uuid, device);
        snprintf(expected, sizeof expected, "%s-%02x000000-0000-0000-0000-000000000000",
                 number("FAKE_MIG", 0) ? "MIG" : "GPU", uuid[0]);
        if (length > 4 && !strncmp(entry, expected, length)) return device;
        snprintf(expected, sizeof expected, "%d", device);
        if (length == strlen(expected) && !strncmp(entry, expected, length)) return device;
    }
    return -1;
}

static int visible(int *devices) {
    int all = number("FAKE_CUDA_COUNT", 2), count = 0;
    const char *entry = getenv("CUDA_VISIBLE_DEVICES");
    if (!entry) {
        for (; count < all; count++) devices[count] = count;
        return all;
    }
    while (*entry && count < number("FAKE_MIG_SEEN", 16)) {
        size_t length = strcspn(entry, ",");
        int device = named(entry, length, all);
        if (device < 0) break;
        devices[count++] = device;
        entry += length + (entry[length] == ',');
    }
    return count;
}

int cuInit(unsigned flags) {
    int devices[16];
    usleep(1000 * number("FAKE_INIT_MS", 0));
    if (setting("FAKE_CUDA_SIGNAL")) raise(number("FAKE_CUDA_SIGNAL", SIGSEGV));
    const char *name = setting("FAKE_CUDA_HANG");
    if (name) {
        if (!fork()) {
            setsid();
            prctl(PR_SET_NAME, name);
        }
        for (;;) pause();
    }
    int answer = number("FAKE_CUDA_INIT", 0);
    return flags ? 1 : answer ? answer : visible(devices) || setting("FAKE_CUDA_COUNT_ANSWER") ? 0 : 100;
}

int cuDriverGetVersion(int *version) {
    *version = number("FAKE_CUDA_VERSION", 12040);
    return 0;
}

int cuDeviceGetCount(int *count) {
    int devices[16];
    *count = visible(devices);
    return number("FAKE_CUDA_COUNT_ANSWER", 0);
}

int cuDeviceGet(int *device, int ordinal) {
    int devices[16];
    if (ordinal >= visible(devices)) return 101;
    *device = devices[ordinal];
    return 0;
}

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Stand-in GPU %c%s", LETTERS[device], number("FAKE_MIG", 0) ? " MIG 1g.5gb" : "");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int capability = number("FAKE_CAPABILITY", 70 + device);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : -1;
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)16 << 30;
    return device < 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    identity(uuid, device);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    char line[] = {LETTERS[device] - 'A' + '0', '\n'};
    int trace = setting("FAKE_TRACE") ? open(setting("FAKE_TRACE"), O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (trace >= 0 && write(trace, line, sizeof line) < 0) return 304;
    close(trace);
    usleep(1000 * listed("FAKE_CONTEXT_MS", device, 0));
    *context = &blocks;
    return listed("FAKE_CONTEXT", device, 0);
}

int cuDevicePrimaryCtxRelease_v2(int device) { return device < 0; }

int cuCtxSetCurrent(void *context) { return context ? 0 : 201; }

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    if (used_blocks == MAX_BLOCKS) return 2;
    blocks[used_blocks].start = *address = (uint64_t)(uintptr_t)malloc(size);
    blocks[used_blocks++].size = size;
    return 0;
}

int cuPointerGetAttribute(int *value, int attribute, uint64_t address) {
    for (int block = 0; block < used_blocks; block++)
        if (address >= blocks[block].start && address < blocks[block].start + blocks[block].size) {
            *value = attribute == 2 ? 2 : 0;
            return 0;
        }
    return 1;
}
