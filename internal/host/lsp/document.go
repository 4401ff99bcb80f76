package lsp

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"coder/internal/core/message"
)

const (
	maxDocument = 8 << 20 // largest document sent to a server, in bytes
	maxOpen     = 40      // documents open at a time
	maxScanned  = 30_000  // limit on files and directories checked for changes
)

// document is a file whose text the server has.
type document struct {
	version  int
	textHash [sha256.Size]byte
	lastUse  int // last use, as a counter
	serial   int // publication count when its text was sent
}

// syncDocument makes sure that the server knows a file's text and other changes on disk. It returns the
// document, and whether the server got anything new.
func (s *server) syncDocument(ctx context.Context, path string, text []byte) (document, bool, error) {
	if len(text) > maxDocument {
		return document{}, false, message.Errorf("%s is too large for a language server (%d bytes)", displayName(s.top,
			path),
			len(text))
	}
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	news, err := s.reportDiskChanges(ctx, path)
	if err != nil {
		return document{}, false, err
	}
	d, sum := s.docs[path], sha256.Sum256(text)
	if d != nil && d.textHash == sum {
		s.markUsed(d)
		return *d, news, nil
	}
	if d == nil && len(s.docs) >= maxOpen {
		oldest := "" // least recently used open document
		for p, d := range s.docs {
			if oldest == "" || d.lastUse < s.docs[oldest].lastUse {
				oldest = p
			}
		}
		if err := s.closeDocument(oldest); err != nil {
			return document{}, false, err
		}
	}
	opened := d == nil
	if opened {
		d = new(document)
		s.docs[path] = d
	}
	d.version++
	d.serial = s.publicationCount()
	doc := map[string]any{"uri": pathToURI(path), "version": d.version}
	if opened {
		doc["languageId"], doc["text"] = s.kind.languageID(path), string(text)
		err = s.conn.notify("textDocument/didOpen", map[string]any{"textDocument": doc})
	} else {
		err = s.conn.notify("textDocument/didChange", map[string]any{
			"textDocument": doc, "contentChanges": []any{map[string]any{"text": string(text)}},
		})
		if err == nil && s.wantsSave {
			err = s.conn.notify("textDocument/didSave", documentID(path))
		}
	}
	if err != nil {
		return document{}, false, err
	}
	d.textHash = sum
	s.markUsed(d)
	return *d, true, nil
}

func (s *server) markUsed(d *document) {
	s.uses++
	d.lastUse = s.uses
}

// closeDocument closes a document, so that the server reads it from disk again.
func (s *server) closeDocument(path string) error {
	delete(s.docs, path)
	return s.conn.notify("textDocument/didClose", documentID(path))
}

// reportDiskChanges reports changes on disk since the last call to the server, so that it does not use old texts,
// and returns whether there were any. It leaves out the document at path, which the caller sends.
func (s *server) reportDiskChanges(ctx context.Context, path string) (bool, error) {
	now := s.scan(ctx, s.docs)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	changes := make(map[string]int) // by file; with an incomplete snapshot, created and deleted files are unknown
	for path, stamp := range now.files {
		was, known := s.diskState.files[path]
		switch {
		case known && was != stamp:
			changes[path] = changeModified
		case !known && s.diskState.isComplete:
			changes[path] = changeCreated
		}
	}
	for path := range s.diskState.files {
		if _, there := now.files[path]; !there && now.isComplete {
			changes[path] = changeDeleted
		}
	}
	s.diskState = now
	if len(changes) == 0 {
		return false, nil
	}
	events := make([]any, 0, len(changes))
	for _, changed := range slices.Sorted(maps.Keys(changes)) {
		if _, open := s.docs[changed]; open && changed != path {
			if err := s.closeDocument(changed); err != nil {
				return false, err
			}
		}
		events = append(events, map[string]any{"uri": pathToURI(changed), "type": changes[changed]})
	}
	return true, s.conn.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": events})
}

// documentID returns a document's identifier in the protocol.
func documentID(path string) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": pathToURI(path)}}
}

func (o Options) abs(name string) string { return filepath.Join(o.Root, filepath.FromSlash(name)) }

// skippedDirs are directories whose files are not handwritten.
var skippedDirs = []string{
	".git", ".hg", ".svn", ".coder", "node_modules", "vendor", "target", "dist", "build", ".venv", "venv", "__pycache__",
	".tox", ".mypy_cache", ".cache", ".idea", ".vscode",
}

type stamp struct {
	size int64
	mod  time.Time
}

type snapshot struct {
	files      map[string]stamp
	isComplete bool // no file was omitted
}

// Kinds of change, with the protocol's numbers.
const (
	changeCreated = iota + 1
	changeModified
	changeDeleted
)

// scan takes a snapshot of the project's files that concern the server, and of its open documents.
func (s *server) scan(ctx context.Context, docs map[string]*document) snapshot {
	now := snapshot{files: make(map[string]stamp), isComplete: true}
	markers := slices.Concat(s.kind.Markers...)
	seen := 0
	_ = filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxScanned || ctx.Err() != nil {
			now.isComplete = false
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			now.isComplete = false
		case d.IsDir() && path != s.root && slices.Contains(skippedDirs, d.Name()):
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
