// Sees the operators of a thread, and of threads that autograd lends to it, by callbacks of PyTorch's RecordFunction.
#pragma once

#include <Python.h>

#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "call_sites.h"
#include "operators.h"
#include "records.h"
#include "tensors.h"

namespace msdump {

// An operator that runs. Frames are used again, with the memory that they have.
struct Frame {
  const Operator* op = nullptr;
  uint64_t generation = 0;
  bool measures = true;
  bool has_autograd = false;  // the kernel of autograd runs, until it hands on to the operator itself
  int uncaught = 0;
  OperatorRecord record{};
  std::vector<OperandRecord> operands;
  std::vector<double> numbers;
  std::vector<c10::IValue> arguments;
  struct Written {
    at::Tensor tensor;
    int32_t element;
    uint16_t argument;
  };
  std::vector<Written> written;
};

class Observer : public std::enable_shared_from_this<Observer> {
 public:
  Observer(bool measures, PyObject* stops, const std::vector<std::string>& passed_files,
           const std::vector<std::string>& own_folders, int max_frames);

  // Raise std::runtime_error where another one is on, or this one is on in another thread.
  void enable();
  void disable();
  bool is_enabled() const;

  // The memory of all tensors is forgotten.
  void begin_iteration();

  // Called, with the GIL, before an operator that runs in another state than the last one: whether autograd runs it,
  // and whether autograd records. It is called before each operator where `asks`.
  PyObject* handler = nullptr;  // held
  std::atomic<bool> asks{true}, is_muted{false};
  std::atomic<int> state{0};
  std::atomic<int32_t> scope{0};
  // Whether the operator is to be recorded. Not with the lock.
  bool ask(const Operator& op, bool has_node);

  // Whether tensors are copied in the place of being measured. Between two iterations.
  void keep(bool keeps);

  // What is to run until the next `take`, by `key` of its records, and which of them are to be measured. From the first
  // operator on that is another one, all are.
  void expect(std::vector<uint64_t> keys, std::vector<uint8_t> are_measured);

  struct Batch {
    std::vector<OperatorRecord> operators;
    std::vector<OperandRecord> operands;
    std::vector<double> numbers;
    std::vector<c10::IValue> arguments;  // an undefined tensor stands for what holds tensors
    std::vector<const Operator*> of;     // by operator
    Tensors::New tensors;
    std::vector<CallSites::Site> sites;
    std::vector<std::string> names, node_names;
    std::array<int64_t, kReasonCount> skipped;
    int64_t measure_ns;
    std::string failure;
  };
  Batch take();

  // What names, edges and rows of all that was seen since the last `take` or `drop` follow from, and its floats.
  struct Key {
    std::string bytes;
    std::vector<double> numbers;
    std::vector<uint32_t> ends;  // of the numbers of each operator
  };
  Key key(const std::string& state);
  // All of that is known: the operators are forgotten, and tensors wait for the next `take`.
  void drop();
  size_t count() const { return records_.size(); }
  int64_t first_sequence() const { return first_sequence_; }
  // Parameters by the address of their own object, each with a number.
  void name_parameters(std::unordered_map<uint64_t, uint32_t> parameters);
  std::shared_ptr<Measurements> measurements() const { return tensors_.measurements(); }
  std::string failure() const { return failure_; }
  bool has_kept() const { return tensors_.has_kept(); }
  bool lies_at(const at::Tensor& tensor, uint32_t place) const;

  // Wait for devices that measure; without the GIL.
  void settle();

  // What the callbacks do.
  uint64_t site() { return sites_.current(); }
  void begin(
      const at::RecordFunction& function, const Operator& op, bool has_autograd, uint64_t site, Frame& frame);
  void end(const at::RecordFunction& function, Frame& frame, bool has_raised);
  void fail(const char* message) noexcept;
  const Operator* find(const at::RecordFunction& function) { return operators_.find(function); }

 private:
  void add_operand(Frame& frame, const at::Tensor& tensor, size_t place, int32_t element, Role role, bool is_written);
  void add_node(OperatorRecord& record);
  uint64_t key_of(const OperatorRecord& record) const;
  bool is_measured(const OperatorRecord& record);

  bool measures_;
  std::vector<uint64_t> expected_;
  std::vector<uint8_t> are_measured_;
  size_t expected_at_ = 0;
  int64_t first_sequence_ = -1;  // of the iteration
  Operators operators_;
  Tensors tensors_;
  CallSites sites_;
  std::vector<OperatorRecord> records_;
  std::vector<OperandRecord> operands_;
  std::vector<double> numbers_;
  std::vector<c10::IValue> arguments_;
  std::vector<const Operator*> of_;
  std::unordered_map<std::type_index, uint32_t> node_places_;
  std::vector<std::string> node_names_;
  std::unordered_map<uint64_t, uint32_t> parameters_;
  std::string failure_;
};

}  // namespace msdump
