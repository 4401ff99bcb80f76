package textcalls

import (
	"strings"
)

// fences follows the lines of a text and knows whether it is in a code fence.
type fences struct {
	line  []byte // the start of the line we are on
	mark  byte   // the fence we are in is made of this, so many times
	count int
}

// lineStart is how much of a line must be seen to know a fence.
const lineStart = 200

func (f *fences) feed(text string) {
	for {
		line, rest, ended := strings.Cut(text, "\n")
		room := max(0, lineStart-len(f.line))
		f.line = append(f.line, line[:min(room, len(line))]...)
		if !ended {
			return
		}
		f.endLine()
		text = rest
	}
}

// endLine opens or closes a fence if the line says so.
func (f *fences) endLine() {
	mark, count, rest := fenceRun(string(f.line))
	f.line = f.line[:0]
	switch {
	case count < 3:
	case f.count == 0:
		if mark == '~' || !strings.Contains(rest, "`") {
			f.mark, f.count = mark, count
		}
	case mark == f.mark && count >= f.count && strings.TrimSpace(rest) == "":
		f.count = 0
	}
}

// fenceRun is the run of backquotes or tildes that line starts with.
func fenceRun(line string) (mark byte, count int, rest string) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0, line
	}
	rest = strings.TrimLeft(line, line[:1])
	return line[0], len(line) - len(rest), rest
}

// quoted reports whether what comes next is code that the model shows.
func (f *fences) quoted() bool {
	if f.count > 0 {
		return true
	}
	_, count, _ := fenceRun(string(f.line))
	return count >= 3 || len(f.line) > 0 && f.line[len(f.line)-1] == '`'
}
