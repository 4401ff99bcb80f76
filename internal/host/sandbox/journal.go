package sandbox

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Journal names the files that commands touch. Each helper that keeps it writes a
// path there before a process of its command opens the file for writing, makes,
// moves or removes it. One journal serves all commands of a session, and no
// command can write to it. The nil Journal has no entries.
type Journal struct {
	mu      sync.Mutex // guards the fields below
	file    *os.File   // nil until a command runs, and where there can be none
	read    int64      // bytes of it that are in entries
	entries []entry
	runs    int          // commands so far
	alive   map[int]bool // those that have not ended
}

// entry is one line of the journal.
type entry struct {
	run  int
	kind byte
	path string
}

// The kinds of entries. A helper writes entryUnseen in place of what it could not
// find out, and then what its command touches is not known.
const (
	entryBegin  = 'b'
	entryEnd    = 'e'
	entryUnseen = 'u'
	entryFile   = 'f' // the path
	entryOpen   = 'o' // the path, which is opened for writing
	entryGone   = 'd' // the path, which is removed
	entryTree   = 't' // the path and all below it, which is moved there or away
)

// mostCounted is how often at most one command writes down the same: beyond it only that
// it was done is known.
const mostCounted = 32

// JournalOn is the descriptor on which a helper is given the journal.
const JournalOn = 5

// maxEntries bounds what is held in memory of a journal. Beyond it nothing is known.
const maxEntries = 1 << 20

// Keep has the helper of a line keep the journal, which [Line.Journal] then opens for
// it. Where no helper can, the journal says that it does not know what is touched.
func (j *Journal) Keep(l Line) Line {
	if j == nil {
		return l
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs++
	if j.alive == nil {
		j.alive = make(map[int]bool)
	}
	if j.file == nil && l.Init {
		j.file, _ = journalFile()
	}
	if j.file == nil || !l.Init {
		j.alive[j.runs] = true // nobody says when it ends
		j.entries = append(j.entries, entry{run: j.runs, kind: entryUnseen})
		return l
	}
	l.Argv = slices.Insert(slices.Clone(l.Argv), 2, "--journal="+strconv.Itoa(j.runs))
	l.Journal = j.file
	return l
}

// Mark is a moment in a journal.
type Mark struct {
	at    int
	alive map[int]bool
}

// Mark is the present moment.
func (j *Journal) Mark() Mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.take()
	m := Mark{at: len(j.entries), alive: make(map[int]bool, len(j.alive))}
	for run := range j.alive {
		m.alive[run] = true
	}
	return m
}

// Since tells what the commands that ran since the mark, or at it, have touched: those
// that ran at it since they began, for they may have had a file open. It is not known
// if a command was not watched.
func (j *Journal) Since(m Mark) (t Touched, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.take()
	t, known = Touched{make(map[string]Touch), make(map[string]bool)}, len(j.entries) < maxEntries
	for i, e := range j.entries {
		if i < m.at && !m.alive[e.run] {
			continue
		}
		if e.kind == entryUnseen {
			known = false
			continue
		}
		f := t.files[e.path]
		f.Any, f.Held = true, f.Held || j.alive[e.run]
		switch e.kind {
		case entryOpen:
			count(&f.Opened)
		case entryGone:
			count(&f.Removed)
		case entryTree:
			count(&f.Moved)
			t.trees[e.path] = true
		default:
			f.Held = true // it may have been written without being opened
		}
		t.files[e.path] = f
	}
	return t, known
}

// count counts one more; many are any number.
func count(n *int) {
	if *n++; *n >= mostCounted {
		*n = math.MaxInt32
	}
}

// take reads what was written since.
func (j *Journal) take() {
	if j.file == nil || len(j.entries) >= maxEntries {
		return
	}
	info, err := j.file.Stat()
	if err != nil || info.Size() <= j.read {
		return
	}
	b := make([]byte, info.Size()-j.read)
	n, _ := j.file.ReadAt(b, j.read)
	b = b[:n]
	for {
		line, rest, whole := bytes.Cut(b, []byte{0})
		if !whole {
			break
		}
		j.read += int64(len(line)) + 1
		b = rest
		j.add(string(line))
	}
}

func (j *Journal) add(line string) {
	number, rest, _ := strings.Cut(line, " ")
	run, err := strconv.Atoi(number)
	if err != nil || rest == "" {
		return
	}
	switch rest[0] {
	case entryBegin:
		j.alive[run] = true
		return
	case entryEnd:
		delete(j.alive, run)
		return
	}
	j.entries = append(j.entries, entry{run, rest[0], rest[1:]})
}

// Close lets the journal go.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// Touched is what commands have touched.
type Touched struct {
	files map[string]Touch
	trees map[string]bool
}

// Touch is what commands may have done to a file, at most.
type Touch struct {
	Any     bool // they touched it
	Opened  int  // how often they opened it for writing
	Moved   int  // how often they moved it to the name or away from it
	Removed int  // how often they removed it
	Held    bool // they may be writing it yet
}

// Of tells what commands did to the file at an absolute path.
func (t Touched) Of(path string) Touch {
	for dir := filepath.Dir(path); dir != "/" && dir != "." && len(t.trees) > 0; dir = filepath.Dir(dir) {
		if t.trees[dir] {
			return Touch{true, math.MaxInt32, math.MaxInt32, math.MaxInt32, true}
		}
	}
	return t.files[path]
}
