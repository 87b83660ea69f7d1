// What Python sees; msdump_native.pyi documents it.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/tensor_memoryformats.h>
#include <torch/version.h>

#include "device_statistics.h"
#include "kernels.h"
#include "observer.h"
#include "row_texts.h"
#include "statistics.h"

namespace py = pybind11;

namespace msdump {
namespace {

// An array of numpy's that has taken a vector over.
template <class T>
py::array_t<T> array_of(std::vector<T>&& values) {
  auto* own = new std::vector<T>(std::move(values));
  py::capsule owner(own, [](void* each) { delete static_cast<std::vector<T>*>(each); });
  return py::array_t<T>(py::ssize_t(own->size()), own->data(), owner);
}

// By PyTorch's caster: the header with its test for tensors takes a third of the time that this file takes to compile.
at::Tensor tensor_of(const py::object& value) {
  py::detail::type_caster<at::Tensor> caster;
  if (!caster.load(value, false)) {
    throw py::type_error("msdump_native.measure: expected a torch.Tensor, got something else.");
  }
  return py::detail::cast_op<at::Tensor>(caster);
}

py::array_t<Statistics> measure_one(const py::object& value) {
  const at::Tensor tensor = tensor_of(value);
  // A table of its own: what cannot be read is refused for the same reasons.
  Tensors table;
  uint8_t reason = 0;
  table.add(tensor, true, reason);
  Tensors::New found = table.taken();
  if (!reason && !found.kept.empty()) reason = kDtype;
  if (reason) {
    throw py::value_error(
        std::string("msdump_native.measure: expected a plain tensor of real numbers, got one of another kind (") +
        kReasons[reason] + "). Convert it first.");
  }
  return array_of(std::move(found.measurements));
}

py::list sites_of(const std::vector<CallSites::Site>& sites) {
  py::list result;
  for (const CallSites::Site& site : sites) {
    py::list frames;
    for (const CallSites::Frame& frame : site.frames) {
      frames.append(py::make_tuple(
          py::reinterpret_borrow<py::object>(frame.code->co_filename),
          py::reinterpret_borrow<py::object>(frame.code->co_name), frame.code->co_firstlineno,
          PyCode_Addr2Line(frame.code, frame.instruction), frame.instruction));
    }
    result.append(py::make_tuple(site.hash, site.inner_count, py::tuple(frames)));
  }
  return result;
}

std::string_view text_of(PyObject* value) {
  if (!PyUnicode_Check(value)) {
    throw py::type_error("msdump_native.Frames: expected texts in `heads` and `tails`, got something else.");
  }
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(value, &size);
  if (!data) throw py::error_already_set();
  return {data, size_t(size)};
}

// Numbers of the tensors of an iteration, as Python holds them.
struct Numbers {
  std::shared_ptr<Measurements> own;

  size_t size() const {
    const std::lock_guard<std::mutex> lock(own->mutex);
    return own->numbers.size();
  }

  // Copies.
  py::tuple since(size_t first, size_t last) const {
    const std::lock_guard<std::mutex> lock(own->mutex);
    last = std::min(last, own->numbers.size()), first = std::min(first, last);
    const py::ssize_t count = py::ssize_t(last - first);
    return py::make_tuple(
        py::array_t<Statistics>(count, own->numbers.data() + first),
        py::array_t<bool>(count, reinterpret_cast<const bool*>(own->are_integers.data()) + first));
  }

  void add(const py::array_t<Statistics, 0>& numbers, const py::array_t<bool, 0>& are_integers) {
    if (numbers.ndim() != 1 || are_integers.ndim() != 1 || numbers.size() != are_integers.size()) {
      throw py::value_error("msdump_native.Numbers.add: expected two arrays of one length.");
    }
    const std::lock_guard<std::mutex> lock(own->mutex);
    for (py::ssize_t each = 0; each < numbers.size(); ++each) {
      own->numbers.push_back(*numbers.data(each));
      own->are_integers.push_back(*are_integers.data(each));
    }
  }

  void put(size_t place, const py::array_t<Statistics, 0>& record, bool is_integer) {
    const std::lock_guard<std::mutex> lock(own->mutex);
    own->numbers.at(place) = *record.data(0);
    own->are_integers.at(place) = is_integer;
  }
};

// Lines: what stands before the time stamp, this, what stands behind it, the columns of a measured tensor, and the end.
struct Frames {
  std::string text;            // heads and tails by turns
  std::vector<size_t> ends;    // of these
  std::vector<size_t> places;  // of the tensor of each line

  Frames(const py::list& heads, const py::list& tails, std::vector<size_t> places_) : places(std::move(places_)) {
    if (tails.size() != heads.size() || places.size() != heads.size()) {
      throw py::value_error("msdump_native.Frames: expected `heads`, `tails` and `places` of one length.");
    }
    for (size_t row = 0; row < places.size(); ++row) {
      for (const py::list* each : {&heads, &tails}) {
        text += text_of(PyList_GET_ITEM(each->ptr(), py::ssize_t(row)));
        ends.push_back(text.size());
      }
    }
  }

  py::str lines(const Numbers& numbers, int64_t first_stamp, const std::vector<std::string>& attributes,
                const std::string& end) const {
    std::vector<Column> columns;
    for (const std::string& each : attributes) {
      const auto* found = std::find(std::begin(kColumns), std::end(kColumns), each);
      if (found == std::end(kColumns)) {
        throw py::value_error("msdump_native.Frames.lines: expected attributes of Statistics, got " + each + ".");
      }
      columns.push_back(Column(found - std::begin(kColumns)));
    }
    const std::lock_guard<std::mutex> lock(numbers.own->mutex);
    const std::vector<Statistics>& measured = numbers.own->numbers;
    // A tensor stands in several rows: from where to where its text is in `columns_text`.
    std::vector<std::pair<size_t, size_t>> known(measured.size(), {0, 0});
    std::string columns_text, result;
    result.reserve(text.size() + places.size() * (20 + 14 * columns.size()));
    for (size_t row = 0; row < places.size(); ++row) {
      const size_t place = places[row];
      if (place >= measured.size()) {
        throw py::value_error("msdump_native.Frames.lines: expected places of numbers, got " + std::to_string(place));
      }
      auto& [first, last] = known[place];
      if (last == 0) {
        first = columns_text.size();
        append_columns(columns_text, measured[place], numbers.own->are_integers[place], columns);
        columns_text += end;
        last = columns_text.size();
      }
      const size_t start = row ? ends[2 * row - 1] : 0;
      result.append(text, start, ends[2 * row] - start);
      result += std::to_string(first_stamp + int64_t(row));
      result.append(text, ends[2 * row], ends[2 * row + 1] - ends[2 * row]);
      result.append(columns_text, first, last - first);
    }
    return py::str(result);
  }
};

// Operators whose floats are others than those of another batch with an equal key; NaN is equal to itself.
std::vector<size_t> changed(const Observer::Key& key, const Observer::Key& other) {
  std::vector<size_t> result;
  size_t index = 0;
  for (size_t place = 0; place < key.numbers.size() && place < other.numbers.size(); ++place) {
    const double one = key.numbers[place], two = other.numbers[place];
    if (one == two || (one != one && two != two)) continue;
    while (key.ends[index] <= place) ++index;
    if (result.empty() || result.back() != index) result.push_back(index);
  }
  return result;
}

// What Python holds: when it lets go, the observer is off, even where a callback holds it for a moment more.
struct Handle {
  std::shared_ptr<Observer> own;
  explicit Handle(std::shared_ptr<Observer> observer) : own(std::move(observer)) {}
  ~Handle() {
    try {
      own->disable();
    } catch (...) {
    }
  }
};

// Arguments of a batch that are no tensors; Python's objects are made when they are asked for.
struct Arguments {
  std::vector<c10::IValue> values;
  std::vector<const Operator*> of;
  std::vector<uint32_t> firsts;

  // By name, as a dispatch mode is given them: without defaults at the end of those by position, and of any by keyword.
  py::dict at(size_t index) const {
    const Operator& op = *of.at(index);
    const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
    py::dict result;
    if (!handle) return result;
    const auto& arguments = handle->schema().arguments();
    auto is_default = [&](size_t place) {
      const auto& wanted = arguments[place].default_value();
      return wanted && is_same(*wanted, values[firsts[index] + place]);
    };
    size_t positional = 0;
    for (const auto& argument : arguments) positional += !argument.kwarg_only();
    while (positional && is_default(positional - 1)) --positional;
    for (size_t place = 0; place < arguments.size(); ++place) {
      if (arguments[place].kwarg_only() ? is_default(place) : place >= positional) continue;
      const c10::IValue& value = values[firsts[index] + place];
      if (value.isTensor()) continue;
      result[py::str(arguments[place].name())] = object_of(value, *arguments[place].real_type());
    }
    return result;
  }

  static bool is_same(const c10::IValue& one, const c10::IValue& other) {
    if (one.isNone() || other.isNone()) return one.isNone() && other.isNone();
    if (one.isTensor() || other.isTensor()) return false;
    if (one.isScalar() && other.isScalar()) {
      const c10::Scalar left = one.toScalar(), right = other.toScalar();
      return !left.isComplex() && !right.isComplex() && left.toDouble() == right.toDouble();
    }
    if (one.isList() && other.isList()) {
      const auto left = one.toListRef(), right = other.toListRef();
      if (left.size() != right.size()) return false;
      for (size_t index = 0; index < left.size(); ++index) {
        if (!is_same(left[index], right[index])) return false;
      }
      return true;
    }
    return one.tagKind() == other.tagKind() && one == other;
  }

  // PyTorch's casters of these are not in all its versions.
  template <class T>
  static py::object object_from(T* value) {
    return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(value));
  }

  static py::object object_of(const c10::IValue& value, const c10::Type& type) {
    if (value.isNone()) return py::none();
    if (type.kind() == c10::TypeKind::OptionalType) return object_of(value, *type.containedType(0));
    if (value.isInt()) {
      const int64_t number = value.toInt();
      switch (type.kind()) {
        case c10::TypeKind::ScalarTypeType:
          return object_from(torch::getTHPDtype(static_cast<at::ScalarType>(number)));
        case c10::TypeKind::LayoutType: return object_from(torch::getTHPLayout(static_cast<at::Layout>(number)));
        case c10::TypeKind::MemoryFormatType:
          return object_from(torch::utils::getTHPMemoryFormat(static_cast<at::MemoryFormat>(number)));
        default: return py::int_(number);
      }
    }
    if (value.isBool()) return py::bool_(value.toBool());
    if (value.isDouble()) return py::float_(value.toDouble());
    if (value.isString()) return py::str(value.toStringRef());
    if (value.isDevice()) return py::cast(value.toDevice());
    if (value.isList()) {
      py::list items;
      const auto element = type.containedTypeSize() ? type.containedType(0) : c10::TypePtr();
      for (const c10::IValue& item : value.toListRef()) items.append(object_of(item, element ? *element : type));
      return items;
    }
    return py::str(value.type()->str());
  }
};

py::dict take(Handle& handle) {
  {
    // Devices may have much to do yet.
    const py::gil_scoped_release released;
    handle.own->settle();
  }
  Observer::Batch batch = handle.own->take();
  py::dict skipped;
  for (int reason = 1; reason < kReasonCount; ++reason) {
    if (batch.skipped[reason]) skipped[kReasons[reason]] = batch.skipped[reason];
  }
  Arguments arguments{std::move(batch.arguments), std::move(batch.of), {}};
  for (const OperatorRecord& each : batch.operators) arguments.firsts.push_back(each.first_argument);
  py::dict result;
  result["arguments"] = std::move(arguments);
  result["operators"] = array_of(std::move(batch.operators));
  result["operands"] = array_of(std::move(batch.operands));
  result["numbers"] = array_of(std::move(batch.numbers));
  result["tensors"] = array_of(std::move(batch.tensors.tensors));
  result["measurements"] = array_of(std::move(batch.tensors.measurements));
  result["dimensions"] = array_of(std::move(batch.tensors.dimensions));
  py::list kept;
  for (Tensors::Kept& each : batch.tensors.kept) {
    kept.append(py::make_tuple(each.measurement, py::cast(std::move(each.elements)), each.is_negative));
  }
  result["kept"] = std::move(kept);
  result["first_tensor"] = batch.tensors.first_tensor;
  result["first_measurement"] = batch.tensors.first_measurement;
  result["first_dimension"] = batch.tensors.first_dimension;
  result["sites"] = sites_of(batch.sites);
  result["names"] = batch.names;
  result["node_names"] = batch.node_names;
  result["skipped"] = skipped;
  result["measure_ns"] = batch.measure_ns;
  result["failure"] = batch.failure;
  return result;
}

std::unique_ptr<Handle> make_observer(
    bool measures, const py::tuple& stops, const std::vector<std::string>& passed_files,
    const std::vector<std::string>& own_folders, int max_frames) {
  for (const py::handle& each : stops) {
    if (!PyCode_Check(each.ptr())) {
      throw py::type_error(
          "msdump_native.Observer: expected code objects as `stops`, got something else. Give `function.__code__`.");
    }
  }
  return std::make_unique<Handle>(std::make_shared<Observer>(measures, stops.ptr(), passed_files, own_folders, max_frames));
}

}  // namespace
}  // namespace msdump

PYBIND11_MODULE(_msdump_native, module) {
  using namespace msdump;
  PYBIND11_NUMPY_DTYPE(
      OperatorRecord, name, first_operand, operand_count, first_number, number_count, node_name, node, node_sequence,
      first_sequence, last_sequence, site, thread, start_ns, duration_ns, key, first_argument, scope, has_grad, has_raised,
      is_from_autograd);
  PYBIND11_NUMPY_DTYPE(OperandRecord, implementation, tensor, element, argument, role, is_written, reason);
  PYBIND11_NUMPY_DTYPE(
      TensorRecord, storage, offset, version, first_dimension, measurement, memory, dimension_count, dtype,
      is_conjugate, is_negative);
  PYBIND11_NUMPY_DTYPE(
      Statistics, maximum, minimum, integer_maximum, integer_minimum, sum, squares, average, norm, count, negative,
      positive, zero, nan, negative_inf, positive_inf, size_bytes);
  module.attr("TORCH_VERSION") = MSDUMP_TORCH_VERSION;
  module.attr("INSTRUCTIONS") = instructions();
  py::list reasons;
  for (const char* reason : kReasons) reasons.append(reason);
  module.attr("REASONS") = reasons;
  module.def("measure", &measure_one);
  module.def("load_cuda", [](int device, const py::bytes& binary) {
    DeviceStatistics::load(device, std::string(binary));
  }, py::arg("device"), py::arg("binary"));
  py::class_<Numbers>(module, "Numbers")
      .def(py::init([] { return Numbers{std::make_shared<Measurements>()}; }))
      .def("__len__", &Numbers::size)
      .def("since", &Numbers::since, py::arg("first"), py::arg("last"))
      .def("add", &Numbers::add, py::arg("numbers"), py::arg("are_integers"))
      .def("put", &Numbers::put, py::arg("place"), py::arg("record"), py::arg("is_integer"));
  py::class_<Frames>(module, "Frames")
      .def(py::init<const py::list&, const py::list&, std::vector<size_t>>(), py::arg("heads"), py::arg("tails"),
           py::arg("places"))
      .def("lines", &Frames::lines, py::arg("numbers"), py::arg("first_stamp"), py::arg("attributes"), py::arg("end"));
  py::class_<Observer::Key>(module, "Key")
      .def("__eq__", [](const Observer::Key& one, const Observer::Key& other) { return one.bytes == other.bytes; })
      .def("changed", &changed, py::arg("other"));
  py::class_<Arguments>(module, "Arguments").def("of", &Arguments::at);
  py::class_<Handle>(module, "Observer")
      .def(py::init(&make_observer), py::kw_only(), py::arg("measures") = true, py::arg("stops") = py::tuple(),
           py::arg("passed_files") = std::vector<std::string>(), py::arg("own_folders") = std::vector<std::string>(),
           py::arg("max_frames") = 16)
      .def("enable", [](Handle& handle) { handle.own->enable(); })
      .def("disable", [](Handle& handle) { handle.own->disable(); })
      .def("begin_iteration", [](Handle& handle) { handle.own->begin_iteration(); })
      .def("take", &take)
      .def("key", [](Handle& handle, const std::string& state) {
        {
          const py::gil_scoped_release released;
          handle.own->settle();
        }
        return handle.own->key(state);
      }, py::arg("state"))
      .def("drop", [](Handle& handle) { handle.own->drop(); })
      .def("name_parameters", [](Handle& handle, std::unordered_map<uint64_t, uint32_t> numbers) {
        handle.own->name_parameters(std::move(numbers));
      }, py::arg("numbers"))
      .def("lie_at", [](Handle& handle, const py::list& tensors, const std::vector<uint32_t>& places) {
        for (size_t each = 0; each < places.size(); ++each) {
          if (!handle.own->lies_at(tensor_of(tensors[each]), places[each])) return false;
        }
        return true;
      }, py::arg("tensors"), py::arg("places"))
      .def_property_readonly("count", [](const Handle& handle) { return handle.own->count(); })
      .def_property_readonly("has_kept", [](const Handle& handle) { return handle.own->has_kept(); })
      .def_property_readonly("failure", [](const Handle& handle) { return handle.own->failure(); })
      .def_property_readonly("first_sequence", [](const Handle& handle) { return handle.own->first_sequence(); })
      .def_property_readonly("numbers", [](const Handle& handle) { return Numbers{handle.own->measurements()}; })
      .def("expect", [](Handle& handle, const py::array_t<uint64_t>& keys, const py::array_t<uint8_t>& are_measured) {
        if (keys.size() != are_measured.size()) {
          throw py::value_error("msdump_native.Observer.expect: expected two arrays of one length.");
        }
        handle.own->expect({keys.data(), keys.data() + keys.size()},
                           {are_measured.data(), are_measured.data() + are_measured.size()});
      }, py::arg("keys"), py::arg("are_measured"))
      .def("keep", [](Handle& handle, bool keeps) { handle.own->keep(keeps); }, py::arg("keeps"))
      .def("set_handler", [](Handle& handle, py::object handler) {
        Observer& own = *handle.own;
        PyObject* before = own.handler;
        own.handler = handler.is_none() ? nullptr : handler.release().ptr();
        Py_XDECREF(before);
      })
      .def_property("asks", [](const Handle& handle) { return handle.own->asks.load(); },
                    [](Handle& handle, bool value) { handle.own->asks = value; })
      .def_property("scope", [](const Handle& handle) { return handle.own->scope.load(); },
                    [](Handle& handle, int32_t value) { handle.own->scope = value; })
      .def_property_readonly("is_enabled", [](Handle& handle) { return handle.own->is_enabled(); });
}
