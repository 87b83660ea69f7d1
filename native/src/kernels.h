// The passes of rows.h, compiled for several sets of instructions; the processor is asked once.
#pragma once

#include <c10/core/ScalarType.h>

#include "rows.h"

namespace msdump {

// Of elements that lie one behind the other, aligned. `scratch` has room for as many.
using RowFunction = void (*)(const void* values, int64_t count, void* scratch, Row& row);

struct Kernels {
  RowFunction small;  // up to kChunk elements that are a tensor: adds up as numpy does
  RowFunction block;  // up to kBlock elements of a large tensor: adds up in 32 lanes
  RowFunction large;  // up to kChunk elements of a large tensor: blocks
};

// Null for a dtype that has none. Bools have none of these: see `ones`.
const Kernels* kernels_of(c10::ScalarType dtype);

// Number of bytes that are not zero.
int64_t ones(const uint8_t* values, int64_t count);

// "avx512", "avx2" or "plain".
const char* instructions();

}  // namespace msdump
