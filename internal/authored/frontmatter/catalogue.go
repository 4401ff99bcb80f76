package frontmatter

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/message"
)

// Root is a folder of user-written files. No file may lead out of it; [repofile.Root] is such a file system.
type Root struct {
	Path  string // for display
	Files fs.FS
	// Untrusted is set if its project is not trusted.
	Untrusted bool
	// OnlyNames, if set, limits which names in it are read.
	OnlyNames []string
	// Plugin is the name of its plugin, which prefixes the names of
	// its items; empty if it has none. Dir is that plugin's folder.
	Plugin, PluginDir string
}

// QualifiedName returns the names of an item in the root: in full and, for a plugin's item, also the short one.
func (r Root) QualifiedName(name string) (full, short string) {
	if r.Plugin == "" {
		return name, ""
	}
	return r.Plugin + ":" + name, name
}

// DirPlaceholder is the placeholder for a plugin's folder in its texts.
const DirPlaceholder = "${CLAUDE_PLUGIN_ROOT}"

// ExpandDir replaces the placeholder for the plugin's folder in a text.
func (r Root) ExpandDir(text string) string {
	if r.PluginDir == "" {
		return text
	}
	return strings.ReplaceAll(text, DirPlaceholder, r.PluginDir)
}

// FindUnique returns the only item for which is is true, or false if there are none or several.
func FindUnique[T any](items []T, is func(T) bool) (one T, ok bool) {
	i := slices.IndexFunc(items, is)
	if i < 0 || slices.ContainsFunc(items[i+1:], is) {
		return one, false
	}
	return items[i], true
}

// Load reads and parses a file of at most limit bytes.
func (r Root) Load(name string, limit int64) (File, error) {
	text, cut, err := ReadFile(r.Files, name, limit)
	if err != nil {
		return File{}, err
	}
	if cut {
		return File{}, message.Errorf("longer than %d bytes", limit)
	}
	return Parse(r.ExpandDir(text))
}

// Warning reports a problem with a file, or with a whole root.
type Warning struct{ Path, Reason string }

func (w Warning) String() string { return w.Path + ": " + w.Reason }

// ScanResult has the items of all roots, highest precedence first, and the problems with others.
type ScanResult[T any] struct {
	Items    []T
	Warnings []Warning
	seen     map[string]bool
}

// Add adds an item, unless one with that name exists.
func (f *ScanResult[T]) Add(name string, item T) {
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	if !f.seen[name] {
		f.seen[name] = true
		f.Items = append(f.Items, item)
	}
}

// Warn adds a warning about path.
func (f *ScanResult[T]) Warn(path, format string, args ...any) {
	f.Warnings = append(f.Warnings, Warning{path, fmt.Sprintf(format, args...)})
}

// Catalogue is a lazily scanned collection of user-written items of one kind. It is safe for concurrent use.
type Catalogue[T any] struct {
	scan func() ScanResult[T]

	mu        sync.Mutex     // guards the fields below
	result    *ScanResult[T] // nil: not scanned yet
	scannedAt time.Time      // time of the scan
}

// NewCatalogue returns a catalogue of scan's results.
func NewCatalogue[T any](scan func() ScanResult[T]) *Catalogue[T] { return &Catalogue[T]{scan: scan} }

// List returns all items, and the problems with others.
func (c *Catalogue[T]) List() ([]T, []Warning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.result == nil {
		found := c.scan()
		c.result, c.scannedAt = &found, time.Now()
	}
	return slices.Clone(c.result.Items), slices.Clone(c.result.Warnings)
}

// Refresh drops the results, so that the next call scans the roots again.
func (c *Catalogue[T]) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = nil
}

// RefreshOlderThan is Refresh for results older than age.
func (c *Catalogue[T]) RefreshOlderThan(age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.scannedAt) > age {
		c.result = nil
	}
}
