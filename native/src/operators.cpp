#include "operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstring>

namespace msdump {
namespace {

// They write the running mean and variance of which their schemas say that they are only read.
bool writes_unsaid(const std::string& name, const std::string& argument) {
  const bool is_batch_norm =
      name == "aten::native_batch_norm" || name == "aten::cudnn_batch_norm" || name == "aten::miopen_batch_norm";
  return is_batch_norm && (argument == "running_mean" || argument == "running_var");
}

}  // namespace

const Operator* Operators::find(const at::RecordFunction& function) {
  const char* name = function.name();
  const char* overload = function.overload_name();
  const uint32_t next = uint32_t(operators_.size());
  // The text as well: a schema may be gone, and its memory another's.
  const uint64_t hash = mixed(0, reinterpret_cast<uintptr_t>(name));
  const uint32_t found = places_.find(hash, [&](uint32_t index) {
    const Operator& other = operators_[index];
    return other.key == name && other.name == name && other.overload == overload;
  });
  if (found != kMissing) return &operators_[found];
  const Operator* added = looked_up(name, overload);
  if (added) places_.find_or_add(hash, next, [](uint32_t) { return false; });
  return added;
}

const Operator* Operators::looked_up(const char* name, const char* overload) {
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle || handle->schema().name().c_str() != name) return nullptr;
  const c10::FunctionSchema& schema = handle->schema();
  using c10::DispatchKey;
  const auto has = [&](DispatchKey key) { return handle->hasKernelForDispatchKey(key); };
  const auto acts = [&](DispatchKey key) { return has(key) && !handle->isKernelFallthroughKernel(key); };

  Operator own{};
  own.key = name, own.name = name, own.overload = overload;
  own.is_composite = has(DispatchKey::CompositeImplicitAutograd) && !has(DispatchKey::CPU) &&
      !has(DispatchKey::CompositeExplicitAutograd) && !has(DispatchKey::CompositeExplicitAutogradNonFunctional) &&
      !has(DispatchKey::AutogradCPU);
  own.has_autocast = acts(DispatchKey::AutocastCPU);
  own.has_autograd = acts(DispatchKey::AutogradCPU) || acts(DispatchKey::Autograd);
  // Source: PyTorch, VariableTypeManual.cpp: the only one that changes what autograd knows and nothing else.
  own.ends_above = own.name == "aten::detach_";
  own.argument_count = schema.arguments().size(), own.result_count = schema.returns().size();
  for (const c10::Argument& argument : schema.arguments()) {
    const bool is_written = argument.alias_info() && argument.alias_info()->isWrite();
    own.is_written.push_back(is_written || writes_unsaid(own.name, argument.name()));
    own.is_keyword.push_back(argument.kwarg_only());
  }
  own.name_index = uint32_t(names.size());
  std::string shown = own.name;
  const size_t colons = shown.find("::");
  if (colons != std::string::npos) shown.replace(colons, 2, ".");
  names.push_back(shown + "." + (own.overload.empty() ? "default" : own.overload));
  operators_.push_back(std::move(own));
  return &operators_.back();
}

}  // namespace msdump
