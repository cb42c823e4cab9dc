// Package stamp reads TCP connections together with the kernel's receive stamps (SO_TIMESTAMPNS): the wall-clock time at which the last
// byte of a read arrived, however late it was read.
package stamp
