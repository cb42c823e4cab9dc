package tap

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace of its own: a thread that is in it, and ends with the test.
type namespace struct {
	thread int
	work   chan func()
}

func newNamespace(t *testing.T) *namespace {
	n := &namespace{work: make(chan func())}
	made := make(chan error)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the thread, and with it the namespace, dies with the goroutine
		n.thread = unix.Gettid()
		made <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range n.work {
			f()
		}
	}()
	err := <-made
	t.Cleanup(func() { close(n.work); <-ended })
	if err != nil {
		t.Skipf("no network namespace here: %v", err)
	}
	return n
}

// do runs f in the namespace: sockets that it opens, and programs that it starts, are there. f must not end the test.
func (n *namespace) do(f func() error) error {
	result := make(chan error)
	n.work <- func() { result <- f() }
	return <-result
}

func (n *namespace) ip(t *testing.T, lines ...string) {
	t.Helper()
	if err := n.do(func() error {
		for _, line := range lines {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip %s: %w: %s", line, err, out)
			}
		}
		return nil
	}); err != nil {
		t.Skip(err)
	}
}

// Two hosts with a cable between them: what arrives comes through the interface's receive path, both versions of IP at once on one ring.
func TestTapVeth(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip(err)
	}
	here, there := newNamespace(t), newNamespace(t)
	here.ip(t, "link add near type veth peer name far", fmt.Sprintf("link set far netns %d", there.thread),
		"addr add 10.77.0.1/24 dev near", "addr add fd77::1/64 dev near nodad", "link set near up", "link set lo up")
	there.ip(t, "addr add 10.77.0.2/24 dev far", "addr add fd77::2/64 dev far nodad", "link set far up")
	for _, address := range []string{"10.77.0.2:0", "[fd77::2]:0"} {
		t.Run(address, func(t *testing.T) {
			var l net.Listener
			var tap *Tap
			var x exchange
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(there.do(func() (err error) { l, err = net.Listen("tcp", address); return err }))
			p := newPeer(t, l, 5000, 40, 3000, 0)
			err := here.do(func() error {
				name, index, err := InterfaceFor(p.addr())
				if err != nil || name != "near" {
					return fmt.Errorf("the interface to %v: %q %w", p.addr(), name, err)
				}
				tap, err = Open(Options{Interface: index, Remotes: []netip.AddrPort{p.addr()}})
				return err
			})
			if errors.Is(err, ErrCapability) || errors.Is(err, ErrDenied) {
				t.Skipf("no packet ring here: %v", err)
			}
			must(err)
			defer tap.Close()
			must(here.do(func() (err error) { x, err = p.run(func() {}); return err }))
			p.Close()
			p.done.Wait()
			table := NewTable(0)
			drainUntil(t, tap, table, wall())
			if missing, _ := p.verify(t, table, x); missing != 0 {
				t.Errorf("%d bytes have no stamp", missing)
			}
			t.Logf("%+v, %d marks", tap.Stats(), len(table.Get(x.key).In.marks))
		})
	}
}
