//go:build !linux

package client

import "errors"

// NewEpoll tells that this system has no epoll.
func NewEpoll(Options) (Engine, error) { return nil, errors.New("epoll is Linux's") }
