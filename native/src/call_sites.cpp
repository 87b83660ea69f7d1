#include "call_sites.h"

#include <frameobject.h>

namespace msdump {
namespace {

int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * 2;
#endif
}

// Whether a file is none of the folders', and of no package that was installed.
bool is_outside(const std::string& file, const std::vector<std::string>& folders) {
  for (const std::string& each : folders) {
    if (file.compare(0, each.size(), each) == 0) return false;
  }
  return file.find("site-packages") == std::string::npos && file.find("dist-packages") == std::string::npos;
}

uint64_t hash_of(const char* text, size_t size) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t index = 0; index < size; ++index) hash = (hash ^ uint8_t(text[index])) * 0x100000001B3u;
  return hash;
}

}  // namespace

CallSites::CallSites(
    PyObject* stops, const std::vector<std::string>& passed_files, const std::vector<std::string>& own_folders,
    int max_frames)
    : passed_(passed_files.begin(), passed_files.end()), own_folders_(own_folders), max_frames_(max_frames) {
  for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(stops); ++index) {
    PyObject* code = PyTuple_GET_ITEM(stops, index);
    Py_INCREF(code);
    held_.push_back(code);
    stops_.insert(code);
  }
}

CallSites::~CallSites() {
  const PyGILState_STATE state = PyGILState_Ensure();
  for (const Code& each : codes_) Py_DECREF(each.code);
  for (PyObject* each : held_) Py_DECREF(each);
  PyGILState_Release(state);
}

const CallSites::Code& CallSites::code_of(PyCodeObject* code) {
  const uint32_t next = uint32_t(codes_.size());
  const uint32_t place = code_places_.find_or_add(
      mixed(0, reinterpret_cast<uintptr_t>(code)), next, [&](uint32_t index) { return codes_[index].code == code; });
  if (place != next) return codes_[place];
  Py_ssize_t size = 0;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
  if (!file) {
    PyErr_Clear();
    file = "", size = 0;
  }
  Kind kind = stops_.count(reinterpret_cast<PyObject*>(code)) ? kStop : kPlain;
  if (kind == kPlain && passed_.count(std::string(file, size))) kind = kPassed;
  Py_INCREF(code);
  const bool is_script = own_folders_.empty() || is_outside(std::string(file, size), own_folders_);
  codes_.push_back({code, mixed(hash_of(file, size), uint64_t(code->co_firstlineno)), kind, is_script});
  return codes_.back();
}

uint64_t CallSites::current() {
  if (!PyGILState_GetThisThreadState()) return 0;
  struct Gil {
    PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
  } gil;
  if (codes_.size() > kMaxCodes) {
    // Code that is made again and again. What sites are known by stays.
    for (const Code& each : codes_) held_.push_back(reinterpret_cast<PyObject*>(each.code));
    codes_.clear();
    code_places_.clear();
    if (new_.empty()) {
      for (size_t index = stops_.size(); index < held_.size(); ++index) Py_DECREF(held_[index]);
      held_.resize(stops_.size());
    }
  }
  uint64_t hash = 0;
  int left = max_frames_, left_outside = max_frames_;
  // Whether frames inside of the code at which they end are looked at, and whether a script's has been met.
  bool is_inside = true, has_script = false;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && left && left_outside) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const Code& known = code_of(code);
    Py_DECREF(code);
    if (known.kind == kStop) {
      is_inside = false;
      if (has_script || left == max_frames_ || own_folders_.empty()) break;
    } else if (known.kind == kPlain) {
      hash = mixed(mixed(hash, known.hash), uint64_t(instruction_of(frame)));
      has_script |= known.is_script;
      --(is_inside ? left : left_outside);
      if (!is_inside && has_script) break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  if (left == max_frames_) return 0;
  hash += hash == 0;
  const uint32_t next = uint32_t(hashes_.size());
  if (site_places_.find_or_add(hash, next, [&](uint32_t index) { return hashes_[index] == hash; }) == next) {
    hashes_.push_back(hash);
    note(hash, size_t(max_frames_ - left));
  }
  return hash;
}

void CallSites::note(uint64_t hash, size_t inner_count) {
  Site site{hash, inner_count, {}};
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && site.frames.size() < kShown) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const Code& known = code_of(code);
    if (known.kind != kPassed) site.frames.push_back({known.code, instruction_of(frame)});
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  new_.push_back(std::move(site));
}

std::vector<CallSites::Site> CallSites::new_sites() {
  std::vector<Site> result;
  result.swap(new_);
  return result;
}

}  // namespace msdump
