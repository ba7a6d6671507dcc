// What a process says of itself, where Swift has no name for it.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// Returns the bytes that are allocated and not freed, over all threads; 0 where the system does not tell.
size_t endurance_allocated_bytes(void);

/// Gives memory that is free back to the system, so that what is resident is what is used.
void endurance_trim(void);

/// Makes the stacks of threads that begin from now on this large, unless they ask for another size; returns whether that is so.
int endurance_set_stack_size(size_t bytes);

/// Returns the size of the stack of the thread that asks; 0 where the system does not tell.
size_t endurance_stack_size(void);

/// Returns the processor time of all threads in nanoseconds.
uint64_t endurance_processor_time(void);
