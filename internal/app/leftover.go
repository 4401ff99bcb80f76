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

// Leftover is a folder with coder's data: a project's, or the user's own.
type Leftover struct {
	Dir       string   `json:"dir"`
	Home      bool     `json:"home"`
	Plugins   bool     `json:"plugins,omitempty"` // plugins that came from an address
	Sessions  int      `json:"sessions"`
	Files     int      `json:"files"`
	Bytes     int64    `json:"bytes"`
	UserFiles []string `json:"stays,omitempty"` // the user's files in it
	InUse     bool     `json:"in_use"`          // a process is running a session

	ownFiles []string // coder's own files there
}

// ownHomeNames are coder's own names in the user's folder. Settings,
// commands, skills, agents, worktrees and fleets are the user's.
var ownHomeNames = []string{
	"always", answersDir, "cache", DraftsDir, "heads", "key", keysDirName, listeningDir, loginsDir, "models.json",
	shownRestrictionsFile, modelListsFile, windowsFile, pluginsDir, marketsFile, shipCursorsDir, takeoverFile,
	"trust.json", typedDir, "undo", workspacesDir,
}

// FindLeftovers finds coder's data in every known project and in the
// user's folder, which comes last. It reads only names and sizes.
func (s *Settings) FindLeftovers(env Env) (all []Leftover) {
	if l := (Leftover{Dir: env.fetchedPlugins(), Plugins: true}); l.Dir != "" {
		entries, _ := os.ReadDir(l.Dir) // the folder may be missing
		for _, e := range entries {
			l.ownFiles = append(l.ownFiles, filepath.Join(l.Dir, e.Name()))
		}
		if l.count(); len(entries) > 0 {
			all = append(all, l)
		}
	}
	var dirs []string
	for _, root := range s.Workspaces() {
		dirs = append(dirs, filepath.Join(root, ".coder"))
	}
	if s.Home != "" {
		dirs = append(slices.DeleteFunc(dirs, func(dir string) bool { return dir == s.Home }), s.Home)
	}
	for _, dir := range dirs {
		names := append([]string{"tmp"}, dataDirNames...) // a home is also a project
		l := Leftover{Dir: dir, Home: dir == s.Home}
		if l.Home {
			names = append(names, ownHomeNames...)
		}
		if l.listContents(names); len(l.ownFiles) > 0 && s.isOwnFolder(l) {
			all = append(all, l)
		}
	}
	return all
}

// isOwnFolder reports whether coder made l's folder, and not another program with a folder of the same name.
func (s *Settings) isOwnFolder(l Leftover) bool {
	if l.Home {
		info, err := os.Lstat(authkey.Path(l.Dir))
		return filepath.Base(l.Dir) == ".coder" || err == nil && info.Mode().Perm() == 0o600
	}
	_, err := os.Lstat(filepath.Join(s.Home, workspacesDir, shortHash(filepath.Dir(l.Dir))))
	return err == nil || slices.Contains(l.ownFiles, filepath.Join(l.Dir, ".gitignore"))
}

// listContents lists what is in the folder. A link is never coder's, and look does not follow it.
func (l *Leftover) listContents(names []string) {
	if info, err := os.Lstat(l.Dir); err != nil || !info.IsDir() {
		return
	}
	entries, _ := os.ReadDir(l.Dir)
	for _, e := range entries {
		note, _ := repofile.ReadOwn(filepath.Join(l.Dir, e.Name()), int64(len(gitignoreText)))
		switch {
		case slices.Contains(names, e.Name()) && e.Type()&^fs.ModeDir == 0,
			e.Name() == ".gitignore" && string(note) == gitignoreText:
			l.ownFiles = append(l.ownFiles, filepath.Join(l.Dir, e.Name()))
		default:
			l.UserFiles = append(l.UserFiles, e.Name())
		}
	}
	store := &Store{dir: l.Dir}
	for _, id := range store.AllSessions() {
		l.Sessions++
		l.InUse = l.InUse || jsonl.InUse(store.Path("log", id))
	}
	l.count()
}

// count adds up coder's own files.
func (l *Leftover) count() {
	for _, path := range l.ownFiles {
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

// Remove deletes coder's own files there, and the folder if nothing else is in it.
func (l Leftover) Remove() error {
	if l.InUse {
		return inputErrorf("%s: a process is working in a session there", l.Dir)
	}
	var err error
	for _, path := range l.ownFiles {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err == nil && os.Remove(l.Dir) == nil && l.Plugins { // fails if something stays
		_ = os.Remove(filepath.Dir(l.Dir))
	}
	return err
}
