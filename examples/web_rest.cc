// SPDX-License-Identifier: MIT
// A REST service on every core: notes as JSON in a table in memory, and files that come and go in pieces.
// `web_rest 8080` serves http://127.0.0.1:8080/ until it is ended; without a port it starts and stops.
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "weft/serve/server/server.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/site.h"
#include "weft/sys/clock.h"

using namespace weft;
namespace web = serve::web;
using json = nlohmann::json;

std::mutex guard;  // of the tables, which all cores use
std::map<std::string, std::string> notes;
std::map<std::string, std::shared_ptr<const std::string>> files;
unsigned last_id = 0;

web::Response as_json(unsigned status, const json& value) { return {status, value.dump(), "application/json"}; }
json row(const std::string& id, const std::string& text) { return {{"id", id}, {"text", text}}; }

Result<std::string> text_of(const web::Request& request) {
  const json body = json::parse(request.body(), nullptr, false);
  if (!body.is_object() || !body.contains("text") || !body["text"].is_string()) {
    return Error(Errc::invalid_argument, "a note is {\"text\": \"...\"}");  // becomes 400
  }
  return body["text"].get<std::string>();
}

web::Response list() {
  const std::lock_guard lock(guard);
  return as_json(200, json(notes));
}
Result<web::Response> create(const web::Request& request) {
  const std::string text = WEFT_TRY(text_of(request));
  const std::lock_guard lock(guard);
  if (notes.size() >= 10'000) {
    return Error(Errc::resource_exhausted, "the table is full");  // becomes 503
  }
  const std::string id = std::to_string(++last_id);
  notes.emplace(id, text);
  return as_json(201, row(id, text)).set("Location", "/notes/" + id);
}
Result<web::Response> one(const web::Request& request) {  // GET, PUT and DELETE
  const std::string text = request.method() == "PUT" ? WEFT_TRY(text_of(request)) : "";
  const std::lock_guard lock(guard);
  const auto at = notes.find(request.param("id"));
  if (at == notes.end()) {
    return Error(Errc::not_found, "no such note");  // becomes 404
  }
  if (request.method() == "DELETE") {
    return web::Response(notes.erase(at->first) == 1 ? 204 : 404);
  }
  at->second = request.method() == "PUT" ? text : at->second;
  return as_json(200, row(at->first, at->second));
}

// The body is taken as it comes, and may be larger than others.
rt::Task<Result<web::Response>> upload(const web::Request& request, web::BodyReader& body) {
  Result<std::string> file = co_await body.read_rest(64 * 1024 * 1024);
  if (!file) {
    co_return file.error();  // message_too_large becomes 413
  }
  const std::size_t size = file->size();
  const std::lock_guard lock(guard);
  if (files.size() >= 16) {
    co_return Error(Errc::resource_exhausted, "the table is full");
  }
  files[request.param("name")] = std::make_shared<const std::string>(std::move(*file));
  co_return as_json(201, {{"size", size}});
}
Result<web::Response> download(const web::Request& request) {
  const std::lock_guard lock(guard);
  const auto at = files.find(request.param("name"));
  if (at == files.end()) {
    return Error(Errc::not_found, "no such file");
  }
  const auto write = [file = at->second](web::BodyWriter& out) { return out.write(*file); };  // as the peer reads
  return web::Response::stream(write, "application/octet-stream", at->second->size());
}

Result<void> serve_at(const std::string& port, bool for_ever) {
  web::Router router;
  WEFT_TRY(router.get("/notes", list));
  WEFT_TRY(router.post("/notes", create));
  WEFT_TRY(router.get("/notes/{id}", one));
  WEFT_TRY(router.put("/notes/{id}", one));
  WEFT_TRY(router.del("/notes/{id}", one));
  WEFT_TRY(router.put("/files/{name}", upload));
  WEFT_TRY(router.get("/files/{name}", download));
  const web::Site site(std::move(router));
  const auto runtime = WEFT_TRY(rt::Runtime::start());  // a thread for each core
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  serve::ListenerOptions options;
  options.limits = web::session_limits();
  const std::string endpoint = "tcp://127.0.0.1:" + port;
  const std::string bound = WEFT_TRY(server->listen<web::HttpCodec>(endpoint, options, site.services(), site.codec()));
  std::printf("serving at %s\n", bound.c_str());
  std::fflush(stdout);
  while (for_ever) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  return server->stop(sys::now() + std::chrono::seconds(5));
}

int main(int count, char** arguments) {
  if (const auto result = serve_at(count > 1 ? arguments[1] : "0", count > 1); !result) {
    std::fprintf(stderr, "web_rest: %s\n", result.error().message().c_str());
    return 1;
  }
}
