#include "observer.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <pthread.h>
#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>

namespace msdump {
namespace {

using c10::DispatchKey;

// The one that is on. Callbacks of other threads, and those that outlive it, find null or another generation.
std::mutex mutex;
std::atomic<Observer*> active{nullptr};
std::shared_ptr<Observer>& owner() {  // of the active one; never destroyed, as threads may outlive what is static
  static auto* own = new std::shared_ptr<Observer>;
  return *own;
}
std::atomic<uint64_t> generation{0};

struct Thread {
  std::vector<std::unique_ptr<Frame>> frames;
  size_t depth = 0;  // operators that run and are told
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
};

Thread& this_thread() {
  static thread_local Thread own;
  return own;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Stands for a frame until the operator ends. It takes its memory from a list of its thread.
struct Token : at::ObserverContext {
  explicit Token(size_t index) : index(index) {}
  ~Token() override {
    // Also where no end is told of.
    Thread& own = this_thread();
    if (own.depth > index) {
      for (size_t each = index; each < own.depth; ++each) own.frames[each]->written.clear();
      own.depth = index;
    }
  }

  struct Pool {
    std::vector<void*> free;
    ~Pool() {
      for (void* each : free) ::operator delete(each);
    }
  };
  static Pool& pool() {
    static thread_local Pool own;
    return own;
  }
  static void* operator new(size_t size) {
    std::vector<void*>& free = pool().free;
    if (free.empty()) return ::operator new(size);
    void* memory = free.back();
    free.pop_back();
    return memory;
  }
  static void operator delete(void* memory) {
    std::vector<void*>& free = pool().free;
    if (free.size() < 64) free.push_back(memory);
    else ::operator delete(memory);
  }

  size_t index;
};

// -- which operators are told -------------------------------------------------------------------------------------------

struct Inputs {
  bool has_autograd_key = false, has_autocast_key = false, has_wrapper = false;
};

template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined()) visit(tensor, -1);
  } else if (value.isList()) {
    const c10::ArrayRef<c10::IValue> items = value.toListRef();
    for (size_t index = 0; index < items.size(); ++index) {
      if (!items[index].isTensor()) {
        if (items[index].isNone()) continue;
        return;
      }
      const at::Tensor& tensor = items[index].toTensor();
      if (tensor.defined()) visit(tensor, int32_t(index));
    }
  }
}

const c10::DispatchKeySet kWrappers({DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper});

Inputs look_at(c10::ArrayRef<const c10::IValue> arguments) {
  Inputs found;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor, int32_t) {
      const c10::DispatchKeySet keys = tensor.key_set();
      found.has_autograd_key |= keys.has(DispatchKey::AutogradFunctionality);
      found.has_wrapper |= keys.has_any(kWrappers);
      found.has_autocast_key |= keys.has(DispatchKey::AutocastCPU);
    });
  }
  return found;
}

c10::ArrayRef<const c10::IValue> arguments_of(const at::RecordFunction& function, const Operator& op) {
  // Of a call by the stack, all of it is shown: arguments are its top.
  const c10::ArrayRef<const c10::IValue> all = function.inputs();
  return all.size() > op.argument_count ? all.slice(all.size() - op.argument_count) : all;
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  Observer* observer = active.load(std::memory_order_acquire);
  if (!observer) return nullptr;
  Thread& own = this_thread();
  try {
    const c10::impl::LocalDispatchKeySet local = c10::impl::tls_local_dispatch_key_set();
    const bool is_below_autograd = local.excluded_.has(DispatchKey::AutogradFunctionality);
    // Where PyTorch makes a tensor of numbers, it keeps dispatch modes from seeing how.
    if (local.excluded_.has(DispatchKey::Python)) return nullptr;
    const bool is_inside = own.depth > 0;
    // Inside of an operator, only what the kernel of autograd runs before or behind it.
    if (is_inside && (is_below_autograd || !own.frames[own.depth - 1]->has_autograd)) return nullptr;
    if (local.included_.has(DispatchKey::FuncTorchDynamicLayerFrontMode) &&
        !local.excluded_.has(DispatchKey::FuncTorchDynamicLayerFrontMode)) {
      return nullptr;  // a transform runs it again, in parts
    }
    std::unique_lock<std::mutex> lock(mutex);
    if (active.load(std::memory_order_relaxed) != observer) return nullptr;
    const Operator* op = observer->find(function);
    if (!op) return nullptr;
    const auto arguments = arguments_of(function, *op);
    const Inputs inputs = look_at(arguments);
    const bool has_autograd = inputs.has_autograd_key && !is_below_autograd;
    const bool is_transformed = local.included_.has(DispatchKey::FuncTorchDynamicLayerBackMode);
    if ((op->is_composite || op->ends_above) && (has_autograd || is_transformed)) return nullptr;
    if (op->has_autocast && inputs.has_autocast_key && !local.excluded_.has(DispatchKey::AutocastCPU)) return nullptr;
    if (inputs.has_wrapper) return nullptr;  // a transform hands on to what is wrapped
    if (own.frames.size() == own.depth) own.frames.push_back(std::make_unique<Frame>());
    Frame& frame = *own.frames[own.depth];
    // The GIL comes before the lock: whoever holds it may wait for the lock.
    frame.generation = generation.load(std::memory_order_relaxed);
    // Another thread may give the observer up meanwhile.
    const std::shared_ptr<Observer> held = owner();
    lock.unlock();
    if (!is_inside && held->handler) {
      const bool has_node = torch::autograd::get_current_node() != nullptr;
      const int state = int(has_node) + 2 * int(c10::GradMode::is_enabled());
      if (held->asks || held->state != state) {
        const bool is_told = held->ask(*op, has_node);
        held->state = state;
        if (!is_told) return nullptr;
      } else if (held->is_muted) {
        return nullptr;
      }
    }
    const uint64_t site = held->site();
    lock.lock();
    if (frame.generation != generation.load(std::memory_order_relaxed)) return nullptr;
    observer->begin(function, *op, has_autograd && op->has_autograd, site, frame);
    frame.record.is_from_autograd = is_inside;
    std::unique_ptr<at::ObserverContext> token(new Token(own.depth));
    ++own.depth;
    frame.record.start_ns = now_ns();
    return token;
  } catch (const c10::Error& error) {
    observer->fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    observer->fail(error.what());
  } catch (...) {
    observer->fail("unknown exception");
  }
  return nullptr;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (!context) return;
  const int64_t end_ns = now_ns();
  Thread& own = this_thread();
  const size_t index = static_cast<Token*>(context)->index;
  if (index >= own.depth) return;
  Frame& frame = *own.frames[index];
  own.depth = index;
  Observer* observer = active.load(std::memory_order_acquire);
  try {
    std::lock_guard<std::mutex> lock(mutex);
    if (observer && active.load(std::memory_order_relaxed) == observer &&
        frame.generation == generation.load(std::memory_order_relaxed)) {
      frame.record.duration_ns = end_ns - frame.record.start_ns;
      const bool has_raised = std::uncaught_exceptions() > frame.uncaught ||
          (frame.op->result_count && function.outputs().empty());
      observer->end(function, frame, has_raised);
    }
  } catch (const c10::Error& error) {
    observer->fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    observer->fail(error.what());
  } catch (...) {
    observer->fail("unknown exception");
  }
  // Not under the lock: who gives a tensor up may wait for the GIL.
  frame.written.clear();
}

void install_fork_handlers() {
  static const int installed = pthread_atfork(
      [] { mutex.lock(); }, [] { mutex.unlock(); },
      [] {
        // A child process is another program: its callback does nothing.
        active.store(nullptr);
        ++generation;
        mutex.unlock();
      });
  (void)installed;
}

}  // namespace

// -- what is recorded ---------------------------------------------------------------------------------------------------

Observer::Observer(bool measures, PyObject* stops, const std::vector<std::string>& passed_files,
                   const std::vector<std::string>& own_folders, int max_frames)
    : measures_(measures), sites_(stops, passed_files, own_folders, max_frames) {}

bool Observer::is_enabled() const { return active.load() == this; }

void Observer::enable() {
  install_fork_handlers();
  Thread& own = this_thread();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (active.load() == this) return;
    if (active.load()) {
      throw std::runtime_error(
          "msdump_native.Observer.enable: expected no observer that is on, got another one. Disable it first.");
    }
    ++generation;
    owner() = shared_from_this();
    active.store(this);
  }
  // One that was left on in this thread by whoever disabled its observer elsewhere.
  if (own.callback != at::INVALID_CALLBACK_HANDLE) at::removeCallback(own.callback);
  own.callback = at::addThreadLocalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                                .needsInputs(true)
                                                .needsOutputs(true)
                                                .scopes({at::RecordScope::FUNCTION}));
}

void Observer::disable() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (active.load() != this) return;
    active.store(nullptr);
    owner().reset();
    ++generation;
  }
  Thread& own = this_thread();
  if (own.callback != at::INVALID_CALLBACK_HANDLE) {
    at::removeCallback(own.callback);
    own.callback = at::INVALID_CALLBACK_HANDLE;
  }
}

void Observer::fail(const char* message) noexcept {
  try {
    std::lock_guard<std::mutex> lock(mutex);
    if (active.load() != this) return;
    active.store(nullptr);
    if (failure_.empty()) failure_ = message;
    owner().reset();  // Python holds it still: otherwise it would be off
  } catch (...) {
    active.store(nullptr);
  }
}

bool Observer::ask(const Operator& op, bool has_node) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* answer =
      PyObject_CallFunction(handler, "sO", operators_.names[op.name_index].c_str(), has_node ? Py_True : Py_False);
  bool is_told = false;
  if (answer) {
    is_told = PyObject_IsTrue(answer) == 1;
    Py_DECREF(answer);
  } else {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject* text = value ? PyObject_Str(value) : nullptr;
    const char* message = text ? PyUnicode_AsUTF8(text) : nullptr;
    fail(message ? message : "the handler raised an error");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
  }
  is_muted = !is_told;
  PyGILState_Release(gil);
  return is_told;
}

void Observer::begin_iteration() {
  std::lock_guard<std::mutex> lock(mutex);
  tensors_.clear();
  expected_.clear();
  first_sequence_ = -1;
}

void Observer::keep(bool keeps) {
  std::lock_guard<std::mutex> lock(mutex);
  tensors_.keeps = keeps;
}

void Observer::expect(std::vector<uint64_t> keys, std::vector<uint8_t> are_measured) {
  std::lock_guard<std::mutex> lock(mutex);
  expected_ = std::move(keys), are_measured_ = std::move(are_measured);
  expected_at_ = 0;
}

uint64_t Observer::key_of(const OperatorRecord& record) const {
  uint64_t key = mixed(mixed(record.site, record.name), uint64_t(uint32_t(record.scope)));
  const uint64_t sequence = record.node_sequence < 0 ? 0 : uint64_t(record.node_sequence - first_sequence_) + 1;
  key = mixed(mixed(key, record.node_name), sequence);
  return mixed(key, record.has_grad + 2 * (record.node != 0));
}

bool Observer::is_measured(const OperatorRecord& record) {
  if (!measures_ || expected_.empty()) return measures_;
  if (expected_at_ < expected_.size() && expected_[expected_at_] == record.key) return are_measured_[expected_at_++];
  expected_.clear();
  return true;
}

void Observer::settle() {
  std::lock_guard<std::mutex> lock(mutex);
  tensors_.settle();
}

Observer::Batch Observer::take() {
  std::lock_guard<std::mutex> lock(mutex);
  Batch batch;
  expected_.clear();
  // Room for as many again: the next iteration is like this one.
  const size_t counts[] = {records_.size(), operands_.size(), numbers_.size()};
  batch.operators.swap(records_);
  batch.operands.swap(operands_);
  batch.numbers.swap(numbers_);
  batch.arguments.swap(arguments_);
  batch.of.swap(of_);
  arguments_.reserve(batch.arguments.size()), of_.reserve(batch.of.size());
  records_.reserve(counts[0]), operands_.reserve(counts[1]), numbers_.reserve(counts[2]);
  batch.tensors = tensors_.taken();
  batch.sites = sites_.new_sites();
  batch.names = operators_.names;
  batch.node_names = node_names_;
  batch.skipped = tensors_.skipped;
  batch.measure_ns = tensors_.measure_ns;
  batch.failure = failure_;
  return batch;
}

Observer::Key Observer::key(const std::string& state) {
  std::lock_guard<std::mutex> lock(mutex);
  Key key;
  std::string& text = key.bytes;
  text.reserve(state.size() + 64 * records_.size() + 80 * operands_.size());
  const auto append = [&](const auto& value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
  text = state;
  append(records_.size());
  for (const OperatorRecord& each : records_) {
    // Threads of autograd count for themselves, and go on from iteration to iteration.
    append(each.node_sequence < 0 ? int64_t(-1) : each.node_sequence - first_sequence_);
    append(each.has_grad ? each.last_sequence - first_sequence_ : int64_t(0));
    append(each.site), append(each.name), append(each.operand_count), append(each.number_count), append(each.scope);
    append(uint8_t(each.has_grad | each.has_raised << 1 | each.is_from_autograd << 2 | (each.node != 0) << 3));
    key.ends.push_back(each.first_number + each.number_count);
  }
  for (const OperandRecord& each : operands_) {
    const auto known = parameters_.find(each.implementation);
    append(known == parameters_.end() ? kNone : known->second);
    append(each.tensor), append(each.element), append(each.argument), append(each.role), append(each.is_written);
    append(each.reason);
    if (each.tensor != kNone && !tensors_.is_new(each.tensor)) tensors_.append_one(text, each.tensor);
  }
  tensors_.append_new(text);
  key.numbers = numbers_;
  return key;
}

void Observer::drop() {
  std::lock_guard<std::mutex> lock(mutex);
  expected_.clear();
  records_.clear(), operands_.clear(), numbers_.clear(), arguments_.clear(), of_.clear();
  tensors_.mark();
}

bool Observer::lies_at(const at::Tensor& tensor, uint32_t place) const {
  std::lock_guard<std::mutex> lock(mutex);
  return tensors_.lies_at(tensor, place);
}

void Observer::name_parameters(std::unordered_map<uint64_t, uint32_t> parameters) {
  std::lock_guard<std::mutex> lock(mutex);
  parameters_ = std::move(parameters);
}

void Observer::add_operand(
    Frame& frame, const at::Tensor& tensor, size_t place, int32_t element, Role role, bool is_written) {
  OperandRecord operand{reinterpret_cast<uintptr_t>(tensor.unsafeGetTensorImpl()), kNone, element, uint16_t(place), role, is_written, kRead};
  operand.tensor = tensors_.add(tensor, frame.measures && role != kResultMemory, operand.reason);
  frame.operands.push_back(operand);
}

void Observer::add_node(OperatorRecord& record) {
  const auto node = torch::autograd::get_current_node();
  if (!node) return;
  const auto& own = *node;
  record.node = reinterpret_cast<uintptr_t>(&own);
  record.node_sequence = int64_t(own.sequence_nr());
  const std::type_index type(typeid(own));
  const auto known = node_places_.find(type);
  if (known != node_places_.end()) {
    record.node_name = known->second;
    return;
  }
  // The name of a node of Python's takes the GIL; that of its type says that it is one.
  const std::string type_name = c10::demangle(type.name());
  record.node_name = uint32_t(node_names_.size());
  node_names_.push_back(type_name.find("PyNode") != std::string::npos ? type_name : own.name());
  node_places_.emplace(type, record.node_name);
}

namespace {

// A number that a tensor stands for. The tangent of one has no memory where it is zero.
template <typename T>
T number_of(const at::Tensor& tensor) {
  const bool has_memory = tensor.has_storage() && tensor.unsafeGetTensorImpl()->storage_initialized();
  return has_memory ? *tensor.const_data_ptr<T>() : T(0);
}

// An argument as Python shows it later: a number also where a tensor stands for it; a mark for what holds tensors.
c10::IValue number_or_mark(const c10::IValue& argument) {
  if (argument.isTensor()) {
    const at::Tensor& tensor = argument.toTensor();
    if (!tensor.defined()) return c10::IValue();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      switch (tensor.scalar_type()) {
        case c10::kDouble: return c10::IValue(number_of<double>(tensor));
        case c10::kLong: return c10::IValue(number_of<int64_t>(tensor));
        case c10::kBool: return c10::IValue(number_of<bool>(tensor));
        default: break;
      }
    }
    return c10::IValue(at::Tensor());
  }
  if (argument.isTensorList() || argument.isOptionalTensorList()) return c10::IValue(at::Tensor());
  return argument;
}

}  // namespace

void Observer::begin(const at::RecordFunction& function, const Operator& op, bool has_autograd, uint64_t site, Frame& frame) {
  frame.op = &op;
  frame.has_autograd = has_autograd;
  frame.uncaught = std::uncaught_exceptions();
  frame.operands.clear(), frame.numbers.clear(), frame.arguments.clear();
  OperatorRecord& record = frame.record;
  record = OperatorRecord{};
  record.name = op.name_index;
  record.node_name = kNone, record.node_sequence = -1;
  record.first_sequence = int64_t(at::sequence_number::peek());
  record.thread = uint64_t(pthread_self());
  record.scope = scope;
  record.has_grad = c10::GradMode::is_enabled();
  add_node(record);
  record.site = site;
  if (first_sequence_ < 0) first_sequence_ = record.first_sequence;
  record.key = key_of(record);
  frame.measures = is_measured(record);

  const auto arguments = arguments_of(function, op);
  for (size_t place = 0; place < arguments.size(); ++place) {
    const c10::IValue& argument = arguments[place];
    const bool is_written = op.is_written[place];
    const Role role = is_written && op.is_keyword[place] ? kResultMemory : kInput;
    frame.arguments.push_back(number_or_mark(argument));
    if (argument.isDouble()) {
      frame.numbers.push_back(argument.toDouble());
    } else if (argument.isDoubleList()) {
      for (double number : argument.toDoubleList().vec()) frame.numbers.push_back(number);
    } else {
      for_each_tensor(argument, [&](const at::Tensor& tensor, int32_t element) {
        if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
          // A number of Python's, which the dispatcher hands on as a tensor.
          if (tensor.scalar_type() == c10::kDouble) frame.numbers.push_back(number_of<double>(tensor));
          return;
        }
        add_operand(frame, tensor, place, element, role, is_written);
        if (is_written) frame.written.push_back({tensor, element, uint16_t(place)});
      });
    }
  }
}

void Observer::end(const at::RecordFunction& function, Frame& frame, bool has_raised) {
  // Also where it has raised: it may have written some of them.
  for (const Frame::Written& each : frame.written) tensors_.note_write(each.tensor);
  if (!has_raised) {
    const std::vector<c10::IValue>& outputs = function.outputs();
    const size_t count = std::min(outputs.size(), frame.op->result_count);
    for (size_t place = 0; place < count; ++place) {
      for_each_tensor(outputs[outputs.size() - count + place], [&](const at::Tensor& tensor, int32_t element) {
        add_operand(frame, tensor, place, element, kOutput, false);
      });
    }
    if (!frame.op->result_count) {
      // Operators on lists return nothing of what they write.
      for (const Frame::Written& each : frame.written) {
        add_operand(frame, each.tensor, each.argument, each.element, kWritten, true);
      }
    }
  }
  OperatorRecord& record = frame.record;
  record.has_raised = has_raised;
  record.last_sequence = int64_t(at::sequence_number::peek());
  record.first_operand = uint32_t(operands_.size()), record.operand_count = uint32_t(frame.operands.size());
  record.first_number = uint32_t(numbers_.size()), record.number_count = uint32_t(frame.numbers.size());
  operands_.insert(operands_.end(), frame.operands.begin(), frame.operands.end());
  numbers_.insert(numbers_.end(), frame.numbers.begin(), frame.numbers.end());
  record.first_argument = uint32_t(arguments_.size());
  for (c10::IValue& each : frame.arguments) arguments_.push_back(std::move(each));
  frame.arguments.clear();
  of_.push_back(frame.op);
  records_.push_back(record);
}

}  // namespace msdump
