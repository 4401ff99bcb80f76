//go:build unix && !linux

package lsp

import "os"

// watchedPID returns the process whose end a server must watch for.
func watchedPID() any { return os.Getpid() }
