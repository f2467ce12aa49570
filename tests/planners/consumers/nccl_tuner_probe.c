// Asks NCCL's example tuner plugin, whose source is included: probe NODES RANKS NBYTES…, NCCL_TUNER_CONFIG_FILE set.
// Prints [algorithm, protocol, channels] of an all_reduce of each size: the cheapest entry of the plugin's cost table.
#include <stdio.h>
#include <stdlib.h>
#include "tuner.h"
#include "../plugin.c"

static void no_log(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...) {
    (void)level, (void)flags, (void)file, (void)line, (void)format;
}

int main(int argc, char** argv) {
    void* context = NULL;
    if (pluginInit(&context, 0, atoi(argv[2]), atoi(argv[1]), no_log, NULL, NULL) != ncclSuccess) return 1;
    printf("[");
    for (int i = 3; i < argc; ++i) {
        float costs[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
        int channels = 0, best = 0;
        for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a) {
            for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) costs[a][p] = 1.0f;
        }
        pluginGetCollInfo(context, ncclFuncAllReduce, strtoull(argv[i], NULL, 10), 1, (float**)costs, NCCL_NUM_ALGORITHMS,
                          NCCL_NUM_PROTOCOLS, 0, &channels);
        for (int k = 0; k < NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS; ++k) {
            if (costs[k / NCCL_NUM_PROTOCOLS][k % NCCL_NUM_PROTOCOLS] == 0.0f) best = k;
        }
        printf("%s[\"%s\", \"%s\", %d]", i > 3 ? ", " : "", algorithmToString(best / NCCL_NUM_PROTOCOLS),
               protocolToString(best % NCCL_NUM_PROTOCOLS), channels);
    }
    printf("]\n");
    return 0;
}
