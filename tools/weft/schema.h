// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace weft::cli {

// Schema: a file of FlatBuffers (.fbs), which turns JSON into the bytes of a table and back. A build without
// libflatbuffers has none: the constructor throws Failure.
class Schema {
 public:
  explicit Schema(const std::string& file);  // Failure: the file cannot be read, or is not a schema
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;
  ~Schema();

  // `table`: its full name; empty: the schema's root_type. Usage: there is no such table, or the text is not its JSON.
  [[nodiscard]] std::string to_bytes(std::string_view json, const std::string& table);
  // A line of JSON. Failure: the bytes, which may be a peer's, are not such a table.
  [[nodiscard]] std::string to_json(std::string_view bytes, const std::string& table);

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

}  // namespace weft::cli
