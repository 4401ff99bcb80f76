package lsp

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	maxDocument = 8 << 20 // bytes of a text we give to a server
	maxOpen     = 40      // documents open at a time
	maxLook     = 30_000  // how many files and directories of a project are looked at for changes
)

// document is a file the server has been given the text of.
type document struct {
	version int
	text    [sha256.Size]byte
	used    int // when, counted in uses
	serial  int // publications when it got its text
}

// tell makes sure that the server knows the text of a file, and of what else
// changed on disk. It returns the document, and whether the server has anything
// new to think about.
func (s *server) tell(ctx context.Context, path string, text []byte) (document, bool, error) {
	if len(text) > maxDocument {
		return document{}, false, fmt.Errorf("%s is too large for a language server (%d bytes)", nameOf(s.top, path), len(text))
	}
	s.sync.Lock()
	defer s.sync.Unlock()
	news, err := s.refresh(ctx, path)
	if err != nil {
		return document{}, false, err
	}
	d, sum := s.docs[path], sha256.Sum256(text)
	if d != nil && d.text == sum {
		s.use(d)
		return *d, news, nil
	}
	if d == nil && len(s.docs) >= maxOpen {
		oldest := "" // of those open, by their use
		for p, d := range s.docs {
			if oldest == "" || d.used < s.docs[oldest].used {
				oldest = p
			}
		}
		if err := s.shut(oldest); err != nil {
			return document{}, false, err
		}
	}
	opened := d == nil
	if opened {
		d = new(document)
		s.docs[path] = d
	}
	d.version++
	d.serial = s.publications()
	doc := map[string]any{"uri": uriOf(path), "version": d.version}
	if opened {
		doc["languageId"], doc["text"] = s.kind.languageID(path), string(text)
		err = s.conn.notify("textDocument/didOpen", map[string]any{"textDocument": doc})
	} else {
		err = s.conn.notify("textDocument/didChange", map[string]any{
			"textDocument": doc, "contentChanges": []any{map[string]any{"text": string(text)}},
		})
		if err == nil && s.wantsSave {
			err = s.conn.notify("textDocument/didSave", about(path))
		}
	}
	if err != nil {
		return document{}, false, err
	}
	d.text = sum
	s.use(d)
	return *d, true, nil
}

func (s *server) use(d *document) {
	s.uses++
	d.used = s.uses
}

// shut makes the server go by what is on disk again.
func (s *server) shut(path string) error {
	delete(s.docs, path)
	return s.conn.notify("textDocument/didClose", about(path))
}

// refresh tells the server what changed on disk since the last time, so that
// it does not go by old texts. It reports whether anything did. The document
// at path is about to be told by itself.
func (s *server) refresh(ctx context.Context, path string) (bool, error) {
	now := s.scan(ctx, s.docs)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	changes := make(map[string]int) // what became of files; if some were left out nobody can tell which are new or gone
	for path, stamp := range now.files {
		was, known := s.disk.files[path]
		switch {
		case known && was != stamp:
			changes[path] = altered
		case !known && s.disk.whole:
			changes[path] = created
		}
	}
	for path := range s.disk.files {
		if _, there := now.files[path]; !there && now.whole {
			changes[path] = deleted
		}
	}
	s.disk = now
	if len(changes) == 0 {
		return false, nil
	}
	events := make([]any, 0, len(changes))
	for _, changed := range slices.Sorted(maps.Keys(changes)) {
		if _, open := s.docs[changed]; open && changed != path {
			if err := s.shut(changed); err != nil {
				return false, err
			}
		}
		events = append(events, map[string]any{"uri": uriOf(changed), "type": changes[changed]})
	}
	return true, s.conn.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": events})
}

// about names a document, as the protocol writes it.
func about(path string) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": uriOf(path)}}
}

func (o Options) abs(name string) string { return filepath.Join(o.Root, filepath.FromSlash(name)) }

// aside are directories whose files are not written by hand.
var aside = []string{
	".git", ".hg", ".svn", ".coder", "node_modules", "vendor", "target", "dist", "build", ".venv", "venv", "__pycache__",
	".tox", ".mypy_cache", ".cache", ".idea", ".vscode",
}

type stamp struct {
	size int64
	mod  time.Time
}

type snapshot struct {
	files map[string]stamp
	whole bool // nothing was left out
}

// The kinds of change, as the protocol numbers them.
const (
	created = iota + 1
	altered
	deleted
)

// scan takes a snapshot of those files of the project that concern the server,
// and of the documents it has open.
func (s *server) scan(ctx context.Context, docs map[string]*document) snapshot {
	now := snapshot{files: make(map[string]stamp), whole: true}
	markers := slices.Concat(s.kind.Markers...)
	seen := 0
	_ = filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxLook || ctx.Err() != nil {
			now.whole = false
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			now.whole = false
		case d.IsDir() && path != s.root && slices.Contains(aside, d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular() && (s.kind.languageID(path) != "" || slices.Contains(markers, d.Name())):
			now.add(path, d.Info)
		}
		return nil
	})
	for path := range docs {
		now.add(path, func() (fs.FileInfo, error) { return os.Lstat(path) })
	}
	return now
}

func (n snapshot) add(path string, stat func() (fs.FileInfo, error)) {
	if info, err := stat(); err == nil {
		n.files[path] = stamp{info.Size(), info.ModTime()}
	}
}
