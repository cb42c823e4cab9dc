package sim

import (
	"net"
	"strings"

	"github.com/prony-bench/prony/internal/fault"
)

// Listen opens a listener at host:port, or at the path of a unix socket after unix:, and returns the URL to reach it by.
func Listen(addr string) (l net.Listener, url string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if l, err = net.Listen("unix", path); err != nil {
			return nil, "", fault.Wrap(fault.Usage, err, "--listen", "if no server is there any more, remove the file that it left")
		}
		return l, "unix:" + path, nil
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		return nil, "", fault.Wrap(fault.Usage, err, "--listen", "give another port, or 0 for a free one")
	}
	return l, "http://" + l.Addr().String(), nil
}
