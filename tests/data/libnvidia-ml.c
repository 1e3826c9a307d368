/* A stand-in for libnvidia-ml.so.1: FAKE_NVML_INIT is what nvmlInit_v2 answers, FAKE_DRIVER the driver's version,
   FAKE_FREE_MIB, FAKE_COMPUTE_MODE, FAKE_PROCESSES and FAKE_ECC one value a device, FAKE_MIG 1 for a MIG device on each GPU and 2 for
   MIG mode without any. With FAKE_GROWS every look at the memory finds 64 MiB more of it used. FAKE_NVML_BUSY is how many
   GPUs are busy, from the first one on: the others have no process, and utilisation and memory grow with the number. */
#include "stand_in.h"

typedef unsigned long long size;

static int index_of(void *handle) { return (int)(size)handle - 1; }

static int busy(void *handle) { return index_of(handle) < number("FAKE_NVML_BUSY", 2); }

int nvmlInit_v2(void) { return number("FAKE_NVML_INIT", 0); }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    const char *text = setting("FAKE_DRIVER");
    snprintf(version, length, "%s", text ? text : "550.54.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = number("FAKE_CUDA_COUNT", 2);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(size)(index + 1);
    return 0;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned length) {
    snprintf(name, length, "Stand-in GPU %c", 'A' + index_of(handle));
    return 0;
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned length) {
    int part = index_of(handle) >= 16;
    snprintf(uuid, length, "%s-%x%x000000-0000-0000-0000-000000000000", part ? "MIG" : "GPU", part ? 0xf : 0xa,
             index_of(handle) % 16);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, size *memory) {
    static size grown;
    memory[0] = (size)16 << 30;
    memory[1] = (size)listed("FAKE_FREE_MIB", index_of(handle), 16000) << 20;
    memory[2] = memory[0] - memory[1] + grown;
    if (setting("FAKE_NVML_BUSY")) memory[2] = busy(handle) ? (size)(index_of(handle) + 1) << 30 : 0;
    if (setting("FAKE_GROWS")) grown += (size)64 << 20;
    return 0;
}

int nvmlDeviceGetComputeMode(void *handle, unsigned *mode) {
    *mode = listed("FAKE_COMPUTE_MODE", index_of(handle), 0);
    return 0;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *mode, unsigned *pending) {
    *mode = *pending = handle && number("FAKE_MIG", 0) > 0;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) {
    *count = handle ? 7 : 0;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **part) {
    *part = (void *)((size)handle + 16);
    return index || number("FAKE_MIG", 0) != 1 ? 6 : 0;
}

int nvmlDeviceGetTotalEccErrors(void *handle, int type, int counter, size *count) {
    *count = listed("FAKE_ECC", index_of(handle), 0);
    return type != 1 || counter != 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, void *processes) {
    if (!handle || processes) return *count = 0;
    *count = setting("FAKE_PROCESSES") ? listed("FAKE_PROCESSES", index_of(handle), 0) : setting("FAKE_NVML_BUSY") ? busy(handle) : setting("FAKE_FREE_MIB") != NULL;
    return *count ? 7 : 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    *handle = (void *)1;
    return uuid[0] == 'M' ? 0 : 6;
}

int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates) {
    rates[0] = busy(handle) ? 50 + 10 * (unsigned)index_of(handle) : 0;
    rates[1] = rates[0] / 2;
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *handle, size *millijoules) {
    static size spent[16];
    *millijoules = spent[index_of(handle) % 16];
    spent[index_of(handle) % 16] += 7200000; /* 2 Wh between two questions */
    return 0;
}
