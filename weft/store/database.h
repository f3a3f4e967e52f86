// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace weft::store {

class Database;

// Statement: one prepared SQL statement. Columns and parameters count from 0.
// Owner: a move-only value; destroy it before its database. Affinity: the database's.
// Errors of step() and run(): see Database.
class Statement {
 public:
  Statement() noexcept = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  // Sets a parameter. Texts and bytes are not copied: they must not change until reset(). If the database refuses a
  // parameter, the next step() fails.
  template <typename Number>
    requires std::is_integral_v<Number>
  Statement& set(int parameter, Number value) noexcept {
    return set_number(parameter, static_cast<std::int64_t>(value));
  }
  Statement& set(int parameter, std::string_view text) noexcept;
  Statement& set(int parameter, Bytes bytes) noexcept;

  [[nodiscard]] Result<bool> step() noexcept;  // returns true if there is a row
  [[nodiscard]] Result<void> run() noexcept;   // steps to the end and resets, also after an error
  void reset() noexcept;

  // Columns of the row. Views are valid until the next step() or reset().
  [[nodiscard]] std::int64_t number(int column) const noexcept;
  [[nodiscard]] std::uint64_t sequence(int column) const noexcept { return static_cast<std::uint64_t>(number(column)); }
  [[nodiscard]] std::string_view text(int column) const noexcept;
  [[nodiscard]] Bytes bytes(int column) const noexcept;
  [[nodiscard]] bool is_null(int column) const noexcept;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) noexcept : statement_(statement) {}
  Statement& set_number(int parameter, std::int64_t value) noexcept;

  sqlite3_stmt* statement_ = nullptr;
  int refused_ = 0;  // the first parameter's error
};

// The fault that a commit survives. `process`: the operating system has the data when it returns; `power`: the disk has
// it.
enum class Flush : std::uint8_t { process, power };

struct DatabaseOptions {
  std::string path{};           // empty: in memory
  std::string vfs{};            // SQLite's name of the file layer; empty: the system's
  std::uint64_t bytes_max = 0;  // of the file; 0: as much as the disk holds
  // Bytes of the file PATH.reserve, which takes room on the disk until the disk is full; 0: none.
  std::uint64_t reserve_bytes = 0;
};

// Database: a SQLite file that no other process uses, in WAL mode. The only class that names SQLite.
// Owner: a move-only value. Affinity: one thread at a time.
// Errors of every call: resource_exhausted (no room on the disk, or no memory; nothing changed), conflict (another
// process has the file open), corrupt, not_permitted, message_too_large, system (the disk failed), not_supported (a
// build without SQLite).
// SQL has the function weft_sum(...): the CRC-32C of its arguments, their types and sizes.
// Invariants:
// 1. A call that fails between begin() and commit() leaves nothing of the transaction.
// 2. After commit() failed with outcome_unknown the file may hold the transaction or not, and failed() is true: the
//    kernel may have dropped writes that it had taken, so the database writes no more until the file is opened again.
// 3. The log is copied into the file by this class only, which reads each result: a flush that the disk refuses there
//    sets failed(), too. open() writes an existing log again before it trusts it.
class Database {
 public:
  Database() noexcept;
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  [[nodiscard]] static Result<Database> open(const DatabaseOptions& options);
  [[nodiscard]] bool is_open() const noexcept { return connection_ != nullptr; }

  // `sql` of the execute calls is one statement or several, without parameters and without rows.
  [[nodiscard]] Result<void> execute(const char* sql) noexcept;
  [[nodiscard]] Result<Statement> prepare(std::string_view sql) noexcept;

  struct Prepared {
    Statement* statement;
    std::string_view sql;
  };
  [[nodiscard]] Result<void> prepare_all(std::span<const Prepared> all) noexcept;

  [[nodiscard]] Result<void> begin(Flush flush) noexcept;
  [[nodiscard]] Result<void> commit() noexcept;  // a failed commit has rolled back; then see failed(), also after ok
  void rollback() noexcept;                      // has no effect outside a transaction
  [[nodiscard]] bool failed() const noexcept { return failed_; }

  // On a full disk, between transactions: frees the room of the reserve, copies the log, and stops the growth of the
  // file. Then transactions that need no new page of the file succeed.
  [[nodiscard]] Result<void> spend_reserve();
  // After commits: tries from time to time to make the reserve again.
  void tend_reserve();

  [[nodiscard]] Result<std::int64_t> user_version() noexcept;
  [[nodiscard]] Result<void> set_user_version(int version);
  [[nodiscard]] Result<std::int64_t> application_id() noexcept;
  [[nodiscard]] Result<void> set_application_id(std::int32_t id);

  // The text of the library's last error, for logs.
  [[nodiscard]] std::string_view last_error() const noexcept;

 private:
  struct Closer {
    void operator()(sqlite3* connection) const noexcept;
  };

  static constexpr int kLogPagesMax = 1000;  // at this size the log is copied into the file

  [[nodiscard]] Result<std::int64_t> pragma(const char* sql) noexcept;
  void set_failed() noexcept;
  [[nodiscard]] Result<void> renew_log();
  [[nodiscard]] Result<void> copy_log(bool all) noexcept;
  [[nodiscard]] bool make_reserve() noexcept;
  [[nodiscard]] Result<void> keep_reserve();
  [[nodiscard]] Result<void> set_growth(bool grows);
  static constexpr std::uint64_t kCommitsWithoutReserve = 64;

  std::unique_ptr<int> log_pages_;  // in the log after the last commit
  std::unique_ptr<sqlite3, Closer> connection_;
  std::string vfs_;
  std::string reserve_path_;
  std::uint64_t reserve_bytes_ = 0;
  std::uint64_t commits_without_ = 0;
  std::int64_t pages_max_ = 4'294'967'294;  // SQLite's own bound
  bool has_reserve_ = false;
  Flush flush_ = Flush::power;
  bool failed_ = false;
};

}  // namespace weft::store
