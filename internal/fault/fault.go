// Package fault is the error that a person meets: one line with the cause, one with the hint, and the exit code.
//
// A request that fails while measuring is no fault but a record with an outcome.
package fault

import (
	"errors"
	"fmt"
)

// Code is an exit code of prony. The list is closed and documented in docs/exit-codes.md.
type Code int

// The exit codes. Where several apply Interrupted beats Void, and Void beats Gate.
const (
	OK            Code = 0   // the run is valid or doubtful
	Internal      Code = 1   // a bug, a full disk
	Usage         Code = 2   // flags, spec, data set, an existing run directory
	Gate          Code = 3   // a gate or an SLO was missed; the run is valid
	NotComparable Code = 4   // more than one thing differs
	Void          Code = 5   // the run must not be used
	Target        Code = 6   // the target cannot be used from the start
	Interrupted   Code = 130 // stopped by a signal; what was measured is saved and marked
)

// Error is a fault with its cause in one line, lower case, no full stop.
type Error struct {
	Code  Code
	Cause string
	Hint  string // what to do about it; may be empty
	Err   error  // the underlying error, if any
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Cause, e.Err)
	}
	return e.Cause
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// New makes a fault.
func New(code Code, cause, hint string) *Error { return &Error{Code: code, Cause: cause, Hint: hint} }

// Wrap makes a fault from an error. The cause names what was being done.
func Wrap(code Code, err error, cause, hint string) *Error {
	return &Error{Code: code, Cause: cause, Hint: hint, Err: err}
}

// Usagef makes a usage fault with a formatted cause.
func Usagef(hint, format string, args ...any) *Error {
	return New(Usage, fmt.Sprintf(format, args...), hint)
}

// CodeOf returns the exit code that an error asks for: OK for nil, Internal for an error that is no fault.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var f *Error
	if errors.As(err, &f) {
		return f.Code
	}
	return Internal
}

// HintOf returns the hint that travels with an error, or "".
func HintOf(err error) string {
	var f *Error
	if errors.As(err, &f) {
		return f.Hint
	}
	return ""
}
