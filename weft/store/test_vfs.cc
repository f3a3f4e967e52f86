// SPDX-License-Identifier: MIT
#include "weft/store/test_vfs.h"

#ifdef WEFT_HAVE_SQLITE
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "weft/sys/call.h"

namespace weft::store {

struct TestDisk::Layer {
  sqlite3_vfs vfs;
};

namespace {

struct OpenFile {
  sqlite3_file base;
  TestDisk* disk;
  std::shared_ptr<TestDisk::File>* file;
};

OpenFile& of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }

}  // namespace

struct TestDiskCalls {
  static TestDisk& disk(sqlite3_vfs* vfs) { return *static_cast<TestDisk*>(vfs->pAppData); }

  static void mark(TestDisk::File& file, std::size_t from, std::size_t to) {
    for (std::size_t sector = from / TestDisk::kSector; sector * TestDisk::kSector < to; ++sector) {
      file.dirty.insert(sector);
    }
  }

  static int close(sqlite3_file* file) {
    delete of(file).file;
    return SQLITE_OK;
  }

  static int read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
    const auto& live = (*of(file).file)->live;
    const auto at = static_cast<std::size_t>(offset);
    const auto wanted = static_cast<std::size_t>(size);
    const std::size_t there = at >= live.size() ? 0 : std::min(wanted, live.size() - at);
    if (there != 0) {
      std::memcpy(to, live.data() + at, there);
    }
    std::memset(static_cast<char*>(to) + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }

  static int write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
    TestDisk& disk = *of(file).disk;
    auto& live = (*of(file).file)->live;
    const auto at = static_cast<std::size_t>(offset);
    std::size_t bytes = static_cast<std::size_t>(size);
    const auto fate = disk.begin_operation();
    if (fate == TestDisk::Fate::none) {
      return SQLITE_IOERR_WRITE;
    }
    if (disk.refusal_ != 0) {
      sys::set_errno(disk.refusal_);
      return SQLITE_IOERR_WRITE;
    }
    if (at + bytes > live.size() && disk.bytes() + (at + bytes - live.size()) > disk.room_) {
      return SQLITE_FULL;
    }
    bytes = fate == TestDisk::Fate::half ? bytes / 2 : bytes;
    if (bytes != 0) {
      live.resize(std::max(live.size(), at + bytes));
      std::memcpy(live.data() + at, from, bytes);
      mark(**of(file).file, at, at + bytes);
    }
    return fate == TestDisk::Fate::half ? SQLITE_IOERR_WRITE : SQLITE_OK;
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    if (of(file).disk->begin_operation() == TestDisk::Fate::none) {
      return SQLITE_IOERR_TRUNCATE;
    }
    TestDisk::File& data = **of(file).file;
    mark(data, static_cast<std::size_t>(size), data.live.size());
    data.live.resize(static_cast<std::size_t>(size));
    return SQLITE_OK;
  }

  static int sync(sqlite3_file* file, int /*flags*/) {
    TestDisk& disk = *of(file).disk;
    TestDisk::File& data = **of(file).file;
    if (disk.begin_operation() != TestDisk::Fate::whole) {
      return SQLITE_IOERR_FSYNC;
    }
    if (disk.fail_syncs_ || (disk.fails_in_ != 0 && --disk.fails_in_ == 0)) {
      ++disk.failed_syncs_;
      data.dirty.clear();
      return SQLITE_IOERR_FSYNC;
    }
    ++disk.syncs_;
    data.durable.resize(data.live.size());
    for (const std::size_t sector : data.dirty) {
      const std::size_t at = sector * TestDisk::kSector;
      if (at < data.live.size()) {
        std::memcpy(data.durable.data() + at, data.live.data() + at,
                    std::min(TestDisk::kSector, data.live.size() - at));
      }
    }
    data.dirty.clear();
    data.exists_durably = true;
    return SQLITE_OK;
  }

  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    *size = static_cast<sqlite3_int64>((*of(file).file)->live.size());
    return SQLITE_OK;
  }
  static int lock(sqlite3_file* /*file*/, int /*level*/) { return SQLITE_OK; }
  static int is_reserved(sqlite3_file* /*file*/, int* reserved) {
    *reserved = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file* /*file*/, int /*op*/, void* /*argument*/) { return SQLITE_NOTFOUND; }
  static int sector_size(sqlite3_file* /*file*/) { return 4096; }
  static int characteristics(sqlite3_file* /*file*/) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
    static const sqlite3_io_methods methods{
        1,       close,       read,    write,       truncate,        sync,    file_size, lock,
        lock,    is_reserved, control, sector_size, characteristics, nullptr, nullptr,   nullptr,
        nullptr, nullptr,     nullptr};
    if (disk(vfs).on_open_) {
      disk(vfs).on_open_();
    }
    auto& files = disk(vfs).files_;
    const std::string name = path == nullptr ? "temporary" : path;
    auto found = files.find(name);
    if (found == files.end()) {
      if ((flags & SQLITE_OPEN_CREATE) == 0) {
        return SQLITE_CANTOPEN;
      }
      found = files.emplace(name, std::make_shared<TestDisk::File>()).first;
    }
    of(file).base.pMethods = &methods;
    of(file).disk = &disk(vfs);
    of(file).file = new std::shared_ptr<TestDisk::File>(found->second);
    if (out_flags != nullptr) {
      *out_flags = flags;
    }
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync_directory) {
    TestDisk& of_test = disk(vfs);
    if (of_test.begin_operation() == TestDisk::Fate::none) {
      return SQLITE_IOERR_DELETE;
    }
    const auto found = of_test.files_.find(path);
    if (found == of_test.files_.end()) {
      return SQLITE_IOERR_DELETE_NOENT;
    }
    if (sync_directory == 0 && found->second->exists_durably) {
      of_test.deleted_[path] = found->second;
    }
    of_test.files_.erase(found);
    return SQLITE_OK;
  }

  static int access(sqlite3_vfs* vfs, const char* path, int /*flags*/, int* result) {
    *result = disk(vfs).files_.contains(path) ? 1 : 0;
    return SQLITE_OK;
  }

  static int full_path(sqlite3_vfs* /*vfs*/, const char* path, int size, char* to) {
    sqlite3_snprintf(size, to, "%s", path);
    return SQLITE_OK;
  }
};

TestDisk::TestDisk() : layer_(std::make_unique<Layer>()) {
  static std::atomic<int> number{0};
  name_ = "weft-test-" + std::to_string(++number);
  sqlite3_vfs& vfs = layer_->vfs;
  vfs = *sqlite3_vfs_find(nullptr);
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(OpenFile);
  vfs.pNext = nullptr;
  vfs.zName = name_.c_str();
  vfs.pAppData = this;
  vfs.xOpen = TestDiskCalls::open;
  vfs.xDelete = TestDiskCalls::remove;
  vfs.xAccess = TestDiskCalls::access;
  vfs.xFullPathname = TestDiskCalls::full_path;
  sqlite3_vfs_register(&vfs, 0);
}

TestDisk::~TestDisk() { sqlite3_vfs_unregister(&layer_->vfs); }

void TestDisk::die_at(std::uint64_t n) noexcept {
  operations_ = 0;
  dies_at_ = n;
}

TestDisk::Fate TestDisk::begin_operation() noexcept {
  ++operations_;
  if (dies_at_ == 0 || operations_ < dies_at_) {
    return Fate::whole;
  }
  return operations_ == dies_at_ ? Fate::half : Fate::none;
}

std::uint64_t TestDisk::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [path, file] : files_) {
    sum += file->live.size();
  }
  return sum;
}

void TestDisk::restart() noexcept {
  operations_ = dies_at_ = 0;
  fail_syncs_ = false;
  fails_in_ = 0;
}

void TestDisk::lose_power(std::uint64_t seed) {
  std::uint64_t state = seed;
  const auto survives = [&state, seed] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return seed != 0 && (state >> 40U) % 2 == 0;
  };
  for (auto& [path, file] : deleted_) {
    if (!files_.contains(path) && survives()) {
      files_[path] = file;
    }
  }
  deleted_.clear();
  for (auto at = files_.begin(); at != files_.end();) {
    File& file = *at->second;
    if (!file.exists_durably && !survives()) {
      at = files_.erase(at);
      continue;
    }
    std::vector<std::uint8_t> after = file.durable;
    if (survives()) {  // the size may be on the disk before the bytes are
      after.resize(file.live.size());
    }
    for (std::size_t from = 0; from < std::min(file.live.size(), after.size()); from += kSector) {
      const std::size_t size = std::min({kSector, file.live.size() - from, after.size() - from});
      if (file.dirty.contains(from / kSector) && survives()) {
        std::memcpy(after.data() + from, file.live.data() + from, size);
      }
    }
    file.live = file.durable = after;
    file.dirty.clear();
    file.exists_durably = true;
    ++at;
  }
  restart();
}

}  // namespace weft::store

#endif
