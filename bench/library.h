// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>

// What is measured, seen through one interface: the workloads call every library through the same virtual functions,
// with the same options (high-water marks 1000/1000, no heartbeats, linger 0), and copy in and copy out.
// A refused call ends the program through fail(): a benchmark has nothing to add to an error.
namespace bench {

enum class SocketType { push, pull, req, rep };
enum class WaitMode { normal, eco };  // eco: sleep at once where the library would spin; not every library has it

[[noreturn]] void fail(const std::string& what);

// Affinity: one thread at a time.
class Socket {
 public:
  virtual ~Socket() = default;
  virtual std::string bind(const std::string& endpoint) = 0;  // the exact endpoint
  virtual void connect(const std::string& endpoint) = 0;
  virtual void send(const void* data, std::size_t size) = 0;            // waits for room
  virtual std::size_t receive(void* target, std::size_t capacity) = 0;  // waits; the size of the message
};

// Affinity: any thread. Outlives its sockets.
class Context {
 public:
  virtual ~Context() = default;
  virtual std::unique_ptr<Socket> open_socket(SocketType type) = 0;
};

// Affinity: any thread. Outlives its contexts.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  virtual std::unique_ptr<Context> open_context(WaitMode mode) = 0;
};

std::unique_ptr<Library> make_weft();
// Any shared library with libzmq's C interface, by path; `name` is what the report calls it.
std::unique_ptr<Library> make_zmq(const std::string& path, const std::string& name);

}  // namespace bench
