package client

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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

// What the system denies is done without: the exchange works, and the report says what is missing.
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
	} {
		t.Run(c.without, func(t *testing.T) {
			r := runWithout(t, c.without)
			if r.Engine != c.engine || r.Stamp != c.stamp || !strings.Contains(r.NoWire, c.noWire) || r.Reads < 3 {
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
	if what == "capabilities" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.Output()
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
	var deny []unix.SockFilter
	switch os.Getenv(fallbackEnv) {
	case "":
		t.Skip("the child of TestFallbacks")
	case "packet sockets":
		deny = []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_SOCKET},
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // its first argument
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.AF_PACKET},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
	case "epoll_pwait2":
		deny = []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_EPOLL_PWAIT2},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
	}
	if deny != nil {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			os.Stdout.WriteString("skip: " + err.Error() + "\n")
			return
		}
		prog := unix.SockFprog{Len: uint16(len(deny)), Filter: &deny[0]}
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
			os.Stdout.WriteString("skip: seccomp: " + errno.Error() + "\n")
			return
		}
	}
	srv := httptest.NewServer(answer)
	defer srv.Close()
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
		if tr := s.done[i]; tr.Fail != "" || s.body(i) != answered {
			t.Errorf("%d: %q %q body %q", i, tr.Fail, tr.Cause, s.body(i))
		}
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.Write(append(line, '\n'))
}
