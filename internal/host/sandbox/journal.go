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

// Journal records the files that commands touch. Each helper that writes to it adds a path before a
// process of its command opens the file for writing, creates, moves or removes it. One journal serves
// all commands of a session, and no command can write to it. The nil Journal has no entries.
type Journal struct {
	mu      sync.Mutex // guards the fields below
	file    *os.File   // nil until a command runs, or if unsupported
	read    int64      // bytes already parsed into entries
	entries []entry
	runs    int          // number of commands so far
	alive   map[int]bool // commands still running
}

// entry is one line of the journal.
type entry struct {
	run  int
	kind byte
	path string
}

// Kinds of entries. A helper writes entryUnseen if it misses something; what its command touched is then
// unknown.
const (
	entryBegin  = 'b'
	entryEnd    = 'e'
	entryUnseen = 'u'
	entryFile   = 'f' // path
	entryOpen   = 'o' // path opened for writing
	entryGone   = 'd' // path removed
	entryTree   = 't' // path moved here or away, with everything below
)

// mostCounted is how often a command records the same operation; more count as unlimited.
const mostCounted = 32

// JournalOn is the helper's descriptor of the journal.
const JournalOn = 5

// maxEntries limits a journal's entries in memory. Beyond it, what was touched is unknown.
const maxEntries = 1 << 20

// Keep makes the helper of a line record to the journal, by [Line.Journal]. If no helper can, the
// journal reports that touched files are unknown.
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
		j.alive[j.runs] = true // its end is never reported
		j.entries = append(j.entries, entry{run: j.runs, kind: entryUnseen})
		return l
	}
	l.Argv = slices.Insert(slices.Clone(l.Argv), 2, "--journal="+strconv.Itoa(j.runs))
	l.Journal = j.file
	return l
}

// Mark is a position in a journal.
type Mark struct {
	at    int
	alive map[int]bool
}

// Mark returns the current position.
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

// Since returns what commands have touched since m. For commands running at m, it includes everything
// since their start, because they may have had a file open. known is false if a command was not
// observed.
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

// count increments n up to mostCounted, and then makes it unlimited.
func count(n *int) {
	if *n++; *n >= mostCounted {
		*n = math.MaxInt32
	}
}

// take reads new entries.
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

// Close closes the journal.
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

// Touched holds the files that commands touched.
type Touched struct {
	files map[string]Touch
	trees map[string]bool
}

// Touch is an upper bound on what commands did to a file.
type Touch struct {
	Any     bool // touched in any way
	Opened  int  // times opened for writing
	Moved   int  // times moved to or from this name
	Removed int  // times removed
	Held    bool // commands may still write it
}

// Of returns what commands did to the file at an absolute path.
func (t Touched) Of(path string) Touch {
	for dir := filepath.Dir(path); dir != "/" && dir != "." && len(t.trees) > 0; dir = filepath.Dir(dir) {
		if t.trees[dir] {
			return Touch{true, math.MaxInt32, math.MaxInt32, math.MaxInt32, true}
		}
	}
	return t.files[path]
}
