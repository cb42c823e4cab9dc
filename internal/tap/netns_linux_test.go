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
	"time"

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

// linkOf returns the index of an interface of a namespace.
func linkOf(t *testing.T, n *namespace, name string) int {
	t.Helper()
	var link *net.Interface
	if err := n.do(func() (err error) { link, err = net.InterfaceByName(name); return err }); err != nil {
		t.Fatal(err)
	}
	return link.Index
}

func openIn(n *namespace, o Options) (tap *Tap, err error) {
	err = n.do(func() error { tap, err = Open(o); return err })
	return tap, err
}

// Two hosts with a cable between them: what arrives comes through the interface's receive path, both versions of IP at once on
// one ring.
func TestTapVeth(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip(err)
	}
	openTap(t, server, Options{}) // skips where there are no rings
	here, there := newNamespace(t), newNamespace(t)
	here.ip(t, "link add near type veth peer name far", fmt.Sprintf("link set far netns %d", there.thread),
		"addr add 10.77.0.1/24 dev near", "addr add fd77::1/64 dev near nodad", "link set near up", "link set lo up")
	there.ip(t, "addr add 10.77.0.2/24 dev far", "addr add fd77::2/64 dev far nodad", "link set far up")
	index := linkOf(t, here, "near")
	for _, address := range []string{"10.77.0.2:0", "[fd77::2]:0"} {
		t.Run(address, func(t *testing.T) {
			var l net.Listener
			var x exchange
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(there.do(func() (err error) { l, err = net.Listen("tcp", address); return err }))
			p := newPeer(t, l, 5000, 40, 3000, 0)
			must(here.do(func() error {
				got, _, err := InterfaceFor(p.addr())
				if err == nil && got != "near" {
					err = fmt.Errorf("the interface to %v: %q", p.addr(), got)
				}
				return err
			}))
			tap, err := openIn(here, Options{Interface: index, Remotes: []netip.AddrPort{p.addr()}})
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

	tap, err := openIn(here, Options{Interface: index, Remotes: []netip.AddrPort{server}})
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	here.ip(t, "link set near down")
	if _, err := tap.Read(time.Second, func(*Packet) {}); !errors.Is(err, ErrInterface) || !errors.Is(err, unix.ENETDOWN) {
		t.Errorf("the interface went down: %v", err)
	}
}
