// What the dispatcher knows of an operator, looked up once for each.
#pragma once

#include <ATen/record_function.h>

#include <deque>
#include <string>
#include <vector>

#include "index_map.h"

namespace msdump {

struct Operator {
  const char* key;  // where its schema holds its name
  std::string name, overload;
  uint32_t name_index;
  bool is_composite;   // without a kernel of its own: made of other operators, above autograd
  bool has_autocast;   // autocast runs it again, on other tensors
  bool ends_above;     // the kernel of autograd does all of it
  bool has_autograd;   // autograd has a kernel for it, which may run other operators
  size_t argument_count, result_count;
  std::vector<uint8_t> is_written, is_keyword;  // by argument
};

class Operators {
 public:
  // Null for a function that is no operator.
  const Operator* find(const at::RecordFunction& function);

  // "aten.addmm.default", by `name_index`.
  std::vector<std::string> names;

 private:
  const Operator* looked_up(const char* name, const char* overload);

  IndexMap places_;
  std::deque<Operator> operators_;  // they stay where they are
};

}  // namespace msdump
