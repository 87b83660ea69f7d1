// Records that Python takes as arrays of numpy's; see msdump_native.pyi.
#pragma once

#include <cstdint>

namespace msdump {

constexpr uint32_t kNone = 0xFFFFFFFF;

struct OperatorRecord {
  uint32_t name;
  uint32_t first_operand, operand_count;
  uint32_t first_number, number_count;
  uint32_t node_name;      // of the node of autograd that runs it; kNone
  uint64_t node;           // tells nodes of one backward pass apart; 0
  int64_t node_sequence;   // -1
  int64_t first_sequence, last_sequence;  // nodes that it has made have numbers from `first` to before `last`
  uint64_t site;           // 0 where no code of Python's runs
  uint64_t thread;         // as `threading.get_ident`
  int64_t start_ns, duration_ns;
  uint64_t key;             // of what is known of it before its operands
  uint32_t first_argument;  // of all its arguments, in those of the batch
  int32_t scope;           // as Python has set it
  uint8_t has_grad;        // whether autograd records
  uint8_t has_raised;
  uint8_t is_from_autograd;  // run by the kernel of another operator that derives, before or behind its own part
};

enum Role : uint8_t { kInput, kResultMemory, kOutput, kWritten };

struct OperandRecord {
  uint64_t implementation;  // address of the tensor's own object, `tensor._cdata`
  uint32_t tensor;   // kNone where it was skipped
  int32_t element;   // place in a list; -1
  uint16_t argument; // place of the argument or of the result in the schema
  uint8_t role;
  uint8_t is_written;
  uint8_t reason;    // why it was skipped, or was to be measured and was not
};

struct TensorRecord {
  uint64_t storage;  // address; no other storage has it in this iteration
  int64_t offset;    // in elements
  uint32_t version;
  uint32_t first_dimension;  // its sizes, then its strides
  uint32_t measurement;      // kNone where it has no statistics
  uint32_t memory;           // place of the storage among those of the iteration, by first use
  uint8_t dimension_count;
  int8_t dtype;              // c10::ScalarType
  uint8_t is_conjugate, is_negative;  // whether its values are those of what lies in memory
};

// Why a tensor has no record, or no statistics.
enum Reason : uint8_t {
  kRead, kFake, kSubclass, kWrapper, kLayout, kQuantized, kNested, kMeta, kDevice, kComplex, kDtype, kNoMemory,
  kCaptured, kReasonCount
};
constexpr const char* kReasons[kReasonCount] = {
    "", "FakeTensor", "tensor subclass", "wrapper of a transform", "layout", "quantized", "nested", "meta device",
    "device", "complex", "dtype", "no memory", "graph-captured"};

}  // namespace msdump
