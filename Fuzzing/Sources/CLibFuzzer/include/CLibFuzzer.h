#ifndef CLIBFUZZER_H
#define CLIBFUZZER_H

#include <stddef.h>
#include <stdint.h>

/// Runs libFuzzer, which reads the arguments and calls the function with each input; it is there in a program that is linked with it.
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*try_input)(const uint8_t *bytes, size_t count));

#endif
