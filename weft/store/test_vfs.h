// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weft::store {

// TestDisk: a file layer of SQLite whose files are in memory. A power loss drops the unsynced bytes; a death keeps
// them. The disk can be full, and can fail at a chosen operation. A failed sync behaves like Linux: the process still
// reads its own writes, the disk never gets them, and the next sync succeeds.
// Owner: a test. Its name is for StoreOptions::vfs. Affinity: one thread; set_room(), fail_syncs() and fail_sync() any
// thread.
class TestDisk {
 public:
  TestDisk();
  ~TestDisk();
  TestDisk(const TestDisk&) = delete;
  TestDisk& operator=(const TestDisk&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // Operation `n`, counted from 1 from now on, is the last one that the process begins: of a write the first half
  // happens. Every later one fails. Operations are writes, truncations, syncs and deletions. 0: none dies.
  void die_at(std::uint64_t n) noexcept;
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  [[nodiscard]] bool died() const noexcept { return dies_at_ != 0 && operations_ >= dies_at_; }

  // The disk as the next process finds it. After a loss of power each unsynced write of 512 bytes is there or not, by
  // the seed; seed 0: none is.
  void restart() noexcept;
  void lose_power(std::uint64_t seed);

  void set_room(std::uint64_t bytes) noexcept { room_ = bytes; }      // of all files; then SQLITE_FULL
  void refuse_writes(int os_errno) noexcept { refusal_ = os_errno; }  // each fails so; 0: none
  void fail_syncs(bool fail) noexcept { fail_syncs_ = fail; }
  // Sync `n`, counted from 1 from now on, fails; 0: none.
  void fail_sync(std::uint64_t n) noexcept { fails_in_ = n; }
  [[nodiscard]] std::uint64_t failed_syncs() const noexcept { return failed_syncs_; }
  void set_on_open(std::function<void()> on_open) { on_open_ = std::move(on_open); }  // before each file is opened
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] std::uint64_t syncs() const noexcept { return syncs_; }

  struct File {
    std::vector<std::uint8_t> live;
    std::vector<std::uint8_t> durable;
    std::set<std::size_t> dirty;  // sectors that the next sync writes
    bool exists_durably = false;
  };
  static constexpr std::size_t kSector = 512;
  [[nodiscard]] std::map<std::string, std::shared_ptr<File>>& files() noexcept { return files_; }

 private:
  friend struct TestDiskCalls;
  enum class Fate { whole, half, none };
  [[nodiscard]] Fate begin_operation() noexcept;

  std::string name_;
  std::map<std::string, std::shared_ptr<File>> files_;
  std::map<std::string, std::shared_ptr<File>> deleted_;  // their deletion is not durable
  std::uint64_t operations_ = 0;
  std::uint64_t dies_at_ = 0;
  std::atomic<std::uint64_t> room_{~std::uint64_t{0}};
  std::uint64_t syncs_ = 0;
  std::uint64_t failed_syncs_ = 0;
  std::atomic<std::uint64_t> fails_in_{0};
  std::atomic<bool> fail_syncs_{false};
  int refusal_ = 0;
  std::function<void()> on_open_;
  struct Layer;
  std::unique_ptr<Layer> layer_;
};

}  // namespace weft::store
