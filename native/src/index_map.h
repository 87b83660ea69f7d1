// Places of records by their hash: open addressing, no memory of its own for each entry, emptied without being freed.
#pragma once

#include <cstdint>
#include <vector>

namespace msdump {

inline uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

constexpr uint32_t kMissing = 0xFFFFFFFF;

class IndexMap {
 public:
  IndexMap() : slots_(256) {}

  // The entry of this hash for which `is_equal(index)`; or `next`, which is entered.
  template <class IsEqual>
  uint32_t find_or_add(uint64_t hash, uint32_t next, IsEqual is_equal) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    const uint32_t tag = uint32_t(hash >> 32) | 1;
    for (size_t place = hash & (slots_.size() - 1);; place = (place + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[place];
      if (!slot.tag) {
        slot = {tag, next, hash};
        ++size_;
        return next;
      }
      if (slot.tag == tag && slot.hash == hash && is_equal(slot.index)) return slot.index;
    }
  }

  // The entry of this hash for which `is_equal(index)`; or kMissing.
  template <class IsEqual>
  uint32_t find(uint64_t hash, IsEqual is_equal) const {
    const uint32_t tag = uint32_t(hash >> 32) | 1;
    for (size_t place = hash & (slots_.size() - 1);; place = (place + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[place];
      if (!slot.tag) return kMissing;
      if (slot.tag == tag && slot.hash == hash && is_equal(slot.index)) return slot.index;
    }
  }

  void clear() {
    if (size_) slots_.assign(slots_.size(), Slot{});
    size_ = 0;
  }

 private:
  struct Slot {
    uint32_t tag = 0, index = 0;
    uint64_t hash = 0;
  };

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.tag) continue;
      size_t place = slot.hash & (slots_.size() - 1);
      while (slots_[place].tag) place = (place + 1) & (slots_.size() - 1);
      slots_[place] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace msdump
