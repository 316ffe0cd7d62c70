// SPDX-License-Identifier: Apache-2.0
// Real processes: small shell scripts that say by their exit status what they saw.
#include "supervisor/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "testkit/poll_loop.h"

namespace tonnage::supervisor {
namespace {

class ChildProcessTest : public testing::Test {
 protected:
  void start(LaunchCommand command) {
    ProcessEvents events;
    events.on_packet = [this](wire::Packet) { ++packets_; };
    events.on_bad_packet = [this](Status status) { bad_ = std::move(status); };
    events.on_exit = [this](ExitReason reason) {
      exit_ = reason;
      process_.reset();  // as Worker does
    };
    auto started = factory_.start(command, std::move(events));
    ASSERT_TRUE(started.is_ok()) << started.status().to_string();
    process_ = std::move(started).value();
  }
  void start_script(const std::string& script) { start({.program = "/bin/sh", .arguments = {"-c", script}}); }
  // The exit status of a script that ends by itself.
  int status_of(LaunchCommand command) {
    exit_.reset();
    start(std::move(command));
    wait_for_exit();
    EXPECT_EQ(ExitReason::Kind::kStatus, exit_->kind);
    return exit_->code;
  }
  int status_of_script(const std::string& script) {
    return status_of({.program = "/bin/sh", .arguments = {"-c", script}});
  }
  void wait_for_exit() {
    ASSERT_TRUE(loop_.run_until([this] { return exit_.has_value(); }));
  }

  testkit::PollLoop loop_;
  ChildProcessFactory factory_{loop_};
  std::unique_ptr<ProcessPort> process_;
  int packets_ = 0;
  std::optional<Status> bad_;
  std::optional<ExitReason> exit_;
};

TEST_F(ChildProcessTest, ReportsStatusAndSignal) {
  EXPECT_EQ(7, status_of_script("exit 7"));
  exit_.reset();
  start_script("kill -SEGV $$");
  wait_for_exit();
  EXPECT_EQ(ExitReason::Kind::kSignal, exit_->kind);
  EXPECT_EQ(SIGSEGV, exit_->code);
}

TEST_F(ChildProcessTest, HasExactlyTheEnvironmentItWasGiven) {
  const std::string script =
      R"sh([ "$(tr '\0' , < /proc/$$/environ)" = "OMP_NUM_THREADS=2,TONNAGE_WIRE_FD=3," ])sh";
  EXPECT_EQ(
      0, status_of(
             {.program = "/bin/sh", .arguments = {"-c", script}, .environment = {{"OMP_NUM_THREADS", "2"}}}));
}

TEST_F(ChildProcessTest, HasATemporaryFolderOfItsOwnThatGoesWithItHoweverItEnds) {
  std::string pattern = testing::TempDir() + "tonnage_child_XXXXXX";
  const std::filesystem::path root = ::mkdtemp(pattern.data());
  start({.program = "/bin/sh",
         .arguments = {"-c",
                       R"(mkdir "$TMPDIR/unpacked" && echo > "$TMPDIR/unpacked/model.so" && kill -KILL $$)"},
         .scratch_root = root.string()});
  EXPECT_EQ(1, std::distance(std::filesystem::directory_iterator(root), {}));
  wait_for_exit();
  EXPECT_EQ(SIGKILL, exit_->code);
  EXPECT_TRUE(std::filesystem::is_empty(root));
  std::filesystem::remove_all(root);
}

TEST_F(ChildProcessTest, HasTheChannelAndNoOtherDescriptor) {
  // One that is not close-on-exec, as a careless library leaves it.
  const UniqueFd careless(::fcntl(STDERR_FILENO, F_DUPFD, 20));
  EXPECT_EQ(0, status_of_script("[ -S /proc/$$/fd/3 ] && [ ! -e /proc/$$/fd/" +
                                std::to_string(careless.get()) + " ] && [ ! -e /proc/$$/fd/4 ]"));
}

TEST_F(ChildProcessTest, PrintsToStandardErrorAndReadsNothing) {
  EXPECT_EQ(0, status_of_script("[ \"$(readlink /proc/$$/fd/1)\" = \"$(readlink /proc/$$/fd/2)\" ] || "
                                "[ /proc/$$/fd/1 -ef /proc/$$/fd/2 ]"));
  EXPECT_EQ(0, status_of_script("! read line"));
}

TEST_F(ChildProcessTest, RunsInItsOwnGroupAndAtIdlePriorityWhenAsked) {
  EXPECT_EQ(0, status_of_script("[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ]"));
  EXPECT_EQ(0, status_of_script("[ $(cut -d' ' -f41 /proc/$$/stat) = 0 ]"));
  EXPECT_EQ(0, status_of({.program = "/bin/sh",
                          .arguments = {"-c", "[ $(cut -d' ' -f41 /proc/$$/stat) = 5 ]"},
                          .idle_priority = true}));
}

TEST_F(ChildProcessTest, TakesSignalsAgainThatTheFrontBlocks) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  start_script("kill -TERM $$; exit 3");
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  wait_for_exit();
  EXPECT_EQ(SIGTERM, exit_->code);
}

TEST_F(ChildProcessTest, IsKilledWhenAskedAndByItsDestructor) {
  start_script("exec sleep 1000");
  process_->kill();
  wait_for_exit();
  EXPECT_EQ(SIGKILL, exit_->code);

  start_script("exec sleep 1000");
  const pid_t pid = process_->pid();
  process_.reset();
  EXPECT_EQ(-1, ::kill(pid, 0)) << "neither running nor a zombie";
}

TEST_F(ChildProcessTest, IsReapedByItsDestructorHoweverLongTheKernelTakesToEndIt) {
  for (int i = 0; i < 20; ++i) {
    start_script("sleep 60");
    const pid_t pid = process_->pid();
    process_.reset();
    EXPECT_EQ(-1, ::waitpid(pid, nullptr, WNOHANG));
    EXPECT_EQ(ECHILD, errno) << "a zombie was left";
  }
}

TEST_F(ChildProcessTest, TakesItsOwnChildrenAlong) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  start_script("sleep 1000 & exit 0");
  const pid_t group = process_->pid();
  wait_for_exit();
  int status = 0;
  ASSERT_GT(::waitpid(-group, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(ChildProcessTest, RefusesAProgramThatIsNotThere) {
  const auto missing = factory_.start({.program = "/nonexistent/worker"}, {});
  EXPECT_EQ("no_program", missing.status().reason());
  EXPECT_NE(std::string::npos, missing.status().detail().find("/nonexistent/worker"));
}

TEST_F(ChildProcessTest, ExitsWith127WhenTheProgramIsNone) {
  std::string path = (std::filesystem::temp_directory_path() / "no_program.XXXXXX").string();
  const UniqueFd fd(::mkstemp(path.data()));
  std::ofstream(path) << "\x7f"
                         "ELF, but not really";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_EQ(127, status_of({.program = path}));
  std::filesystem::remove(path);
}

TEST_F(ChildProcessTest, ReadsMemoryAndLimitsIt) {
  start_script("exec sleep 1000");
  EXPECT_TRUE(process_->reading().is_ok());
  ASSERT_TRUE(process_->limit_data(mib(77)).is_ok());
  rlimit seen{};
  ASSERT_EQ(0, ::prlimit(process_->pid(), RLIMIT_DATA, nullptr, &seen));
  EXPECT_EQ(mib(77).count(), seen.rlim_cur);
  EXPECT_TRUE(process_->limit_data(mib(99)).is_ok()) << "it can be raised again";
}

TEST_F(ChildProcessTest, HandsOverBadPacketsAndReadsNothingAfterKill) {
  // What a shell writes to the channel is no message.
  start_script("echo one >&3; echo two >&3; exec sleep 1000");
  ASSERT_TRUE(loop_.run_until([this] { return bad_.has_value(); }));
  EXPECT_EQ("bad_message", bad_->reason());
  process_->kill();
  bad_.reset();
  wait_for_exit();
  EXPECT_FALSE(bad_.has_value());
  EXPECT_EQ(0, packets_);
}

TEST_F(ChildProcessTest, ReportsAProcessThatClosesItsEndAndStays) {
  start_script("exec 3>&-; exec sleep 1000");
  ASSERT_TRUE(loop_.run_until([this] { return bad_.has_value(); }));
  EXPECT_EQ("peer_closed", bad_->reason());
}

TEST_F(ChildProcessTest, DeliversWhatWasSentBeforeTheExit) {
  start_script("echo last words >&3; exit 0");
  wait_for_exit();
  EXPECT_EQ("bad_message", bad_.value().reason());
}

}  // namespace
}  // namespace tonnage::supervisor
