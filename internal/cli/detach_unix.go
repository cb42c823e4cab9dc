//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// detach puts a child process into a group of its own, so that a Ctrl-C reaches this program alone, which ends the child in order.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
