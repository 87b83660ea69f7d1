// The code of Python's that runs an operator, as a number: of frames up to one of the codes at which they end, and where
// these are none of a script's, of those outside up to the first that is: its line is shown.
#pragma once

#include <Python.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "index_map.h"

namespace msdump {

// All functions need the GIL but `current`, which takes it: PyTorch calls operators without.
class CallSites {
 public:
  struct Frame {
    PyCodeObject* code;  // held
    int instruction;
  };
  struct Site {
    uint64_t hash;
    size_t inner_count;  // of these frames, the first so many tell sites apart
    std::vector<Frame> frames;  // innermost first, up to the outermost or to kShown
  };

  CallSites(PyObject* stops, const std::vector<std::string>& passed_files, const std::vector<std::string>& own_folders,
            int max_frames);
  ~CallSites();

  // Of what runs now; 0 where no frame is left, as where autograd runs it, and in threads that Python does not know.
  // Call it without a lock that another thread may wait for while it holds the GIL.
  uint64_t current();

  // Those met for the first time since the last call. Their codes stay held here.
  std::vector<Site> new_sites();

 private:
  static constexpr size_t kShown = 256, kMaxCodes = 1 << 16;
  enum Kind : uint8_t { kPlain, kPassed, kStop };
  struct Code {
    PyCodeObject* code;  // held, so that no other code gets its address
    uint64_t hash;
    Kind kind;
    bool is_script;
  };

  const Code& code_of(PyCodeObject* code);
  void note(uint64_t hash, size_t inner_count);

  std::vector<Code> codes_;
  IndexMap code_places_, site_places_;
  std::vector<uint64_t> hashes_;
  std::vector<Site> new_;
  std::vector<PyObject*> held_;
  std::unordered_set<PyObject*> stops_;
  std::unordered_set<std::string> passed_;
  std::vector<std::string> own_folders_;
  int max_frames_;
};

}  // namespace msdump
