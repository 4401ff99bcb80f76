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

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// A view is a folder of coder's that serves as a repository's common directory (GIT_COMMON_DIR). It
// links to all content of the repository, but not to its configuration or hooks: its only settings file
// is written by coder, and git opens no other.
//
// Views are in coder's own folder, which commands cannot see. They are named by their content and reused
// by later sessions.

// sharedNames are the parts of a repository that a view links to.
var sharedNames = []string{
	"objects", "refs", "packed-refs", "reftable", "logs", "shallow", "HEAD", "worktrees", "modules",
	"info/exclude", "info/attributes", "info/grafts",
	"lfs", "git-crypt", // data of the user's filters
}

// creatingCommands are commands that may create the first of the refs, logs or work trees, which does not work
// through dangling links.
var creatingCommands = []string{"add", "branch", "checkout", "commit", "fetch", "reset", "update-ref", "worktree"}

// createDirs creates the folders that a git command would create in the repository.
func (g Git) createDirs(command string) {
	dirs := []string{"logs"}
	switch command {
	case "worktree":
		dirs = append(dirs, "worktrees")
	case "add":
		dirs = nil
		if slices.ContainsFunc(g.settings, func(s Setting) bool {
			return s.Key == "filter.lfs.clean" ||
				s.Key == "filter.lfs.process"
		}) {
			dirs = []string{"lfs"}
		}
	}
	for _, name := range dirs {
		_ = os.Mkdir(filepath.Join(g.repo.Common, name), 0o777) // git reports any problem
	}
}

// findRefLink finds a link on the path to a ref or its log, for the refs named in a writing command's
// arguments.
func (g Git) findRefLink(args []string) (link string) {
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
		at := g.repo.Common
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

// errNoViewsDir is the error of a Door without a folder for views.
var errNoViewsDir = errors.New("coder has no data folder to run git in: set HOME or CODER_HOME")

// viewsDir returns the folder of views.
func (f *finder) viewsDir() (string, error) {
	if f.home == "" {
		return "", errNoViewsDir
	}
	return filepath.Abs(filepath.Join(f.home, "cache", "git"))
}

// createView returns the view of a repository whose format is given by settings. It creates the view if
// necessary.
func (g Git) createView(ctx context.Context, format []Setting) (string, error) {
	folder, err := g.launcher.finder.viewsDir()
	if err != nil {
		return "", err
	}
	config := []byte("[core]\n\tbare = false\n")
	for _, s := range format {
		section, name, last := configEntry{Setting: s}.splitKey()
		if name != "" {
			section += ` "` + configQuoter.Replace(name) + `"`
		}
		config = fmt.Appendf(config, "[%s]\n\t%s = \"%s\"\n", section, last, configQuoter.Replace(s.Value))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", g.repo.Common, config, sharedNames))
	dir := filepath.Join(folder, hex.EncodeToString(sum[:16]))
	if is, err := repofile.ReadOwn(filepath.Join(dir, "config"), maxConfig); err == nil && bytes.Equal(is, config) {
		return dir, nil
	}
	removeOldViews(folder)
	if err := g.writeView(ctx, dir, config); err != nil {
		return "", message.Errorf("prepare git: %w", err)
	}
	return dir, nil
}

var configQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)

// writeView creates a view, its configuration last, and verifies that git reads only the settings in it.
func (g Git) writeView(ctx context.Context, dir string, config []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	for _, name := range sharedNames {
		if err := os.Symlink(filepath.Join(g.repo.Common, name), filepath.Join(dir, name)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	file := filepath.Join(dir, "config")
	if err := atomicfile.Write(file, config, 0o600); err != nil {
		return err
	}
	g.viewDir = dir
	out, err := g.viewCommand(ctx, "config", "--list", "-z", "--show-scope", "--show-origin").Output()
	if err == nil && slices.ContainsFunc(parseEntries(out),
		func(e configEntry) bool { return e.scope != "command" && e.origin != "file:"+file }) {
		err = ErrTooOld
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// maxViews limits the number of views. They are cheap to rebuild.
const maxViews = 200

// removeOldViews removes the oldest views if there are too many.
func removeOldViews(folder string) {
	views, _ := os.ReadDir(folder)
	if len(views) < maxViews {
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
	for _, v := range views[:len(views)-maxViews/2] {
		_ = os.RemoveAll(filepath.Join(folder, v.Name())) // a later run tries again
	}
}

// repairGitFile makes a work tree's .git file point to its repository. Git, given a view, wrote the view's name
// there.
func (g Git) repairGitFile() error {
	folder, err := g.launcher.finder.viewsDir()
	if err != nil || g.repo.Top == "" {
		return err
	}
	text, err := repofile.NewRoot(g.repo.Top).Read(".git", maxLink)
	to, ok := strings.CutPrefix(string(text), "gitdir: "+folder+string(filepath.Separator))
	if err != nil || !ok || !filepath.IsLocal(to) {
		return nil // usually a folder
	}
	return atomicfile.Write(filepath.Join(g.repo.Top, ".git"), []byte("gitdir: "+g.repo.Dir+"\n"), 0o644)
}

// maxLink limits the size of a file that names a folder.
const maxLink = 8 << 10
