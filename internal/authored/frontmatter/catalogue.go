package frontmatter

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// Root is a folder of files that people wrote. Files must not lead out of it;
// [repofile.Root] is such a file system.
type Root struct {
	Path  string // for people
	Files fs.FS
	// Bounded is set if the project it belongs to is not trusted.
	Bounded bool
	// Only, if set, names what is looked at in it.
	Only []string
	// Plugin is the name of the plugin it came with, which stands before the names
	// of what is in it; empty if it came with none. Dir is that plugin's folder.
	Plugin, Dir string
}

// Named is how something in the root is called: in full and, where it came with a
// plugin, also in short.
func (r Root) Named(name string) (full, short string) {
	if r.Plugin == "" {
		return name, ""
	}
	return r.Plugin + ":" + name, name
}

// DirVariable stands for the folder of a plugin in what it brings.
const DirVariable = "${CLAUDE_PLUGIN_ROOT}"

// Fill puts the folder of the plugin in its place in a text of the root.
func (r Root) Fill(text string) string {
	if r.Dir == "" {
		return text
	}
	return strings.ReplaceAll(text, DirVariable, r.Dir)
}

// InShort is the one of items that has a short name; none if several have.
func InShort[T any](items []T, is func(T) bool) (one T, ok bool) {
	i := slices.IndexFunc(items, is)
	if i < 0 || slices.ContainsFunc(items[i+1:], is) {
		return one, false
	}
	return items[i], true
}

// Load reads a file of at most limit bytes and takes it apart.
func (r Root) Load(name string, limit int64) (File, error) {
	text, cut, err := Read(r.Files, name, limit)
	if err != nil {
		return File{}, err
	}
	if cut {
		return File{}, fmt.Errorf("longer than %d bytes", limit)
	}
	return Parse(r.Fill(text))
}

// Warning says what is wrong with a file, or with all of a root.
type Warning struct{ Path, Reason string }

func (w Warning) String() string { return w.Path + ": " + w.Reason }

// Found is what was read in roots, the strongest first, and what was wrong with
// the rest.
type Found[T any] struct {
	Items    []T
	Warnings []Warning
	seen     map[string]bool
}

// Add takes in an item, unless there is one of that name already.
func (f *Found[T]) Add(name string, item T) {
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	if !f.seen[name] {
		f.seen[name] = true
		f.Items = append(f.Items, item)
	}
}

// Warn takes down what is wrong at path.
func (f *Found[T]) Warn(path, format string, args ...any) {
	f.Warnings = append(f.Warnings, Warning{path, fmt.Sprintf(format, args...)})
}

// Catalogue is what people wrote of one sort. Nothing is read before it is asked
// for. It is safe for concurrent use.
type Catalogue[T any] struct {
	scan func() Found[T]

	mu    sync.Mutex // guards what follows
	found *Found[T]  // nil: not looked for yet
	at    time.Time  // when that was
}

// NewCatalogue returns the catalogue of what scan finds.
func NewCatalogue[T any](scan func() Found[T]) *Catalogue[T] { return &Catalogue[T]{scan: scan} }

// List is all there is, and what was wrong with others.
func (c *Catalogue[T]) List() ([]T, []Warning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		found := c.scan()
		c.found, c.at = &found, time.Now()
	}
	return slices.Clone(c.found.Items), slices.Clone(c.found.Warnings)
}

// Refresh forgets what was found, so that the roots are looked at again.
func (c *Catalogue[T]) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = nil
}

// Renew does as Refresh does if what was found is older than age.
func (c *Catalogue[T]) Renew(age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > age {
		c.found = nil
	}
}
