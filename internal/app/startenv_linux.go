package app

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// eraseStartEnv overwrites the variables that commands do not get in the process's initial environment,
// where an unconfined command could read them. It ignores failures; it is only one of several protections.
func (a *Site) eraseStartEnv() {
	if len(a.WithheldVars()) == 0 {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	from, to, ok := findStartEnv()
	if !ok {
		return
	}
	block := make([]byte, to-from)
	if n, _ := memory.ReadAt(block, from); n < len(block) {
		return
	}
	withholds := a.withheldVarFilter()
	for at := 0; at < len(block); {
		entry, _, _ := bytes.Cut(block[at:], []byte{0})
		if name, value, ok := bytes.Cut(entry, []byte("=")); ok && withholds(string(entry)) {
			_, _ = memory.WriteAt(bytes.Repeat([]byte("*"), len(value)), from+int64(at+len(name)+1))
		}
		at += len(entry) + 1
	}
}

// findStartEnv returns where in memory the process's initial environment is.
func findStartEnv() (from, to int64, ok bool) {
	const start, end = 50, 51 // field numbers, from 1
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, false
	}
	after := strings.LastIndexByte(string(text), ')') // the second field may contain blanks
	fields := strings.Fields(string(text[after+1:]))
	if after < 0 || len(fields) < end-2 {
		return 0, 0, false
	}
	from, errFrom := strconv.ParseInt(fields[start-3], 10, 64)
	to, errTo := strconv.ParseInt(fields[end-3], 10, 64)
	return from, to, errFrom == nil && errTo == nil && from > 0 && to > from && to-from < maxStartEnv
}

// maxStartEnv limits the size of the environment.
const maxStartEnv = 8 << 20
