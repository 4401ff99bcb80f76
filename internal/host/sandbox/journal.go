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
	parsed  int64      // bytes already parsed into entries
	entries []entry
	runs    int          // number of commands so far
	running map[int]bool // commands still running
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
	entryBegin   = 'b'
	entryEnd     = 'e'
	entryUnseen  = 'u'
	entryFile    = 'f' // path
	entryOpen    = 'o' // path opened for writing
	entryRemoved = 'd' // path removed
	entryTree    = 't' // path moved here or away, with everything below
)

// maxCounted is how often a command records the same operation; more count as unlimited.
const maxCounted = 32

// JournalFD is the helper's descriptor of the journal.
const JournalFD = 5

// maxEntries limits a journal's entries in memory. Beyond it, what was touched is unknown.
const maxEntries = 1 << 20

// Attach makes the helper of a line record to the journal, by [Line.Journal]. If no helper can, the
// journal reports that touched files are unknown.
func (j *Journal) Attach(l Wrapper) Wrapper {
	if j == nil {
		return l
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs++
	if j.running == nil {
		j.running = make(map[int]bool)
	}
	if j.file == nil && l.Init {
		j.file, _ = newJournalFile()
	}
	if j.file == nil || !l.Init {
		j.running[j.runs] = true // its end is never reported
		j.entries = append(j.entries, entry{run: j.runs, kind: entryUnseen})
		return l
	}
	l.Argv = slices.Insert(slices.Clone(l.Argv), 2, "--journal="+strconv.Itoa(j.runs))
	l.Journal = j.file
	return l
}

// Mark is a position in a journal.
type Mark struct {
	index   int
	running map[int]bool
}

// Mark returns the current position.
func (j *Journal) Mark() Mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readNew()
	m := Mark{index: len(j.entries), running: make(map[int]bool, len(j.running))}
	for run := range j.running {
		m.running[run] = true
	}
	return m
}

// Since returns what commands have touched since m. For commands running at m, it includes everything
// since their start, because they may have had a file open. known is false if a command was not
// observed.
func (j *Journal) Since(m Mark) (t Touched, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readNew()
	t, known = Touched{make(map[string]Touch), make(map[string]bool)}, len(j.entries) < maxEntries
	for i, e := range j.entries {
		if i < m.index && !m.running[e.run] {
			continue
		}
		if e.kind == entryUnseen {
			known = false
			continue
		}
		f := t.files[e.path]
		f.Touched, f.StillOpen = true, f.StillOpen || j.running[e.run]
		switch e.kind {
		case entryOpen:
			increment(&f.Opened)
		case entryRemoved:
			increment(&f.Removed)
		case entryTree:
			increment(&f.Moved)
			t.trees[e.path] = true
		default:
			f.StillOpen = true // it may have been written without being opened
		}
		t.files[e.path] = f
	}
	return t, known
}

// increment increments n up to maxCounted, and then makes it unlimited.
func increment(n *int) {
	if *n++; *n >= maxCounted {
		*n = math.MaxInt32
	}
}

// readNew reads new entries.
func (j *Journal) readNew() {
	if j.file == nil || len(j.entries) >= maxEntries {
		return
	}
	info, err := j.file.Stat()
	if err != nil || info.Size() <= j.parsed {
		return
	}
	b := make([]byte, info.Size()-j.parsed)
	n, _ := j.file.ReadAt(b, j.parsed)
	b = b[:n]
	for {
		line, rest, whole := bytes.Cut(b, []byte{0})
		if !whole {
			break
		}
		j.parsed += int64(len(line)) + 1
		b = rest
		j.parseEntry(string(line))
	}
}

func (j *Journal) parseEntry(line string) {
	number, rest, _ := strings.Cut(line, " ")
	run, err := strconv.Atoi(number)
	if err != nil || rest == "" {
		return
	}
	switch rest[0] {
	case entryBegin:
		j.running[run] = true
		return
	case entryEnd:
		delete(j.running, run)
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
	Touched   bool // touched in any way
	Opened    int  // times opened for writing
	Moved     int  // times moved to or from this name
	Removed   int  // times removed
	StillOpen bool // commands may still write it
}

// File returns what commands did to the file at an absolute path.
func (t Touched) File(path string) Touch {
	for dir := filepath.Dir(path); dir != "/" && dir != "." && len(t.trees) > 0; dir = filepath.Dir(dir) {
		if t.trees[dir] {
			return Touch{true, math.MaxInt32, math.MaxInt32, math.MaxInt32, true}
		}
	}
	return t.files[path]
}
