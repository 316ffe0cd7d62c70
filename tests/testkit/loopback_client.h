// SPDX-License-Identifier: Apache-2.0
// LoopbackClient: a scripted client on a real loopback socket, driven by the io_context of the server
// under test, so that nothing sleeps and nothing races. Sends bytes as told; collects what comes back.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace tonnage::testkit {

class LoopbackClient {
 public:
  LoopbackClient(boost::asio::io_context& io, std::uint16_t port)
      : io_(io), state_(std::make_shared<State>(io)) {
    state_->socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    read(state_);
  }
  ~LoopbackClient() { leave(); }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  // Queued; written while the io_context runs. A peer that closed in between is not an error here.
  void send(std::string bytes) {
    state_->outgoing.push_back(std::move(bytes));
    if (state_->outgoing.size() == 1) write(state_);
  }
  void close_sending_half() {
    boost::system::error_code ignored;
    state_->socket.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void leave() {
    boost::system::error_code ignored;
    state_->socket.close(ignored);
  }

  // Runs the loop until `done`; the test's own time limit is the only clock.
  template <typename Condition>
  void run_until(Condition done) {
    while (!done()) io_.run_one();
  }
  // One whole reply (by its Content-Length) taken off what was received; empty when the server closed.
  std::string next_reply(bool has_body = true) {
    run_until([&] { return reply_size(has_body) > 0 || state_->closed; });
    const std::size_t size = reply_size(has_body);
    std::string reply = state_->received.substr(0, size);
    state_->received.erase(0, size);
    return reply;
  }
  void await_close() {
    run_until([&] { return state_->closed; });
  }
  std::string exchange(std::string request) {
    send(std::move(request));
    return next_reply();
  }
  bool is_closed() const { return state_->closed; }
  const std::string& received() const { return state_->received; }

 private:
  struct State {
    explicit State(boost::asio::io_context& io) : socket(io) {}
    boost::asio::ip::tcp::socket socket;
    std::array<char, 4096> chunk{};
    std::string received;
    std::deque<std::string> outgoing;
    bool closed = false;
  };

  static void read(const std::shared_ptr<State>& state) {
    state->socket.async_read_some(boost::asio::buffer(state->chunk),
                                  [state](const boost::system::error_code& error, std::size_t n) {
                                    state->received.append(state->chunk.data(), n);
                                    state->closed = static_cast<bool>(error);
                                    if (!error) read(state);
                                  });
  }
  static void write(const std::shared_ptr<State>& state) {
    boost::asio::async_write(state->socket, boost::asio::buffer(state->outgoing.front()),
                             [state](const boost::system::error_code& error, std::size_t) {
                               state->outgoing.pop_front();
                               if (error) return state->outgoing.clear();
                               if (!state->outgoing.empty()) write(state);
                             });
  }
  // Bytes of the first whole reply in what was received; 0: not there yet.
  std::size_t reply_size(bool has_body) const {
    const std::string& text = state_->received;
    const auto end = text.find("\r\n\r\n");
    if (end == std::string::npos) return 0;
    const auto length = text.find("Content-Length: ");
    std::size_t size = end + 4;
    if (has_body && length < end) size += std::stoul(text.substr(length + 16));
    return text.size() >= size ? size : 0;
  }

  boost::asio::io_context& io_;
  std::shared_ptr<State> state_;
};

}  // namespace tonnage::testkit
