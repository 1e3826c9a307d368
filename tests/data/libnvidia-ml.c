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

/* What `ctk sbatch --gpu-monitor` asks: FAKE_NVML_BUSY is how many GPUs are busy, from the first one on; the others have
   no process. Utilisation, memory and energy grow with the number of a GPU. */
static int busy(void *device) {
    const char *text = getenv("FAKE_NVML_BUSY");
    return (long)device <= (text ? atoi(text) : 2);
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    const char *text = getenv("FAKE_CUDA_COUNT");
    *count = text ? atoi(text) : 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)(long)(index + 1);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    *device = (void *)1L;
    return uuid[0] == 'M' ? 0 : 6;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%ld0000000-stand-in", (long)device);
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) {
    rates[0] = busy(device) ? 40 + 10 * (unsigned)(long)device : 0;
    rates[1] = rates[0] / 2;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
    memory[0] = 16ULL << 30;
    memory[2] = busy(device) ? (unsigned long long)(long)device << 30 : 0;
    memory[1] = memory[0] - memory[2];
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    static unsigned long long spent[16];
    *millijoules = spent[(long)device % 16];
    spent[(long)device % 16] += 7200000; /* 2 Wh between two questions */
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes) {
    *count = busy(device) ? 1 : 0;
    return *count && !processes ? 7 : 0;
}
