package program

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// A view is a folder of coder's own that git takes for the one which the work trees
// of a repository share (GIT_COMMON_DIR). All of the repository's content is there,
// by links. Its configuration is not, nor are its hooks: the only file of settings
// is one that coder wrote, and git never opens another.
//
// Views lie in coder's own folder, which no command sees. They are named by their
// content, and stay from one session to the next.

// shared are the parts of a repository that a view leads to.
var shared = []string{
	"objects", "refs", "packed-refs", "reftable", "logs", "shallow", "HEAD", "worktrees", "modules",
	"info/exclude", "info/attributes", "info/grafts",
	"lfs", "git-crypt", // filters of yours keep their things there
}

// adding are commands that may make the first of the refs, logs or work trees, which
// no link that leads nowhere lets them do.
var adding = []string{"add", "branch", "checkout", "commit", "fetch", "reset", "update-ref", "worktree"}

// makeRoom makes the folders that a command of git would make in the repository.
func (g Git) makeRoom(command string) {
	dirs := []string{"logs"}
	switch command {
	case "worktree":
		dirs = append(dirs, "worktrees")
	case "add":
		dirs = nil
		if slices.ContainsFunc(g.settings, func(s Setting) bool { return s.Key == "filter.lfs.clean" || s.Key == "filter.lfs.process" }) {
			dirs = []string{"lfs"}
		}
	}
	for _, name := range dirs {
		_ = os.Mkdir(filepath.Join(g.found.Common, name), 0o777) // git says what is wrong, if anything is
	}
}

// leadsAway finds a link on the way to a ref, or to its log, that is named by an argument
// of a command that writes it.
func (g Git) leadsAway(args []string) (link string) {
	names := []string{"HEAD", "logs/HEAD"}
	for _, arg := range args {
		for part := range strings.SplitSeq(strings.TrimPrefix(arg, "+"), ":") {
			if !strings.HasPrefix(part, "refs/") {
				part = "refs/heads/" + part
			}
			names = append(names, part, "logs/"+part)
		}
	}
	for _, name := range names {
		if !filepath.IsLocal(name) {
			continue
		}
		at := g.found.Common
		for part := range strings.SplitSeq(name, "/") {
			at = filepath.Join(at, part)
			info, err := os.Lstat(at)
			if err != nil {
				break
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				return at
			}
		}
	}
	return ""
}

// errNoFolder is the error of a Door that has nowhere to keep views.
var errNoFolder = errors.New("git needs a folder for coder: set HOME or CODER_HOME")

// folder is where the views lie.
func (f *finder) folder() (string, error) {
	if f.home == "" {
		return "", errNoFolder
	}
	return filepath.Abs(filepath.Join(f.home, "cache", "git"))
}

// makeView returns the view of a repository whose format is described by settings.
// It makes the view if there is none yet.
func (g Git) makeView(ctx context.Context, format []Setting) (string, error) {
	folder, err := g.door.finder.folder()
	if err != nil {
		return "", err
	}
	config := []byte("[core]\n\tbare = false\n")
	for _, s := range format {
		section, name, last := entry{Setting: s}.parts()
		if name != "" {
			section += ` "` + quoted.Replace(name) + `"`
		}
		config = fmt.Appendf(config, "[%s]\n\t%s = \"%s\"\n", section, last, quoted.Replace(s.Value))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", g.found.Common, config, shared))
	dir := filepath.Join(folder, hex.EncodeToString(sum[:16]))
	if is, err := repofile.Own(filepath.Join(dir, "config"), maxConfig); err == nil && bytes.Equal(is, config) {
		return dir, nil
	}
	expire(folder)
	if err := g.layOut(ctx, dir, config); err != nil {
		return "", fmt.Errorf("prepare git: %w", err)
	}
	return dir, nil
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)

// layOut makes a view, its configuration last, and sees that git reads no settings but
// those in it.
func (g Git) layOut(ctx context.Context, dir string, config []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	for _, name := range shared {
		if err := os.Symlink(filepath.Join(g.found.Common, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	file := filepath.Join(dir, "config")
	if err := atomicfile.Write(file, config, 0o600); err != nil {
		return err
	}
	g.view = dir
	out, err := g.within(ctx, "config", "--list", "-z", "--show-scope", "--show-origin").Output()
	if err == nil && slices.ContainsFunc(parse(out), func(e entry) bool { return e.scope != "command" && e.origin != "file:"+file }) {
		err = ErrTooOld
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// mostViews is how many views are kept. Making one anew costs little.
const mostViews = 200

// expire removes the oldest views where there are many.
func expire(folder string) {
	views, _ := os.ReadDir(folder)
	if len(views) < mostViews {
		return
	}
	age := func(v os.DirEntry) int64 {
		info, err := v.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(views, func(a, b os.DirEntry) int { return cmp.Compare(age(a), age(b)) })
	for _, v := range views[:len(views)-mostViews/2] {
		_ = os.RemoveAll(filepath.Join(folder, v.Name())) // it is tried again
	}
}

// settle has the file .git of a work tree lead to its repository. Git, which was given
// a view when it made the tree, wrote the name of the view there.
func (g Git) settle() error {
	folder, err := g.door.finder.folder()
	if err != nil || g.found.Top == "" {
		return err
	}
	text, err := repofile.Below(g.found.Top).Read(".git", maxLink)
	to, ok := strings.CutPrefix(string(text), "gitdir: "+folder+string(filepath.Separator))
	if err != nil || !ok || !filepath.IsLocal(to) {
		return nil // a folder, as a rule
	}
	return atomicfile.Write(filepath.Join(g.found.Top, ".git"), []byte("gitdir: "+g.found.Dir+"\n"), 0o644)
}

// maxLink bounds a file that names a folder.
const maxLink = 8 << 10
