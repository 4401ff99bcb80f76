package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/host/repofile"
)

// homeFiles are the files of a home directory that other programs run or trust: shell profiles, keys, and
// what starts programs at login. A trailing slash marks a directory.
var homeFiles = []string{
	".profile", ".login", ".logout", ".inputrc", ".hushlogin", ".pam_environment", ".xprofile", ".xinitrc", ".xsession",
	".xsessionrc",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".mkshrc", ".cshrc", ".tcshrc",
	".config/fish/", ".config/nushell/", ".config/autostart/", ".config/systemd/", ".config/environment.d/",
	".config/git/",
	".gitconfig", ".vimrc", ".tmux.conf",
	".ssh/", ".gnupg/", ".local/bin/", "Library/LaunchAgents/",
}

// ProtectedIn returns what a command must not change below a root, for Limits.Protect: git's and coder's
// own files and, if the root is or contains a home directory, what the user's shells and login run. It
// does not search for repositories deeper inside the root.
//
// In a home directory it lists only existing files, and the profiles of common shells whether they exist
// or not.
func ProtectedIn(root, home string) []string {
	list := []string{filepath.Join(root, ".git") + "/", filepath.Join(root, ".coder") + "/"}
	if home == "" || !isWithin(filepath.Clean(home), filepath.Clean(root)) {
		return list
	}
	if filepath.Clean(home) != filepath.Clean(root) {
		list = append(list, filepath.Join(home, ".coder")+"/")
	}
	for _, name := range homeFiles {
		path := filepath.Join(home, name)
		if !exists(path) && !alwaysProtected[name] {
			continue
		}
		if strings.HasSuffix(name, "/") {
			path += "/"
		}
		list = append(list, path)
	}
	return list
}

// ProtectedLinkTargets returns the targets of links in a home that replace its profiles, keys and login
// programs: such files may be in a workspace.
func ProtectedLinkTargets(home string) (list []string) {
	if home == "" {
		return nil
	}
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return nil
	}
	for _, name := range homeFiles {
		path := filepath.Join(home, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || real == path {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			real += "/"
		}
		list = append(list, real)
	}
	return list
}

// alwaysProtected are protected even if missing: a shell would run them once created.
var alwaysProtected = map[string]bool{
	".profile": true, ".bashrc": true, ".bash_profile": true, ".bash_login": true,
	".zshrc": true, ".zshenv": true, ".zprofile": true, ".zlogin": true, ".ssh/": true, ".config/fish/": true,
	".gitconfig": true,
}

// ProtectedInForGit returns what a command that runs git must not change in a root's repository. The
// command can then add and commit, but cannot make somebody's later git run something: the list covers
// configuration, hooks and attributes, also of submodules. Use it instead of the .git directory of
// [ProtectedIn], and only if .git exists: a repository that the command creates cannot be protected from
// it.
//
// Check afterwards with [FindPlanted] for the one thing that cannot be prevented.
func ProtectedInForGit(root string) (list []string) {
	list = append(list, filepath.Join(root, ".coder")+"/")
	git := filepath.Join(root, ".git")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return append(list, git+"/")
	}
	list = append(list, ProtectedInGit(git)...)
	if _, err := os.Lstat(filepath.Join(git, "worktrees")); err == nil {
		list = append(list, filepath.Join(git, "worktrees")+"/")
	}
	return list
}

// ProtectedInGit returns what makes git run something in a repository's git folder, including its
// submodules.
func ProtectedInGit(git string) []string {
	list := protectedGitDir(git)
	for _, dir := range gitDirsBelow(filepath.Join(git, "modules")) {
		list = append(list, protectedGitDir(dir)...)
	}
	return list
}

// maxConfig limits how much of a git configuration is read; a longer or unreadable one may contain
// anything.
const maxConfig = 1 << 20

// protectedGitDir returns what makes git run something in one git directory.
func protectedGitDir(git string) (list []string) {
	list = []string{filepath.Join(git, "config"), filepath.Join(git, "hooks") + "/", filepath.Join(git, "info") + "/"}
	config, err := repofile.NewRoot(git).Read("config", maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Contains(bytes.ToLower(config), []byte("worktreeconfig")) ||
		exists(filepath.Join(git, "config.worktree")) {
		list = append(list, filepath.Join(git, "config.worktree"))
	}
	if exists(filepath.Join(git, "commondir")) {
		list = append(list, filepath.Join(git, "commondir"))
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// maxModules limits the entries examined in search of submodules.
const maxModules = 2000

// gitDirsBelow returns the git directories of submodules.
func gitDirsBelow(modules string) (dirs []string) {
	looked := 0
	_ = filepath.WalkDir(modules, func(path string, d fs.DirEntry, err error) error {
		looked++
		switch {
		case err != nil || looked > maxModules:
			return fs.SkipAll
		case !d.IsDir() || path == modules:
			return nil
		case exists(filepath.Join(path, "HEAD")) && exists(filepath.Join(path, "objects")):
			dirs = append(dirs, path)
			dirs = append(dirs, gitDirsBelow(filepath.Join(path, "modules"))...)
			return fs.SkipDir
		}
		return nil
	})
	return dirs
}

// FindPlantedHome finds the files of a home that shells and logins run by themselves, like [FindPlanted]. Existing
// ones are protected from a command; missing ones cannot be.
func FindPlantedHome(home string) map[string]string {
	found := make(map[string]string)
	for _, name := range homeFiles {
		if path := filepath.Join(home, name); exists(path) {
			found[path] = stateKey(path)
		}
	}
	return found
}
