// Command prony benchmarks LLM inference servers.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/prony-bench/prony/internal/cli"
)

// version is set when a release is built.
var version = ""

func main() {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	os.Exit(cli.Main(context.Background(), cli.System{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Self: self, Version: versionOf(),
		Signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 2)
			signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return c, func() { signal.Stop(c) }
		},
	}))
}

// versionOf is the release's version, or what the Go tool knows of the source.
func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
