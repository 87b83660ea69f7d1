#include "kernels.h"

namespace msdump {
namespace {

// Block by block, through the compiled function of one: code that is here twice would be compiled twice.
template <class Form, RowFunction block_of>
MSDUMP_INLINE void large_row(const void* data, int64_t count, void* scratch, Row& row) {
  const typename Form::Key* values = static_cast<const typename Form::Key*>(data);
  for (int64_t start = 0; start < count; start += kBlock) {
    block_of(values + start, count - start < kBlock ? count - start : kBlock, scratch, row);
  }
}

#define MSDUMP_KERNELS_OF(NAME, FORM, TARGET, AVX, WIDE)                                                    \
  TARGET void small_##NAME(const void* v, int64_t n, void* s, Row& r) { small_row<FORM, AVX>(v, n, s, r); }     \
  TARGET __attribute__((noinline)) void block_##NAME(const void* v, int64_t n, void* s, Row& r) {               \
    block<FORM, AVX, WIDE>(v, n, s, r);                                                                         \
  }                                                                                                             \
  TARGET void large_##NAME(const void* v, int64_t n, void* s, Row& r) { large_row<FORM, block_##NAME>(v, n, s, r); }

#define MSDUMP_KERNELS(TARGET, AVX, WIDE)                             \
  MSDUMP_KERNELS_OF(float64, Float64, TARGET, AVX, WIDE)              \
  MSDUMP_KERNELS_OF(float32, Float32, TARGET, AVX, WIDE)              \
  MSDUMP_KERNELS_OF(float16, Float16, TARGET, AVX, WIDE)              \
  MSDUMP_KERNELS_OF(bfloat16, BFloat16, TARGET, AVX, WIDE)            \
  MSDUMP_KERNELS_OF(int8, Integer<int8_t>, TARGET, AVX, WIDE)         \
  MSDUMP_KERNELS_OF(int16, Integer<int16_t>, TARGET, AVX, WIDE)       \
  MSDUMP_KERNELS_OF(int32, Integer<int32_t>, TARGET, AVX, WIDE)       \
  MSDUMP_KERNELS_OF(int64, Integer<int64_t>, TARGET, AVX, WIDE)       \
  MSDUMP_KERNELS_OF(uint8, Integer<uint8_t>, TARGET, AVX, WIDE)       \
  TARGET int64_t ones_in(const uint8_t* v, int64_t n) { return ones_of(v, n); } \
  constexpr Kernels kTable[] = {                                  \
      {small_float64, block_float64, large_float64},              \
      {small_float32, block_float32, large_float32},              \
      {small_float16, block_float16, large_float16},              \
      {small_bfloat16, block_bfloat16, large_bfloat16},           \
      {small_int8, block_int8, large_int8},                       \
      {small_int16, block_int16, large_int16},                    \
      {small_int32, block_int32, large_int32},                    \
      {small_int64, block_int64, large_int64},                    \
      {small_uint8, block_uint8, large_uint8}};

namespace plain {
MSDUMP_KERNELS(, false, false)
}
#if defined(__x86_64__)
namespace avx2 {
MSDUMP_KERNELS(__attribute__((target("avx2"))), true, false)
}
namespace avx512 {
MSDUMP_KERNELS(__attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))), true, true)
}
#endif

struct Chosen {
  const Kernels* table = plain::kTable;
  int64_t (*ones)(const uint8_t*, int64_t) = plain::ones_in;
  const char* name = "plain";

  Chosen() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return;
    table = avx2::kTable, ones = avx2::ones_in, name = "avx2";
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      table = avx512::kTable, ones = avx512::ones_in, name = "avx512";
    }
#endif
  }
};

const Chosen kChosen;

}  // namespace

const Kernels* kernels_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double: return kChosen.table;
    case c10::ScalarType::Float: return kChosen.table + 1;
    case c10::ScalarType::Half: return kChosen.table + 2;
    case c10::ScalarType::BFloat16: return kChosen.table + 3;
    case c10::ScalarType::Char: return kChosen.table + 4;
    case c10::ScalarType::Short: return kChosen.table + 5;
    case c10::ScalarType::Int: return kChosen.table + 6;
    case c10::ScalarType::Long: return kChosen.table + 7;
    case c10::ScalarType::Byte: return kChosen.table + 8;
    default: return nullptr;
  }
}

int64_t ones(const uint8_t* values, int64_t count) { return kChosen.ones(values, count); }

const char* instructions() { return kChosen.name; }

}  // namespace msdump
