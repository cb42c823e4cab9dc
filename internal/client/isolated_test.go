package client_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/isolate"
)

// The test binary is also the engine process of the isolated engine, which passes the suite like the others.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "engine" {
		if err := isolate.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if isolate.Possible {
		client.Engines["isolated"] = func(o client.Options) (client.Engine, error) {
			return isolate.Start(o, exec.Command(os.Args[0], "engine"))
		}
	}
	goleak.VerifyTestMain(m)
}
