// SPDX-License-Identifier: MIT
#include "weft/store/database.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/endian.h"
#include "weft/store/checksum.h"
#include "weft/sys/call.h"

#ifdef WEFT_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace weft::store {

#ifdef WEFT_HAVE_SQLITE
namespace {

// The errno of the system's call that failed within a call of SQLite. SQLite remembers it of some failures only.
void begin_call() noexcept { sys::set_errno(0); }
int os_errno_of(sqlite3* connection) noexcept {
  const int last = sys::last_errno();
  return last != 0 || connection == nullptr ? last : sqlite3_system_errno(connection);
}

// No room, of the disk or for this user; and a disk that takes no writes at all. The disk has not failed.
bool is_full(int os) noexcept { return os == ENOSPC || os == EDQUOT || os == EFBIG; }

// `code` is an extended result code of SQLite.
Error error_of(int code, sqlite3* connection) noexcept {
  switch (code & 0xFF) {
    case SQLITE_FULL: return Error(Errc::resource_exhausted, "the disk of the store is full");
    case SQLITE_NOMEM: return Error(Errc::resource_exhausted, "no memory for the store");
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Error(Errc::conflict, "another process has the store open");
    case SQLITE_CORRUPT: return Error(Errc::corrupt, "the file of the store is damaged");
    case SQLITE_NOTADB: return Error(Errc::corrupt, "the file is no store");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return Error(Errc::not_permitted, "the file of the store cannot be written");
    case SQLITE_TOOBIG: return Error(Errc::message_too_large, "too large for the store");
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: {
      const int os = os_errno_of(connection);
      if (is_full(os)) {
        return Error(Errc::resource_exhausted, "the disk of the store is full, or its user's quota", os);
      }
      if (os == EROFS) {
        return Error(Errc::not_permitted, "the file of the store cannot be written", os);
      }
      return os != 0 ? Error(Errc::system, "the disk of the store failed", os)
                     : Error(Errc::system, "the disk of the store failed");
    }
    default: return Error(Errc::invalid_state, "the store refused a statement");
  }
}

// Whether the kernel may have dropped the bytes that it had taken to write: then a later flush succeeds and writes
// nothing. A write that it did not take is not dropped.
bool lost_writes(int code, sqlite3* connection) noexcept {
  const int os = os_errno_of(connection);
  return (code & 0xFF) == SQLITE_IOERR && code != SQLITE_IOERR_NOMEM &&
         !(code == SQLITE_IOERR_WRITE && (is_full(os) || os == EROFS));
}

// weft_sum(): of each argument its type, its size or number, and its bytes.
void sum_values(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
  std::uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    std::array<std::uint8_t, 9> head{static_cast<std::uint8_t>(sqlite3_value_type(values[i]))};
    Bytes body;
    if (head[0] == SQLITE_INTEGER) {
      store_big_endian(head.data() + 1, static_cast<std::int64_t>(sqlite3_value_int64(values[i])));
    } else if (head[0] != SQLITE_NULL) {
      const auto* data = static_cast<const std::uint8_t*>(sqlite3_value_blob(values[i]));
      const int size = sqlite3_value_bytes(values[i]);
      body = data == nullptr ? Bytes() : Bytes(data, static_cast<std::size_t>(size));
      store_big_endian(head.data() + 1, static_cast<std::int64_t>(size));
    }
    sum = crc32c(body, crc32c(Bytes(head), sum));
  }
  sqlite3_result_int64(context, sum);
}

int count_log_pages(void* pages, sqlite3* /*connection*/, const char* /*name*/, int count) noexcept {
  *static_cast<int*>(pages) = count;
  return SQLITE_OK;
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), refused_(other.refused_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(statement_, other.statement_);
  std::swap(refused_, other.refused_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::set_number(int parameter, std::int64_t value) noexcept {
  const int code = sqlite3_bind_int64(statement_, parameter + 1, value);
  refused_ = refused_ != 0 ? refused_ : code;
  return *this;
}

Statement& Statement::set(int parameter, std::string_view text) noexcept {
  const char* data = text.empty() ? "" : text.data();
  const int code = sqlite3_bind_text64(statement_, parameter + 1, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  refused_ = refused_ != 0 ? refused_ : code;
  return *this;
}

Statement& Statement::set(int parameter, Bytes bytes) noexcept {
  const void* data = bytes.empty() ? static_cast<const void*>("") : bytes.data();
  const int code = sqlite3_bind_blob64(statement_, parameter + 1, data, bytes.size(), SQLITE_STATIC);
  refused_ = refused_ != 0 ? refused_ : code;
  return *this;
}

Result<bool> Statement::step() noexcept {
  begin_call();
  const int code = refused_ != 0 ? refused_ : sqlite3_step(statement_);
  if (code == SQLITE_ROW || code == SQLITE_DONE) {
    return code == SQLITE_ROW;
  }
  return error_of(code, sqlite3_db_handle(statement_));
}

Result<void> Statement::run() noexcept {
  Result<bool> row = step();
  while (row && *row) {
    row = step();
  }
  reset();
  return row ? Result<void>() : Result<void>(row.error());
}

void Statement::reset() noexcept {
  if (statement_ != nullptr) {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    refused_ = 0;
  }
}

std::int64_t Statement::number(int column) const noexcept { return sqlite3_column_int64(statement_, column); }

std::string_view Statement::text(int column) const noexcept { return as_text(bytes(column)); }

Bytes Statement::bytes(int column) const noexcept {
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? Bytes() : Bytes(data, static_cast<std::size_t>(size));
}

bool Statement::is_null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

void Database::Closer::operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }

Result<Database> Database::open(const DatabaseOptions& options) {
  const bool in_memory = options.path.empty();
  begin_call();
  sqlite3* connection = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(in_memory ? ":memory:" : options.path.c_str(), &connection, flags,
                                   options.vfs.empty() ? nullptr : options.vfs.c_str());
  Database database;
  database.connection_.reset(connection);  // also after an error
  if (code != SQLITE_OK) {
    return error_of(code, connection);
  }
  constexpr int kSumFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  const int made = sqlite3_create_function_v2(connection, "weft_sum", -1, kSumFlags, nullptr, &sum_values, nullptr,
                                              nullptr, nullptr);
  if (made != SQLITE_OK) {
    return error_of(made, connection);
  }
  // The exclusive lock is taken before the WAL is opened: then its index is in this process's memory, and no other
  // process can read or write the file. A damaged page is an error instead of a guess.
  WEFT_TRY(
      database.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON;"
                       "PRAGMA trusted_schema=OFF; PRAGMA cache_size=-8192"));
  if (!in_memory) {
    // The switch to the log goes through a rollback journal. Were that file back after a loss of power, it would undo
    // the changes in the log: EXTRA syncs the directory when it is deleted.
    WEFT_TRY(database.execute("PRAGMA synchronous=EXTRA"));
    auto mode = WEFT_TRY(database.prepare("PRAGMA journal_mode=WAL"));
    if (!WEFT_TRY(mode.step()) || mode.text(0) != "wal") {
      return Error(Errc::not_supported, "the file of the store cannot have a write-ahead log");
    }
    mode.reset();
    WEFT_TRY(database.execute("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=67108864"));
    // The lock is taken by the first transaction.
    WEFT_TRY(database.execute("BEGIN IMMEDIATE; COMMIT"));
    // This takes the place of SQLite's own copying of the log, whose errors no caller sees.
    database.log_pages_ = std::make_unique<int>(0);
    sqlite3_wal_hook(connection, &count_log_pages, database.log_pages_.get());
    WEFT_TRY(database.renew_log());
  }
  if (options.bytes_max != 0) {
    const std::int64_t page = WEFT_TRY(database.pragma("PRAGMA page_size"));
    database.pages_max_ = static_cast<std::int64_t>(options.bytes_max / static_cast<std::uint64_t>(page) + 1);
    WEFT_TRY(database.set_growth(true));
  }
  if (!in_memory && options.reserve_bytes != 0) {
    database.reserve_bytes_ = options.reserve_bytes;
    database.reserve_path_ = options.path + ".reserve";
    database.vfs_ = options.vfs;
    database.has_reserve_ = database.make_reserve();
  }
  return database;
}

Result<void> Database::execute(const char* sql) noexcept {
  begin_call();
  const int code = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Result<void>() : Result<void>(error_of(code, connection_.get()));
}

Result<Statement> Database::prepare(std::string_view sql) noexcept {
  sqlite3_stmt* statement = nullptr;
  begin_call();
  const int code = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) {
    return error_of(code, connection_.get());
  }
  return Statement(statement);
}

Result<void> Database::begin(Flush flush) noexcept {
  WEFT_ASSERT(sqlite3_get_autocommit(connection_.get()) != 0);
  if (failed_) {
    return Error(Errc::invalid_state, "the disk of the store failed; open the store again");
  }
  if (flush_ != flush) {
    WEFT_TRY(execute(flush == Flush::power ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
    flush_ = flush;
  }
  return execute("BEGIN IMMEDIATE");
}

Result<void> Database::commit() noexcept {
  begin_call();
  const int code = sqlite3_exec(connection_.get(), "COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) {
    if (log_pages_ != nullptr && *log_pages_ >= kLogPagesMax) {
      // The transaction is where it must be. A full disk leaves the log as it is, and the next commit tries again.
      (void)copy_log(false);
    }
    return {};
  }
  const Error error = error_of(code, connection_.get());
  const bool lost = lost_writes(code, connection_.get());
  rollback();
  if (lost) {
    set_failed();
    return Error(Errc::outcome_unknown, "the disk of the store failed", error.os_errno());
  }
  return error;
}

void Database::set_failed() noexcept {
  failed_ = true;
  // Closing copies the log, too. A loss of power leaves a log without the pages that the refused flush dropped.
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Result<void> Database::copy_log(bool all) noexcept {
  begin_call();
  const int mode = all ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  const int code = sqlite3_wal_checkpoint_v2(connection_.get(), nullptr, mode, nullptr, nullptr);
  if (code == SQLITE_OK) {
    *log_pages_ = 0;
    return {};
  }
  const Error error = error_of(code, connection_.get());
  if (lost_writes(code, connection_.get())) {
    set_failed();
  }
  return error;
}

// The process that wrote the log may have ended because a flush failed. Then the kernel still shows the dropped bytes,
// and takes them for written: a later flush would acknowledge messages after a hole. A log that is written anew is
// flushed whole.
Result<void> Database::renew_log() {
  constexpr std::size_t kPart = std::size_t{64} * 1024;
  sqlite3_file* log = nullptr;
  sqlite3_int64 size = 0;
  const int found = sqlite3_file_control(connection_.get(), nullptr, SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (found != SQLITE_OK || log == nullptr || log->pMethods == nullptr) {
    return {};
  }
  int code = log->pMethods->xFileSize(log, &size);
  if (code != SQLITE_OK || size == 0) {
    return code == SQLITE_OK ? Result<void>() : Result<void>(error_of(code, connection_.get()));
  }
  std::vector<std::uint8_t> part(kPart);
  begin_call();
  for (sqlite3_int64 at = 0; at < size && code == SQLITE_OK; at += kPart) {
    const int length = static_cast<int>(std::min<sqlite3_int64>(size - at, kPart));
    code = log->pMethods->xRead(log, part.data(), length, at);
    code = code == SQLITE_OK ? log->pMethods->xWrite(log, part.data(), length, at) : code;
  }
  code = code == SQLITE_OK ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : code;
  if (code != SQLITE_OK && lost_writes(code, connection_.get())) {
    set_failed();
    return error_of(code, connection_.get());
  }
  if (code != SQLITE_OK) {  // no room, not even for the existing rows: they are read, and the next commit is refused
    const Error error = error_of(code, connection_.get());
    return error == Errc::resource_exhausted ? Result<void>() : error;
  }
  const Result<void> copied = copy_log(true);
  // A full disk: the log is whole, and is copied when there is room.
  return copied || copied.error() == Errc::resource_exhausted ? Result<void>() : copied;
}

// --- room for acknowledgements on a full disk ---

bool Database::make_reserve() noexcept {
  constexpr std::size_t kPart = std::size_t{64} * 1024;
  sqlite3_vfs* const vfs = sqlite3_vfs_find(vfs_.empty() ? nullptr : vfs_.c_str());
  const auto size = static_cast<sqlite3_int64>(reserve_bytes_);
  int code = SQLITE_NOMEM;
  try {
    std::vector<std::uint64_t> place(static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::uint64_t) + 1);
    const std::vector<std::uint8_t> zeros(kPart);
    auto* const file = reinterpret_cast<sqlite3_file*>(place.data());
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_SUPER_JOURNAL;
    code = vfs->xOpen(vfs, reserve_path_.c_str(), file, flags, &flags);
    if (code == SQLITE_OK) {
      sqlite3_int64 at = 0;
      code = file->pMethods->xFileSize(file, &at);
      for (; at < size && code == SQLITE_OK; at += kPart) {
        code = file->pMethods->xWrite(file, zeros.data(), kPart, at);
      }
      file->pMethods->xClose(file);
    }
  } catch (const std::bad_alloc&) {
    code = SQLITE_NOMEM;
  }
  if (code != SQLITE_OK) {
    vfs->xDelete(vfs, reserve_path_.c_str(), 0);
  }
  return code == SQLITE_OK;
}

Result<void> Database::keep_reserve() {
  has_reserve_ = make_reserve();
  return set_growth(has_reserve_);
}

// Without a reserve the file does not grow: the pages in the log have their places in the file, so that the log can be
// copied and begins anew, and acknowledgements need no room of the disk.
Result<void> Database::set_growth(bool grows) {
  const std::int64_t most = grows ? pages_max_ : WEFT_TRY(pragma("PRAGMA page_count"));
  WEFT_TRY(pragma(("PRAGMA max_page_count=" + std::to_string(most)).c_str()));
  return {};
}

Result<void> Database::spend_reserve() {
  if (reserve_bytes_ == 0 || failed_) {
    return {};
  }
  if (std::exchange(has_reserve_, false)) {
    sqlite3_vfs* const vfs = sqlite3_vfs_find(vfs_.empty() ? nullptr : vfs_.c_str());
    vfs->xDelete(vfs, reserve_path_.c_str(), 0);
    commits_without_ = 0;
  }
  WEFT_TRY(copy_log(false));
  return set_growth(false);
}

void Database::tend_reserve() {
  if (reserve_bytes_ != 0 && !has_reserve_ && !failed_ && ++commits_without_ % kCommitsWithoutReserve == 0) {
    (void)keep_reserve();
  }
}

void Database::rollback() noexcept {
  if (connection_ != nullptr && sqlite3_get_autocommit(connection_.get()) == 0) {
    sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

std::string_view Database::last_error() const noexcept {
  return connection_ == nullptr ? "" : sqlite3_errmsg(connection_.get());
}

#else

namespace {
constexpr Error kAbsent(Errc::not_supported, "this build has no SQLite: no topic is kept");
}

Statement::Statement(Statement&&) noexcept = default;
Statement& Statement::operator=(Statement&&) noexcept = default;
Statement::~Statement() = default;
Statement& Statement::set_number(int /*parameter*/, std::int64_t /*value*/) noexcept { return *this; }
Statement& Statement::set(int /*parameter*/, std::string_view /*text*/) noexcept { return *this; }
Statement& Statement::set(int /*parameter*/, Bytes /*bytes*/) noexcept { return *this; }
Result<bool> Statement::step() noexcept { return kAbsent; }
Result<void> Statement::run() noexcept { return kAbsent; }
void Statement::reset() noexcept {}
std::int64_t Statement::number(int /*column*/) const noexcept { return 0; }
std::string_view Statement::text(int /*column*/) const noexcept { return {}; }
Bytes Statement::bytes(int /*column*/) const noexcept { return {}; }
bool Statement::is_null(int /*column*/) const noexcept { return true; }
void Database::Closer::operator()(sqlite3* /*connection*/) const noexcept {}
Result<Database> Database::open(const DatabaseOptions& /*options*/) { return kAbsent; }
Result<void> Database::execute(const char* /*sql*/) noexcept { return kAbsent; }
Result<Statement> Database::prepare(std::string_view /*sql*/) noexcept { return kAbsent; }
Result<void> Database::begin(Flush /*flush*/) noexcept { return kAbsent; }
Result<void> Database::commit() noexcept { return kAbsent; }
void Database::rollback() noexcept {}
Result<void> Database::spend_reserve() { return kAbsent; }
void Database::tend_reserve() {}
std::string_view Database::last_error() const noexcept { return {}; }

#endif

Database::Database() noexcept = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<void> Database::prepare_all(std::span<const Prepared> all) noexcept {
  for (const Prepared& prepared : all) {
    *prepared.statement = WEFT_TRY(prepare(prepared.sql));
  }
  return {};
}

Result<std::int64_t> Database::pragma(const char* sql) noexcept {
  Statement statement;
  const Prepared one{&statement, sql};
  WEFT_TRY(prepare_all({&one, 1}));
  const bool row = WEFT_TRY(statement.step());
  return row ? statement.number(0) : 0;
}

Result<std::int64_t> Database::user_version() noexcept { return pragma("PRAGMA user_version"); }
Result<std::int64_t> Database::application_id() noexcept { return pragma("PRAGMA application_id"); }

Result<void> Database::set_user_version(int version) {
  return execute(("PRAGMA user_version=" + std::to_string(version)).c_str());
}

Result<void> Database::set_application_id(std::int32_t id) {
  return execute(("PRAGMA application_id=" + std::to_string(id)).c_str());
}

}  // namespace weft::store
