package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/wire"
)

// fallbackEnv tells the child process of a test what it is to do without.
const fallbackEnv = "PRONY_TEST_WITHOUT"

// What the system denies is done without: the exchange works, and the report says what is missing. Over a cable nothing is.
func TestFallbacks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give up what it has")
	}
	for _, c := range []struct {
		without       string
		engine, stamp string
		noWire        string
	}{
		{"capabilities", "epoll", "socket", "CAP_NET_RAW"},
		{"packet sockets", "epoll", "socket", "operation not permitted"},
		{"epoll_pwait2", "portable", "socket", "epoll_pwait2"},
		{"epoll", "portable", "socket", "epoll"},
		{"loopback", "epoll", "wire", ""},
	} {
		t.Run(c.without, func(t *testing.T) {
			r := runWithout(t, c.without)
			if r.Engine != c.engine || r.Stamp != c.stamp || !strings.Contains(r.NoWire, c.noWire) || c.noWire == "" && r.NoWire != "" || r.Reads < 3 {
				t.Errorf("engine %q, stamp %q, no wire stamps since %q, %d reads", r.Engine, r.Stamp, r.NoWire, r.Reads)
			}
		})
	}
}

// runWithout runs TestFallbackChild in a process that lacks something, and returns its client's report.
func runWithout(t *testing.T, what string) (r bench.ClientReport) {
	t.Helper()
	dir, err := os.MkdirTemp("", "prony-client-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	self := filepath.Join(dir, "client.test") // where others may execute it
	copyFile(t, os.Args[0], self)
	cmd := exec.Command(self, "-test.run=^TestFallbackChild$", "-test.v=false")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), fallbackEnv+"="+what)
	switch what {
	case "capabilities":
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	case "loopback":
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	}
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) {
		t.Skip(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if strings.HasPrefix(line, "skip: ") {
		t.Skip(line)
	}
	if err != nil || json.Unmarshal([]byte(line), &r) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFallbackChild is the child of TestFallbacks: it gives up what it is told, makes some exchanges, and prints the client's report.
func TestFallbackChild(t *testing.T) {
	what := os.Getenv(fallbackEnv)
	if what == "" {
		t.Skip("the child of TestFallbacks")
	}
	skip := func(why error) { os.Stdout.WriteString("skip: " + strings.ReplaceAll(why.Error(), "\n", " ") + "\n") }
	srv := httptest.NewUnstartedServer(answer)
	if what == "loopback" {
		ln, err := listenOverCable()
		if err != nil {
			skip(err)
			return
		}
		srv.Listener.Close()
		srv.Listener = ln
	}
	srv.Start()
	defer srv.Close()
	if filter := denied[what]; filter != nil {
		if err := deny(filter); err != nil {
			skip(err)
			return
		}
	}
	target, err := ParseTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newSink()
	e := New(Options{Epoch: time.Now(), Targets: []Target{target}, Sink: s, Spin: DefaultSpin, Timeout: 10 * time.Second})
	for i := range 5 {
		e.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
	}
	s.await(5)
	r := e.Close()
	for i := range 5 {
		if tr := s.done[i]; tr.Fail != "" || s.body(i) != answered || string(tr.Stamp) != r.Stamp {
			t.Errorf("%d: %q %q body %q, stamps %s", i, tr.Fail, tr.Cause, s.body(i), tr.Stamp)
		}
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

// denied are the filters of system calls, by what they take away. The server is up by then, so that Go's own epoll set is there.
var denied = map[string][]unix.SockFilter{
	"packet sockets": {
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_SOCKET},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // its first argument
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.AF_PACKET},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	},
	"epoll_pwait2": withoutCall(unix.SYS_EPOLL_PWAIT2),
	"epoll":        withoutCall(unix.SYS_EPOLL_CREATE1),
}

// withoutCall is the filter of a kernel that does not have a system call.
func withoutCall(number uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
}

// deny puts all threads of this process under a filter of system calls.
func deny(filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// listenOverCable listens at the far end of a pair of virtual interfaces, in a network namespace of its own. The near end is this
// process's only way out.
func listenOverCable() (net.Listener, error) {
	ip := func(lines ...string) error {
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip %s: %w: %s", line, err, out)
			}
		}
		return nil
	}
	if err := ip("link add near type veth peer name far", "addr add 10.77.0.1/24 dev near", "link set near up"); err != nil {
		return nil, err
	}
	type result struct {
		ln  net.Listener
		err error
	}
	there := make(chan result)
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // never unlocked: the namespace ends with the thread, and with the listener
		err := unix.Unshare(unix.CLONE_NEWNET)
		thread <- unix.Gettid()
		<-thread // far is here
		if err == nil {
			err = ip("addr add 10.77.0.2/24 dev far", "link set far up")
		}
		if err != nil {
			there <- result{err: err}
			return
		}
		ln, err := net.Listen("tcp", "10.77.0.2:0")
		there <- result{ln, err}
	}()
	err := ip(fmt.Sprintf("link set far netns %d", <-thread))
	thread <- 0
	r := <-there
	return r.ln, errors.Join(err, r.err)
}
