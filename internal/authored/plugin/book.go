package plugin

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Book is the record of the user's plugins: a folder of the user's own, with a file for each.
type Book struct {
	Dir string // empty: no record
	Now func() time.Time
}

// AddedPlugin is a plugin that the user added. It is off if Err is set.
type AddedPlugin struct {
	Plugin
	Origin Origin
	Err    error

	entry entry
	file  string
}

type entry struct {
	Path  string    `json:"path"`
	Since time.Time `json:"since"`
	Origin
	Pin
}

// ErrChanged means that a folder differs from what the user agreed to.
var ErrChanged = errors.New("the folder changed since you added the plugin")

// Inspect reads the plugin in a folder, and pins the folder's content.
// The pin comes first: the user does not agree to later changes.
func (b Book) Inspect(dir string) (Plugin, Pin, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Plugin{}, Pin{}, message.Errorf("folder %s does not exist", dir)
	}
	held, err := newPin(real, b.Now())
	if err != nil {
		return Plugin{}, Pin{}, message.Errorf("%s: %w", dir, err)
	}
	p, err := readResolved(real)
	if err != nil {
		return Plugin{}, Pin{}, message.Errorf("%s: %w", dir, err)
	}
	return p, held, nil
}

// Add writes down that the person agreed to a plugin as it was, and where it came from. One
// from the same address takes the place of that before.
func (b Book) Add(p Plugin, as Pin, from Origin) error {
	if b.Dir == "" {
		return errors.New("no home folder to save it in; set HOME or CODER_HOME")
	}
	file := filepath.Join(b.Dir, p.Name+".json")
	if old, err := readEntry(file); err == nil && old.Path != p.Dir && (from.Source == "" || old.Source != from.Source) {
		return message.Errorf("the plugin %s is already added, from %s; coder plugin remove %s removes it", p.Name,
			old.Path,
			p.Name)
	}
	return writeEntry(file, entry{p.Dir, b.Now().UTC().Truncate(time.Second), from, as})
}

// Remove forgets a plugin.
func (b Book) Remove(name string) error {
	err := fs.ErrNotExist
	name = strings.ToLower(name)
	if b.Dir != "" && isValidName(name) {
		if release, locked := atomicfile.Lock(b.Dir); locked == nil {
			defer release()
		}
		err = os.Remove(filepath.Join(b.Dir, name+".json"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return message.Errorf("unknown plugin %q; coder plugin list shows the plugins", name)
	}
	return err
}

// Load reads the added plugins, sorted by name.
func (b Book) Load() (all []AddedPlugin, err error) {
	if b.Dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, message.Errorf("read the list of added plugins: %w", err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || !isValidName(name) {
			continue
		}
		a := AddedPlugin{Plugin: Plugin{Name: name}, file: filepath.Join(b.Dir, f.Name())}
		if a.entry, a.Err = readEntry(a.file); a.Err == nil {
			a.Dir, a.Origin = a.entry.Path, a.entry.Origin
			a.Err = b.CheckUnchanged(&a)
		}
		if a.Err == nil {
			var p Plugin
			if p, a.Err = readResolved(a.Dir); a.Err == nil && p.Name != name {
				a.Err = ErrChanged
			} else if a.Err == nil {
				a.Plugin = p
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// CheckUnchanged reports whether a folder still has the content that the user agreed to. It does not read the
// content as long as the stamp is unchanged.
func (b Book) CheckUnchanged(a *AddedPlugin) error {
	if _, err := os.Stat(a.entry.Path); errors.Is(err, fs.ErrNotExist) {
		return message.Errorf("folder %s no longer exists", a.entry.Path)
	}
	if now, _, err := statStamp(a.entry.Path); err == nil && a.entry.Stamp != "" && now == a.entry.Stamp {
		return nil
	}
	now, err := newPin(a.entry.Path, b.Now())
	if err != nil {
		return err
	}
	if now.Hash != a.entry.Hash {
		return ErrChanged
	}
	if now.Stamp != "" {
		a.entry.Pin = now
		// If it fails, the next check re-reads the content. A plugin that was removed meanwhile stays removed.
		_ = atomicfile.Update(a.file, 0o600, func() ([]byte, error) {
			if e, err := readEntry(a.file); err != nil || e.Hash != now.Hash || e.Path != a.entry.Path {
				return nil, err
			}
			return a.entry.encode()
		})
	}
	return nil
}

const maxEntryBytes = 64 << 10

func readEntry(file string) (e entry, err error) {
	text, err := repofile.ReadOwn(file, maxEntryBytes)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err == nil && (e.Hash == "" || !filepath.IsAbs(e.Path)) {
		err = errors.New("location and content are not recorded")
	}
	if err != nil {
		return e, message.Errorf("%s cannot be used: %w", file, err)
	}
	return e, nil
}

func writeEntry(file string, e entry) error {
	err := atomicfile.Update(file, 0o600, e.encode)
	if err != nil {
		return message.Errorf("save a plugin: %w", err)
	}
	return nil
}

func (e entry) encode() ([]byte, error) {
	text, err := json.MarshalIndent(e, "", "  ")
	return append(text, '\n'), err
}
