//go:build !linux

package cli

import "errors"

func splitCPUs() (server, mine string) { return "", "" }

func pin(string) error { return errors.New("this system binds no threads to processors") }
