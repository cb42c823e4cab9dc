//go:build !linux

package client

import "github.com/prony-bench/prony/internal/bench"

// TestStamps compares the grades of stamps. This system has one only.
func TestStamps() *bench.StampTest { return &bench.StampTest{} }
