//go:build unix && !linux

package lsp

import "os"

// watched returns the process whose end a server must watch for.
func watched() any { return os.Getpid() }
