// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/web/form.h"
#include "weft/serve/web/router.h"

// The input is a query or a form, and a path. Checks besides the sanitizers: decoding makes nothing longer, a pair that
// was seen is found, a cookie is a part of its text and sets no other field, and a path finds one route or none.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve::web;
  static const Router router = [] {
    Router made;
    for (const char* pattern : {"/", "/a", "/a/{b}", "/a/{b}/c", "/{x}/{y}", "/{x}/b/{z}"}) {
      WEFT_ASSERT(made.get(pattern, [] { return Response(); }).has_value());
    }
    return made;
  }();
  const std::string_view text = weft::as_text({data, size});
  WEFT_ASSERT(percent_decode(text).size() <= text.size());
  any_pair(text, [&](const FormPair& pair) {
    const std::string name = form_decode(pair.name);
    WEFT_ASSERT(name.size() <= pair.name.size() && find_pair(text, name).has_value());
    return false;
  });
  if (const auto cookie = find_cookie(text, text.substr(0, text.find('=')))) {
    WEFT_ASSERT(cookie->data() >= text.data() && cookie->data() + cookie->size() <= text.data() + text.size());
    Cookie same{"a", std::string(*cookie)};
    same.path = same.domain = std::string(text);
    const weft::Result<std::string> line = same.text();
    WEFT_ASSERT(!line || line->find_first_of("\r\n") == std::string::npos);
  }
  const std::string path = "/" + std::string(text);
  const Router::Match match = router.find("GET", path);
  WEFT_ASSERT((match.handler != nullptr) == (match.status == 200) && match.params.count <= 3);
  for (std::size_t i = 0; i < match.params.count; ++i) {
    WEFT_ASSERT(!match.params.params[i].value.empty() && !match.params.params[i].name.empty());
    WEFT_ASSERT(match.params.params[i].value.find('/') == std::string_view::npos);
  }
  return 0;
}
