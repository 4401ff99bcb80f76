package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"coder/internal/host/authkey"
	"coder/internal/host/repofile"
	"coder/internal/record/store/jsonl"
)

// Leftover is a folder in which coder keeps data: that of a project, or the user's own.
type Leftover struct {
	Dir      string   `json:"dir"`
	Home     bool     `json:"home"`
	Sessions int      `json:"sessions"`
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Stays    []string `json:"stays,omitempty"` // names in it that people write
	InUse    bool     `json:"in_use"`          // a process works in a session

	made []string // what coder made there
}

// madeInHome are the names that coder itself writes in the user's folder. Settings,
// commands, skills, agents, worktrees and fleets are people's work.
var madeInHome = []string{
	"always", answers, "cache", Drafts, "heads", "key", keysDir, listening, loginsDir, "models.json",
	guardsFile, listsFile, windowsFile, marketsFile, pluginsDir, shipDir, takenFile, "trust.json", typedDir, "undo", workspacesDir,
}

// Leftovers finds what coder keeps in every project that it knows and in the user's
// folder, which is the last. It reads names and sizes only.
func (s *Settings) Leftovers() (all []Leftover) {
	var dirs []string
	for _, root := range s.Workspaces() {
		dirs = append(dirs, filepath.Join(root, ".coder"))
	}
	if s.Home != "" {
		dirs = append(slices.DeleteFunc(dirs, func(dir string) bool { return dir == s.Home }), s.Home)
	}
	for _, dir := range dirs {
		names := append([]string{"tmp"}, dataFolders...) // a home is a project, too
		l := Leftover{Dir: dir, Home: dir == s.Home}
		if l.Home {
			names = append(names, madeInHome...)
		}
		if l.look(names); len(l.made) > 0 && s.ours(l) {
			all = append(all, l)
		}
	}
	return all
}

// ours reports whether coder made the folder of l, and not another program that has a
// folder of that name.
func (s *Settings) ours(l Leftover) bool {
	if l.Home {
		info, err := os.Lstat(authkey.Path(l.Dir))
		return filepath.Base(l.Dir) == ".coder" || err == nil && info.Mode().Perm() == 0o600
	}
	_, err := os.Lstat(filepath.Join(s.Home, workspacesDir, shortHash(filepath.Dir(l.Dir))))
	return err == nil || slices.Contains(l.made, filepath.Join(l.Dir, ".gitignore"))
}

// look finds what there is. A link is never coder's, and nothing is looked for behind one.
func (l *Leftover) look(names []string) {
	if info, err := os.Lstat(l.Dir); err != nil || !info.IsDir() {
		return
	}
	entries, _ := os.ReadDir(l.Dir)
	for _, e := range entries {
		note, _ := repofile.Own(filepath.Join(l.Dir, e.Name()), int64(len(gitignore)))
		switch {
		case slices.Contains(names, e.Name()) && e.Type()&^fs.ModeDir == 0, e.Name() == ".gitignore" && string(note) == gitignore:
			l.made = append(l.made, filepath.Join(l.Dir, e.Name()))
		default:
			l.Stays = append(l.Stays, e.Name())
		}
	}
	store := &Store{dir: l.Dir}
	for _, id := range store.All() {
		l.Sessions++
		l.InUse = l.InUse || jsonl.InUse(store.Dir("log", id))
	}
	for _, path := range l.made {
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				l.Files, l.Bytes = l.Files+1, l.Bytes+info.Size()
			}
			return nil
		})
	}
}

// Remove deletes what coder made there, and the folder if nothing else is in it.
func (l Leftover) Remove() error {
	if l.InUse {
		return inputf("%s: a process is working in a session there", l.Dir)
	}
	var err error
	for _, path := range l.made {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err == nil {
		_ = os.Remove(l.Dir) // unless something stays
	}
	return err
}
