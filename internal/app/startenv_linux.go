package app

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// eraseStartEnv overwrites what commands do not get of our environment where the
// system keeps what we were started with: a command that nothing confines could
// read it there. What cannot be overwritten stays; it is no more than one lock
// of several.
func (a *App) eraseStartEnv() {
	if len(a.Withheld()) == 0 {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	from, to, ok := startEnv()
	if !ok {
		return
	}
	block := make([]byte, to-from)
	if n, _ := memory.ReadAt(block, from); n < len(block) {
		return
	}
	withholds := a.withholds()
	for at := 0; at < len(block); {
		entry, _, _ := bytes.Cut(block[at:], []byte{0})
		if name, value, ok := bytes.Cut(entry, []byte("=")); ok && withholds(string(entry)) {
			_, _ = memory.WriteAt(bytes.Repeat([]byte("*"), len(value)), from+int64(at+len(name)+1))
		}
		at += len(entry) + 1
	}
}

// startEnv is where in our memory the environment lies that we were started
// with.
func startEnv() (from, to int64, ok bool) {
	const start, end = 50, 51 // fields of the file, counted from 1
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, false
	}
	after := strings.LastIndexByte(string(text), ')') // the second field may hold blanks
	fields := strings.Fields(string(text[after+1:]))
	if after < 0 || len(fields) < end-2 {
		return 0, 0, false
	}
	from, errFrom := strconv.ParseInt(fields[start-3], 10, 64)
	to, errTo := strconv.ParseInt(fields[end-3], 10, 64)
	return from, to, errFrom == nil && errTo == nil && from > 0 && to > from && to-from < maxStart
}

// maxStart is the largest environment that is gone through.
const maxStart = 8 << 20
