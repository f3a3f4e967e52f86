// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/serve/web/request.h"
#include "weft/serve/web/response.h"

namespace weft::serve::web {

struct FileOptions {
  std::string param = "path";         // the name in the route's pattern that is the path of the file
  std::string index = "index.html";   // the file for a path that ends with '/'; empty: there is none
  std::string cache_control{};        // the value of the field Cache-Control; empty: none is sent
  std::size_t whole_max = 64 * 1024;  // bytes; a larger file is sent piece by piece, as its peer reads
  std::uint32_t open_max = 1000;      // files that are sent piece by piece at a time; beyond it the answer is 503
  bool hidden = false;                // whether files and directories are there whose name begins with '.'
  // Types by the end of a name, such as {".md", "text/markdown"}; before those of content_type_of().
  std::vector<std::pair<std::string, std::string>> types{};
};

// Files: a handler that sends the files below a directory.
//   router.get("/static/{path...}", WEFT_TRY(web::Files::open("/srv/www")));
// With types, ETag, Last-Modified, conditions and ranges of one part (RFC 9110 sections 13 and 14), and HEAD. A path of
// a directory without its '/' is redirected. No path leads out of the directory, and no symbolic link below it is
// followed. A value; its copies are the same directory. Affinity: any thread.
// Cost: a file is opened for each request. The core waits for the disk.
class Files {
 public:
  // address_unavailable: there is no such directory; the errors of the system.
  [[nodiscard]] static Result<Files> open(const std::string& directory, FileOptions options = {});

  // The answer to GET and HEAD. Errors: not_found: there is no such file; not_permitted; resource_exhausted.
  [[nodiscard]] Result<Response> operator()(const Request& request) const;

 private:
  struct State;
  struct SentFile;
  explicit Files(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// The type of a file by the end of its name, without case; "application/octet-stream" for other names.
[[nodiscard]] std::string_view content_type_of(std::string_view name) noexcept;

}  // namespace weft::serve::web
